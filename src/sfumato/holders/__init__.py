"""One release of the records of several holders, none of whom sees more of the others' than the release.

    init_holder("north/", "schema.yaml", messages="shared/", name="north", holders=3, epsilon=1, delta=1e-6)
    holder_round("north/", "north.csv", messages="shared/", out="all.sfm")     # again until the release is there

Files are all that is exchanged. Proof: docs/proofs/holders.md; against whom it protects: docs/holders.md.
"""

from sfumato._lazy import explain_calls
from sfumato.holders.cards import Card
from sfumato.holders.site import Round, holder_round, init_holder

__all__ = ["Card", "Round", "holder_round", "init_holder"]

explain_calls(__name__)
