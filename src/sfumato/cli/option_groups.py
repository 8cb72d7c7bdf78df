"""Options that go together, as one parameter of a command: a dataclass, each of whose fields is an option."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, get_type_hints

import sfumato
from sfumato.cli.options import (
    DEFAULT_METHOD,
    AreasOption,
    DeltaOption,
    EstimateRowsOption,
    MethodOption,
    PresetOption,
    QuestionsOption,
    RowsOption,
    SetOption,
    SettingsOption,
    TargetOption,
)
from sfumato.cli.settings import flat_settings, make_method
from sfumato.errors import ConfigError

if TYPE_CHECKING:
    from sfumato.fitting.synthesizer import Synthesizer
    from sfumato.privacy.budget import EstimateCount
    from sfumato.privacy.risk import Risk
    from sfumato.schema.schema import Schema


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
            annotation=hints[entry.name],
        )
        for entry in fields(group)
    ]


@dataclass(frozen=True, kw_only=True)
class ChosenMethod:
    """The method of a plan or a fit, its settings and its δ."""

    method: MethodOption = DEFAULT_METHOD
    preset: PresetOption = None
    set_: SetOption = None
    settings: SettingsOption = None
    delta: DeltaOption = None

    def at(self, epsilon: float | None) -> Synthesizer:
        """The method, private at ε, in nats."""
        settings = flat_settings(self.set_, self.settings)
        return make_method(self.method, epsilon, self.delta, settings, preset=self.preset)


@dataclass(frozen=True, kw_only=True)
class PublicFacts:
    """The number of rows, the target, the areas and the questions of a plan or a fit."""

    rows: RowsOption = None
    estimate_rows: EstimateRowsOption = False
    target: TargetOption = None
    areas: AreasOption = None
    questions: QuestionsOption = None

    @property
    def n_public(self) -> int | EstimateCount | None:
        """The public number of rows, or an estimated one.

        Raises:
            ConfigError: both are asked for.
        """
        if self.estimate_rows and self.rows is not None:
            raise ConfigError("Expected either --rows or --estimate-rows, got both.")
        return sfumato.EstimateCount() if self.estimate_rows else self.rows

    def described(self, known: Schema) -> Schema:
        """The schema with the areas and the questions of the call."""
        from sfumato.schema.areas import with_areas
        from sfumato.schema.named_questions import with_questions

        return with_questions(with_areas(known, self.areas), self.questions)

    def at_risk(
        self, synthesizer: Synthesizer, risk: Risk | None, known: Schema, n_public: int | EstimateCount | None
    ) -> Synthesizer:
        """The method with the ε of a risk, where there is one."""
        if risk is None:
            return synthesizer
        return synthesizer.at_risk(risk, known, target=self.target, n_public=n_public)
