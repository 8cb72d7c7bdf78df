"""Linked rows: units with their first row, and steps from a row to the next."""
