"""Estimates with intervals from a release of a table: what its noisy measurements say, and how surely."""
