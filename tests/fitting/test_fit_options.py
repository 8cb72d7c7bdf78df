"""Options of a fit: one list of names, checked in one place, and refused by name."""

import dataclasses
from pathlib import Path

import pytest

import sfumato
from sfumato import FitOptions, MaxEntropy, Schema
from sfumato.columns import Boolean
from sfumato.errors import ConfigError
from sfumato.fitting.arguments import FitKeywords, SearchKeywords

SCHEMA = Schema(columns={"member": Boolean()}, rows=100)
METHOD = MaxEntropy(epsilon=1.0)


def test_keyword_arguments_are_the_attributes() -> None:
    attributes = {entry.name: entry.type for entry in dataclasses.fields(FitOptions)}
    assert {name: hint.__forward_arg__ for name, hint in FitKeywords.__annotations__.items()} == attributes
    assert SearchKeywords.__annotations__.items() < FitKeywords.__annotations__.items()


def test_defaults_leave_all_to_schema_and_machine() -> None:
    assert {getattr(FitOptions(), entry.name) for entry in dataclasses.fields(FitOptions)} == {None, False}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 3}, "target to be the name of a column, got a int"),
        ({"n_public": 0}, "n_public"),
        ({"n_public": 10.5}, "n_public"),
        ({"seed": -1}, "seed"),
        ({"ledger": 3}, "ledger to be a path"),
        ({"checkpoint": ""}, "checkpoint to be a path"),
        ({"as_source": "no"}, "as_source to be True or False, got a str"),
        ({"accept_draft": 1}, "accept_draft to be True or False, got a int"),
        ({"progress": 3}, "progress to be a function"),
        ({"workers": 0}, "workers"),
        ({"workers": 2, "engine": object()}, "workers or engine, got both"),
        ({"engine": "dask"}, "engine to be Dask"),
        ({"wrokers": 2}, "got 'wrokers'"),
    ],
)
def test_bad_options_are_refused_by_name_before_data_are_looked_at(options: dict, message: str, tmp_path: Path) -> None:
    absent = tmp_path / "absent.csv"
    for call in (
        lambda: FitOptions.from_keywords(options),
        lambda: METHOD.fit(absent, schema=SCHEMA, **options),
        lambda: sfumato.fit(absent, SCHEMA, epsilon=1.0, **options),
    ):
        with pytest.raises(ConfigError, match=message):
            call()


@pytest.mark.parametrize("name", ["progress", "checkpoint", "workers", "engine"])
def test_a_search_takes_no_options_of_one_fit(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"got '{name}'"):
        sfumato.tune(tmp_path / "absent.csv", method=[METHOD], schema=SCHEMA, **{name: None})
