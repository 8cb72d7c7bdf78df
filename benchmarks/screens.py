"""Pictures of studio, report and card for the documentation: screenshots of the demonstration's table, by Chromium.

python benchmarks/screens.py --out docs/pictures
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

from statsmodels.datasets import randhie

import sfumato
from sfumato.demo import demo_schema
from sfumato.report.release_card import release_card
from sfumato.schema.documents import yaml_text
from sfumato.studio.pages import Pages
from sfumato.studio.session import StudioSession

WIDTH, HEIGHT = 900, 720
_CARD = '<!DOCTYPE html><meta charset="utf-8"><body style="margin:1rem;background:#fff">'


def pages(folder: Path) -> dict[str, Path]:
    """Write the pages that are pictured, and return them by name."""
    frame = randhie.load_pandas().data
    frame.to_csv(folder / "randhie.csv", index=False)
    (folder / "studio").mkdir()
    (folder / "studio" / "schema.yaml").write_text(yaml_text(demo_schema().to_dict()), encoding="utf-8")
    session = StudioSession(folder / "studio", str(folder / "randhie.csv"))
    release = sfumato.fit(frame, demo_schema(), epsilon=1.0, delta=1e-6, target="hlthf")
    release.report(folder / "report.html")
    (folder / "studio.html").write_bytes(Pages(session).questions({}).body)
    (folder / "card.html").write_text(_CARD + release_card(release), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in ("studio", "report", "card")}


def main() -> None:
    """Write a picture of each page into a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as folder:
        for name, page in pages(Path(folder)).items():
            picture = out / f"screen_{name}.png"
            command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            command += [f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}"]
            subprocess.run([*command, f"--screenshot={picture}", page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    main()
