"""How good is a release: scores of synthetic against real data.

Everything here reads real records without noise. No figure it returns is private: publish one
only if the real data may be published.
"""

from sfumato._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
