"""Questions that are named before a fit, which measures them with a part of the budget.

    questions:
      - ols: "cost ~ age + C(arm) * C(sex)"
      - logit: "readmitted ~ length + C(ward)"
        weight: 2                                  # of the questions' part of the budget
      - table: [region, sex, employed]             # how many rows have each combination
      - mean: income
        by: [region, sex]
      - quantile: income
        by: region

Of linked rows they are about units: their constants, number of rows, first row, and features of all their rows.

      - mean: change of score
        by: arm
      - correlation: lag 2 of score

A question is public. What the records say of it costs budget: docs/proofs/questions.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, final

from sfumato.columns.facts import plain_value, shown
from sfumato.columns.kinds import Integer, TabularKind
from sfumato.errors import ConfigError, SchemaError
from sfumato.extras import require_extra
from sfumato.schema.branch_features import question_branch
from sfumato.schema.formula_expressions import column
from sfumato.schema.formula_grammar import formula_terms
from sfumato.schema.schema_facts import AnySchema, SchemaFacts
from sfumato.schema.unit_features import features_in, lag_of

QuestionForm: TypeAlias = Literal["ols", "logit", "poisson", "table", "mean", "share", "quantile", "correlation"]
FORMULAS: tuple[QuestionForm, ...] = ("ols", "logit", "poisson")
FORMS: tuple[QuestionForm, ...] = (*FORMULAS, "table", "mean", "share", "quantile", "correlation")
_MOST_QUESTIONS, _MOST_COLUMNS = 100, 4
_EXAMPLE = 'such as "ols: income ~ age" or {mean: income, by: region}'


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuestion:
    """One question that a fit measures.

    Attributes:
        form: `ols`, `logit` or `poisson`: a regression; `table`: rows of each combination of two to four columns;
            `mean`, `share` or `quantile` of a column by the labels of up to three others; `correlation`: of pairs of
            rows of a unit.
        formula: of a regression.
        columns: of a table; of the others the one that is asked of.
        by: columns of labels, whose groups are told apart.
        weight: its part of the questions' budget, beside those of others.

    Raises:
        SchemaError: a part is missing, or outside its domain.

    Example:
        >>> NamedQuestion(form="mean", columns=("income",), by=("region",)).words
        'mean: income by region'
    """

    form: QuestionForm
    formula: str = ""
    columns: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise SchemaError(f"Expected a question of {', '.join(FORMS)}, got {shown(self.form)}.")
        weight = plain_value(self.weight)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 1e-3 <= weight <= 1e3:
            raise SchemaError(f"Expected weight of a question from 0.001 to 1000, got {shown(self.weight)}.")
        named = (*self.columns, *self.by)
        if not all(isinstance(name, str) for name in named) or len(set(named)) < len(named):
            raise SchemaError(f"Expected {self.form} to name columns, each once, got {shown(list(named))}.")
        if self.form in FORMULAS:
            if not isinstance(self.formula, str) or "~" not in self.formula or self.columns or self.by:
                raise SchemaError(f'Expected a formula such as "y ~ x" for {self.form}, got {shown(self.formula)}.')
            try:
                formula_terms(self.formula)
            except ConfigError as error:
                raise SchemaError(str(error)) from None
            return
        fewest = 2 if self.form == "table" else 1
        if not fewest <= len(self.columns) <= (_MOST_COLUMNS if fewest > 1 else 1) or len(named) > _MOST_COLUMNS:
            raise SchemaError(
                f"Expected {'two to four columns' if fewest > 1 else 'one column, by up to three others'} for "
                f"{self.form}, got {len(named)}."
            )
        if self.form == "table" and self.by:
            raise SchemaError("Expected no `by` beside table, got some. Put its columns into the table.")
        if self.form == "correlation" and self.by:
            raise SchemaError("Expected no `by` beside correlation, got some. Take it out.")

    @property
    def words(self) -> str:
        """The question in one line, as it may be written too."""
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"{self.form}: {self.formula or ', '.join(self.columns)}{by}"

    @property
    def regression(self) -> str:
        """The formula of a regression that answers it: of means, a term for each combination of labels; or none."""
        return mean_formula(self.columns[0], self.by) if self.form == "mean" else self.formula

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that it names, but those of a formula."""
        return (*self.columns, *self.by)

    @property
    def axes(self) -> tuple[str, ...]:
        """The columns whose combinations are counted for it, if any are."""
        return self.by if self.form == "mean" else self.named

    @property
    def names(self) -> tuple[str, ...]:
        """All columns and features of units in it."""
        return (*self.named, *(formula_terms(self.formula).columns if self.formula else ()))

    def to_dict(self) -> dict[str, Any]:
        """The question as a schema file holds it."""
        of = self.formula or (list(self.columns) if self.form == "table" else self.columns[0])
        by = {"by": list(self.by)} if self.by else {}
        return {self.form: of, **by, **({} if self.weight == 1 else {"weight": self.weight})}


def mean_formula(of: str, by: Sequence[str]) -> str:
    """The regression that says the mean of a column in each group: a term for each combination of labels."""
    groups = ":".join(f"C({column(name).text})" for name in by)
    return f"{column(of).text} ~ {f'0 + {groups}' if by else '1'}"


def with_questions(schema: AnySchema, questions: Sequence[Any] | None) -> AnySchema:
    """The schema with the questions of a call, where it names some.

    Raises:
        SchemaError: they are none, or name columns that the schema does not release.
    """
    return schema if questions is None else replace(schema, questions=questions)


def require_formulas(schema: SchemaFacts) -> None:
    """Refuse a fit that could not measure its named questions, before anything is charged.

    Raises:
        ConfigError: one is a regression or a mean, and the library of formulas is not installed; says what to run.
    """
    if any(read_question(question).regression for question in schema.questions):
        require_extra("regression", "measure the named questions")


def read_question(entry: object) -> NamedQuestion:
    """One question, as it may be written.

    Raises:
        SchemaError: it is none.
    """
    if isinstance(entry, NamedQuestion):
        return entry
    if isinstance(entry, str):
        form, _, rest = entry.partition(":")
        parts: dict[str, Any] = {form.strip(): rest.strip()}
        if form.strip() not in FORMULAS:
            of, _, by = rest.partition(" by ")
            names, groups = ([name.strip() for name in text.split(",") if name.strip()] for text in (of, by))
            parts = {form.strip(): names, "by": groups}
        entry = parts
    if not isinstance(entry, Mapping):
        raise SchemaError(f"expected a question {_EXAMPLE}, got {shown(entry)}.")
    forms: list[Any] = [key for key in entry if key in FORMS]
    if len(forms) != 1:
        raise SchemaError(f"expected one of {', '.join(FORMS)}, {_EXAMPLE}, got {shown(dict(entry))}.")
    (form,) = forms
    unknown = next((key for key in entry if key not in (form, "by", "weight")), None)
    if unknown is not None:
        raise SchemaError(f"expected by or weight beside {form}, got {shown(unknown)}.")
    weight, by = entry.get("weight", 1.0), _names(entry.get("by", ()), "by")
    if form in FORMULAS:
        return NamedQuestion(form=form, formula=entry[form], by=by, weight=weight)
    return NamedQuestion(form=form, columns=_names(entry[form], form), by=by, weight=weight)


def read_questions(entries: object, faults: list[str]) -> tuple[NamedQuestion, ...]:
    """The questions that a list states; `faults` gets a sentence for every fault."""
    if isinstance(entries, str | Mapping) or not isinstance(entries, Sequence):
        faults.append(f"Expected questions to be a list, {_EXAMPLE}, got {shown(entries)}.")
        return ()
    if len(entries) > _MOST_QUESTIONS:
        faults.append(f"Expected at most {_MOST_QUESTIONS} questions, got {len(entries)}.")
        return ()
    questions: list[NamedQuestion] = []
    for number, entry in enumerate(entries, 1):
        try:
            question = read_question(entry)
        except SchemaError as error:
            faults.append(f"Question {number}: {error}")
            continue
        if any(other.words == question.words for other in questions):
            faults.append(f"Expected each question once, got {question.words!r} twice.")
        questions.append(question)
    return tuple(questions)


def _names(value: object, key: str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"expected {key} to name columns, got {shown(value)}.")
    return tuple(names)


def question_faults(schema: SchemaFacts, questions: Sequence[NamedQuestion]) -> list[str]:
    """Columns that questions name and the schema does not release, or of which they cannot be asked."""
    faults: list[str] = []
    for question in questions:
        if schema.tree is not None:  # its columns are read against those of the table below that has them
            if not question_branch(question.names, schema):
                faults.append(
                    f"Expected the question {question.words!r} to be of {schema.tree.units!r}: of their columns, of "
                    "the rows of one table right below, and of numbers, means and labels of the tables before it, "
                    f"such as 'mean of score'. Got {', '.join(map(shown, question.names))}."
                )
            continue
        kinds = schema.of_kind(TabularKind)
        try:
            if schema.linked:
                kinds |= _of_units(question, schema)
            if question.form == "correlation":
                _require_pairs(question, schema)
        except SchemaError as error:
            faults.append(f"In the question {question.words!r}: {error}")
            continue
        if question.form != "correlation":
            faults += _column_faults(question, schema, kinds)
    return faults


def _column_faults(question: NamedQuestion, schema: SchemaFacts, kinds: Mapping[str, TabularKind]) -> list[str]:
    """The faults of the columns of a question; `kinds` are those that it may name."""
    faults, opened = [], schema.open
    for name in question.names:
        if name not in {*kinds, *opened} and (name in question.named or name not in schema.columns):
            faults.append(f"Expected released columns in the question {question.words!r}, got {shown(name)}.")
    for name in opened:
        if name in question.names:
            faults.append(
                f"Expected declared columns in the question {question.words!r}, got {shown(name)}, which the fit "
                "is to discover: what can be asked of it is not known before. Declare its bounds or labels."
            )
    numeric = {*schema.numeric, *(name for name in kinds if kinds[name].is_numeric)}
    numbers = [name for name in question.by if name in numeric]
    if question.form == "share":
        numbers += [name for name in question.columns if name in numeric]
    if numbers:
        faults.append(f"Expected labels in the question {question.words!r}, got {shown(numbers[0])}, a number.")
    of = question.columns[0] if question.form in ("mean", "quantile") else ""
    if of in kinds and of not in numeric:
        faults.append(f"Expected a number in the question {question.words!r}, got {shown(of)}. Ask of its share.")
    return faults


def _of_units(question: NamedQuestion, schema: SchemaFacts) -> dict[str, TabularKind]:
    """The columns of units in a question that rows have not: their number of rows, and features of all rows."""
    assert schema.unit is not None
    unit, count = schema.unit, schema.unit.count_name
    counted = {} if count in schema.columns else {count: Integer(lower=unit.fewest, upper=unit.max_rows)}
    features = features_in(question.names, schema)
    return {**counted, **{feature.name: feature.kind for feature in features}}


def _require_pairs(question: NamedQuestion, schema: SchemaFacts) -> None:
    """Refuse a correlation that is not of pairs of rows of a unit."""
    if not schema.linked or lag_of(question.columns[0], schema) is None:
        raise SchemaError(
            f"Expected pairs of rows of linked units, such as 'lag 2 of score', got {shown(question.columns[0])}. Ask "
            "of columns by ols."
        )
