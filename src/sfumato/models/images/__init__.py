"""Images as coefficients at a common pose, and their sampler."""
