"""Privacy loss: budgets, plans, accounting, the ledger and the certificate. Knows no data and draws no noise."""
