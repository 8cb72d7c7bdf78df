"""Gaussian mixtures and factor analysis: parameters, densities, samplers."""
