"""The state of the studio: the data, the schema's file, and a fit that runs whether or not anybody looks."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.data_ledger.data_ledger import final_write
from sfumato.desk.drafting import draft_schema
from sfumato.errors import ConfigError, SfumatoError
from sfumato.io.atomic import refuse_existing, refuse_inputs
from sfumato.io.chunks import Source
from sfumato.io.sources import open_source
from sfumato.methods.max_entropy import MaxEntropy
from sfumato.privacy.budget import EstimateCount, PrivacyBudget
from sfumato.privacy.certificate import Description
from sfumato.privacy.certificate_form import Protected
from sfumato.publish.pack import pack
from sfumato.release_front import Release, load
from sfumato.report import write_report
from sfumato.schema.documents import parse_document, read_document, read_text, with_comments, write_text, yaml_text
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema
from sfumato.studio.fields import form_of, with_form
from sfumato.studio.ledgers import LedgerAccount, ledger_beside


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of a fit, as the page asks for it.

    Attributes:
        epsilon: in nats.
        delta: chance of failure; needed where the number of rows is estimated.
        rows: the public number of rows; None estimates it, or takes the schema's.
        target: the column whose classes are modelled apart.
        ledger: the account that the fit charges, a path; None takes the one beside the table.
        total_epsilon: what all fits of the table may cost, where that ledger is not there yet; None: as much as this.
        total_delta: the δ of all of them.
    """

    epsilon: float = 1.0
    delta: float | None = 1e-6
    rows: int | None = None
    target: str | None = None
    ledger: str | None = None
    total_epsilon: float | None = None
    total_delta: float | None = None

    def method(self) -> MaxEntropy:
        """The default method at this budget."""
        return MaxEntropy(epsilon=self.epsilon, delta=self.delta)


@dataclass(slots=True)
class FitState:
    """A fit that runs, or has run: names of stages and errors, which never hold a value of a record."""

    planned: tuple[str, ...] = ()
    stages: list[str] = field(default_factory=list)
    state: str = "running"
    error: str = ""
    is_written: bool = False


class StudioSession:
    """One table on its way to a release; its files lie in one folder and outlive browser and studio.

    Args:
        folder: where `schema.yaml`, `release.sfm` and `report.html` are written; made if it is not there.
        data: the table, a path.
    """

    def __init__(self, folder: Path, data: str | None = None) -> None:
        self.folder = folder
        self.schema_path = folder / "schema.yaml"
        self.release_path = folder / "release.sfm"
        self.report_path = folder / "report.html"
        self.pack_path = folder / "pack"
        self.data: str | None = None
        self.n_skipped = 0  # records of it that cannot be read
        self.fit: FitState | None = None
        self.notes: Mapping[str, str] = {}  # of a draft that was made here, by column: for the holder's screen
        self._suggested: list[Any] = []
        self._before: list[str] = []  # the schema's file before each change
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        if data is not None:
            self.open(data)

    def open(self, data: str) -> None:
        """Take a table by its path; without a schema in the folder, draft one, in one pass in chunks.

        Raises:
            DataError, ConfigError, OutputError: nothing is there, it is damaged, or the folder cannot be written.
        """
        if not data:
            raise ConfigError("Expected the path of a table, got nothing. Type where it is on this machine.")
        with self._lock:
            source = open_source(data)
            for path in (self.schema_path, self.release_path, self.report_path):
                refuse_inputs(path, data=data)
            if not self.schema_path.exists():
                self.folder.mkdir(parents=True, exist_ok=True)
                draft = draft_schema(source)
                self.notes = draft.notes
                write_text(self.schema_path, draft.to_yaml(), secret=True)
            self.n_skipped = sum(1 for _ in source.notes("skipped"))
            self.data = data

    def document(self) -> dict[str, Any]:
        """Return the content of the schema's file."""
        return read_document(self.schema_path)

    def schema(self) -> Schema:
        """Return the schema as its file has it now; whoever edits the file meanwhile is heard."""
        return OpenSchema.from_dict(self.document(), base=self.folder)

    def text(self) -> str:
        """Return the schema's file."""
        return read_text(self.schema_path)

    def form(self) -> dict[str, str]:
        """Return the fields of the schema as they stand, and the version of the file that they are of."""
        return {**form_of(self.document(), self.schema()), "version": self._version()}

    def rules(self) -> list[Any]:
        """Return the rules of the schema, and after them those that were suggested."""
        own = self.document().get("rules", [])
        return [*own, *(rule for rule in self._suggested if rule not in own)]

    def save(self, form: Mapping[str, str]) -> dict[str, str]:
        """Write the fields of a form into the schema's file, whole or not at all.

        Returns:
            What is wrong: field → message, `form` for the whole; the file then stays as it was.
        """
        with self._lock:
            if form.get("version") != self._version():
                return {"form": "The file was changed meanwhile, elsewhere. Here it is as it stands: change it again."}
            document, text = self.document(), self.text()
            changed, faults = with_form(document, form, self.rules(), self.folder)
            if not faults and changed != document:
                draft = "draft" in changed  # whose comments count records
                after = with_comments(yaml_text(changed), text) if draft else yaml_text(changed)
                write_text(self.schema_path, after, overwrite=True, secret=draft)
                self._before.append(text)
            return faults

    def suggest_rules(self) -> None:
        """Look for rules that all records keep, in some passes: for the holder's screen, until they are ticked.

        Raises:
            DataError, ConfigError: the table cannot be read, or there is none.
        """
        draft = draft_schema(self._source(), suggest_rules=True)
        self._suggested = [*draft.schema.rules, *draft.candidates]

    def undo(self) -> None:
        """Write the schema's file as it was before the last change; nothing where there is none."""
        with self._lock:
            if self._before:
                text = self._before.pop()
                draft = "draft" in parse_document(text, str(self.schema_path))
                write_text(self.schema_path, text, overwrite=True, secret=draft)

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        return bool(self._before)

    def _version(self) -> str:
        return hashlib.sha256(f"{self.text()}{self._suggested}".encode()).hexdigest()

    def _source(self) -> Source:
        if self.data is None:
            raise ConfigError("Expected a table, got none. Name one first.")
        return open_source(self.data, csv=self.schema().reader.csv)

    def plan(self, budget: Budget) -> Description:
        """Return the plan of a fit, with its forecasts. Reads no record."""
        schema = self.schema()
        return budget.method().description(schema, target=budget.target, n_public=_rows(budget, schema))

    def account(self, budget: Budget) -> LedgerAccount:
        """Return the ledger that a fit would charge, as it stands. Reads no record.

        Raises:
            ConfigError: there is no table, or the file is no ledger.
            OutputError: it is a file that the studio writes itself.
        """
        if self.data is None:
            raise ConfigError("Expected a table, got none. Name one first.")
        path = ledger_beside(self.data, self.folder) if budget.ledger is None else Path(budget.ledger)
        for own in (self.schema_path, self.release_path, self.report_path):
            refuse_inputs(own, ledger=path)
        schema, planned = self.schema(), self.plan(budget)
        epsilon = budget.epsilon if budget.total_epsilon is None else budget.total_epsilon
        delta = budget.total_delta if budget.total_delta is not None else planned.delta
        plan = budget.method().plan(schema, target=budget.target, n_public=_rows(budget, schema))
        return LedgerAccount.of(path, PrivacyBudget(epsilon, delta), plan, Protected(**schema.protects).name)  # type: ignore[arg-type] - private, so there is a delta

    def start(self, budget: Budget) -> None:
        """Start the fit, in a thread that no browser can stop. What is refused is refused before anything is spent.

        It charges the table's ledger, which is opened if it is not there.

        Raises:
            BudgetExceededError: the ledger cannot pay for it.
            ConfigError: a fit runs already, there is no table, or the ledger is none.
            OutputError: the folder holds a release already, or the ledger cannot be written.
        """
        with self._lock:
            if self.data is None:
                raise ConfigError("Expected a table, got none. Name one first.")
            if self.fit is not None and self.fit.state == "running":
                raise ConfigError("Expected no fit at work, got one. Wait for its end.")
            if self.schema().draft:
                raise ConfigError("Expected a schema that is no draft. Give your word on the page of its columns.")
            refuse_existing(self.release_path, overwrite=False)
            refuse_existing(self.report_path, overwrite=False)
            account = self.account(budget)
            account.open()
            self.fit = FitState(tuple(stage.name for stage in self.plan(budget).stages))
            arguments = (self.data, budget, account.path, self.fit)
            self._thread = threading.Thread(target=self._run, args=arguments, name="fit")
            self._thread.start()  # no daemon: the process ends when the release is written

    def release(self) -> Release | None:
        """Return the release; None where there is none yet, or a fit is at work."""
        running = self.fit is not None and self.fit.state == "running"
        return load(self.release_path) if self.release_path.exists() and not running else None

    def pack(self, publication: Mapping[str, str]) -> None:
        """Write the folder to publish. Free: a function of the release.

        Raises:
            ConfigError, OutputError, ReleaseError: there is no release, or the folder exists or cannot be written.
        """
        if not self.release_path.exists():
            raise ConfigError("Expected a release, got none yet. Fit one first.")
        pack(self.release_path, self.pack_path, publication=publication)

    def wait(self) -> None:
        """Wait for the fit's end."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, data: str, budget: Budget, ledger: Path, fit: FitState) -> None:
        try:
            schema = self.schema()
            release = budget.method().fit(
                open_source(data, csv=schema.reader.csv), schema=schema, target=budget.target,
                n_public=_rows(budget, schema), progress=fit.stages.append, ledger=ledger,
            )  # fmt: skip
            with final_write(ledger):
                release.save(self.release_path)
            fit.is_written = True
            write_report(release, self.report_path)
            fit.state = "done"
        except SfumatoError as error:
            fit.error, fit.state = str(error), "failed"
        except Exception as error:  # noqa: BLE001 - a library's own words may hold cells: only the kind is shown
            fit.error, fit.state = f"An error of the kind {type(error).__name__} in Sfumato.", "failed"


def _rows(budget: Budget, schema: Schema) -> int | EstimateCount | None:
    """Return the declared number of rows; else one to be estimated, unless the schema has it."""
    if budget.rows is not None:
        return budget.rows
    return None if schema.rows is not None else EstimateCount()
