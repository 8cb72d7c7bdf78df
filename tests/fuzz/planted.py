"""Secrets planted in data, and the places where they must never be seen again."""

import sys
from pathlib import Path

WORD, DIGITS = "Xanthippe4711", "86420975"
SECRETS = (WORD, DIGITS)


def assert_silent(text: str, where: str) -> None:
    for secret in SECRETS:
        assert secret not in text, f"{where} shows a planted secret"


def assert_no_byte(path: Path, where: str) -> None:
    """Look into every file under a path, as text of one and of two bytes."""
    for file in [path] if path.is_file() else path.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            for secret in SECRETS:
                for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
                    assert secret.encode(encoding) not in content, f"{where}: {file.name} holds a planted secret"


def told(error: BaseException | None) -> str:
    """Return all that an exception, its cause and its context can print."""
    texts: list[str] = []
    seen: set[int] = set()
    pending = [error]
    while pending:
        error = pending.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        texts += [str(error), repr(error), repr(error.args), repr(getattr(error, "__notes__", ""))]
        pending += [error.__cause__, error.__context__]
    return "\n".join(texts)


def handled() -> str:
    """Return all that the exception being handled can print."""
    return told(sys.exception())
