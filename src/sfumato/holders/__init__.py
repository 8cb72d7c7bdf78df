"""One release of the records of several holders, none of whom sees more of the others' than the release.

    init_holder("north/", "schema.yaml", messages="shared/", name="north", holders=3, epsilon=1, delta=1e-6)
    holder_round("north/", "north.csv", messages="shared/", out="all.sfm")     # again until the release is there

Files are all that is exchanged. Proof: docs/proofs/holders.md; against whom it protects: docs/holders.md.
"""

from sfumato._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
