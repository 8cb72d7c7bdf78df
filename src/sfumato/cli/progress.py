"""The display while a fit runs: stages, a bar, and about how long it takes. All of it is public.

Stages are those of the plan, and the estimate is a function of schema, settings and the declared number of rows. How
far a pass over the records has come is never shown: it would count them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar

from sfumato._lazy import later
from sfumato.cli.output import notes, say
from sfumato.errors import SfumatoError

if TYPE_CHECKING:
    from sfumato.fitting.synthesizer import Synthesizer
    from sfumato.methods.tables import duration
    from sfumato.privacy.budget import EstimateCount
    from sfumato.schema.schema import Schema
else:
    duration = later("sfumato.methods.tables.duration")

_LONG = 10.0  # seconds from which on a fit says before how long it takes
_MOST = 0.97  # of the bar, until the fit is done


class _TimeBar(ProgressColumn):
    """A bar of the time that has gone, of the estimate."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def render(self, task: Task) -> ProgressBar:
        return ProgressBar(total=self._seconds, completed=min(task.elapsed or 0.0, _MOST * self._seconds), width=30)


def _seconds(
    synthesizer: Synthesizer, schema: Schema, target: str | None, n_public: int | EstimateCount | None
) -> float | None:
    epsilon = synthesizer.epsilon
    return duration.fit_seconds(synthesizer.method, schema, target=target, n_public=n_public, epsilon=epsilon)


def tell_duration(
    synthesizer: Synthesizer, schema: Schema, target: str | None, n_public: int | EstimateCount | None
) -> None:
    """Say about how long a fit takes, where that is known."""
    seconds = _seconds(synthesizer, schema, target, n_public)
    if seconds is not None:
        about = duration.rounded(seconds)
        say(f"A fit takes about {about} of processor time, from the schema, ε and the number of rows alone.")


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal that something is made, and for how long it has been."""
    if not notes.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=notes, transient=True) as progress:
        progress.add_task(what, total=None)
        yield


@contextlib.contextmanager
def stages(
    synthesizer: Synthesizer, schema: Schema, target: str | None, n_public: int | EstimateCount | None
) -> Iterator[Callable[[str], None]]:
    """Show the stage at work, with a bar; and before, how long it takes if that is long."""
    if not notes.is_terminal:
        yield lambda stage: None
        return
    seconds = _seconds(synthesizer, schema, target, n_public)
    if seconds is not None and seconds >= _LONG:
        notes.print(f"[yellow]Note:[/] this takes about {duration.rounded(seconds)}.")
    total = None if seconds is not None else _steps(synthesizer, schema, target, n_public)
    bar = BarColumn(bar_width=30) if seconds is None else _TimeBar(seconds)
    about = "" if seconds is None else f"of about {duration.rounded(seconds)}"
    columns = (SpinnerColumn(), bar, TimeElapsedColumn(), TextColumn(about), TextColumn("{task.description}"))
    done: Counter[str] = Counter()
    with Progress(*columns, console=notes, transient=True) as progress:
        task = progress.add_task("Calibrating the noise and reading the first statistic…", total=total)

        def show(stage: str) -> None:
            done[stage] += 1
            times = f", {done[stage]} times" if done[stage] > 1 else ""
            progress.update(task, advance=1, description=f"Released: {escape(stage)}{times}. Going on…")

        yield show


def _steps(
    synthesizer: Synthesizer, schema: Schema, target: str | None, n_public: int | EstimateCount | None
) -> int | None:
    """Return how many releases the plan has; None where that needs the fit itself to say."""
    try:
        return sum(stage.count for stage in synthesizer.plan(schema, target=target, n_public=n_public).stages)
    except SfumatoError:  # the fit says it
        return None
