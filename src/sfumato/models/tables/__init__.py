"""Samplers of tables: chains of columns, and the same given the values of some."""
