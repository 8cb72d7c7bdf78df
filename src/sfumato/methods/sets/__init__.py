"""Methods for sets of items that buy pairs of them."""
