"""How noise is added: the audited zone. Everything exact enters here and leaves noisy, after the ledger was charged."""
