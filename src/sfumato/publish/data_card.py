"""The data card of a release in Markdown: what it is, what it cost, its limits; and a Hugging Face card."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.privacy import words
from sfumato.publish.publication import NOT_STATED, Publication, markdown
from sfumato.release_front import Release
from sfumato.report.column_lines import column_lines
from sfumato.report.uses import UseVerdict
from sfumato.rules import rule_text
from sfumato.schema.documents import yaml_text

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
_LICENSES = (
    "apache-2.0", "mit", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "odbl", "odc-by",
    "pddl", "bsd-3-clause",
)  # fmt: skip
LIMITS = (
    "Rows are made from noisy measurements of the records. What they may show of one person is what epsilon bounds: "
    "a row may equal a person's record, by chance or, at a large epsilon, because of it.",
    "Rare groups, tails and combinations of many columns are the least exact: noise hides them.",
    "Standard errors that are computed from the rows as if they were records are too small. Use the noisy tables, or "
    "`sfumato estimate`, whose intervals hold the noise.",
    "A second release of the same records adds to what this one cost.",
)


def limits(release: Release) -> list[str]:
    """Return the limits of the release, a sentence each."""
    return [*LIMITS, *release.certificate.assumptions]


def citation(publication: Publication) -> str:
    """Return how to cite the data."""
    place = f" {publication.url}" if publication.url else ""
    author = f"{publication.publisher} ({publication.date[:4]})"
    return f"{author}: {publication.title}. Differentially private synthetic data.{place}"


def data_card(
    release: Release,
    publication: Publication,
    files: Mapping[str, str],
    uses: Sequence[UseVerdict],
    notes: Sequence[str] = (),
) -> str:
    """Return the data card.

    Args:
        release: what is published.
        publication: who publishes it.
        files: name → what it is.
        uses: what it is good for.
        notes: what is not in the tables, a sentence each.
    """
    certificate = release.certificate
    about = "Synthetic rows, made under differential privacy from records that are not published."
    cost = [*words.not_covered(certificate), words.guarantee(certificate), *_cost(release)]
    listed = ["\n".join(f"- {_code(name)}: {markdown(what)}" for name, what in files.items())] if files else []
    rules = [f"Every row keeps: {rule_text(rule)}" for rule in release.schema.rules]
    parts = [
        [f"# {markdown(publication.title)}", markdown(publication.description or about)],
        ["## What it cost", *_bullets(cost)],
        ["## What that means", *map(markdown, [*words.meaning(certificate), words.who(certificate)])],
        *([["## What it is good for", *_bullets([f"{v.use}: {v.word}. {v.why}" for v in uses])]] if uses else []),
        ["## Limits", *_bullets(limits(release))],
        ["## Columns", _columns(release), *_linked(release), *_bullets(rules), markdown(words.origins(certificate))],
        ["## Files", *listed, *_bullets(notes)],
        ["## How to cite", markdown(citation(publication)), f"License: {markdown(publication.license)}"],
    ]
    return "\n\n".join("\n\n".join(part) for part in parts) + "\n"


def _cost(release: Release) -> list[str]:
    certificate = release.certificate
    stages = [
        f"{stage.name}: {stage.event}, {100 * stage.share:.3g} % of the budget" for stage in words.stages(certificate)
    ]
    return [f"Method: {certificate.method}.", words.entering(certificate), *stages, *words.checked(release.checked)]


def _bullets(lines: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {markdown(line)}" for line in lines)] if lines else []


def _code(name: str) -> str:
    """Return a name as code of Markdown, which one of a table may have backticks in."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", name)), default=0))
    return f"{fence} {name} {fence}" if "`" in name else f"`{name}`"


def _columns(release: Release) -> str:
    lines = ["| column | kind | known | kept | lost |", "|---|---|---|---|---|"]
    for line in column_lines(release):
        cells = (line.name, line.kind, line.known, line.kept, line.loss)
        lines.append(f"| {' | '.join(map(markdown, cells))} |")
    return "\n".join(lines)


def _linked(release: Release) -> list[str]:
    """Say what the rows of a unit have in common."""
    unit = release.schema.unit
    if unit is None or not release.schema.linked:
        return []
    sentences = [f"Rows of the same {unit.column} belong together: at most {unit.max_rows}."]
    if names := tuple(release.schema.table_columns):
        above = {} if release.schema.tree is None else {b.name: f" of {b.of}" for b in release.schema.tree.branches}
        tables = ", ".join(name + above.get(name, "") for name in names)
        sentences = [f"Tables: {tables}, by the key {unit.column}. {sentences[0]}"]
    if unit.order is not None:
        sentences.append(f"They come in the order of {unit.order}.")
    if unit.constant:
        sentences.append(f"The same in all of them: {', '.join(unit.constant)}.")
    return [markdown(" ".join(sentences))]


def hugging_face_card(
    release: Release,
    publication: Publication,
    files: Mapping[str, str],
    n_rows: int,
    uses: Sequence[UseVerdict],
    notes: Sequence[str] = (),
) -> str:
    """Return the card of a Hugging Face data set: the data card under YAML that its hub reads.

    `n_rows` is the number of synthetic rows beside it.
    """
    known, name = publication.license.lower() in _LICENSES, publication.license
    other = {"license": "unknown"} if name == NOT_STATED else {"license": "other", "license_name": name}
    configs = _configs(release, list(files))
    front = {
        "pretty_name": publication.title,
        **({"license": name.lower()} if known else other),
        "size_categories": [next((size for most, size in _SIZES if n_rows < most), "10M<n<100M")],
        "tags": ["synthetic", "differential-privacy", "sfumato"],
        **({"configs": configs} if configs else {}),
    }
    return f"---\n{yaml_text(front)}---\n\n{data_card(release, publication, files, uses, notes)}"


def _configs(release: Release, files: Sequence[str]) -> list[dict[str, Any]]:
    """Return the tables that a hub shows: the rows, or each of several tables, as Parquet where there is some."""
    stems = {name: (f"rows/{name}", f"rows_parquet/{name}") for name in release.schema.table_columns}
    stems = stems or {"default": ("rows",)}
    configs = []
    for name, known in stems.items():
        data = [file for file in files if file in {f"{stem}.{form}" for stem in known for form in ("csv", "parquet")}]
        if data:
            configs.append({"config_name": name, "data_files": [{"split": "train", "path": data[-1]}]})
    return configs
