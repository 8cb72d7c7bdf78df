"""Damaged schemas through the command line: 250 cases, beside a table full of secrets."""

import json
import random
from pathlib import Path

import pytest
import yaml

from fixtures import tables
from fuzz.cases import batches
from fuzz.planted import WORD, assert_no_byte
from sfumato.schema.documents import _PlainLoader

CASES, BATCH = 75, 25

ODD_VALUES = [
    None, True, False, 0, -1, 1, 2, 1.5, 1e308, -1e308, 10**30, "", " ", "x", "yes", "1", "2020-01-01", "day",
    [], {}, [1, 1], ["x"], {"kind": "boolean"},
    float("nan"), float("inf"), [[]], "a" * 500, "\u0000", "é", "integer", "categorical", "image",
    "identifier", [2, 2], "%Y", "%", "%Q%d", [None],
    "9999-12-31", "0001-01-01", "2020-13-01", 2**53, 2**63, 1e-320, "null", "~", "[red]", ":smile:", "'",
]  # fmt: skip
ODD_LINES = [
    "columns:", "rows: 5", "  a: *b", "&a [*a]", "!!python/object/apply:os.system [ls]", "\t", "- - - -",
    "? {a: b}", "%YAML 9", "---", "...", "a: |",
    "\x00", "<<: {a: 1}", "{" * 2000, "[" * 400, "  a: {kind: integer, lower: 1, upper: 0}",
    "  b: {kind: [categorical]}", "'", '"', "#",
]  # fmt: skip


def damaged(random_: random.Random, text: str) -> tuple[str, bytes]:
    """A file name and its content: a schema with a few values or lines changed."""
    if random_.random() < 0.6:
        document = yaml.load(text, Loader=_PlainLoader)
        for _ in range(random_.randint(1, 4)):
            _change(random_, document)
        form = random_.choice(["s.json", "s.yaml"])
        content = json.dumps(document) if form == "s.json" else yaml.safe_dump(document, sort_keys=False)
        return form, content.encode("utf-8", "surrogatepass")
    lines = text.splitlines()
    for _ in range(random_.randint(1, 3)):
        place = random_.randrange(len(lines))
        lines[place : place + random_.randint(0, 1)] = [random_.choice([*ODD_LINES, random_.choice(lines)])]
    raw = "\n".join(lines).encode()
    for _ in range(random_.choice([0, 0, 1, 3])):
        place = random_.randrange(len(raw) + 1)
        raw = (
            raw[:place]
            + random_.choice([b"\xff", b"\x00", b":", b"{", b"&", b"\xef\xbb\xbf", random_.randbytes(3)])
            + raw[place:]
        )
    return "s.yaml", raw


def _change(random_: random.Random, node: object) -> None:
    """Change, rename or drop something at a random depth."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))  # type: ignore[arg-type]
        if not keys:
            return
        key = random_.choice(keys)
        if isinstance(node[key], (dict, list)) and node[key] and random_.random() < 0.8:  # type: ignore[index]
            node = node[key]  # type: ignore[index]
            continue
        match random_.randint(0, 4):
            case 0:
                del node[key]  # type: ignore[attr-defined]
            case 1 if isinstance(node, dict):
                node[random_.choice(["columns", "kind", "rows", "lower", "x", "", "\u0000"])] = node.pop(key)
            case _:
                node[key] = random_.choice(ODD_VALUES)  # type: ignore[index]
        return


@pytest.mark.parametrize("batch", batches(CASES, BATCH))
def test_damaged_schema(speak, tmp_path, batch):
    table = tables.frame(20)
    table["id"] = WORD
    table.loc[::3, "sex"] = WORD
    data, images, release = (
        tables.write_csv(tmp_path / "d.csv", table),
        tables.write_npz(tmp_path / "d.npz"),
        tmp_path / "r",
    )
    for case in range(batch * BATCH, (batch + 1) * BATCH):
        random_ = random.Random(case)
        pictures = random_.random() < 0.2
        name, content = damaged(random_, tables.IMAGE_SCHEMA_TEXT if pictures else tables.SCHEMA_TEXT)
        schema = tmp_path / name
        schema.write_bytes(content)
        target = random_.choice([(), ("--target", "income"), ("--target", "grade"), ("--target", "age")])
        budget = ("--schema", schema, "--epsilon", 1, "--delta", 1e-5, "--rows", 100, *target)
        valid = speak(case, "schema", "check", schema) == 0
        speak(case, "schema", "check", schema, data)
        planned = speak(case, "plan", *budget)
        assert valid or planned
        source: Path = images if pictures else data
        fitted = speak(case, "fit", source, *budget, "--out", release, "--overwrite")
        assert planned == 0 or fitted
        if fitted == 0:
            assert_no_byte(release, f"case {case}")
            made = tmp_path / ("o.npz" if pictures else "o.csv")
            assert speak(case, "sample", release, "-n", 5, "--out", made, "--overwrite") == 0
            assert_no_byte(made, f"case {case}")
        speak(case, "schema", "validate", source, "--schema", schema, private=False)
