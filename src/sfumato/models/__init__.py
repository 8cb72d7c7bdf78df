"""The mathematics: pure functions of released values. No data, no noise."""
