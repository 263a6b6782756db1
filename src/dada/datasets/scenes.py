"""Scenes gathered from many data sets: a folder for each, with rgb.png, ground truth as published, and meta.json."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dada.datasets.files import read_guide, read_json, read_target
from dada.datasets.pair import Pair, Split, check_index, check_split, deviation
from dada.datasets.scene_kinds import Kind, Meta, View, kind_of
from dada.datasets.split import check_role, role_of
from dada.errors import InputError

MIXED = "standard deviations"


class Entry(NamedTuple):
    """A view of a scene, not read yet."""

    folder: Path
    meta: Meta
    kind: Kind
    view: View
    name: str

    def target(self) -> np.ndarray:
        """(H, W) in the unit of the kind's quantity, NaN in holes."""
        values = read_target(self.folder / self.view.truth, self.view.truth_key)
        return self.kind.convert(values, self.folder, self.meta)

    def guide(self) -> np.ndarray:
        """(H, W, C)."""
        return read_guide(self.folder / self.view.guide, self.view.guide_key)


class Scenes:
    """One set of scenes, one scene, or all sets below a folder.

    The split is that of "dada_split" in meta.json: "val" gives the scenes so marked, "train" those that are marked
    neither "val" nor "test", and "test" those marked "test", or all where none is: such a set is a bench by itself.

    Sets of one quantity and unit stay in it. Where they differ (depth and disparity, two cameras), targets are given
    in standard deviations of their own set, and `unit` is 1.
    """

    def __init__(
        self, path: str | Path, split: str = "test", *, without: str = "", raw: str = "no", role: str = ""
    ) -> None:
        """Find the scenes; none is read yet.

        Args:
            path: a scene's folder (it holds meta.json), or any folder above.
            split: "train", "val" or "test".
            without: scenes to leave out, such as "Art,Books", for example those of a test.
            raw: "yes" for the views with holes of those scenes that usually come with filled ones.
            role: of scenes that the fixed split names, only those of this role, whatever their mark; see `split.py`.

        Raises:
            InputError: no such folder, no scene in it, or none left.
        """
        self.path = Path(path)
        if raw not in ("yes", "no"):
            raise InputError(f"raw={raw} is not understood: use yes or no.")
        self._split = check_split(split)
        names = {name for name in without.split(",") if name}
        found = list(self._entries(raw == "yes"))
        marked = any(_mark(e.meta) == "test" for e in found)
        wanted = check_role(role)
        kept = [e for e in found if _fits(e, wanted, self._split, marked)]
        self.entries = [e for e in kept if e.folder.name not in names]
        if unknown := names - {e.folder.name for e in found}:
            raise InputError(f"{path}: there is no scene {', '.join(sorted(unknown))} to leave out.")
        if not self.entries:
            raise InputError(
                f"{path}: none of its {len(found)} views belongs to the split {split!r} ('dada_split' in meta.json) "
                f"with raw={raw} and {len(names)} scenes left out{f', or is for {role}' if role else ''}. Use another "
                "split or path."
            )

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.resolve().name

    @property
    def quantity(self) -> str:
        """What the targets are; "standard deviations" where the sets differ."""
        return self.entries[0].kind.quantity if self._scale is None else MIXED

    @cached_property
    def unit(self) -> float:
        """The published one for Middlebury and NYUv2; the standard deviation of all valid values of other sets."""
        return next(iter(self._units.values())) if self._scale is None else 1.0

    @cached_property
    def _units(self) -> dict[str, float]:
        """Standard deviation of each kind."""
        kinds = {e.kind.title: e.kind for e in self.entries}
        return {
            title: kind.unit or deviation(e.target() for e in self.entries if e.kind is kind)
            for title, kind in kinds.items()
        }

    @cached_property
    def _scale(self) -> dict[str, float] | None:
        """Divisors of the targets of each kind; None if all have one unit."""
        same = len({(e.kind.quantity, e.kind.unit or e.kind.title) for e in self.entries}) == 1
        return None if same else self._units

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Pair:
        entry = self.entries[check_index(index, len(self))]
        target = entry.target()
        if self._scale is not None:
            target = target / np.float32(self._scale[entry.kind.title])
        return Pair(entry.guide(), target, entry.name)

    def _entries(self, raw: bool) -> Iterator[Entry]:
        for folder in self._folders():
            meta = read_json(folder / "meta.json")
            kind = kind_of(folder, meta)
            inner = folder.relative_to(self.path).as_posix()
            name = folder.resolve().name if inner == "." else inner
            views = [v for v in (kind.raw if raw else kind.views) if (folder / v.truth).exists()]
            if not views and not raw:
                wanted = " or ".join(v.truth for v in kind.views)
                raise InputError(f"{folder}: the ground truth is missing: {wanted} was looked for.")
            for view in views:
                yield Entry(folder, meta, kind, view, f"{name}.{view.label}" if view.label else name)

    def _folders(self) -> list[Path]:
        if not self.path.is_dir():
            raise InputError(f"{self.path}: this is not a folder. Name one with a folder for each scene.")
        found = sorted(file.parent for file in self.path.rglob("meta.json"))
        if not found:
            raise InputError(
                f"{self.path}: there is no scene in it. A scene is a folder with rgb.png, ground truth and meta.json; "
                "images laid out otherwise can be read as a plain folder of pairs (folder:PATH)."
            )
        return found


def _mark(meta: Meta) -> str:
    """The split a scene is marked with: "paper VAL" and "val" are the same."""
    return str(meta.get("dada_split", "")).lower().removeprefix("paper ")


def _fits(entry: Entry, role: str, split: Split, marked: bool) -> bool:
    own = role_of(entry.folder) if role else None
    return own == role if own else _belongs(entry, split, marked)


def _belongs(entry: Entry, split: Split, marked: bool) -> bool:
    mark = _mark(entry.meta)
    if split == "val":
        return mark == "val"
    if split == "train":
        return mark not in ("val", "test")
    return mark == "test" or not marked
