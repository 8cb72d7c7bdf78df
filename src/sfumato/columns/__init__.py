"""Kinds of columns: what is public about each, and the total maps between cells and codes."""
