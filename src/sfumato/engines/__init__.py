"""Where the passes over the records run: processes of this machine, Dask, Spark. The release is the same, bit for bit.

Each is imported when it is first asked for: Dask and Spark are extras.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.engines.dask import Dask
    from sfumato.engines.processes import Processes
    from sfumato.engines.spark import Spark
else:
    from sfumato._lazy import lazy_names

    _HOMES = {
        "Dask": "sfumato.engines.dask",
        "Processes": "sfumato.engines.processes",
        "Spark": "sfumato.engines.spark",
    }
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = ["Dask", "Processes", "Spark"]
