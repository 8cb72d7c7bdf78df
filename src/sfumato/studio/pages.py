"""The pages of the studio: each one a form of its own, without a script."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from sfumato.errors import ConfigError, SfumatoError
from sfumato.inference.column_lines import cures
from sfumato.privacy import words
from sfumato.report.page import templates
from sfumato.studio.preview import previews
from sfumato.studio.session import Budget, StudioSession

MOST_BYTES = 65_536
"""The longest form that is read: answers are short, and no record comes this way."""

_STEPS = {"/": "Table", "/questions": "Questions", "/budget": "Budget", "/fit": "Fit"}


def make_app(session: StudioSession) -> Starlette:
    """Return the pages of a session; `Guard` has to stand before them."""
    pages = Pages(session)
    return Starlette(
        routes=[
            Route("/", pages.reading(pages.table)),
            Route("/", pages.writing(pages.take), methods=["POST"]),
            Route("/questions", pages.reading(pages.questions)),
            Route("/questions", pages.writing(pages.answer), methods=["POST"]),
            Route("/budget", pages.reading(pages.budget)),
            Route("/simulation", pages.reading(pages.simulation)),
            Route("/fit", pages.reading(pages.fit)),
            Route("/fit", pages.writing(pages.start), methods=["POST"]),
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
        self._session = session

    def reading(self, page: Callable[[Form], Response]) -> Callable[[Request], Any]:
        """Return the endpoint of a page that changes nothing."""

        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(self._respond, page, dict(request.query_params))

        return endpoint

    def writing(self, act: Callable[[Form], Response]) -> Callable[[Request], Any]:
        """Return the endpoint of a form."""

        async def endpoint(request: Request) -> Response:
            body = bytearray()
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
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
        """Show which table is in hand, and ask for one."""
        return _page("table.html", "Your table", "/", data=self._session.data, folder=str(self._session.folder))

    def take(self, form: Form) -> Response:
        """Open the table that was named."""
        self._session.open(form.get("data", "").strip())
        return RedirectResponse("/questions", 303)

    def questions(self, form: Form) -> Response:
        """Show the questions, each with what the schema says now."""
        if self._session.data is None:
            return RedirectResponse("/", 303)
        return _page(
            "questions.html", "Questions about the schema", "/questions", questions=self._session.questions(),
            draft=self._session.schema().draft, path=str(self._session.schema_path), saved=form.get("saved"),
            n_skipped=self._session.n_skipped, named=[named.words for named in self._session.schema().questions],
        )  # fmt: skip

    def answer(self, form: Form) -> Response:
        """Write one answer into the schema's file."""
        key = form.get("key", "")
        self._session.answer({key: form.get("answer", "").strip() or "keep"})
        return RedirectResponse("/questions?" + urlencode({"saved": "yes"}), 303)

    def budget(self, form: Form) -> Response:
        """Show the accuracy that a budget would give; all of it from public facts."""
        if self._session.data is None:
            return RedirectResponse("/", 303)
        schema, budget = self._session.schema(), _budget(form)
        plan = self._session.plan(budget)
        error = self._session.share_error(budget)
        return _page(
            "budget.html", "A budget and its accuracy", "/budget", budget=budget, draft=schema.draft,
            columns=list(schema.released), schema_rows=schema.rows, forecasts=words.forecasts(plan), error=error,
            who=words.who(plan), cost=words.cost(plan), risks=words.risks(plan), stages=words.stages(plan),
            previews=[] if error is None else previews(schema, error), command=self._command(budget),
            group=None if error is None else self._session.least_group(budget, error),
            discovered=bool(schema.open), simulation="/simulation?" + urlencode(_fields(budget)),
            account=self._session.account(budget), opening=self._opening(budget), fields=_fields(budget),
        )  # fmt: skip

    def simulation(self, form: Form) -> Response:
        """Show what the budget does to invented rows of the same schema."""
        if self._session.data is None:
            return RedirectResponse("/", 303)
        budget = _budget(form)
        return _page(
            "simulation.html", "A simulation", "/budget", budget=budget, simulation=self._session.simulation(budget),
            discovered=bool(self._session.schema().open), back="/budget?" + urlencode(_fields(budget)),
        )  # fmt: skip

    def start(self, form: Form) -> Response:
        """Start the fit."""
        self._session.start(_budget(form))
        return RedirectResponse("/fit", 303)

    def fit(self, form: Form) -> Response:
        """Show how far the fit is; the page asks again by itself while it runs."""
        fit = self._session.fit
        running = fit is not None and fit.state == "running"
        lines = () if running else self._session.column_lines()
        return _page(
            "fit.html", "The fit", "/fit", fit=fit, written=self._session.report_path.exists(),
            released=self._session.release_path.exists(), release=str(self._session.release_path),
            running=running, lines=lines, cures=cures(lines),
        )  # fmt: skip

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


def _budget(form: Form) -> Budget:
    """Read a budget from a form; empty fields take the defaults.

    Raises:
        ConfigError: a field is no number.
    """
    rows = _number(form, "rows", None)
    if rows is not None and rows != int(rows):
        raise ConfigError("Expected the number of rows to be whole. Write it without a point.")
    epsilon = _number(form, "epsilon", 1.0)
    return Budget(
        epsilon=1.0 if epsilon is None else epsilon,
        delta=_number(form, "delta", 1e-6),
        rows=None if rows is None else int(rows),
        target=form.get("target") or None,
        ledger=form.get("ledger", "").strip() or None,
        total_epsilon=_number(form, "total_epsilon", None),
        total_delta=_number(form, "total_delta", None),
    )


def _fields(budget: Budget) -> dict[str, str]:
    """Return the fields of a form that are read back as the same budget."""
    return {
        "epsilon": f"{budget.epsilon:g}",
        "delta": "" if budget.delta is None else f"{budget.delta:g}",
        "rows": "" if budget.rows is None else str(budget.rows),
        "target": budget.target or "",
        "ledger": budget.ledger or "",
        "total_epsilon": "" if budget.total_epsilon is None else f"{budget.total_epsilon:g}",
        "total_delta": "" if budget.total_delta is None else f"{budget.total_delta:g}",
    }


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


def _page(template: str, title: str, here: str, status: int = 200, **content: Any) -> Response:  # noqa: ANN401
    page = templates("sfumato.studio", "sfumato.report").get_template(template)  # in the report's style
    return HTMLResponse(page.render(title=title, here=here, steps=_STEPS, **{"running": False, **content}), status)
