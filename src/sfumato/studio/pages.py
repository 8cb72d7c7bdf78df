"""The pages of the studio: each one a form of its own, without a script."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from sfumato.errors import ConfigError, SfumatoError
from sfumato.io.sources import STREAMED
from sfumato.privacy import words
from sfumato.privacy.certificate_cards import certificate_card
from sfumato.release_front import Release
from sfumato.report.column_lines import column_lines, cures
from sfumato.report.page import templates
from sfumato.report.release_card import release_card
from sfumato.rules import rule_text
from sfumato.studio.fields import KINDS, tables_below
from sfumato.studio.session import Budget, StudioSession

MOST_BYTES = 65_536
"""The longest form that is read but that of the schema: no record comes this way."""

MOST_BYTES_OF_A_SCHEMA = 8 * 2**20  # which has long lists of labels
SCALE = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
"""The ε that the page of the budget offers."""

SAMPLE_ROWS = 10
MOST_SHOWN = 300
_SUFFIXES = tuple(f".{form}" for form in STREAMED)
_STEPS = {"/": "Table", "/questions": "Columns", "/budget": "Budget", "/fit": "Release"}


def make_app(session: StudioSession) -> Starlette:
    """Return the pages of a session; `Guard` has to stand before them."""
    pages = Pages(session)
    return Starlette(
        routes=[
            Route("/", pages.reading(pages.table)),
            Route("/", pages.writing(pages.take), methods=["POST"]),
            Route("/questions", pages.reading(pages.questions)),
            Route("/questions", pages.writing(pages.answer, most=MOST_BYTES_OF_A_SCHEMA), methods=["POST"]),
            Route("/undo", pages.writing(pages.undo), methods=["POST"]),
            Route("/folder", pages.writing(pages.look), methods=["POST"]),
            Route("/budget", pages.reading(pages.budget)),
            Route("/fit", pages.reading(pages.fit)),
            Route("/fit", pages.writing(pages.start), methods=["POST"]),
            Route("/pack", pages.writing(pages.pack), methods=["POST"]),
            Route("/report", pages.reading(pages.report)),
        ]
    )


Form = Mapping[str, str]


class Pages:
    """The pages, by address.

    Args:
        session: what is in hand.
    """

    def __init__(self, session: StudioSession) -> None:
        self._session, self._folder = session, Path.cwd()

    def reading(self, page: Callable[[Form], Response]) -> Callable[[Request], Any]:
        """Return the endpoint of a page that changes nothing."""

        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(self._respond, page, dict(request.query_params))

        return endpoint

    def writing(self, act: Callable[[Form], Response], most: int = MOST_BYTES) -> Callable[[Request], Any]:
        """Return the endpoint of a form of at most so many bytes."""

        async def endpoint(request: Request) -> Response:
            body = bytearray()
            async for part in request.stream():
                body += part
                if len(body) > most:
                    return self._failure_page("The form is too long.", 413)
            try:
                fields = parse_qs(body.decode(), keep_blank_values=True)
            except ValueError:
                return self._failure_page("Expected a form in UTF-8.", 400)
            return await run_in_threadpool(self._respond, act, {name: values[-1] for name, values in fields.items()})

        return endpoint

    def _respond(self, page: Callable[[Form], Response], form: Form) -> Response:
        try:
            return page(form)
        except SfumatoError as error:
            return self._failure_page(str(error), 400)
        except Exception as error:  # noqa: BLE001 - a library's own words may hold cells: only the kind is shown
            return self._failure_page(f"An error of the kind {type(error).__name__} in Sfumato.", 500)

    def _failure_page(self, why: str, status: int) -> Response:
        return _page("failed.html", "That did not work", "", status, why=why)

    def table(self, form: Form) -> Response:
        """Show which table is in hand, and ask for one: by its path, or among the files of a folder."""
        listing, folder = listing_of(self._folder), str(self._session.folder)
        return _page("table.html", "Your table", "/", data=self._session.data, folder=folder, place=listing)

    def look(self, form: Form) -> Response:
        """Go to another folder; its name stays out of addresses."""
        self._folder = listing_of(form.get("folder", "").strip()).path
        return RedirectResponse("/", 303)

    def take(self, form: Form) -> Response:
        """Open the table that was named."""
        self._session.open(form.get("data", "").strip())
        return RedirectResponse("/questions", 303)

    def questions(self, form: Form) -> Response:
        """Show the schema as a form."""
        if self._session.data is None:
            return RedirectResponse("/", 303)
        return self._schema_page(self._session.form(), {}, saved=form.get("saved"))

    def _schema_page(self, form: Form, faults: Mapping[str, str], saved: str | None = None) -> Response:
        """Return the form with what is wrong beside its fields, and the file beside it."""
        session, document = self._session, self._session.document()
        schema = session.schema()
        return _page(
            "columns.html", "Questions about your table", "/questions", 400 if faults else 200, form=form,
            faults=faults, faulty=_faulty(faults, list(document["columns"])), saved=saved, draft=schema.draft,
            path=str(session.schema_path), yaml=session.text(), names=list(document["columns"]), kinds=KINDS,
            notes=session.notes, can_undo=session.can_undo,
            tables=list(tables_below(document)), one_table=schema.database is None,
            linked=schema.linked, rules=[rule_text(rule) for rule in session.rules()], n_skipped=session.n_skipped,
            n_rules=len(document.get("rules", ())), named=[named.words for named in schema.questions],
        )  # fmt: skip

    def answer(self, form: Form) -> Response:
        """Write the form into the schema's file, or show it again with what is wrong."""
        if self._session.data is None:
            return RedirectResponse("/", 303)
        faults = self._session.save(form)
        if faults:
            now = self._session.form()
            stale = form.get("version") != now["version"]
            return self._schema_page(now if stale else form, faults)
        if form.get("act") == "rules":
            self._session.suggest_rules()
            return RedirectResponse("/questions?saved=rules", 303)
        return RedirectResponse("/budget" if form.get("act") == "on" else "/questions?saved=yes", 303)

    def undo(self, form: Form) -> Response:
        """Take the last change of the schema's file back."""
        self._session.undo()
        return RedirectResponse("/questions?saved=undo", 303)

    def budget(self, form: Form) -> Response:
        """Show the accuracy that some budgets would give, one at a time; all of it from public facts."""
        if self._session.data is None:
            return RedirectResponse("/", 303)
        session, budget = self._session, _budget(form)
        schema, plan, scale = session.schema(), session.plan(budget), sorted({*SCALE, budget.epsilon})
        return _page(
            "budget.html", "A budget and its accuracy", "/budget", budget=budget, draft=schema.draft, scale=scale,
            at=scale.index(budget.epsilon), columns=list(schema.released), schema_rows=schema.rows, who=words.who(plan),
            cost=words.cost(plan), risks=words.risks(plan), stages=words.forecasts(plan),
            account=session.account(budget), opening=self._opening(budget), command=self._command(budget),
            fields={  # of a form that are read back as the same budget
                name: "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
                for name, value in asdict(budget).items()
            },
        )  # fmt: skip

    def start(self, form: Form) -> Response:
        """Start the fit."""
        self._session.start(_budget(form))
        return RedirectResponse("/fit", 303)

    def fit(self, form: Form) -> Response:
        """Show how far the fit is, asking again by itself while it runs; then the release."""
        session, release = self._session, self._session.release()
        lines = () if release is None else column_lines(release)
        # the cards escape what they show
        cards = [] if release is None else [release_card(release), certificate_card(release.certificate)]
        pack = session.pack_path
        return _page(
            "fit.html", "The fit and its release", "/fit", fit=session.fit, written=session.report_path.exists(),
            released=release is not None, path=str(session.release_path), lines=lines, cures=cures(lines),
            running=session.fit is not None and session.fit.state == "running", rows=_sample(release),
            cards=map(Markup, cards), pack=str(pack),
            packed=sorted(file.name for file in pack.iterdir()) if pack.is_dir() else [],
        )  # fmt: skip

    def pack(self, form: Form) -> Response:
        """Write the folder to publish."""
        about = {key: form[key].strip() for key in ("title", "publisher", "license") if form.get(key, "").strip()}
        self._session.pack(about)
        return RedirectResponse("/fit", 303)

    def report(self, form: Form) -> Response:
        """Show the report, which is a function of the release alone."""
        if not self._session.report_path.is_file():
            raise ConfigError("Expected a report, got none yet. Fit a release first.")
        return HTMLResponse(self._session.report_path.read_text(encoding="utf-8"))

    def _command(self, budget: Budget) -> str:
        session, schema = self._session, self._session.schema()
        parts = ["sfumato", "fit", str(session.data), "--schema", str(session.schema_path)]
        parts += ["--epsilon", f"{budget.epsilon:g}"]
        parts += [] if budget.delta is None else ["--delta", f"{budget.delta:g}"]
        if budget.rows is not None:
            parts += ["--rows", str(budget.rows)]
        elif schema.rows is None:
            parts += ["--rows", "estimate"]
        parts += [] if budget.target is None else ["--target", budget.target]
        parts += ["--ledger", str(session.account(budget).path)]
        return shlex.join([*parts, "--out", str(session.release_path)])

    def _opening(self, budget: Budget) -> str:
        """Return the command that opens the ledger; nothing of one that is there."""
        account = self._session.account(budget)
        if account.opened:
            return ""
        total = account.state.budget
        limits = ["--epsilon", f"{total.epsilon:g}", "--delta", f"{total.delta:g}"]
        return shlex.join(["sfumato", "ledger", "create", str(account.path), *limits])


def _faulty(faults: Mapping[str, str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each field at fault with what it is of: a column, or the table."""
    places = {field: field.lstrip("abcdefghijklmnopqrstuvwxyz_") for field in faults}
    is_column = {field: place and not field.startswith(("table", "rule")) for field, place in places.items()}
    return [(field, names[int(place)] if is_column[field] else "the table") for field, place in places.items()]


def _budget(form: Form) -> Budget:
    """Read a budget from a form; empty fields take the defaults.

    Raises:
        ConfigError: a field is no number.
    """
    rows = _number(form, "rows", None)
    if rows is not None and rows != int(rows):
        raise ConfigError("Expected the number of rows to be whole. Write it without a point.")
    epsilon = _number(form, "other", _number(form, "epsilon", 1.0))
    return Budget(
        epsilon=1.0 if epsilon is None else epsilon,
        delta=_number(form, "delta", 1e-6),
        rows=None if rows is None else int(rows),
        target=form.get("target") or None,
        ledger=form.get("ledger", "").strip() or None,
        total_epsilon=_number(form, "total_epsilon", None),
        total_delta=_number(form, "total_delta", None),
    )


def _number(form: Form, name: str, default: float | None) -> float | None:
    text = form.get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("inf")
    if abs(value) == float("inf") or value != value:
        raise ConfigError(f"Expected {name} to be a number. Write it like 0.5 or 1e-6.")
    return value


def _sample(release: Release | None) -> tuple[list[str], list[list[str]]]:
    """Return names and the first rows of a release of rows; of pictures and of several tables, none."""
    if release is None or release.is_data_set or release.schema.images or release.schema.database is not None:
        return [], []
    rows = next(iter(release.batches(SAMPLE_ROWS, seed=0))).slice(0, SAMPLE_ROWS)
    cells = [["" if cell is None else str(cell) for cell in column.to_pylist()] for column in rows.columns]
    return rows.column_names, [list(row) for row in zip(*cells, strict=True)]


def _page(template: str, title: str, here: str, status: int = 200, **content: Any) -> Response:  # noqa: ANN401
    page = templates("sfumato.studio", "sfumato.report").get_template(template)  # in the report's style
    return HTMLResponse(page.render(title=title, here=here, steps=_STEPS, **{"running": False, **content}), status)


class FolderListing(NamedTuple):
    """A folder: its path, the folders and tables in it by name, and whether it has more than are shown."""

    path: Path
    folders: list[Path]
    tables: list[Path]
    has_more: bool


def listing_of(folder: str | Path) -> FolderListing:
    """Return what a folder holds, hidden names left out. No file is opened.

    Raises:
        ConfigError: it is no folder that may be read.
    """
    path = Path(folder).expanduser().absolute()
    try:
        entries = sorted((e for e in path.iterdir() if not e.name.startswith(".")), key=lambda e: e.name.lower())
        folders = [entry for entry in entries if entry.is_dir()]
    except (OSError, ValueError):
        raise ConfigError("Expected a folder of this machine that may be read. Choose another one.") from None
    tables = [entry for entry in entries if entry.name.lower().endswith(_SUFFIXES) and entry not in folders]
    has_more = max(len(folders), len(tables)) > MOST_SHOWN
    return FolderListing(path, folders[:MOST_SHOWN], tables[:MOST_SHOWN], has_more)
