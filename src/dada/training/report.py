"""Progress of a training: a live line on a terminal or periodic lines in a log file, and TensorBoard curves."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from dada.training.config import TrainConfig
from dada.training.validation import score

SMOOTH = 0.98  # decay of the running means of loss and time
CURVE = 20  # steps between two points of the curves
LOG = 30.0  # seconds between two lines where there is no terminal


class Report:
    """Reports one run; silent in all processes but the first."""

    def __init__(self, folder: Path, config: TrainConfig, step: int, shown: bool) -> None:
        """Set up.

        Args:
            folder: of the training; the curves go there.
            config: of the training.
            step: steps done before this run.
            shown: whether this process reports.
        """
        self._config, self._shown, self._begun = config, shown, step
        self._loss: float | None = None
        self._seconds: float | None = None  # a step takes
        self._samples = 1  # of a step
        self._scores: dict[str, float] = {}
        self._clock = self._printed = time.monotonic()
        self._curves = _curves(folder, step) if shown else None
        self._live: Any = None

    def __enter__(self) -> Report:
        if self._shown and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=2)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        if self._curves is not None:
            self._curves.close()

    def step(self, step: int, loss: float, rate: float, samples: int) -> None:
        """Report a finished step; `samples` is the batch size over all processes."""
        now = time.monotonic()
        seconds, self._clock, self._samples = now - self._clock, now, samples
        self._loss = loss if self._loss is None else SMOOTH * self._loss + (1 - SMOOTH) * loss
        if step > self._begun + 1:  # the first one compiles
            self._seconds = seconds if self._seconds is None else SMOOTH * self._seconds + (1 - SMOOTH) * seconds
        if self._curves is not None and step % CURVE == 0:
            self._curves.add_scalar("training/loss", self._loss, step)
            self._curves.add_scalar("training/learning rate", rate, step)
            self._curves.add_scalar("training/seconds a sample", seconds / samples, step)
        if self._live is not None:
            self._live.update(self.line(step))
        elif now - self._printed > LOG:
            self.say(self.line(step))

    def scores(self, step: int, shares: dict[str, float]) -> None:
        """Report a validation."""
        self._scores, self._clock = shares, time.monotonic()
        if self._curves is not None:
            for name, value in shares.items():
                self._curves.add_scalar(f"share of bicubic/{name}", value, step)
        each = ", ".join(f"{name} {value:.3f}" for name, value in shares.items())
        self.say(f"{self.line(step)}  ({each})")

    def say(self, text: str) -> None:
        """Print a permanent line."""
        if self._live is not None:
            self._live.console.print(text, highlight=False)
        elif self._shown:
            print(text, file=sys.stderr, flush=True)
        self._printed = time.monotonic()

    def line(self, step: int) -> str:
        """Step, speed, loss, validation errors and remaining time."""
        parts = [f"step {step} of {self._config.steps}"]
        if self._seconds is not None:
            parts.append(f"{self._samples / max(self._seconds, 1e-9):.1f} samples/s")
        if self._loss is not None:
            parts.append(f"loss {self._loss:.4g}")
        if self._scores:
            parts.append(self._errors())
        if self._seconds is not None:
            parts.append(f"{timedelta(seconds=round((self._config.steps - step) * self._seconds))} left")
        return "  ".join(parts)

    def _errors(self) -> str:
        mse, mae = (score(self._scores, error) for error in ("mse", "mae"))
        return f"MSE {mse:.3f} MAE {mae:.3f} of bicubic's"


def _curves(folder: Path, step: int) -> Any:
    """A TensorBoard writer, or None where TensorBoard is not installed; repeated steps are not shown twice."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        print("note: no curves, as tensorboard is not installed (pip install 'dada-sr[train]').", file=sys.stderr)
        return None
    return SummaryWriter(str(folder / "curves"), purge_step=step)
