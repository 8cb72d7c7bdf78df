"""What a descent tells, and asks of, who runs it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


class Progress:
    """Where to go on, and what to keep. Does nothing by itself."""

    def start(self) -> tuple[int, dict[str, np.ndarray]]:
        """Return the number of steps already done and charged, and the state after them."""
        return 0, {}

    def done(self, step: int, last: bool, state: Callable[[], dict[str, np.ndarray]]) -> None:
        """Note that so many steps are done; `state` gives all that is needed to go on: released values."""
