"""A publisher's words on a publication, and text of strangers where a format would take it for its own signs."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime

from sfumato.errors import ConfigError
from sfumato.privacy.words import harmless, whole

NOT_STATED = "not stated"
PUBLISHERS = ("Government", "Industry", "Nonprofit")
_MARKS = re.compile(r"([\\`*_\[\]#|<>~$&]|^[-+])")  # brackets make links and pictures; a dash only begins a list
_SLUG = re.compile(r"[^a-z0-9]+")
_LONGEST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Facts that no release has of itself: who publishes it, under which name and licence. All of it becomes public.

    Attributes:
        title: of the data.
        publisher: who publishes them.
        publisher_type: Government, Industry or Nonprofit, as the registry of deployments has it.
        description: what they are, in a paragraph.
        license: of the data, an SPDX identifier or an address.
        url: where they will be found.
        date: of publication, ISO 8601; today if not given.

    Raises:
        ConfigError: an entry is no text, is too long, or holds control characters; or the date is none.

    Example:
        >>> Publication(title="Visits 2024", publisher="Health Office").title
        'Visits 2024'
    """

    title: str = "Synthetic data"
    publisher: str = NOT_STATED
    publisher_type: str = ""
    description: str = ""
    license: str = NOT_STATED
    url: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            if not isinstance(value, str) or len(value) > _LONGEST or not all(map(harmless, value)):
                raise ConfigError(
                    f"Expected {entry.name} to be a line of text without control characters, got another."
                )
        if self.publisher_type not in ("", *PUBLISHERS):
            raise ConfigError(
                f"Expected publisher_type to be one of {', '.join(PUBLISHERS)}, got {self.publisher_type!r}."
            )
        if self.url and not re.fullmatch(r"https?://[^\s\"'<>\\]+", self.url):
            raise ConfigError(f"Expected url to begin with https:// and to hold no spaces or quotes, got {self.url!r}.")
        object.__setattr__(self, "date", _day(self.date))

    @property
    def slug(self) -> str:
        """The title as part of an address: small letters, digits and hyphens."""
        return _SLUG.sub("-", self.title.lower()).strip("-")[:80] or "synthetic-data"


def _day(text: str) -> str:
    if not text:
        return datetime.now(UTC).date().isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        pass
    raise ConfigError(f"Expected date as YYYY-MM-DD, got {text!r}.")


def markdown(text: object) -> str:
    """Return text that Markdown shows as it is, on one line: no mark, link or tag of it counts."""
    return _MARKS.sub(r"\\\1", " ".join(whole(str(text).replace("\n", " ").replace("\r", " ")).split()))
