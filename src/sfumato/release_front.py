"""The release as users have it: the value with questions, a page and scores.

What answers, writes and scores is imported when it is asked for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, final

from sfumato.errors import named_arguments
from sfumato.extras import require_extra
from sfumato.inference.question_methods import QuestionMethods, UnitEstimates
from sfumato.release.model import ReleaseValue, read_release
from sfumato.release.unit_releases import table_of

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.inference.agreement import Disagreement


@final
class Release(QuestionMethods, ReleaseValue):
    """A generative model made of noisy measurements, with the certificate of what it cost.

    Attributes:
        schema: the public schema it was fitted under.
        certificate: what it cost.
        sampler: name and public settings of its sampler.
        parameters: the sampler's arrays; functions of the measurements.
        measurements: every noisy statistic that left the records.
        form: the form in which samples come back.
    """

    @property
    def _release(self) -> ReleaseValue:
        return self

    @property
    def units(self) -> UnitEstimates:
        """Estimates about the units of linked rows: number of rows, constants, first row.

        Privacy: none (a function of the release).

        Raises:
            ConfigError: the release is not of linked rows.

        Example:
            >>> release.units.mean("number of rows of patient").interval()  # doctest: +SKIP
            (3.29, 3.41)
            >>> release.units.share({"sex": "f"})  # doctest: +SKIP
        """
        return UnitEstimates(self)

    @named_arguments
    def table(self, name: str) -> Release:
        """Return the part of a release of a database that is of one table, to be asked.

        It is a release of linked rows: its answers are about the rows of that table, those of its `units` about the
        rows above, each with its number of rows and the first of them. Of the table of units it is one of single rows.
        Errors are those of independent units, whatever rows of one have in common, also of a table below another one.

        Privacy: none (a function of the release).

        Raises:
            ConfigError: the release is not of a database, or has no such table.

        Example:
            >>> release.table("visits").mean("score").interval()  # doctest: +SKIP
            (51.2, 52.4)
        """
        return table_of(self, name)

    def _repr_html_(self) -> str:
        from sfumato.report.release_card import release_card

        return release_card(self)

    def columns(self) -> pd.DataFrame:
        """List the columns: what the release keeps of each, and what to declare to keep what is lost.

        Privacy: none (a function of the release).

        Returns:
            A frame with a row for each released column and each that the fit left out: `column`; `kind`; `known`,
            declared or estimated; `kept`, bounds or how many labels; `lost`, the share of its rows that tell nothing of
            the records' own values, in [0, 1]; `loss`, that in words; `declare`, what would keep it.

        Example:
            >>> release.columns().query("lost > 0.05")[["column", "loss", "declare"]]  # doctest: +SKIP
        """
        import pandas as pd

        from sfumato.report.column_lines import column_lines

        lines = [
            (line.name, line.kind, line.known, line.kept, line.lost, line.loss, line.cure)
            for line in column_lines(self)
        ]
        return pd.DataFrame(lines, columns=["column", "kind", "known", "kept", "lost", "loss", "declare"])

    def disagreements(self) -> tuple[Disagreement, ...]:
        """Return what the model's rows say otherwise than was measured: columns, and pairs of columns.

        Empty where the model has what was measured, but for its noise. A difference of one column is of its mean, or of
        a share; the level is 10⁻⁴ for all comparisons of a release together.

        Privacy: none (a function of the release).

        Example:
            >>> release.disagreements()  # doctest: +SKIP
            ()
        """
        from sfumato.inference.agreement import disagreements

        return disagreements(self)

    @named_arguments
    def report(self, path: str | os.PathLike[str], *, real: object = None, overwrite: bool = False) -> None:
        """Write one self-contained HTML page about the release: `sfumato.report.write_report`.

        Privacy: none without `real` (a function of the release). With `real` the page is NOT private, and says so.

        Args:
            path: the page to write, `.html`.
            real: the real rows that were released, to compare with.
            overwrite: whether an existing page may be replaced.

        Raises:
            ConfigError: `real` is compared with, and scikit-learn or xgboost is not installed.
            OutputError: the page exists, or cannot be written.
            SchemaError, DataError: the real rows cannot be read under the release's schema.

        Example:
            >>> release.report("page.html")  # doctest: +SKIP
        """
        from sfumato.report.write import write_report

        write_report(self, path, real=real, overwrite=overwrite)

    @named_arguments
    def evaluate(
        self,
        real: object,
        *,
        test: object = None,
        target: str | None = None,
        n: int | None = None,
        train_rows: int | None = 10_000,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Score samples against the real rows: `sfumato.evaluate.evaluate`.

        Privacy: none. It reads the real records without noise; no figure is private.

        Args:
            real: the real rows that were released.
            test: real rows that were not released, to score classifiers on.
            target: the column that classifiers predict; by default the release's own target.
            n: rows to draw; by default the public number of rows.
            train_rows: the most rows of a table that classifiers learn from; None takes all. The scores say the error.
            seed: of the rows that are drawn and of the classifiers.

        Raises:
            ConfigError: an argument is outside its domain, or scikit-learn or xgboost is not installed.
            SchemaError, DataError: the real rows cannot be read under the release's schema.

        Example:
            >>> release.evaluate(frame)["fidelity"]["tvd_1way"]  # doctest: +SKIP
            0.021
        """
        from sfumato.evaluate.scores import evaluate

        require_extra("evaluate", "score synthetic rows")
        target = self.sampler.get("target") if target is None else target
        rows = self.sample(n, seed=seed)
        return evaluate(real, rows, schema=self.schema, test=test, target=target, train_rows=train_rows, seed=seed)


def load(path: str | os.PathLike[str]) -> Release:
    """Read a release, from anyone.

    Args:
        path: a directory or a `.sfm` file that `save` wrote.

    Returns:
        The release, checked: sampling from it will not fail.

    Raises:
        ReleaseError: not a release, damaged, hostile, or of a format that this version does not know.
    """
    return read_release(path, Release)
