"""A folder of graphs and their manifest, written whole or not at all."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path

from dada.errors import InputError
from dada.export.graphs import graphs_of
from dada.export.manifest import manifest_of
from dada.export.recording import check_packages, recorded_graph
from dada.export.tensors import tensors_of
from dada.io import atomic_folder
from dada.models.dada import DADA
from dada.models.default import Default
from dada.models.registry import load_model

MANIFEST = "manifest.json"


def export(model: str | os.PathLike[str] | DADA, folder: Path) -> list[Path]:
    """Write the networks of a DADA as ONNX.

    Args:
        model: a name that `load_model` knows, a file of weights, or a network.
        folder: which must not be there, or be empty.

    Returns:
        The files.

    Raises:
        InputError: a package is missing, the model has no network of ours, or the folder cannot be written.
    """
    check_packages()
    network = network_of(model)
    tensors = tensors_of(network.config)
    with atomic_folder(folder) as unfinished:  # before the work, for it refuses what is there
        graphs = graphs_of(network)
        models = {graph.file: recorded_graph(graph, tensors) for graph in graphs}
        for file, written in models.items():
            (unfinished / file).write_bytes(written.SerializeToString())
        text = json.dumps(manifest_of(network, graphs, models), indent=2)
        (unfinished / MANIFEST).write_text(text + "\n")
    return [folder / name for name in (*models, MANIFEST)]


def network_of(model: str | os.PathLike[str] | DADA) -> DADA:
    """A copy of the network of a model, which computes on the CPU and learns no more.

    Raises:
        InputError: it has none, or one of others.
    """
    found = model if isinstance(model, DADA) else load_model(model)
    network = found.network if isinstance(found, Default) else found
    if not isinstance(network, DADA):
        raise InputError(
            f"model {getattr(found, 'name', model)} is no network of DADA. Export default, learned, fast, or a file of "
            "weights."
        )
    return copy.deepcopy(network).cpu().eval()
