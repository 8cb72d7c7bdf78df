"""Put what a script noted into a paper's expected.json, over what was there.

python papers/keep.py PAPER NOTE.json KEY [KEY …] --command TEXT

NOTE.json is what `Results.note` writes, or JSON that a script printed; its only entry, if it has one, is unpacked. Keys
say where it goes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "p3gm"))
from expected import merge

HERE = Path(__file__).parent


def main() -> None:
    """Merge, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", choices=("p3gm", "dp_em", "dpgm", "dpmix"))
    parser.add_argument("note", type=Path)
    parser.add_argument("keys", nargs="+")
    parser.add_argument("--command", required=True)
    options = parser.parse_args()
    path = HERE / options.paper / "expected.json"
    expected, note = (json.loads(file.read_text(encoding="utf-8")) for file in (path, options.note))
    value = next(iter(note.values())) if len(note) == 1 else note
    place = expected
    for key in options.keys:
        place = place.setdefault(key, {})
    merge(place, {"command": options.command, **value})
    path.write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
