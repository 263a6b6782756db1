"""How README and documentation are written: short sentences, short lines, terms of the field."""

import ast
import re
from pathlib import Path

import pytest

from .pages import PAGES, ROOT, sentences

LONGEST_SENTENCE, LONGEST_LINE = 40, 120
METAPHORS = {"sees", "said", "felt", "hold", "team", "teams", "meet", "owe", "owes", "beyond", "review", "reviews"}
NEVER_IN_PROSE = re.compile(r"\b(felt|owes?|teams?|reviews?)\b")
AS_A_NAME = re.compile(rf"`({'|'.join(sorted(METAPHORS))})`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_is_long(page: Path):
    long = [
        f"{page.relative_to(ROOT)}:{line}: {len(text.split())} words: {text[:70]} ..."
        for line, text in sentences(page)
        if len([word for word in text.split() if re.search(r"\w", word)]) > LONGEST_SENTENCE
    ]
    assert not long, "\n".join(["", *long])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_is_long(page: Path):
    """Rows of tables and addresses cannot be broken."""
    long = [
        f"{page.relative_to(ROOT)}:{number}: {len(line)} characters"
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > LONGEST_LINE and not line.startswith("|") and not re.search(rf"\S{{{LONGEST_LINE - 20},}}", line)
    ]
    assert not long, "\n".join(["", *long])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_metaphor_names_anything_in_the_text(page: Path):
    found = [
        f"{page.relative_to(ROOT)}:{number}: {match[0]}"
        for number, line in enumerate(page.read_text().splitlines(), 1)
        for match in (NEVER_IN_PROSE.search(line), AS_A_NAME.search(line))
        if match
    ]
    assert not found, "\n".join(["", *found])


def names(tree: ast.AST) -> list[tuple[str, int]]:
    """Every name that code gives or uses, with its line."""
    found = []
    for node in ast.walk(tree):
        for key in ("id", "attr", "name", "arg"):
            name = getattr(node, key, None)
            if isinstance(name, str):
                found.append((name, getattr(node, "lineno", 0)))
    return found


def test_no_metaphor_names_anything_in_the_code():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for folder in ("src", "benchmarks", "docsite")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name, line in [*names(ast.parse(path.read_text())), (path.stem, 1)]
        if METAPHORS & {part.lower() for part in re.findall(r"[A-Za-z][a-z]*", name)}
    ]
    assert not found, "\n".join(["", *found])


def test_long_sentences_and_lines_are_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "A. " + "word " * 20 + "\n" + "word " * 21 + "end. See Eq. 2.\n\n- item `a b c`\n- other\n\n    code\n"
    )
    found = list(sentences(page))
    assert [(line, len(text.split())) for line, text in found] == [(1, 1), (1, 42), (1, 3), (4, 2), (5, 1)]
