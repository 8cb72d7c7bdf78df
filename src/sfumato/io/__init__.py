"""Reading and writing: a file a format, behind one interface."""
