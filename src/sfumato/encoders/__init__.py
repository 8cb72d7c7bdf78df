"""Records ↔ vectors and cells: public maps with bounds known in advance."""
