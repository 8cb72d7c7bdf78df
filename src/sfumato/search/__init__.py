"""Search for settings, and releases that are accepted or not."""
