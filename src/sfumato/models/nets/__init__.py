"""Decoders and machines in numpy, alone or one per component, and the flat vectors they work on."""
