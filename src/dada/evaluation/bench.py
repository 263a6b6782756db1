"""Run methods over the same problems, once each: what is already measured is taken from the cache."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from dada.datasets.pair import DEPTH
from dada.evaluation.cache import Cache, Record
from dada.evaluation.fingerprint import code_fingerprint, fingerprint, method_fingerprint
from dada.evaluation.methods import Entry
from dada.evaluation.metrics import THRESHOLDS, Rule, Scores, average
from dada.evaluation.protocol import Protocol
from dada.evaluation.protocol import problems as problems_of
from dada.evaluation.resources import watched
from dada.sample import Sample
from dada.sample.jumps import jumps

if TYPE_CHECKING:
    from dada.datasets.pair import Dataset, Pair

PICTURED = 6
"""Images of which pictures are made: those at the beginning of the data set."""

SYMBOL = 3
"""Letters of the longest symbol of a unit: "height m" ends in one, "grey levels" does not."""

T = TypeVar("T")

Draw = Callable[[Sample, dict[str, Tensor]], None]
"""Takes a problem and the result of each method by its label."""


@dataclass
class Runs:
    """The results of one method at one factor, in the order of the problems; or why there are none."""

    records: list[Record] = field(default_factory=list)
    failure: str | None = None

    def scores(self, rule: Rule, scene: str | None = None) -> Scores | None:
        """Averages over all problems or those of a scene, in the data's unit; None if the method failed."""
        chosen = [r.sums for r in self.records if scene in (None, r.scene)]
        return average(chosen, rule) if chosen and self.failure is None else None

    @property
    def seconds(self) -> float | None:
        """Of a call, the median."""
        return median(r.seconds for r in self.records) if self.records and self.failure is None else None

    @property
    def memory(self) -> float | None:
        """Bytes by which the process grew during a call at its peak, the median; None where it is not known."""
        known = [r.memory for r in self.records if r.memory is not None]
        return median(known) if known and self.failure is None else None


@dataclass(frozen=True)
class Report:
    """All results of a bench.

    Attributes:
        protocol: by which was measured.
        dataset: its name.
        quantity: what was measured, with its unit as the last word.
        entries: in the order of the rows.
        factors: in the order of the columns.
        runs: of (label, factor).
    """

    protocol: Protocol
    dataset: str
    quantity: str
    entries: list[Entry]
    factors: list[int]
    runs: dict[tuple[str, int], Runs]

    @property
    def unit(self) -> str:
        """What errors are printed in."""
        return printed_unit(self.quantity)[0]

    @property
    def scale(self) -> float:
        """The data's unit in printed units."""
        return printed_unit(self.quantity)[1]

    def scores(self, label: str, factor: int, rule: Rule | None = None, scene: str | None = None) -> Scores | None:
        """Averages in printed units, by the protocol's rule unless another is named; None if the method failed."""
        found = self.runs[label, factor].scores(rule or self.protocol.rule, scene)
        return found.scaled(self.scale) if found else None

    @property
    def count(self) -> int:
        """Of problems at each factor."""
        return max(len(runs.records) for runs in self.runs.values())

    @property
    def scenes(self) -> list[str]:
        """Names of the images, in order."""
        longest = max(self.runs.values(), key=lambda runs: len(runs.records))
        return list(dict.fromkeys(record.scene for record in longest.records))

    @property
    def warnings(self) -> list[str]:
        """What methods warned of, one line for each method and factor."""
        lines = []
        for (label, factor), runs in self.runs.items():
            caught = [text for record in runs.records for text in record.warnings[:1]]
            if caught:
                lines.append(f"{label} at x{factor}: {caught[0]} ({len(caught)} of {len(runs.records)} such)")
        return lines

    @property
    def failures(self) -> list[str]:
        """Which methods failed at which factor, and why."""
        return [f"{label} at x{factor}: {runs.failure}" for (label, factor), runs in self.runs.items() if runs.failure]


def printed_unit(quantity: str) -> tuple[str, float]:
    """What errors are printed in and the data's unit in it: centimetres for depth, else the data's own."""
    if quantity == DEPTH:
        return "cm", 0.1
    last = quantity.split()[-1]
    return (last if len(last) <= SYMBOL else quantity), 1.0


def run(
    entries: Sequence[Entry],
    dataset: Dataset,
    protocol: Protocol,
    factors: Sequence[int],
    cache: Cache,
    *,
    limit: int | None = None,
    draw: Draw | None = None,
    progress: Callable[[float, str], None] = lambda done, text: None,
) -> Report:
    """Run every method on every problem at every factor.

    A method that fails is left out at that factor from then on; the others go on. One that takes several problems at
    a time (`Entry.batch`) gets crops in their order; whole images, which differ in size, go one by one.

    Args:
        entries: the methods.
        dataset: of pairs.
        protocol: how problems are made and measured.
        factors: target pixels for a source pixel.
        cache: of what is already measured.
        limit: of the number of problems at each factor; None: all.
        draw: called for the crop with the most jumps of each of the first `PICTURED` images, at each factor.
        progress: called with the share that is done (0..1) and what is being done.

    Raises:
        InputError: the data cannot be used with this protocol or factor.
    """
    for factor in factors:
        protocol.check_factor(factor)
    keys = {entry.label: method_fingerprint(entry.method) for entry in entries}
    runs = {(c.label, factor): Runs() for factor in factors for c in entries}
    rules = dataset.unit, protocol, THRESHOLDS, code_fingerprint(Protocol.__module__)
    most = max((entry.batch for entry in entries), default=1) if protocol.crop else 1
    for parts in _chunks(_parts(dataset, protocol, limit, pictures=draw is not None), most):
        digests = [fingerprint(part.pair.name, part.pair.guide, part.pair.target, *rules) for part in parts]
        for number, factor in enumerate(factors):
            share = parts[0].share + (parts[-1].share - parts[0].share) * number / len(factors)
            problems = [
                _Problem(part, factor, dataset.unit, protocol, fingerprint(digest, factor), cache)
                for part, digest in zip(parts, digests, strict=True)
            ]
            for entry in entries:
                for group in _chunks(problems, entry.batch):
                    progress(share, f"x{factor} {entry.label}: {group[0].part.pair.name}")
                    if runs[entry.label, factor].failure is None:
                        _solve(group, entry, keys[entry.label], runs[entry.label, factor])
            for problem in problems:
                if draw and problem.results:
                    draw(problem.sample, problem.results)
    return Report(protocol, dataset.name, dataset.quantity, list(entries), list(factors), runs)


@dataclass(frozen=True)
class _Part:
    """A crop, whether pictures are made of it, and the share of the work that lies before it."""

    pair: Pair
    pictured: bool
    share: float


def _parts(dataset: Dataset, protocol: Protocol, limit: int | None, *, pictures: bool) -> Iterator[_Part]:
    for image, parts in enumerate(problems_of(dataset, protocol, limit)):
        pictured = busiest(parts, dataset.unit) if pictures and image < PICTURED else None
        for number, pair in enumerate(parts):
            yield _Part(pair, pair is pictured, (image + number / len(parts)) / max(len(dataset), image + 1))


def _chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """As many at a time; the last chunk may be smaller."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


@dataclass(frozen=True)
class _Problem:
    """A crop at a factor, made into a sample only when a method has to run; `results` are kept for a picture."""

    part: _Part
    factor: int
    unit: float
    protocol: Protocol
    key: str
    cache: Cache
    results: dict[str, Tensor] = field(default_factory=dict)

    @cached_property
    def sample(self) -> Sample:
        return self.protocol.sample(self.part.pair, self.factor, self.unit)

    def known(self, label: str, key: str) -> Record | None:
        """The record of a method from before, unless its picture is missing."""
        record = self.cache.get(label, key)
        if record is None or not self.part.pictured:
            return record
        image = self.cache.get_image(label, key)
        if image is None:
            return None
        self.results[label] = torch.from_numpy(image)
        return record

    def keep(self, label: str, key: str, record: Record, result: Tensor) -> None:
        """Write down what a method left, and its image where it is to be drawn."""
        if self.part.pictured:
            self.results[label] = result.cpu()
            self.cache.put_image(label, key, result.cpu().numpy())
        self.cache.put(label, key, record)


def _solve(group: Sequence[_Problem], entry: Entry, method_key: str, runs: Runs) -> None:
    """Append the records of a method on problems that it takes at once, or say why there are none."""
    keys = [fingerprint(method_key, *(problem.key for problem in group), place) for place in range(len(group))]
    known = [problem.known(entry.label, key) for problem, key in zip(group, keys, strict=True)]
    records = [record for record in known if record is not None]
    if len(records) < len(group):
        whole = Sample.batch([problem.sample for problem in group]) if len(group) > 1 else group[0].sample
        given = replace(whole, target=None, target_mask=None)  # methods do not see the truth
        try:
            with torch.no_grad(), warnings.catch_warnings(record=True) as caught, watched() as usage:
                warnings.simplefilter("always")
                result = entry.method(given)
            sums = group[0].protocol.measure(result, whole)
        except Exception as error:  # whatever a method does, the others are not to be lost
            reason = str(error).partition("\n")[0]  # those of torch are pages long
            runs.failure = f"{group[0].part.pair.name}: {type(error).__name__}: {reason}"
            return
        told = usage.seconds / len(group), usage.memory, tuple(str(warning.message) for warning in caught)
        records = [Record(problem.part.pair.name, sums[i], *told) for i, problem in enumerate(group)]
        for i, problem in enumerate(group):
            problem.keep(entry.label, keys[i], records[i], result[i : i + 1])
    runs.records += records


def busiest(parts: Sequence[Pair], unit: float) -> Pair:
    """The crop with the most pixels at a jump: chosen by the truth alone, so that no method influences the choice."""
    return max(parts, key=lambda part: int(jumps(part.target / unit, part.valid, THRESHOLDS.jump).sum()))
