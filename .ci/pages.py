"""Whether the built documentation holds together: `python .ci/pages.py docs/_build`, the end of `make docs`.

Every link within the pages leads to a page and a place that is there, pictures have a text, and nothing is loaded from
elsewhere. Prints what is wrong, and ends with 1 if anything is.
"""

from __future__ import annotations

import html.parser
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}


class Page(html.parser.HTMLParser):
    """What a page links to, loads and offers as places."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.silent: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link, a resource, a place or a picture."""
        found = {name: value or "" for name, value in attrs}
        self.places |= {found[key] for key in ("id", "name") if key in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADED and found.get("rel", "stylesheet") != "canonical" and found.get(LOADED[tag]):
            self.loaded.append(found[LOADED[tag]])
        if tag == "img" and not found.get("alt"):
            self.silent.append(found.get("src", ""))


def problems(folder: Path) -> list[str]:
    """Return what is wrong with the pages of a folder."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    found.append(f"{name}: loads {link}")
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not there.exists():
                found.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].places:
                found.append(f"{name}: no such place: {link}")
        found += [f"{name}: no text for the picture {picture}" for picture in page.silent]
    return found


def main() -> None:
    """Print what is wrong."""
    folder = Path(sys.argv[1]).resolve()
    found = problems(folder)
    print("\n".join(found) or f"{sum(1 for _ in folder.rglob('*.html'))} pages: every link leads somewhere.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
