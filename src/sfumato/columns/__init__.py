"""Kinds of columns: what is public about each, and the total maps between cells and codes."""

from sfumato._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
