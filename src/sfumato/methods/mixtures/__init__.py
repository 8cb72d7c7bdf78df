"""Private k-means and mixtures of Gaussians by noisy sums and moments."""
