"""What the data are: schemas, sources, and the map between cells and codes."""
