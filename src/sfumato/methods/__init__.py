"""Recipes, a family a folder: how a model is learned from noisy releases."""
