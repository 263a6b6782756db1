"""Check the built site without a network: `python -m docsite.links site`.

Every link and picture must lead to a file of the site, every anchor to an element of its page. Nothing may be loaded
from another machine.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("video", "src")}
NOT_LOADED = {"canonical", "alternate", "next", "prev", "edit"}  # relations of a <link> that fetch nothing


class Page(HTMLParser):
    """What a page leads to, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        for name, value in given.items():
            if (tag, name) in LOADED and given.get("rel") not in NOT_LOADED:
                self.loaded.append(value)


def broken(folder: Path) -> list[str]:
    """What is wrong with the links of a built site, a line for each."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        name = path.relative_to(folder.resolve())
        found += [f"{name}: loads {url} from elsewhere" for url in page.loaded if _elsewhere(url)]
        for url in (*page.links, *page.loaded):
            if not _elsewhere(url) and (problem := _problem(url, path, pages)):
                found.append(f"{name}: {url}: {problem}")
    return sorted(set(found))


def _elsewhere(url: str) -> bool:
    return bool(urlsplit(url).scheme or urlsplit(url).netloc)


def _problem(url: str, path: Path, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(url)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "there is no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "the page has no such anchor"
    return None


def main() -> int:
    """Print what is broken; the exit code is 1 if anything is."""
    folder = Path(sys.argv[1])
    found = broken(folder)
    count = len(list(folder.rglob("*.html")))
    print("\n".join(found) or f"{count} pages: no link is broken, nothing is loaded from elsewhere")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
