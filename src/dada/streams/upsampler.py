"""`dada.Upsampler`: the frames of a camera one after another."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dada.errors import InputError
from dada.models.model import Model
from dada.models.registry import load_model
from dada.sample import Sampling
from dada.streams.kept import Kept, Noted
from dada.streams.motion import change, same_source, static
from dada.streams.temporal import flicker, pulled
from dada.upsampling.adjust import Choice
from dada.upsampling.pipeline import Reading, prepared, reported
from dada.upsampling.problem import Problem
from dada.upsampling.result import Result, UpsampleWarning
from dada.upsampling.solve import Solved, solve, within_bounds
from dada.upsampling.solver import Precision, Solver
from dada.upsampling.source import ArrayLike, Marker


@dataclass(frozen=True)
class Frame:
    """What an `Upsampler` found of its last frame.

    Attributes:
        kept: whether the coefficients of an earlier frame served again.
        moved: [H, W] bool, pixels that changed by more than noise since the frame whose coefficients are kept.
        flicker: mean |change| from the last result where nothing moved, in the unit of the source; None: all of it
            moved, or it is the first frame.
        flicker_before: the same without the temporal weight.
    """

    kept: bool
    moved: NDArray[np.bool_]
    flicker: float | None = None
    flicker_before: float | None = None


@dataclass(frozen=True)
class _Memory:
    """What is left of the frames before.

    Attributes:
        seen: the frame whose coefficients are kept.
        solved: its solution.
        kept: its coefficients.
        values: [H, W], the last result.
        before: [H, W], the same without the temporal weight.
    """

    seen: Problem
    solved: Solved
    kept: Kept
    values: Tensor
    before: Tensor


class Upsampler:
    """Upsample frame after frame of one camera: `upsampler(source, guide)` for each.

    Where neither guide nor source changed by more than their noise, the coefficients of the earlier frame are kept, and
    the solution begins from the last result. All else is computed as by `dada.upsample`.

    Attributes:
        frame: what was found of the last frame; None before the first.
    """

    def __init__(
        self,
        *,
        model: str | os.PathLike[str] | Model = "default",
        invalid: Marker = "auto",
        adjust: Choice = "auto",
        tolerance: float | None = None,
        fill: bool = False,
        sampling: str | Sampling = "mean",
        unit: str | float | None = None,
        precision: Precision = "auto",
        device: str | torch.device | None = None,
        keep: bool = True,
        temporal_weight: float = 0.0,
    ) -> None:
        """Set up; the model is loaded once.

        Args:
            model: as for `dada.upsample`, as are all arguments up to `device`; methods that solve for nothing have
                nothing to keep.
            invalid: value that marks invalid cells.
            adjust: how cells are held to their measurement.
            tolerance: of the equilibrium.
            fill: also give values to the pixels of invalid cells.
            sampling: how the sources were made.
            unit: of the sources.
            precision: in which it is computed.
            device: on which models are computed.
            keep: False computes coefficients for each frame, whether it changed or not.
            temporal_weight: from 0 to below 1, how far pixels where nothing moved are pulled towards the last result.
                Each cell still gives back its measurement. Above 0, only the sampling "mean" will do.

        Raises:
            InputError: an option cannot be.
        """
        found = load_model(model) if isinstance(model, str | os.PathLike) else model
        if not isinstance(found, Model):
            raise InputError(
                f"model {found.name} solves for nothing, so that an Upsampler has nothing to keep. Use dada.upsample "
                "for each frame, or a model such as default, dynamic or none."
            )
        if not 0 <= temporal_weight < 1:
            raise InputError(f"temporal_weight {temporal_weight:g} must lie between 0 and below 1; 0 is off.")
        if temporal_weight and Sampling.of("mean" if sampling == "auto" else sampling).kind != "mean":
            raise InputError(f"a temporal weight needs sampling mean, and {sampling} was given. Leave one of them out.")
        self.frame: Frame | None = None
        self._reading = Reading(found, invalid, sampling, unit, device)
        self._way = Solver.of("equilibrium", tolerance, None, precision)
        self._adjust, self._fill, self._keep, self._weight = adjust, fill, keep, temporal_weight
        self._memory: _Memory | None = None

    def reset(self) -> None:
        """Forget all frames, as before a cut."""
        self.frame = self._memory = None

    def __call__(
        self,
        source: ArrayLike,
        guide: ArrayLike,
        *,
        mask: ArrayLike | None = None,
        confidence: ArrayLike | None = None,
        noise: ArrayLike | float | None = None,
    ) -> Result:
        """Upsample the next frame; arguments, result, errors and warnings are those of `dada.upsample`.

        Raises:
            InputError: the frame cannot be used. The frames before are not forgotten.
        """
        if getattr(guide, "ndim", 0) == 4:
            raise InputError("the guide has four dimensions, a batch: give an Upsampler one frame after another.")
        begin, notes = time.perf_counter(), []  # type: float, list[str]
        held = mask, confidence, noise
        inputs, problem, chosen, known = prepared(source, guide, held, self._reading, notes.append)
        assert isinstance(chosen, Model)  # which a model stays, whatever suits the guide
        solved, memory, frame = self._solve(problem, chosen)
        result = reported(inputs, problem, chosen, self._way, solved, self._fill, notes, **known)
        result.report.seconds = time.perf_counter() - begin
        self._memory, self.frame = memory, frame
        for text in notes:
            warnings.warn(text, UpsampleWarning, stacklevel=2)
        return result

    def _solve(self, problem: Problem, chosen: Model) -> tuple[Solved, _Memory, Frame]:
        """Solve with what is kept, or anew; return what to remember and to tell beside the solution."""
        memory = self._memory
        changed = change(None if memory is None else memory.seen, problem)
        solved, remembered = None, memory
        if memory is not None and self._keep and changed.still:
            solved = self._again(problem, memory)
        if solved is None or remembered is None:
            solved, kept = self._anew(problem, chosen)
            remembered = _Memory(problem, solved, kept, solved.values, solved.values)
        plain = solved.values
        frame = Frame(remembered is memory, changed.moved)
        if memory is not None and memory.values.shape == plain.shape:
            still = static(changed.moved, plain)
            if self._weight:
                solved = self._pulled(solved, problem, memory.values, self._weight * still)
            frame = replace(
                frame,
                flicker=flicker(solved.values, memory.values, still),
                flicker_before=flicker(plain, memory.before, still),
            )
        return solved, replace(remembered, values=solved.values, before=plain), frame

    def _anew(self, problem: Problem, chosen: Model) -> tuple[Solved, Kept]:
        noted = Noted(chosen)
        (solved,) = solve(problem, noted, self._way, self._adjust)
        return solved, Kept.of(noted, problem.weight is not None)

    def _again(self, problem: Problem, memory: _Memory) -> Solved | None:
        """Solve with the coefficients that are kept, from the last result; None: that does not come to its end.

        A source that was not averaged is solved for by several smoothing passes, whose result depends on the start.
        """
        if same_source(memory.seen, problem):
            return memory.solved
        warm = problem
        if problem.sampling.kind == "mean":
            warm = replace(problem, interpolated=memory.before[None, None].to(problem.source.dtype))
        adjust = memory.solved.adjust or "shift"
        low, _ = problem.ranges()[0]
        if adjust == "ratio" and not low > 0:  # within the noise of zero
            adjust = "shift"
        (solved,) = solve(warm, memory.kept, self._way, adjust)
        return self._bounded(solved, problem) if solved.converged else None

    def _pulled(self, solved: Solved, problem: Problem, last: Tensor, share: Tensor) -> Solved:
        return self._bounded(pulled(solved, problem, last, share, self._way.tolerance), problem)

    def _bounded(self, found: Solved, problem: Problem) -> Solved:
        """Keep a solution as near to the measurements as "auto" promises."""
        if self._adjust != "auto":
            return found
        return within_bounds(found, problem, problem.ranges()[0], self._way.tolerance)
