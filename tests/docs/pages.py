"""The pages of the documentation, taken apart: their blocks of code, and their prose in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = re.compile(r"<!-- not run: .+ -->")
ABBREVIATIONS = re.compile(r"\b(Eq|Fig|e\.g|i\.e|al|vs|cf|Sec|No)\.")
ITEM = re.compile(r"^\s*([-*]|\d+\.) ")


@dataclass
class Block:
    """Lines between fences (with the language after the first), or indented by four characters ("indented")."""

    page: Path
    line: int  # of its first line, from 1
    language: str
    run: bool = True
    lines: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All blocks of code of a page, in their order."""
    found: list[Block] = []
    inside = mark = False
    before = ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if re.match(r"\s*```", line):
            inside = not inside
            if inside:
                found.append(Block(page, number + 1, line.strip(" `").partition(" ")[0], not mark))
        elif inside:
            found[-1].lines.append(line)
        elif line.startswith("    ") and (not before or before.startswith("    ")) and not _in_list(page, number):
            if not before:
                found.append(Block(page, number, "indented", not mark))
            found[-1].lines.append(line[4:])
        mark = bool(NOT_RUN.search(line)) if line.strip() else mark
        before = line
    return found


def _in_list(page: Path, number: int) -> bool:
    """Whether an indented line goes on an item of a list, which begins at the margin above it."""
    for line in reversed(page.read_text().splitlines()[: number - 1]):
        if line and not line.startswith(" "):
            return bool(ITEM.match(line)) or line.startswith(("!!!", "???", ":"))
    return False


def sentences(page: Path) -> Iterator[tuple[int, str]]:
    """Every sentence of a page with the number of the line that its paragraph begins at; cells of tables are prose."""
    paragraph: list[str] = []
    begin, inside = 0, False
    for number, line in enumerate([*page.read_text().splitlines(), ""], 1):
        if re.match(r"\s*```", line):
            inside = not inside
        code = inside or line.startswith("```") or (line.startswith("    ") and not paragraph)
        alone = not line.strip() or line.lstrip().startswith(("|", "#", "<!--", "{%", "--8<--"))
        if paragraph and (code or alone or ITEM.match(line)):
            yield from ((begin, text) for text in _split(" ".join(paragraph)))
            paragraph = []
        if line.lstrip().startswith("|"):
            yield from ((number, text) for cell in line.split("|") for text in _split(cell))
        elif not code and not alone:
            begin = begin if paragraph else number
            paragraph.append(ITEM.sub("", line).strip())


def _split(text: str) -> list[str]:
    plain = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", text))  # code and addresses count as one word
    plain = ABBREVIATIONS.sub(r"\1", plain)
    return [part for part in re.split(r"(?<=[.!?])[)\"*]*\s+", plain) if part.strip()]
