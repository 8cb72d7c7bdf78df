"""Settings of all tests."""

from hypothesis import settings

# how long an example takes says more of the machine's other work than of the code
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
