"""The template and its tools: everything that comes from outside is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.errors import ConfigError
from sfumato.report import charts
from sfumato.report.wording import figure, marked, sentence, shown


def require_templates() -> None:
    """Refuse to go on without jinja2.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import jinja2  # noqa: F401
    except ImportError:
        pass
    else:
        return
    raise ConfigError("Expected jinja2 to be installed, to write reports. Install sfumato[report].")


def render(content: Mapping[str, Any]) -> str:
    """Return the page. Names and labels of a stranger's schema cannot leave their place in it."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sfumato.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["text"] = shown
    environment.filters["sentence"] = sentence
    environment.filters["marked"] = marked
    environment.filters["figure"] = figure
    return environment.get_template("page.html").render(**content, charts=charts)
