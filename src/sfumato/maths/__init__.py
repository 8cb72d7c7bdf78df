"""The mathematics that methods share. Pure functions: no data, no privacy noise."""
