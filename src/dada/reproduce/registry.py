"""All experiments by name, how to run one, and how far each has come."""

from __future__ import annotations

import json
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dada import __version__
from dada.errors import InputError
from dada.io import write_bytes_atomically

if TYPE_CHECKING:
    from dada.reproduce.study import Study

STATE = "state.json"


class Experiment(NamedTuple):
    """Where an experiment lives, what its page is called, and what it stands for in the paper."""

    place: str
    title: str
    paper: str


NEW = "Not in the paper"
EXPERIMENTS = {
    "table1": Experiment("tables:learned", "Networks, three data sets, four factors", "Table 1"),
    "table2": Experiment("tables:learning_free", "Methods without learning, three data sets, four factors", "Table 2"),
    "table3": Experiment("across:across", "Trained on NYUv2, tested on the others", "Table 3"),
    "ablation-initialisation": Experiment(
        "backbone:initialisation", "What training and loop start from", "Section 4.3: ablations"
    ),
    "ablation-ngrad": Experiment("unrolled:with_gradient", "Steps with gradient, and their memory", "Figure 6a"),
    "ablation-npre": Experiment("unrolled:without_gradient", "Steps without gradient before them", "Figure 6b"),
    "ablation-steps": Experiment("steps:steps", "Steps at test time, and where they lead", "Figure 6c"),
    "ablation-random-steps": Experiment(
        "random_steps:random_steps", "A random or a constant N_pre", "Supplement: further ablations"
    ),
    "ablation-guide-upsampling": Experiment(
        "backbone:guide_upsampling", "Enlarging the guide before the feature extractor", "Supplement: further ablations"
    ),
    "ablation-extractor": Experiment("backbone:extractors", "Which feature extractor", "Supplement: further ablations"),
    "seeds": Experiment("seeds:seeds", "How much five trainings differ", "Supplement: stability"),
    "memory": Experiment("memory:memory", "Memory of DADA and LGR against the factor", "Supplement: GPU memory"),
    "runtime": Experiment("tables:runtime", "Time of every method", "Supplement: inference time"),
    "metrics": Experiment("tables:metrics", "Other measures of error", "Supplement: additional metrics"),
    "figure-coefficients": Experiment(
        "coefficient_maps:coefficient_maps", "Coefficients of colours and of deep features", "Figure 4"
    ),
    "figure-1d": Experiment("signals:signal", "Diffusion and adjustment in one dimension", "Figure 3"),
    "figure-errors": Experiment("error_grid:error_grid", "Error maps of all methods", "Figure 5"),
    "figure-curves": Experiment("error_grid:curve_sheet", "Tables 1 and 2 as curves", "Figure 7 and supplement"),
    "figure-adjustment": Experiment(
        "signals:adjustment_example", "The adjustment step by numbers", "Supplement: adjustment step"
    ),
    "video": Experiment("video:video", "The diffusion at work", "Supplement: videos"),
    "speed": Experiment("speed:speed", "The loop and its end, by the clock", NEW),
    "gradients": Experiment("gradients:gradients", "Gradients of the loop and of its end", NEW),
    "guide-shift": Experiment("robustness:guide_shift", "A guide that is not where it should be", NEW),
    "noise": Experiment("robustness:noise", "A source that is not what it should be", NEW),
}  # fmt: skip


def lookup(name: str) -> Experiment:
    """The experiment of a name.

    Raises:
        InputError: there is none; the message names all.
    """
    if name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}. Use all, or one of: {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]


def run(study: Study) -> Path:
    """Run an experiment, or go on with it, and write its folder; return its page.

    One that is done with the same setting, data and weights is not run again unless the study is fresh. All
    measurements that an ended run had finished are taken from it.

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
    module, _, function = experiment.place.partition(":")
    try:
        findings = getattr(import_module(f"dada.reproduce.{module}"), function)(study)
    except BaseException:
        note("partial")  # with the time it took so far
        raise
    write(study, experiment.title, experiment.paper, findings, note("partial"))
    note("done")
    return page


def states(output: Path) -> dict[str, str]:
    """How far each experiment has come: "never run", "partial (small)" or "done (small, 42 s)"."""
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
