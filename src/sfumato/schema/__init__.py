"""Schemas: what is publicly known about a table before any record is read, and the documents that say it."""
