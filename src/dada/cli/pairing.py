"""Which source belongs to which guide, told by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from dada.errors import InputError
from dada.io.detect import SUFFIXES

SOURCE_WORDS = {"depth", "depthmap", "disp", "disparity", "height", "dsm", "dem", "thermal", "temperature"}
SOURCE_WORDS |= {"source", "lr", "lowres", "low", "coarse"}
GUIDE_WORDS = {"rgb", "color", "colour", "colors", "image", "img", "photo", "guide", "hr", "highres", "high"}
GUIDE_WORDS |= {"visible", "vis", "ortho", "fine"}
CONFIDENCE_WORDS = {"conf", "confidence"}


class Pairs(NamedTuple):
    """What belongs together, and the sources for which no guide was found."""

    matched: list[tuple[Path, Path]]
    alone: list[Path]
    spare_guides: int


def pair(sources: Path, guides: Path, source_pattern: str | None = None, guide_pattern: str | None = None) -> Pairs:
    """Pair the images of two folders (which may be the same) by name.

    Without patterns, words such as depth, disp, rgb or color are taken out of the names, and what is left
    must be
    equal: `depth_0001.png` and `rgb_0001.jpg`, `cat_disp.pfm` and `cat_color.png`, `7.png` and `7.png`. With
    patterns such as `*_d.png` and `*_left.png`, what `*` stands for must be equal.

    Raises:
        InputError: not a folder, no image, no pair, or names that are ambiguous.
    """
    first = _keys(sources, source_pattern, SOURCE_WORDS, GUIDE_WORDS if sources == guides else set())
    second = _keys(guides, guide_pattern, GUIDE_WORDS, SOURCE_WORDS if sources == guides else set())
    matched = [(path, second[key]) for key, path in first.items() if key in second]
    if sources == guides:
        matched = [(source, guide) for source, guide in matched if source != guide]
    if not matched:
        raise InputError(
            f"{sources}: none of its {len(first)} images has a partner of the same name among the "
            f"{len(second)} of {guides} (such as {_example(first)} and {_example(second)}). Name the parts "
            "that differ with --source-pattern and --guide-pattern, such as '*_depth.png' and '*_rgb.png'; "
            "what * stands for must be equal."
        )
    paired = {source for source, _ in matched}
    alone = [path for path in first.values() if path not in paired]
    return Pairs(matched, alone, len(second) - len(matched))


def pair_confidence(
    sources: Iterable[Path], folder: Path, source_pattern: str | None = None, pattern: str | None = None
) -> dict[Path, Path]:
    """Return the confidence of each source that has one, by name: `conf_0001.png` is that of `depth_0001.png`.

    Raises:
        InputError: not a folder, no image, or names that are ambiguous.
    """
    found = _keys(folder, pattern, CONFIDENCE_WORDS | SOURCE_WORDS, set(), needed=CONFIDENCE_WORDS)
    partners: dict[Path, Path] = {}
    for source in sources:
        key = _key(source, SOURCE_WORDS, set()) if source_pattern is None else _matched(source.name, source_pattern)
        if key in found:
            partners[source] = found[key]
    return partners


def _keys(
    folder: Path, pattern: str | None, own: set[str], foreign: set[str], needed: set[str] | None = None
) -> dict[str, Path]:
    """The images of a folder by the part of their name that both partners share, in order.

    Where some names have one of the words `needed`, only these count. By default none has a word of confidence.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: this is not a folder. Name the folder that holds the images.")
    if pattern is not None and pattern.count("*") != 1:
        raise InputError(f"pattern {pattern!r} must hold exactly one *, which stands for what both names share.")
    found: dict[str, Path] = {}
    try:
        names = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be read ({error.strerror}). Check its permissions.") from None
    marked = [path for path in names if CONFIDENCE_WORDS & _words(path)]
    if pattern is None:
        names = (marked or names) if needed else [path for path in names if path not in marked] or names
    for path in names:
        if path.name.startswith(".") or not path.is_file():
            continue
        key = _key(path, own, foreign) if pattern is None else _matched(path.name, pattern)
        if key is None:
            continue
        if key in found:
            raise InputError(
                f"{folder}: {found[key].name} and {path.name} are both {key!r}, so it is not clear which is "
                "meant. Choose one kind with --source-pattern or --guide-pattern, such as '*.png'."
            )
        found[key] = path
    if not found:
        wanted = "images" if pattern is None else f"images called {pattern}"
        raise InputError(f"{folder}: it holds no {wanted}. Check the folder, and --source-pattern and --guide-pattern.")
    return found


def _key(path: Path, own: set[str], foreign: set[str]) -> str | None:
    """The words of a name but for those of its role; None if it has words of the other role only."""
    words = [word for word in re.split(r"[_\-. ]+", path.stem) if word]
    lower = [word.lower() for word in words]
    if foreign and any(word in foreign for word in lower) and not any(word in own for word in lower):
        return None
    left = [word for word, name in zip(words, lower, strict=True) if name not in own]
    return "_".join(left if left else words)


def _words(path: Path) -> set[str]:
    return {word.lower() for word in re.split(r"[_\-. ]+", path.stem)}


def _matched(name: str, pattern: str) -> str | None:
    before, after = pattern.split("*")
    if len(name) < len(before) + len(after) or not (name.startswith(before) and name.endswith(after)):
        return None
    return name[len(before) : len(name) - len(after)]


def _example(found: dict[str, Path]) -> str:
    return next(iter(found.values())).name
