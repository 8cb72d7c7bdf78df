"""Private fits: (records, ledger) → released parameters."""
