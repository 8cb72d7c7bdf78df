"""DPGM: private kernel k-means, then a generative network per cluster."""
