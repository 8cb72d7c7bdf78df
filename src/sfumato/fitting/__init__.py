"""The surroundings of every fit: plan, account, journal, what a schema leaves open."""
