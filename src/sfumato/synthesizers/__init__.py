"""Recipes: one file, one method, composed of learners."""
