"""Sight of the records for their holder: drafts, proposals, reviews and checks of a schema."""
