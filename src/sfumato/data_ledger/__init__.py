"""The account of a data set over all its fits, and the journal that a fit can be taken up from."""
