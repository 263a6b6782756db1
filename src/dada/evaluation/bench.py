"""Run methods over the same problems, once each: what is already measured is taken from the cache."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dada.datasets.pair import DEPTH
from dada.evaluation.cache import Cache, Record
from dada.evaluation.fingerprint import code_fingerprint, fingerprint, method_fingerprint
from dada.evaluation.methods import Entry
from dada.evaluation.metrics import THRESHOLDS, Rule, Scores, average
from dada.evaluation.protocol import Protocol, problems
from dada.evaluation.resources import watched
from dada.sample import Sample
from dada.sample.jumps import jumps

if TYPE_CHECKING:
    from dada.datasets.pair import Dataset, Pair

PICTURED = 6
"""Images of which pictures are made: those at the beginning of the data set."""

SYMBOL = 3
"""Letters of the longest symbol of a unit: "height m" ends in one, "grey levels" does not."""

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

    A method that fails is left out at that factor from then on; the others go on.

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
    for image, parts in enumerate(problems(dataset, protocol, limit)):
        pictured = busiest(parts, dataset.unit) if draw and image < PICTURED else None
        for number, part in enumerate(parts):
            share = (image + number / len(parts)) / max(len(dataset), image + 1)
            data = fingerprint(part.name, part.guide, part.target, *rules)
            for factor in factors:
                problem = _Problem(part, factor, dataset.unit, protocol, fingerprint(data, factor), cache)
                results: dict[str, Tensor] = {}
                for entry in entries:
                    progress(share, f"x{factor} {entry.label}: {part.name}")
                    mine = runs[entry.label, factor]
                    if mine.failure is None:
                        result = problem.solve(entry, keys[entry.label], mine, keep=part is pictured)
                        results |= {} if result is None else {entry.label: result}
                if draw and results:
                    draw(problem.sample, results)
    return Report(protocol, dataset.name, dataset.quantity, list(entries), list(factors), runs)


@dataclass(frozen=True)
class _Problem:
    """A crop at a factor, made into a sample only when a method has to run."""

    pair: Pair
    factor: int
    unit: float
    protocol: Protocol
    key: str
    cache: Cache

    @cached_property
    def sample(self) -> Sample:
        return self.protocol.sample(self.pair, self.factor, self.unit)

    def solve(self, entry: Entry, method_key: str, runs: Runs, *, keep: bool) -> Tensor | None:
        """Append the record of a method, or say why there is none; return its result if it is to be kept."""
        key = fingerprint(method_key, self.key)
        record = self.cache.get(entry.label, key)
        image = self.cache.get_image(entry.label, key) if keep and record else None
        if record is not None and (image is not None or not keep):
            runs.records.append(record)
            return None if image is None else torch.from_numpy(image)
        given = replace(self.sample, target=None, target_mask=None)  # methods do not see the truth
        try:
            with torch.no_grad(), warnings.catch_warnings(record=True) as caught, watched() as usage:
                warnings.simplefilter("always")
                result = entry.method(given)
            sums = self.protocol.measure(result, self.sample)[0]
        except Exception as error:  # whatever a method does, the others are not to be lost
            reason = str(error).partition("\n")[0]  # those of torch are pages long
            runs.failure = f"{self.pair.name}: {type(error).__name__}: {reason}"
            return None
        if keep:
            self.cache.put_image(entry.label, key, result.cpu().numpy())
        record = Record(
            self.pair.name, sums, usage.seconds, usage.memory, tuple(str(warning.message) for warning in caught)
        )
        self.cache.put(entry.label, key, record)
        runs.records.append(record)
        return result.cpu() if keep else None


def busiest(parts: Sequence[Pair], unit: float) -> Pair:
    """The crop with the most pixels at a jump: chosen by the truth alone, so that no method influences the choice."""
    return max(parts, key=lambda part: int(jumps(part.target / unit, part.valid, THRESHOLDS.jump).sum()))
