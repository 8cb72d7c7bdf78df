"""Records seen through a schema, and the one pass over them: the only way to an exact value."""
