"""The input of every experiment: data, effort, and folders in which results of interrupted runs are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from dada.evaluation.cache import Cache
from dada.evaluation.fingerprint import code_fingerprint, fingerprint
from dada.evaluation.protocol import P1, Protocol, problems
from dada.io import write_bytes_atomically
from dada.reproduce.effort import Effort
from dada.reproduce.found import Absent, TestSet, find
from dada.sample import Sample


@dataclass
class Study:
    """One run of an experiment.

    Attributes:
        name: of the experiment.
        output: folder of all experiments; each has a folder in it, all share its `cache` and `trainings`.
        effort: how much to do.
        data: folder of data sets; None for none.
        weights: folder of released weights, METHOD/FILE with the factor in the file's name; None for none.
        fresh: whether to repeat finished measurements.
        say: called with a line of progress and the finished share, None if unknown.
    """

    name: str
    output: Path
    effort: Effort
    data: Path | None = None
    weights: Path | None = None
    fresh: bool = False
    say: Callable[[str, float | None], None] = lambda text, share: None
    used: list[TestSet] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Of this experiment."""
        return self.output / self.name

    @cached_property
    def cache(self) -> Cache:
        """That of the bench, shared by all experiments."""
        return Cache(self.output / "cache", fresh=self.fresh)

    @property
    def protocol(self) -> Protocol:
        """P1, with crops of another side where the effort asks for it."""
        return P1 if self.effort.size == P1.crop else P1.with_crop(self.effort.size)

    @cached_property
    def _found(self) -> tuple[list[TestSet], list[Absent]]:
        return find(self.data, self.effort.size)

    @property
    def absent(self) -> list[Absent]:
        """The missing data sets of the paper."""
        return self._found[1]

    def sets(self) -> list[TestSet]:
        """All available data sets; the page names them."""
        self.used = self._found[0]
        return self.used

    def first(self) -> TestSet:
        """The data set for experiments on a single one: Middlebury, as in the paper, or the first available."""
        self.used = self._found[0][:1]
        return self.used[0]

    def samples(self, count: int | None, factor: int) -> Iterator[Sample]:
        """Problems of the first data set, one at a time, spread as the bench spreads them."""
        dataset = self.first().open()
        for parts in problems(dataset, self.protocol, count):
            for part in parts:
                yield self.protocol.sample(part, factor, dataset.unit)

    def remember(self, module: str, key: Any, compute: Callable[[], Any]) -> Any:
        """Return the result of a measurement, from disk if it was made before.

        Args:
            module: whose code, with all its imports, must be unchanged.
            key: everything else that the result depends on.
            compute: makes the measurement; returns a value that JSON can represent.
        """
        digest = fingerprint(self.name, key, code_fingerprint(module))
        path = self.folder / "measured" / f"{digest}.json"
        if path.exists() and not self.fresh:
            try:
                return json.loads(path.read_bytes())
            except ValueError:
                pass
        result = compute()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(path, json.dumps(result).encode())
        return json.loads(json.dumps(result))


@contextmanager
def single_thread() -> Iterator[None]:
    """Run with one thread of torch: times that compare with the compiled solver's."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
