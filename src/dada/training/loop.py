"""The training loop: batches, optimiser steps, validation and checkpoints."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dada.errors import InputError
from dada.sample import Sample
from dada.training import checkpoint
from dada.training.average import Average
from dada.training.config import TrainConfig
from dada.training.data import Batches, Steps, load
from dada.training.epochs import Epochs, PublishedValidation
from dada.training.loss import loss as loss_of
from dada.training.networks import build, save_weights, training_forward
from dada.training.processes import Processes, Stop, processes, stop_on_signals
from dada.training.report import Report
from dada.training.schedule import learning_rate
from dada.training.validation import Validation

BEST = "best.safetensors"
BAD_STEPS = 20  # consecutive steps without a finite gradient, after which the training is stopped


def train(config: TrainConfig) -> Path:
    """Train, or resume the training in the folder `config.output`.

    SIGINT and SIGTERM end it after the current step, with a checkpoint. Under `torchrun` all processes train one
    network. A training that was interrupted or killed and resumed gives the same weights as one that was not, bit for
    bit on a CPU with the same number of threads.

    Returns:
        The best weights, by the geometric mean of the shares of bicubic's MSE (with augmentation "paper" by L1), or the
        last ones where nothing is measured.

    Raises:
        InputError: the configuration, data or folder cannot be used.
    """
    if config.threads:
        torch.set_num_threads(config.threads)
    with stop_on_signals() as stop, processes() as group:
        return _Training(config, group).run(stop)


class _Training:
    def __init__(self, config: TrainConfig, group: Processes) -> None:
        self.config, self.group = config, group
        self.folder = Path(config.output)
        self.batches: Steps = Epochs(config, group) if config.published else Batches(config, group.rank)
        torch.manual_seed(config.seed)
        self.network = build(config, self.batches.unit)
        self.average = Average(self.network, config.average)
        self.optimiser = torch.optim.Adam(
            self.network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        if group.first:
            checkpoint.claim(self.folder, config)
        group.wait()
        self.progress = checkpoint.restore(self.folder, self.network, self.average, self.optimiser)
        self.validation = (PublishedValidation if config.published else Validation)(config, group)
        self.shared = group.share(self.network)
        self.bad_steps = 0

    def run(self, stop: Stop) -> Path:
        begun, saved = time.monotonic(), time.monotonic()
        before = self.progress.seconds
        with Report(self.folder, self.config, self.progress.step, self.group.first) as report:
            if self.progress.step:
                report.say(f"going on after step {self.progress.step} of {self.config.steps}")
            for sample in load(self.batches, self.progress.step):
                self._step(sample, report)
                self.progress.seconds = before + time.monotonic() - begun
                over = 0 < self.config.minutes * 60 < time.monotonic() - begun
                end = self.group.any(stop.asked or over)
                measured = self._measure(report)
                if measured or end or time.monotonic() - saved > self.config.checkpoint * 60:
                    self._save()
                    saved = time.monotonic()
                if end:
                    report.say(f"stopped after step {self.progress.step}; the same command goes on from there")
                    break
        return self.folder / BEST

    def _step(self, sample: Sample, report: Report) -> None:
        step = self.progress.step
        # random numbers depend on the step alone, so that no state of the generator is saved
        torch.manual_seed(int(np.random.SeedSequence((self.config.seed, step)).generate_state(1)[0]))
        rate = learning_rate(step, self.config)
        for settings in self.optimiser.param_groups:
            settings["lr"] = rate
        self.network.train()
        self.optimiser.zero_grad()
        loss = loss_of(training_forward(self.shared, sample, self.config), sample, self.config.loss)
        torch.autograd.backward(loss)
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip or math.inf)
        if bool(norm.isfinite()):
            self.optimiser.step()
            self.bad_steps = 0
        else:
            self._skip(step)
        self.average.follow(self.network, step)
        self.progress.step += 1
        report.step(self.progress.step, float(loss.detach()), rate, len(sample) * self.group.count)

    def _skip(self, step: int) -> None:
        """Skip a step whose gradient is not finite, at most `BAD_STEPS` in succession."""
        self.bad_steps += 1
        if self.bad_steps >= BAD_STEPS:
            raise InputError(
                f"the gradient was not finite in {BAD_STEPS} steps up to {step}: the training has broken down. "
                "Lower learning_rate, or clip gradients."
            )

    def _measure(self, report: Report) -> bool:
        """Validate if it is due, and save the weights if they are the best so far; return whether it was due."""
        done = self.progress.step == self.config.steps
        if not done and self.progress.step % self.config.validation.every:
            return False
        self.group.align(self.average.network)
        shares = self.validation(self.average.network, self.progress.step)
        self.progress.scores = shares
        if shares:
            report.scores(self.progress.step, shares)
        score = self.validation.score(shares)
        if score < self.progress.best or (done and not shares):
            self.progress.best = score
            if self.group.first:
                save_weights(self.average.network, self.folder / BEST)
        return True

    def _save(self) -> None:
        if self.group.first:
            checkpoint.save(self.folder, self.progress, self.network, self.average, self.optimiser)
        self.group.wait()
