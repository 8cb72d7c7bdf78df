"""Shapes of data as lenses on a plain table, which is all that is fitted, sampled and asked."""
