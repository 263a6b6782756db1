"""All experiments by name, how to run one, and the state of each."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dada import __version__
from dada.errors import InputError
from dada.io import write_bytes_atomically

if TYPE_CHECKING:
    from dada.reproduce.findings import Findings
    from dada.reproduce.study import Study

STATE = "state.json"


class Experiment(NamedTuple):
    """The title of an experiment's page, and the part of the paper that it reproduces."""

    title: str
    paper: str


NEW = "Not in the paper"
EXPERIMENTS = {
    "table1": Experiment("Networks, three data sets, four factors", "Table 1"),
    "table2": Experiment("Methods without learning, three data sets, four factors", "Table 2"),
    "table3": Experiment("Trained on NYUv2, tested on the others", "Table 3"),
    "ablation-initialisation": Experiment("What training and loop start from", "Section 4.3: ablations"),
    "ablation-ngrad": Experiment("Steps with gradient, and their memory", "Figure 6a"),
    "ablation-npre": Experiment("Steps without gradient before them", "Figure 6b"),
    "ablation-steps": Experiment("Steps at test time, and where they lead", "Figure 6c"),
    "ablation-random-steps": Experiment("A random or a constant N_pre", "Supplement: further ablations"),
    "ablation-guide-upsampling": Experiment(
        "Enlarging the guide before the feature extractor", "Supplement: further ablations"
    ),
    "ablation-extractor": Experiment("Which feature extractor", "Supplement: further ablations"),
    "seeds": Experiment("How much five trainings differ", "Supplement: stability"),
    "memory": Experiment("Memory of DADA and LGR against the factor", "Supplement: GPU memory"),
    "runtime": Experiment("Time of every method", "Supplement: inference time"),
    "metrics": Experiment("Other measures of error", "Supplement: additional metrics"),
    "figure-coefficients": Experiment("Coefficients of colours and of deep features", "Figure 4"),
    "figure-1d": Experiment("Diffusion and adjustment in one dimension", "Figure 3"),
    "figure-errors": Experiment("Error maps of all methods", "Figure 5"),
    "figure-qualitative": Experiment("Results and errors of all methods", "Supplement: qualitative results"),
    "figure-schematic": Experiment("How the method works", "Figures 1 and 2"),
    "figure-curves": Experiment("Tables 1 and 2 as curves", "Figure 7 and supplement"),
    "figure-adjustment": Experiment("The adjustment step by numbers", "Supplement: adjustment step"),
    "video": Experiment("The diffusion at work", "Supplement: videos"),
    "speed": Experiment("Time of the loop and of the equilibrium", NEW),
    "gradients": Experiment("Gradients of the loop and of the equilibrium", NEW),
    "guide-shift": Experiment("A guide that is shifted against the target", NEW),
    "noise": Experiment("A source with noise", NEW),
}


def lookup(name: str) -> Experiment:
    """The experiment of a name.

    Raises:
        InputError: there is none; the message names all.
    """
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}. Use all, or one of: {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]


def run(study: Study) -> Path:
    """Run or continue an experiment and write its folder; return its page.

    A finished experiment with the same setting, data and weights is not repeated unless the study is fresh. Finished
    measurements of an interrupted run are reused.

    Raises:
        InputError: there is no such experiment, or data or weights cannot be used.
    """
    from dada.reproduce.page import PAGE, write

    experiment, page = lookup(study.name), study.folder / PAGE
    before, mine = _read(study.folder), _signature(study)
    same = before.get("of") == mine
    if same and before["state"] == "done" and page.exists() and not study.fresh:
        return page
    spent = float(before["seconds"]) if same and before["state"] == "partial" else 0.0
    study.folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()

    def note(state: str) -> float:
        seconds = spent + time.monotonic() - begun
        content = {"state": state, "of": mine, "seconds": round(seconds, 2)}
        write_bytes_atomically(study.folder / STATE, json.dumps(content).encode())
        return seconds

    note("partial")
    try:
        findings = _function(study.name)(study)
    except BaseException:
        note("partial")  # with the time it took so far
        raise
    write(study, experiment.title, experiment.paper, findings, note("partial"))
    note("done")
    return page


def _function(name: str) -> Callable[[Study], Findings]:
    """The function of an experiment. Imported here, so that a list of the names needs no torch."""
    from dada.reproduce import (
        across,
        backbone,
        coefficient_maps,
        curve_sheet,
        error_grid,
        gradients,
        initialisation,
        memory,
        random_steps,
        robustness,
        schematic,
        seeds,
        signals,
        speed,
        steps,
        tables,
        unrolled,
        video,
    )

    functions: dict[str, Callable[[Study], Findings]] = {
        "table1": tables.learned,
        "table2": tables.learning_free,
        "table3": across.across,
        "ablation-initialisation": initialisation.initialisation,
        "ablation-ngrad": unrolled.with_gradient,
        "ablation-npre": unrolled.without_gradient,
        "ablation-steps": steps.steps,
        "ablation-random-steps": random_steps.random_steps,
        "ablation-guide-upsampling": backbone.guide_upsampling,
        "ablation-extractor": backbone.extractors,
        "seeds": seeds.seeds,
        "memory": memory.memory,
        "runtime": tables.runtime,
        "metrics": tables.metrics,
        "figure-coefficients": coefficient_maps.coefficient_maps,
        "figure-1d": signals.signal,
        "figure-errors": error_grid.error_grid,
        "figure-qualitative": error_grid.qualitative,
        "figure-schematic": schematic.schematic,
        "figure-curves": curve_sheet.curve_sheet,
        "figure-adjustment": signals.adjustment_example,
        "video": video.video,
        "speed": speed.speed,
        "gradients": gradients.gradients,
        "guide-shift": robustness.guide_shift,
        "noise": robustness.noise,
    }
    return functions[name]


def states(output: Path) -> dict[str, str]:
    """The state of each experiment: "never run", "partial (small)" or "done (small, 42 s)"."""
    from dada.reproduce.page import duration

    found = {}
    for name in EXPERIMENTS:
        content = _read(output / name)
        if not content:
            found[name] = "never run"
            continue
        took = f", {duration(content['seconds'])}" if content["state"] == "done" else ""
        found[name] = f"{content['state']} ({content['of']['setting']}{took})"
    return found


def _signature(study: Study) -> dict[str, str]:
    return {
        "setting": study.effort.name, "effort": repr(study.effort), "data": str(study.data),
        "weights": str(study.weights), "dada": __version__,
    }  # fmt: skip


def _read(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / STATE).read_bytes())
        if content["state"] in ("partial", "done") and content["of"]["setting"] and content["seconds"] >= 0:
            return dict(content)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {}
