"""What a program must know to run the graphs of a folder: `manifest.json`."""

from __future__ import annotations

import hashlib
from typing import Any

import torch

from dada import __version__
from dada.diffusion.equilibrium import TOLERANCE
from dada.diffusion.loop import STEP_SIZE, STEPS
from dada.export.graphs import Graph
from dada.export.tensors import OUT, TensorInfo, tensors_of
from dada.features.standardising import BAND_DEVIATION, BAND_MEAN, RGB_DEVIATION, RGB_MEAN
from dada.models.dada import DADA, INFRARED
from dada.models.learned_guidance import STRONGEST
from dada.models.model import LIFT

FORMAT = 1  # rises when a program that reads it must change


def manifest_of(network: DADA, graphs: list[Graph], models: dict[str, Any]) -> dict[str, Any]:
    """Describe a folder.

    Args:
        network: what was written.
        graphs: those of it.
        models: the ONNX model of each file; it has the inputs that are left.
    """
    config, tensors = network.config, tensors_of(network.config)
    opsets = {one.domain or "ai.onnx": one.version for model in models.values() for one in model.opset_import}
    return {
        "format": FORMAT,
        "dada": __version__,
        "model": network.name,
        "weights_sha256": weights_hash(network),
        "torch": torch.__version__.partition("+")[0],
        "opset": opsets,
        "rounds": network.rounds,
        "adjust": config.adjust,
        "tolerance": TOLERANCE,
        "kappa": float(network.kappa.detach()),
        "distance": config.distance,
        "strongest_logarithm": STRONGEST if config.edges or config.feedback == "refinement" else None,
        "loop": {"step_size": STEP_SIZE, "steps": STEPS},
        "guide": _guide(network),
        "source": _source(network),
        "graphs": {graph.file: _graph(graph, models[graph.file], tensors) for graph in graphs},
        "caller": caller_steps(network),
    }


def weights_hash(network: DADA) -> str:
    """SHA-256 of all weights: their names, types, shapes and bytes, in the order of the names."""
    found = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        found.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        found.update(value.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def _guide(network: DADA) -> dict[str, Any]:
    """Which guides there may be, and how the graph standardises them (it is in the graph)."""
    bands = network.config.bands
    rgb = bands in (3, INFRARED)
    others = bands - 3 if rgb else bands
    return {
        "bands": bands,
        "takes": list(network.takes),
        "range": [0, 1],
        "mean": [*(RGB_MEAN if rgb else ()), *[BAND_MEAN] * others],
        "deviation": [*(RGB_DEVIATION if rgb else ()), *[BAND_DEVIATION] * others],
        "missing_fourth_band": BAND_MEAN if bands == INFRARED else None,
    }


def _source(network: DADA) -> dict[str, Any]:
    unit = network.data_unit
    if unit is None:
        return {"unit": "any: the graph divides by the deviation of the valid cells"}
    return {
        "unit": "that of the training data: millimetres divided by unit_mm",
        "unit_mm": unit.deviation or None,
        "lift": LIFT if network.config.adjust != "shift" else 0.0,
    }


def _graph(graph: Graph, model: Any, tensors: dict[str, TensorInfo]) -> dict[str, Any]:
    inputs, outputs = ([value.name for value in values] for values in (model.graph.input, model.graph.output))
    told = {name: _tensor(tensors[name.removesuffix(OUT)]) for name in (*inputs, *outputs)}
    return {
        "gives": graph.meaning,
        "inputs": {name: told[name] for name in inputs},
        "outputs": {name: told[name] for name in outputs},
    }


def _tensor(info: TensorInfo) -> dict[str, Any]:
    return {"dtype": info.dtype, "shape": list(info.shape), "holds": info.meaning}


def caller_steps(network: DADA) -> list[str]:
    """What is not in the graphs, step by step; the equations are those of the paper."""
    return [*_begin(network), *_solve(network), *_end(network)]


def _begin(network: DADA) -> list[str]:
    bands, takes = network.config.bands, network.takes
    guide = "guide: divide 8 bits by 255 and 16 bits by 65535, bands first (red, green, blue, near infrared)."
    if len(takes) > 1:
        guide += f" A guide of one band: repeat it {min(bands, 3)} times."
    if bands == INFRARED:
        guide += f" Without near infrared: add a fourth band of {BAND_MEAN} everywhere, which is no edge."
    mask = "mask: true where a cell of the source S has a measurement; elsewhere S is 0, and plays no part."
    if network.config.source == "own":
        initial = (
            "initial: run start.onnx. Its source must have no holes: give cells without a measurement values with "
            "(L y)_p = 0 on the grid of cells, all coefficients 1, and the measured cells as they are. first.onnx "
            "takes the source with 0 in the holes. Where values are large beside their differences, take off a "
            "constant first, and add it to the result."
        )
    else:
        initial = (
            "initial: interpolate the valid cells at the centres of their blocks, piecewise cubic over a triangulation "
            "(Clough-Tocher), nearest outside their hull. Source and initial are in units of `unit_mm`; where some "
            "cell (0 where there is no measurement) is at or below `lift`, add `lift` to all measured values before "
            "(`adjust` ratio only), and take it off the result."
        )
    return [guide, mask, initial, "round 0: run first.onnx; it returns the coefficients c, and what later.onnx takes."]


def _solve(network: DADA) -> list[str]:
    adjust = {
        "shift": "shift",
        "ratio": "ratio",
        "auto": "ratio where all measured values are positive and within a factor of 100, else shift",
    }[network.config.adjust]
    return [
        "blocks: row i of H pixels belongs to row floor((2 i + 1) h / (2 H)) of h cells; columns alike. down(y) is the "
        "mean of y over each block, up(S) copies each cell to its block.",
        f"solve, with adjust {adjust}: find y with down(y) = S in each measured cell, and a number mu of each of them, "
        "so that (L y)_p = mu (shift) or (L y)_p = mu y_p (ratio) for its pixels p, and (L y)_p = 0 for pixels "
        "of other cells; (L y)_p is the sum of c_pn (y_p - y_n) over the four neighbours n. It is where the loop of "
        "Eq. 1, y^ = y - step_size L y, and the adjustment ends: y = y^ + up(S - down(y^)) (shift), or Eq. 3, "
        "y = y^ up(S / down(y^)) (ratio), which leaves other cells as they are. Begin from initial, later from the "
        "last result.",
    ]


def _end(network: DADA) -> list[str]:
    later = []
    if network.rounds > 1:
        later = [
            f"rounds 1 to {network.rounds - 1}: run later.onnx with `round` (0 the first time), the y that was solved "
            "for as `result`, the coefficients that it was solved with, the mask, and what first.onnx returned; solve "
            "again with what it returns."
        ]
    return [
        *later,
        "the last y is the result. `dada.upsample` then also keeps it within [low - r, high + r], for values that "
        "are nowhere negative also at or above low / 10, with the means kept: low and high are the ends of the "
        "measured values, r = (0.05 + pixels of a cell / 1024) (high - low).",
    ]
