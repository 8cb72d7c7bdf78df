"""The tables of ConditionalGaussian: two releases, and a chain of softmaxes between them and the rows."""
