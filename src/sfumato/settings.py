"""Settings that are more than a number: each choice is a type, given to a method's argument.

>>> from sfumato import settings
>>> settings.Mixture(n_components=5)
Mixture(n_components=5, full_covariances=False, iterations=20)
"""

from sfumato._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
