"""Options of a fit and of a search beside data, schema and method: collected at the front, checked here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypedDict, final

from sfumato.errors import ConfigError, did_you_mean, require_instance, require_integer, require_name, require_path
from sfumato.fitting.arguments import number_of_rows
from sfumato.privacy.budget import EstimateCount
from sfumato.records.engine import Engine
from sfumato.release.model import ReleaseValue


class SearchKeywords(TypedDict, total=False):
    """Attributes of `FitOptions` that a search takes as keyword arguments."""

    target: str | None
    areas: Sequence[str] | None
    questions: Sequence[Any] | None
    n_public: int | EstimateCount | None
    seed: int | None
    ledger: str | os.PathLike[str] | None
    as_source: bool
    accept_draft: bool


class FitKeywords(SearchKeywords, total=False):
    """Attributes of `FitOptions` as keyword arguments of a fit: all of them."""

    progress: Callable[[str], None] | None
    checkpoint: str | os.PathLike[str] | None
    workers: int | None
    engine: Engine | None
    prior: ReleaseValue | str | os.PathLike[str] | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """Options of a fit beside data, schema and method: keyword arguments of `fit`; `tune` takes the first eight.

    Attributes:
        target: column whose classes are modelled apart; by default one class.
        areas: columns of labels that all others are counted by; by default the schema's.
        questions: that the fit measures with a part of its budget, such as `"ols: income ~ age"`,
            `{"mean": "income", "by": ["region", "sex"]}`; by default the schema's.
        n_public: the public number of rows (of linked rows, of units), from 1; by default the schema's.
            `EstimateCount()` spends part of the budget on a noisy count.
        seed: a whole number from 0, for tests and papers only: reproducible noise, and a release that says it is not
            private.
        ledger: the account of these data, a file that `create_ledger` made: it is charged the whole plan before a
            record is read, and the charge stands whatever becomes of the fit.
        as_source: whether samples have the storage types of the source, where these hold their values, rather than
            types that follow from the schema. One cell may decide such a type (a column of whole numbers becomes one
            of floats where a value is missing): they are published and NOT covered by the guarantee, and the
            certificate says so.
        accept_draft: go on with facts that were read off the records (`draft: true`, `source: data`). The guarantee
            does not cover them; certificate and report say so.
        progress: called with the name of each stage when it has been charged, as often as it is charged.
        checkpoint: a file that keeps what has been released so far. If it is there, the fit goes on from it and
            charges nothing twice: the call and the data have to be the same. It holds no record. Remove it when the
            release is saved: a third call would give the same release again.
        workers: processes of this machine that sum over the records, from 1; the release is the same, bit for bit.
        engine: a cluster that sums over the records, instead of workers: `Dask(client)` or `Spark(session)` of
            `sfumato.engines`. A data frame of Dask or Spark brings its own.
        prior: a release of the same schema, such as last year's, or its file: the model follows it where noise hides
            the records. It costs nothing, as it is public; whoever is in the data of both has both ε added.

    Raises:
        ConfigError: names the option that is outside its domain.

    Example:
        >>> FitOptions(target="income", workers=4).workers
        4
    """

    target: str | None = None
    areas: Sequence[str] | None = None
    questions: Sequence[Any] | None = None
    n_public: int | EstimateCount | None = None
    seed: int | None = None
    ledger: str | os.PathLike[str] | None = None
    as_source: bool = False
    accept_draft: bool = False
    progress: Callable[[str], None] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    workers: int | None = None
    engine: Engine | None = None
    prior: ReleaseValue | str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        require_name(target=self.target)
        if self.n_public is not None and not isinstance(self.n_public, EstimateCount):
            number_of_rows(self.n_public)
        if self.seed is not None:
            require_integer(at_least=0, seed=self.seed)
        if self.ledger is not None:
            require_path(ledger=self.ledger)
        if self.checkpoint is not None:
            require_path(checkpoint=self.checkpoint)
        require_instance(bool, "True or False", as_source=self.as_source)
        require_instance(bool, "True or False", accept_draft=self.accept_draft)
        if self.progress is not None and not callable(self.progress):
            # its type only: what was passed by mistake may be records
            raise ConfigError(
                f"Expected progress to be a function of a stage's name, got {type(self.progress).__name__}."
            )
        if not isinstance(self.prior, ReleaseValue | str | os.PathLike | None):
            raise ConfigError(
                f"Expected prior to be a release or the path of one, got {type(self.prior).__name__}. Save one first, "
                "or load it."
            )
        self._check_engine()

    def _check_engine(self) -> None:
        if self.workers is not None and self.engine is not None:
            raise ConfigError("Expected workers or engine, got both. Name one.")
        if self.workers is not None:
            require_integer(at_least=1, workers=self.workers)
        if self.engine is not None and not callable(getattr(self.engine, "summed", None)):
            raise ConfigError(
                "Expected engine to be Dask(client), Spark(session) or Processes(n) of sfumato.engines, got a "
                f"{type(self.engine).__name__}."
            )

    @classmethod
    def from_keywords(cls, keywords: Mapping[str, Any], *, of: type[SearchKeywords] = FitKeywords) -> Self:
        """The options among a caller's keyword arguments; ConfigError where one is no option of `of`."""
        for name in keywords:
            if name not in of.__annotations__:
                raise ConfigError(
                    f"Expected keyword arguments {', '.join(of.__annotations__)}, got {name!r}."
                    f"{did_you_mean(name, ('schema', 'epsilon', 'method', 'delta', *of.__annotations__))} Settings "
                    "stand beside a method's name, method='max-entropy', or in its class."
                )
        return cls(**keywords)
