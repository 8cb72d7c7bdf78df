"""Schemas out of documents of other tools and of metadata standards."""
