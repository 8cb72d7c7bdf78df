from sfumato.engines.dask import Dask as Dask
from sfumato.engines.processes import Processes as Processes
from sfumato.engines.spark import Spark as Spark
