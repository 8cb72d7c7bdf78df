"""What happens around every fit: plan, account, journal, what a schema leaves open, search for settings."""
