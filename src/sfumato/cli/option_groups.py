"""Options that go together, as one parameter of a command: a dataclass, each of whose fields is an option."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

import sfumato
from sfumato.cli.options import (
    DEFAULT_METHOD,
    AreasOption,
    DeltaOption,
    MethodOption,
    QuestionsOption,
    SetOption,
    TargetOption,
    whole_number,
)
from sfumato.cli.settings import flat_settings, make_method

if TYPE_CHECKING:
    from sfumato.fitting.synthesizer import Synthesizer
    from sfumato.privacy.budget import EstimateCount
    from sfumato.privacy.risk import Risk
    from sfumato.schema.schema import Schema


_ESTIMATE = "estimate"


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each dataclass among its parameters spread out: its fields are options, in its place.

    Raises:
        ValueError: two parameters have one name.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Callable[..., Any]] = {}
    members: dict[str, list[str]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if is_dataclass(group):
            assert isinstance(group, type)
            own = _options(group)
            groups[parameter.name], members[parameter.name] = group, [option.name for option in own]
            parameters += own
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**values: Any) -> None:  # noqa: ANN401 - of options
        for name, group in groups.items():
            values[name] = group(**{member: values.pop(member) for member in members[name]})
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _options(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            entry.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if entry.default is MISSING else entry.default,
            annotation=_in_panel(hints[entry.name], getattr(group, "PANEL", None)),
        )
        for entry in fields(group)
    ]


def _in_panel(annotation: Any, panel: str | None) -> Any:  # noqa: ANN401 - of typing
    """The annotation of an option, which the help shows under this heading: the `PANEL` of its group."""
    if panel is None:
        return annotation
    kind, option = get_args(annotation)
    option = copy(option)
    option.rich_help_panel = panel
    return Annotated[kind, option]


@dataclass(frozen=True, kw_only=True)
class ChosenMethod:
    """The method of a plan or a fit, its settings and its δ."""

    method: MethodOption = DEFAULT_METHOD
    set_: SetOption = None
    delta: DeltaOption = None

    def at(self, epsilon: float | None) -> Synthesizer:
        """The method, private at ε, in nats."""
        return make_method(self.method, epsilon, self.delta, flat_settings(self.set_))


@dataclass(frozen=True, kw_only=True)
class PublicFacts:
    """The number of rows, the target, the areas and the questions of a plan or a fit."""

    rows: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="The public number of rows, about. Overrides the schema's. Or the word `estimate`: declare none, and "
            "estimate it with part of the budget; needs --delta.",
        ),
    ] = None
    target: TargetOption = None
    areas: AreasOption = None
    questions: QuestionsOption = None

    @property
    def n_public(self) -> int | EstimateCount | None:
        """The public number of rows, or an estimated one.

        Raises:
            ConfigError: neither a whole number nor `estimate`.
        """
        if self.rows is None or self.rows == _ESTIMATE:
            return None if self.rows is None else sfumato.EstimateCount()
        return whole_number(self.rows, "--rows", _ESTIMATE)

    def described(self, known: Schema) -> Schema:
        """The schema with the areas and the questions of the call."""
        from sfumato.schema.named_questions import with_questions
        from sfumato.schema.schema_facts import with_areas

        return with_questions(with_areas(known, self.areas), self.questions)

    def at_risk(
        self, synthesizer: Synthesizer, risk: Risk | None, known: Schema, n_public: int | EstimateCount | None
    ) -> Synthesizer:
        """The method with the ε of a risk, where there is one."""
        if risk is None:
            return synthesizer
        return synthesizer.at_risk(risk, known, target=self.target, n_public=n_public)
