"""The tables of MaxEntropy: two releases, and a chain of softmaxes between them and the rows."""
