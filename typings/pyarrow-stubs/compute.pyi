# pyarrow makes these kernels at import, where no type checker sees them.
from typing import Any

def __getattr__(name: str) -> Any: ...
