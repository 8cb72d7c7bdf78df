"""Where the passes over the records run: processes of this machine, Dask, Spark. The release is the same, bit for bit.

Each is imported when it is first asked for: Dask and Spark are extras.
"""

from sfumato._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
