# pyarrow makes these kernels at import, where no type checker sees them.
from collections.abc import Callable
from typing import Any

def __getattr__(name: str) -> Callable[..., Any]: ...
