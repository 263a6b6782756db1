"""`ablation-ngrad` and `ablation-npre`: steps of the loop with and without gradient while training."""

from __future__ import annotations

from dataclasses import replace

from dada.evaluation.paper import paper
from dada.evaluation.tables import Table
from dada.reproduce.ablation import FACTOR, about_ablation, beside, share, unrolled, variants
from dada.reproduce.findings import Findings
from dada.reproduce.memory import training_memory
from dada.reproduce.plots import asymptote, lines, sheet
from dada.reproduce.reports import all_rows, described
from dada.reproduce.study import Study
from dada.reproduce.trainings import training

IMPLICIT = "implicit"


def with_gradient(study: Study) -> Findings:
    """Figure 6a: error and memory against N_grad; the implicit gradient as its limit."""
    test, counts = study.first(), study.effort.grad_steps
    base = training(study, "dada", FACTOR, test.title, ablation=True)
    trainings = {f"N_grad = {n}": unrolled(study, base, grad_steps=n) for n in counts}
    trainings |= {IMPLICIT: replace(base, scheme="implicit")}
    report, reasons = variants(study, trainings)
    memory = {name: training_memory(study, config) for name, config in trainings.items()}
    shares = [share(report, f"N_grad = {n}") for n in counts]
    figure, (left, right) = sheet(2)
    lines(left, {"unrolled": (counts, shares)}, x="N_grad", y="share of bicubic's MSE", log="x", title="error")
    asymptote(left, share(report, IMPLICIT), IMPLICIT)
    used = [memory[f"N_grad = {n}"] / 1e6 for n in counts]
    lines(right, {"unrolled": (counts, used)}, x="N_grad", y="memory of a step (MB)", log="x", title="memory")
    asymptote(right, memory[IMPLICIT] / 1e6, IMPLICIT)
    printed = paper()["grad_steps_gigabytes"]
    table = Table(
        f"Memory of a training step, {base.batch[0]} crops of {base.crop[0]} x {base.crop[0]}",
        ["gradient", "megabytes"],
        [[name, f"{size / 1e6:.0f}"] for name, size in memory.items()],
        "How far the process grew in one step, forward and backward, in the second of two steps. The paper, 8 crops of "
        f"256 x 256 on a GPU: {printed['32']} GB for N_grad = 32, {printed['1024']} GB for 1024.",
    )
    summary = [
        f"A step with N_grad = {counts[-1]} takes {used[-1]:.0f} MB, the implicit gradient "
        f"{memory[IMPLICIT] / 1e6:.0f} MB.",
        f"Training: {about_ablation(study)}.",
    ]
    return Findings(
        summary, described([report]), [*all_rows([report]), *({"variant": n, "bytes": m} for n, m in memory.items())],
        figure, "Error after training with N_grad steps of the loop, and memory of a step; dashed: implicit gradient.",
        [beside(report, {}, reasons, "The paper shows its errors as a curve, without numbers."), table],
        {"training": about_ablation(study), "largest N_pre": study.effort.pre},
    )  # fmt: skip


def without_gradient(study: Study) -> Findings:
    """Figure 6b: the largest N_pre."""
    test, counts = study.first(), study.effort.pre_steps
    base = training(study, "dada", FACTOR, test.title, ablation=True)
    trainings = {f"N_pre = {n}": unrolled(study, base, pre_steps=n) for n in counts}
    trainings |= {IMPLICIT: replace(base, scheme="implicit")}
    report, reasons = variants(study, trainings)
    figure, (axes,) = sheet(1, 1, (5.4, 3.6))
    shares = [share(report, f"N_pre = {n}") for n in counts]
    lines(axes, {"unrolled": (counts, shares)}, x="largest N_pre (drawn for each batch)",
          y="share of bicubic's MSE")  # fmt: skip
    axes.set_xscale("symlog", linthresh=max(counts[1], 1))
    asymptote(axes, share(report, IMPLICIT), IMPLICIT)
    summary = [
        f"Without any step before, {shares[0]:.2f} of bicubic's MSE is left; with up to {counts[-1]}, {shares[-1]:.2f}"
        f"; with the implicit gradient, {share(report, IMPLICIT):.2f}.",
        "The paper reports little further gain after N_pre = 8000.",
        f"Training: {about_ablation(study)}.",
    ]
    return Findings(
        summary, described([report]), all_rows([report]), figure,
        "Error after training with up to N_pre steps of the loop before those with gradient; dashed: implicit.",
        [beside(report, {}, reasons, "The paper shows its errors as a curve, without numbers.")],
        {"training": about_ablation(study), "N_grad": study.effort.grad},
    )  # fmt: skip
