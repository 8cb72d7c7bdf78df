"""The template and its tools: everything that comes from outside is escaped."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from sfumato.errors import ConfigError
from sfumato.report import charts
from sfumato.report.wording import figure

_LONGEST = 80


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
    environment.filters["figure"] = figure
    return environment.get_template("page.html").render(**content, charts=charts)


def shown(text: object) -> str:
    """Return text for a page: without control characters and marks that turn its direction, and not too long."""
    plain = "".join("�" if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn"} else c for c in str(text))
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…"
