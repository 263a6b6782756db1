"""Which of the paper's data sets are available, replacements for the others, and where to get them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dada.datasets import Dataset, diml, load_dataset, middlebury, nyuv2
from dada.errors import InputError

TEST_SEED, TRAIN_SEED = 1, 0  # of painted scenes: none is trained and tested on


@dataclass(frozen=True)
class TestSet:
    """A data set to measure on.

    Attributes:
        title: the paper's data set that it is or replaces, or "painted".
        text: KIND:PATH of `dada.datasets.load_dataset`.
        split: of it.
        about: a description for the page.
        train: KIND:PATH of its training part, "" if there is none.
        own: whether it is the paper's own test split.
    """

    title: str
    text: str
    split: str
    about: str
    train: str = ""
    own: bool = False

    def open(self) -> Dataset:
        """Open it; images are read when asked for."""
        return load_dataset(self.text, self.split)


@dataclass(frozen=True)
class Absent:
    """A missing data set of the paper, and how to get it."""

    title: str
    remedy: str


@dataclass(frozen=True)
class Replacement:
    """A folder of scenes, below the data folder, that replaces a missing data set."""

    folder: str
    split: str
    about: str


SETS: dict[str, tuple[str, str, Replacement | None]] = {
    "Middlebury": (
        "middlebury",
        middlebury.REMEDY,
        Replacement("middlebury_2005_full", "test", "full-size scenes of 2005, not the paper's five test scenes"),
    ),
    "NYUv2": (
        "nyuv2",
        f"{nyuv2.REMEDY} {nyuv2.INDEX_REMEDY}",
        Replacement("nyuv2", "val", "frames of the paper's validation part, not its 300 test frames"),
    ),
    "DIML": ("diml", diml.REMEDY, None),
}
"""The paper's data sets: kind of the reader, where to get them, and a replacement."""


def find(folder: Path | None, painted: int) -> tuple[list[TestSet], list[Absent]]:
    """Look for the paper's data sets.

    Args:
        folder: that holds them, as `Middlebury`, `NYU Depth v2` and `DIML` or as folders of scenes; None for none.
        painted: side of the painted scenes to measure on where nothing is found.

    Returns:
        The data sets to measure on, never empty; and the missing data sets of the paper.
    """
    sets: list[TestSet] = []
    absent: list[Absent] = []
    for title, (kind, remedy, replacement) in SETS.items():
        text = f"{kind}:{folder}"
        if folder is not None and _opens(lambda text=text: load_dataset(text, "test")):  # type: ignore[misc]
            sets.append(TestSet(title, text, "test", "the paper's own test images", text, own=True))
            continue
        absent.append(Absent(title, remedy.replace("ROOT", str(folder or "DATA"))))
        if folder is not None and replacement is not None and (found := _replace(title, folder, replacement)):
            sets.append(found)
    if not sets:
        text = f"painted:{TEST_SEED},64?size={painted}"
        sets.append(TestSet("painted", text, "test", "painted scenes of our own, as no photographs were found"))
    return sets, absent


def _replace(title: str, folder: Path, replacement: Replacement) -> TestSet | None:
    text = f"scenes:{folder / replacement.folder}"
    if not (folder / replacement.folder).is_dir() or not _opens(lambda: load_dataset(text, replacement.split)):
        return None
    count = len(load_dataset(text, replacement.split))
    train = text if replacement.split == "val" and _opens(lambda: load_dataset(text, "train")) else ""
    return TestSet(title, text, replacement.split, f"{count} {replacement.about}", train)


def _opens(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except InputError:
        return False
    return True
