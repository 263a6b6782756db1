"""A graph recorded by torch and written as ONNX.

torch has two ways to write ONNX. For free sizes the newer one (torch.export) spends long on symbolic algebra; the older
one (tracing), which torch calls legacy, does not. A trace may take a size for a constant: tests compare what comes out
with torch at other sizes than the example's.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

import torch
from torch.onnx.symbolic_helper import parse_args
from torch.onnx.utils import register_custom_op_symbolic

from dada.errors import InputError
from dada.export.graphs import Graph
from dada.export.tensors import OUT, TensorInfo
from dada.io.quiet import captured_output, one_line

OPSET = 18
INSTALL = 'Run: pip install "dada-sr[export]"'
END = 2**63 - 1  # of a slice that goes on to the last


def check_packages() -> None:
    """Make sure that graphs can be written, before the work.

    Raises:
        InputError: a package is missing.
    """
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise InputError(f"writing ONNX needs a package that is not installed ({one_line(error)}). {INSTALL}") from None


def recorded_graph(graph: Graph, tensors: dict[str, TensorInfo]) -> Any:
    """Return the ONNX model of a graph, which takes images of any size.

    Raises:
        InputError: a part of the network cannot be written as ONNX.
    """
    import onnx

    _teach()
    outputs = {name: f"{name}{OUT}" for name in graph.outputs}
    free = {name: _free_sizes(tensors[name]) for name in graph.inputs}
    free |= {outputs[name]: _free_sizes(tensors[name]) for name in graph.outputs}
    file = io.BytesIO()
    try:
        with torch.no_grad(), warnings.catch_warnings(), captured_output():
            warnings.simplefilter("ignore")  # of each comparison of sizes: which of them matter, the tests tell
            torch.onnx.export(
                graph.module,
                tuple(graph.inputs.values()),
                file,  # type: ignore[arg-type]  # which the older way takes
                input_names=list(graph.inputs),
                output_names=list(outputs.values()),
                dynamic_axes={name: sizes for name, sizes in free.items() if sizes},
                opset_version=OPSET,
                dynamo=False,
            )
    except RuntimeError as error:
        raise InputError(f"{graph.file}: this network cannot be written as ONNX ({one_line(error)}).") from error
    model = onnx.load_model_from_string(file.getvalue())
    _state_shapes(model, tensors)
    onnx.checker.check_model(model, full_check=True)
    return model


def _free_sizes(tensor: TensorInfo) -> dict[int, str]:
    return {at: size for at, size in enumerate(tensor.shape) if isinstance(size, str)}


def _state_shapes(model: Any, tensors: dict[str, TensorInfo]) -> None:
    """Write all sizes of inputs and outputs by our names."""
    for value in (*model.graph.input, *model.graph.output):
        for dimension, size in zip(
            value.type.tensor_type.shape.dim, tensors[value.name.removesuffix(OUT)].shape, strict=True
        ):
            if isinstance(size, str):
                dimension.dim_param = size
            else:
                dimension.dim_value = size


def _teach() -> None:
    """Tell torch how operations that it cannot write are made of those of ONNX."""
    for name, written in (("diff", _diff), ("asinh", _asinh), ("index_add", _index_add)):
        register_custom_op_symbolic(f"aten::{name}", written, OPSET)


def _constant(g: Any, *numbers: int) -> Any:
    return g.op("Constant", value_t=torch.tensor(numbers))


@parse_args("v", "i", "i", "v", "v")
def _diff(g: Any, image: Any, count: int, dim: int, *_: Any) -> Any:
    """Differences of neighbours, as the networks use them: once, with nothing before or after."""
    axis = _constant(g, dim)
    after, before = (g.op("Slice", image, _constant(g, a), _constant(g, b), axis) for a, b in ((1, END), (0, -1)))
    return g.op("Sub", after, before)


def _asinh(g: Any, image: Any) -> Any:
    return g.op("Asinh", image)


@parse_args("v", "i", "v", "v", "v")
def _index_add(g: Any, start: Any, dim: int, index: Any, values: Any, alpha: Any) -> Any:
    """Add rows (dimension -2) or columns (-1) of an image where an index says; torch's own drops repeated ones."""
    beside = g.op("Unsqueeze", index, _constant(g, *range(1, -dim))) if dim < -1 else index
    everywhere = g.op("Expand", beside, g.op("Shape", values))
    return g.op("ScatterElements", start, everywhere, values, axis_i=dim, reduction_s="add")
