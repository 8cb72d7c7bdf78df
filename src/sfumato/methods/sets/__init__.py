"""Methods for sets of items that count pairs of them."""
