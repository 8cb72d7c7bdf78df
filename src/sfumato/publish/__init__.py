"""The publication of a release, in files that others read: tables, codebook, cards, records of catalogues."""
