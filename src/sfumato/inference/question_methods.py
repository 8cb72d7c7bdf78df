"""Questions to a release of a table as methods, regressions among them, answered from its measurements.

What answers them is imported when a question is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from sfumato.errors import ConfigError, named_arguments, require_name
from sfumato.extras import require_extra
from sfumato.maths.threads import few_threads
from sfumato.release.model import ReleaseValue, kept
from sfumato.release.unit_releases import units_of
from sfumato.schema.set_columns import sets_alone
from sfumato.schema.unit_features import features_in

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.inference.calibrated_rows import By
    from sfumato.inference.estimate import Correlations, Estimate, Estimates
    from sfumato.inference.joint_errors import HypothesisTest
    from sfumato.inference.questions import Questions
    from sfumato.inference.regression_results import Regression, Regressions
    from sfumato.inference.set_questions import SetQuestions


class QuestionMethods(ABC):
    """Answers from the noisy measurements that a release holds, with standard errors.

    All are functions of the release: they cost no budget, and read no record.
    """

    @property
    @abstractmethod
    def _release(self) -> ReleaseValue:
        """The release whose measurements answer."""

    @property
    def _questions(self) -> Questions:
        from sfumato.inference.linked_rows import questions_of

        return questions_of(self._release)

    @property
    def _of_sets(self) -> SetQuestions:
        from sfumato.inference.set_questions import SetQuestions

        return kept(self._release, "_set_questions", SetQuestions)

    @property
    def _rows_or_sets(self) -> Questions | SetQuestions:
        """Questions to a table, or to sets alone."""
        return self._of_sets if sets_alone(self._release.schema) else self._questions

    @overload
    def mean(self, column: str, *, by: None = None, target: str = "population") -> Estimate: ...
    @overload
    def mean(self, column: str, *, by: str | Sequence[str], target: str = "population") -> Estimates: ...
    @few_threads
    def mean(self, column: str, *, by: By = None, target: str = "population") -> Estimate | Estimates:
        """Return the mean of a column of numbers, of the rows where it is not missing.

        Values beyond the schema's bounds count as the bounds.

        Privacy: none (a function of the release).

        Args:
            column: of numbers.
            by: a column of labels, or several: the mean of each group's rows. Of several, name the question before the
                fit (`questions=`).
            target: "population", of which the records are independent draws, or "table", the records themselves.

        Raises:
            ConfigError: a column is not there, or not of that kind.
            EstimateError: the release holds no measurements, or noise hides what is asked.

        Example:
            >>> release.mean("age").interval()  # doctest: +SKIP
            (38.4, 38.8)
        """
        return self._questions.mean(column, by, target)

    @overload
    def share(self, condition: Mapping[str, object], *, by: None = None, target: str = "population") -> Estimate: ...
    @overload
    def share(
        self, condition: Mapping[str, object], *, by: str | Sequence[str], target: str = "population"
    ) -> Estimates: ...
    @few_threads
    def share(
        self, condition: Mapping[str, object], *, by: By = None, target: str = "population"
    ) -> Estimate | Estimates:
        """Return the share of rows with these labels, such as `{"sex": "f"}`; arguments and errors as `mean`.

        Of numbers and dates: of rows in a span, both ends within, such as `{"age": (18, 65)}` or `{"age": (18, None)}`,
        or of a value or a word beside numbers (`{"cases": "<5"}`); None stands for neither.
        A span that ends where cells of the release do is known best.

        Of sets: of rows that hold an item, or all items of a list, such as `{"diagnoses": ["E11", "I10"]}`. Of sets
        alone at most two items together, if the method counts pairs.

        Example:
            >>> release.share({"sex": "f"}, by="income")["high"].value  # doctest: +SKIP
            0.15
        """
        return self._rows_or_sets.share(condition, by, target)

    @overload
    def set_size(self, column: str, *, by: None = None, target: str = "population") -> Estimate: ...
    @overload
    def set_size(self, column: str, *, by: str, target: str = "population") -> Estimates: ...
    @few_threads
    def set_size(self, column: str, *, by: str | None = None, target: str = "population") -> Estimate | Estimates:
        """Return the mean number of items of a column of sets, of which `max_length` count; arguments as `mean`.

        Example:
            >>> release.set_size("basket").value  # doctest: +SKIP
            3.4
        """
        return self._rows_or_sets.set_size(column, by, target)

    @overload
    def missing(self, column: str, *, by: None = None, target: str = "population") -> Estimate: ...
    @overload
    def missing(self, column: str, *, by: str, target: str = "population") -> Estimates: ...
    @few_threads
    def missing(self, column: str, *, by: str | None = None, target: str = "population") -> Estimate | Estimates:
        """Return the share of missing cells of a column declared nullable; arguments and errors as `mean`."""
        require_name(column=column)
        return self._questions.share({column: None}, by, target)

    @few_threads
    def count(self, condition: Mapping[str, object] | None = None, *, target: str = "table") -> Estimate:
        """Return the number of rows with these labels or in spans, or of all; arguments and errors as `share`."""
        return self._rows_or_sets.count(condition, target)

    @few_threads
    def crosstab(self, first: str, second: str, *, normalize: bool = False, target: str = "table") -> Estimates:
        """Return the number of rows of each pair of labels, or their shares; arguments and errors as `mean`.

        Pairs of which the model has no row are left out.

        Args:
            first: a column of labels.
            second: another.
            normalize: whether shares of all rows are wanted.
            target: as `mean`.

        Example:
            >>> release.crosstab("sex", "income").table("std_error")  # doctest: +SKIP
        """
        return self._questions.crosstab(first, second, normalize, target)

    @overload
    def quantile(self, column: str, q: float = 0.5, *, by: None = None, target: str = "population") -> Estimate: ...
    @overload
    def quantile(
        self, column: str, q: float = 0.5, *, by: str | Sequence[str], target: str = "population"
    ) -> Estimates: ...
    @few_threads
    def quantile(
        self, column: str, q: float = 0.5, *, by: By = None, target: str = "population"
    ) -> Estimate | Estimates:
        """Return the q-quantile of a column of numbers, by default the median; arguments and errors as `mean`.

        Reference: Woodruff 1952, intervals by the distribution function turned round.
        """
        return self._questions.quantile(column, q, by, target)

    @overload
    def variance(self, column: str, *, by: None = None, target: str = "population") -> Estimate: ...
    @overload
    def variance(self, column: str, *, by: str, target: str = "population") -> Estimates: ...
    @few_threads
    def variance(self, column: str, *, by: str | None = None, target: str = "population") -> Estimate | Estimates:
        """Return the variance of a column of numbers; arguments and errors as `mean`."""
        return self._questions.variance(column, by, target)

    @few_threads
    def correlation(self, first: str, second: str, *, target: str = "population") -> Estimate:
        """Return Pearson's correlation of two columns of numbers; arguments and errors as `mean`."""
        return self._questions.correlation(first, second, target)

    @few_threads
    def correlations(self, columns: Sequence[str], *, target: str = "population") -> Correlations:
        """Return the correlation of each two of some columns of numbers; arguments and errors as `mean`.

        Example:
            >>> release.correlations(["age", "income", "hours"]).table("std_error")  # doctest: +SKIP
        """
        return self._questions.correlations(columns, target)

    @few_threads
    def anova(self, column: str, labels: str, *, target: str = "population") -> HypothesisTest:
        """Test whether the mean of a number is the same for all labels of a column: one-way analysis of variance.

        Wald's test: variances need not be the same, as in Welch's, and privacy noise is in the errors.

        Args:
            column: of numbers.
            labels: a column of labels.
            target: as `mean`.

        Raises:
            ConfigError, EstimateError: as `mean`.

        Example:
            >>> release.anova("income", "region").pvalue  # doctest: +SKIP
        """
        return self._questions.anova(column, labels, target)

    @few_threads
    def independence(self, first: str, second: str, *, target: str = "population") -> HypothesisTest:
        """Test whether two columns of labels are independent: chi-square, with privacy noise in its law.

        Labels that noise hides, and those after the twenty commonest, count as one. Missing cells are a label.

        Raises:
            ConfigError, EstimateError: as `mean`.

        Reference: Rao and Scott 1984.

        Example:
            >>> release.independence("sex", "income").pvalue  # doctest: +SKIP
        """
        from sfumato.inference.associations import independence

        return independence(self._questions, first, second, target=target)

    @overload
    def ols(self, formula: str, *, by: None = None, target: str = "population") -> Regression: ...
    @overload
    def ols(self, formula: str, *, by: str, target: str = "population") -> Regressions: ...
    @few_threads
    def ols(self, formula: str, *, by: str | None = None, target: str = "population") -> Regression | Regressions:
        """Return least squares, from the noisy moments; of a left side of two labels, of its second.

        Args:
            formula: such as "wage ~ age + C(sex)", read by formulaic. What the measurements do not say is refused:
                products of three columns, but of two numbers and a target of few labels, and squares beside others.
            by: a column of labels: a regression for each label's rows.
            target: "population", of which the records are independent draws, or "table", the records themselves.

        Raises:
            ConfigError: it is no formula of the release's columns, or formulaic is not installed.
            EstimateError: the release holds no measurements, or they do not answer it.

        Example:
            >>> release.ols("wage ~ age + C(sex)").conf_int(level=0.9)  # doctest: +SKIP
        """
        return self._fit("ols", formula, by, target)

    @overload
    def logit(self, formula: str, *, by: None = None, target: str = "population") -> Regression: ...
    @overload
    def logit(self, formula: str, *, by: str, target: str = "population") -> Regressions: ...
    @few_threads
    def logit(self, formula: str, *, by: str | None = None, target: str = "population") -> Regression | Regressions:
        """Return logistic regression of a column of two labels, of which the second is meant; arguments as `ols`.

        Example:
            >>> release.logit("member ~ age + C(sex)").params  # doctest: +SKIP
        """
        return self._fit("logit", formula, by, target)

    @overload
    def poisson(self, formula: str, *, by: None = None, target: str = "population") -> Regression: ...
    @overload
    def poisson(self, formula: str, *, by: str, target: str = "population") -> Regressions: ...
    @few_threads
    def poisson(self, formula: str, *, by: str | None = None, target: str = "population") -> Regression | Regressions:
        """Return Poisson regression of a left side that is never below 0, with a logarithmic link; arguments as `ols`.

        Standard errors are right whatever the law of the left side, if the logarithm of its mean is a sum of terms.

        Example:
            >>> release.poisson("visits ~ age + C(sex)").params  # doctest: +SKIP
        """
        return self._fit("poisson", formula, by, target)

    @overload
    def gamma(self, formula: str, *, by: None = None, target: str = "population") -> Regression: ...
    @overload
    def gamma(self, formula: str, *, by: str, target: str = "population") -> Regressions: ...
    @few_threads
    def gamma(self, formula: str, *, by: str | None = None, target: str = "population") -> Regression | Regressions:
        """Return gamma regression of a left side that is never below 0, with a logarithmic link; arguments as `ols`.

        Its scores are functions of all columns of the formula together: of more than two columns, three with the
        target of the fit, it is refused. Poisson regression has the same coefficients where the mean is right.

        Example:
            >>> release.gamma("cost ~ C(arm)").params  # doctest: +SKIP
        """
        return self._fit("gamma", formula, by, target)

    def _fit(self, family: str, formula: str, by: str | None, target: str) -> Regression | Regressions:
        require_extra("regression", "read formulas")
        from sfumato.inference.families import FAMILIES
        from sfumato.inference.regression import fit_formula

        return fit_formula(self._questions, formula, by, target, FAMILIES[family])

    @few_threads
    def answers(
        self, *, target: str = "population", most_pairs: int | None = 60, level: float = 0.95,
        simultaneous: bool = False,
    ) -> pd.DataFrame:  # fmt: skip
        """List the questions that the release can answer and those that it cannot, with typical standard errors.

        Privacy: none (a function of the release).

        Args:
            target: as `mean`, of all numbers.
            most_pairs: pairs of columns that are asked of, those first that go together most strongly under the model:
                at most so many, and fewer where the list would take longer than about three seconds; None for all.
            level: of the intervals.
            simultaneous: whether all intervals of the list hold at once so often, not each.

        Returns:
            A frame with a row for each question: `kind`; `first` and `second`, the columns; `answered`, "yes", "some"
            of its numbers, "no", or "not asked" of columns and pairs that are left; `numbers`, how many it has;
            `value`, `std_error`, `low` and `high`, in the column's unit: of several numbers only `std_error`, the
            median; `why`, where the answer is not yes.

        Raises:
            ConfigError: an argument is outside its domain.
            EstimateError: the release holds no measurements.

        Example:
            >>> release.answers().query("answered != 'yes'")[["kind", "first", "second", "why"]]  # doctest: +SKIP
        """
        if sets_alone(self._release.schema):
            from sfumato.inference.set_questions import set_answers

            return set_answers(self._of_sets, target=target, level=level, simultaneous=simultaneous)
        from sfumato.inference.answers import answers

        return answers(self._questions, target=target, most_pairs=most_pairs, level=level, simultaneous=simultaneous)

    @few_threads
    def replicates(
        self, m: int = 20, *, n: int | None = None, seed: int | None = None, target: str = "population"
    ) -> list[Any]:
        """Draw m synthetic tables that differ as much as noise, and sampling, leave open what the records were.

        Make any analysis on each, and put the results together with `sfumato.combine`: its intervals hold the noise.

        Privacy: none (a function of the release).

        Args:
            m: how many, at least 2.
            n: rows of each; by default five times the public number.
            seed: the same seed gives the same tables; random if not given.
            target: "population", or "table" for what is asked of the records themselves.

        Returns:
            Frames (or arrays) of the kind that was fitted.

        Raises:
            ConfigError: an argument is outside its domain.
            EstimateError: the release holds no measurements to draw from, more than 60 columns, or so much noise about
                them that rows of a model cannot follow it.

        Example:
            >>> fits = [smf.ols("wage ~ age", table).fit() for table in release.replicates(20)]  # doctest: +SKIP
            >>> sfumato.combine(fits).conf_int()  # doctest: +SKIP
        """
        from sfumato.inference.replicates import replicate_codes

        tables = map(self._release._decoder.table, replicate_codes(self._release, m, n, seed, target))
        return list(map(self._release._contained, tables))

    @named_arguments
    def replicate_batches(
        self, m: int = 20, *, n: int | None = None, seed: int | None = None, target: str = "population"
    ) -> Iterator[pa.Table]:
        """Draw the tables of `replicates` one at a time, with a first column `replicate`, 1 to m; arguments as there.

        Raises:
            ConfigError: also where the release has a column of that name.
        """
        from sfumato.inference.replicates import INDEX, replicate_codes

        tables = map(self._release._decoder.table, replicate_codes(self._release, m, n, seed, target))
        if INDEX in self._release.schema.written:
            raise ConfigError(f"Expected no column called {INDEX!r} beside the index of replicates, got one.")
        places = enumerate(tables, 1)
        return (rows.add_column(0, INDEX, pa.array([i] * rows.num_rows, pa.int64())) for i, rows in places)


class UnitEstimates(QuestionMethods):
    """Answers of a release of linked rows about its units, of which each is a record.

    Its columns are the constants, the number of rows (`count_column`), and those of a unit's first row by the order,
    which are missing of a unit without rows. What a unit's later rows are is in the model, and asked here where it was
    named before the fit: features such as `change of score`, and `correlation("score", "lag 2 of score")`.

    Privacy: none (a function of the release).
    """

    def __init__(self, release: ReleaseValue) -> None:
        self._units, self._whole = units_of(release), release

    def __repr__(self) -> str:
        return f"UnitEstimates({', '.join(self.columns)})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that can be asked of."""
        names = [name for question in self._whole.schema.questions for name in question.names]
        return (*self._units.schema.released, *(f.name for f in features_in(names, self._whole.schema)))

    @property
    def _questions(self) -> Questions:
        from sfumato.inference.linked_rows import questions_of_units
        from sfumato.inference.unit_questions import UnitQuestions

        if self._whole.schema.questions:
            return kept(self._whole, "_unit_questions", UnitQuestions)
        return questions_of_units(self._whole, self._units)

    @property
    def _release(self) -> ReleaseValue:
        return self._units
