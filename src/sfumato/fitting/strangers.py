"""Code of other packages in a fit: what a certificate says of it, and what its exceptions may not say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from sfumato.columns.kind import ColumnKind
from sfumato.entry_points import is_ours, package_of
from sfumato.errors import MethodError, SfumatoError

T = TypeVar("T")


def versions_of(parts: Iterable[type]) -> dict[str, str]:
    """Return the versions of the packages that classes are of, where these declare plugins of ours."""
    plugins = (package_of(part) for part in parts if not is_ours(part))
    return {plugin.package: plugin.version for plugin in plugins if plugin is not None}


def assumptions_of(methods: Iterable[type], source: type, kinds: Iterable[ColumnKind] = ()) -> list[str]:
    """Say for a certificate what rests on the word of others: the bounds of a method, what records and cells are."""
    sentences = [
        f"The method {method.__name__} is {_origin(method)}, not Sfumato's: that each record adds to each statistic at "
        "most what was charged, and that nothing else leaves, rests on that code."
        for method in dict.fromkeys(methods)
        if not is_ours(method)
    ]
    if not is_ours(source):
        sentences.append(
            f"The records were read by {_origin(source)}: that each is read on its own, the same each time, rests on "
            "that code."
        )
    for kind in dict.fromkeys(map(type, kinds)):
        if not is_ours(kind):
            sentences.append(
                f"Cells of kind {kind.name} were read by {_origin(kind)}: that each is read on its own, the same each "
                "time, rests on that code."
            )
    return sentences


def silenced(run: Callable[[], T], methods: Iterable[type], *, private: bool) -> T:
    """Return `run()`; of an exception of a method that is not Sfumato's only the type is shown.

    Its text, or a frame of its traceback, may hold a cell. Sfumato's own errors, which other packages may raise as
    well, are written to be shown. A fit that is not private anyway shows everything: its author has to see it.

    Raises:
        MethodError: it failed.
    """
    strange = [method for method in methods if not is_ours(method)]
    if not strange or not private:
        return run()
    try:
        return run()
    except SfumatoError:
        raise
    except Exception as error:  # noqa: BLE001 - a stranger's code
        problem = type(error).__name__
    raise MethodError(
        f"The method {strange[0].__name__}, {_origin(strange[0])}, failed ({problem}). The error's text is "
        "withheld, as it could show a record; what was charged stays charged. To see it, fit made records with a seed."
    )


def _origin(part: type) -> str:
    plugin = package_of(part)
    if plugin is None:
        return f"code of no installed plugin (module {part.__module__.partition('.')[0]})"
    return f"code of the package {plugin.package} {plugin.version}"
