"""`ablation-random-steps`: N_pre drawn for each batch, as the paper proposes, or constant."""

from __future__ import annotations

from dataclasses import replace

from dada.evaluation.methods import Entry, resolve
from dada.evaluation.tables import Table, number
from dada.models.dada import DADA
from dada.reproduce.ablation import FACTOR, about_ablation, beside, compared, share, unrolled
from dada.reproduce.findings import Findings
from dada.reproduce.plots import lines, sheet
from dada.reproduce.reports import all_rows, described
from dada.reproduce.steps import Looped
from dada.reproduce.study import Study
from dada.reproduce.trainings import load_trained, training


def random_steps(study: Study) -> Findings:
    """Error against the steps at test time, after both trainings."""
    test, effort = study.first(), study.effort
    drawn = unrolled(study, training(study, "dada", FACTOR, test.title, ablation=True))
    fixed = replace(drawn, constant_steps=True)
    entries = [resolve("bicubic")]
    names = ("N_pre random", "N_pre constant")
    for name, config in zip(names, (drawn, fixed), strict=True):
        network = load_trained(study, config, name).method
        assert isinstance(network, DADA)
        entries += [Entry(f"{name}, {n or 'equilibrium'}", "dada", Looped(network, n)) for n in (*effort.loop_steps, 0)]
    report = compared(study, entries)
    found = {name: [share(report, f"{name}, {n}") for n in effort.loop_steps] for name in names}
    ends = {name: share(report, f"{name}, equilibrium") for name in names}
    figure, (axes,) = sheet(1, 1, (5.6, 3.6))
    curves = {name: (effort.loop_steps, values) for name, values in found.items()}
    lines(axes, curves, x="steps at test time", y="share of bicubic's MSE", log="x")
    for number_, name in enumerate(names):
        axes.axhline(ends[name], color=f"C{number_}", linestyle=(0, (4, 2)), linewidth=1.2)
    table = Table(
        f"{report.dataset}, {report.protocol.describe(report.count)}: share of bicubic's MSE, x{FACTOR}",
        ["training", *map(str, effort.loop_steps), "equilibrium"],
        [[name, *(number(v) for v in (*found[name], ends[name]))] for name in names],
        "Columns: steps of the loop at test time. The paper shows a curve, without numbers.",
    )
    summary = [
        f"After {effort.loop_steps[0]} steps at test time the network trained with a random N_pre leaves "
        f"{found[names[0]][0]:.2f} of bicubic's MSE, that with a constant one {found[names[1]][0]:.2f}; at the "
        f"equilibrium {ends[names[0]]:.2f} and {ends[names[1]]:.2f}.",
        "The paper: both reach the same error, the random one after fewer steps.",
        f"Training: {about_ablation(study)}.",
    ]
    return Findings(
        summary, described([report]), all_rows([report]), figure,
        "Error against the steps of the loop at test time; dashed: the equilibrium.",
        [table, beside(report, {}, {}, "Errors after each number of steps.")],
        {"training": about_ablation(study), "N_pre": f"{effort.pre}, or random up to that", "N_grad": effort.grad},
    )  # fmt: skip
