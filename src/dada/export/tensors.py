"""What goes in and out of the graphs: names, shapes and meanings."""

from __future__ import annotations

from dataclasses import dataclass

from dada.models.config import DadaConfig
from dada.models.refinement import WIDTH

Dimension = int | str  # a text is a size that each call may choose
CELLS: tuple[Dimension, ...] = ("batch", 1, "rows", "columns")
PIXELS: tuple[Dimension, ...] = ("batch", 1, "height", "width")
ONE: tuple[Dimension, ...] = ("batch", 1, 1, 1)
DOWN: tuple[Dimension, ...] = ("batch", "height - 1", "width")
RIGHT: tuple[Dimension, ...] = ("batch", "height", "width - 1")

OUT = "_out"  # ends the names of outputs: one name may not stand for an input and an output


@dataclass(frozen=True)
class TensorInfo:
    """An input or output.

    Attributes:
        shape: its dimensions.
        meaning: what it holds.
        dtype: of its numbers.
    """

    shape: tuple[Dimension, ...]
    meaning: str
    dtype: str = "float32"


def carried(config: DadaConfig) -> tuple[str, ...]:
    """Names of what the first graph returns for later rounds, beside the coefficients."""
    if config.rounds == 1:
        return ()
    names = ["mean", "unit"]
    if config.feedback == "refinement":
        names += ["centred", "prepared"]
    names += ["plain_vertical", "plain_horizontal"] if config.distance == "euclidean" else ["compared"]
    return (*names, "logarithms") if config.edges else tuple(names)


def tensors_of(config: DadaConfig) -> dict[str, TensorInfo]:
    """Every input and output of the graphs of a network, by name."""
    halved = ("batch", WIDTH, "(height + 1) // 2", "(width + 1) // 2")
    pixels = "[b, i, j] between pixels (i, j) and"
    return {
        "guide": TensorInfo(("batch", config.bands, "height", "width"), "the guide in 0..1, bands first"),
        "source": TensorInfo(CELLS, "the source in its own unit; in start.onnx without holes, see `caller`"),
        "mask": TensorInfo(CELLS, "cells with a measurement", "bool"),
        "initial": TensorInfo(PIXELS, "the source interpolated, in its own unit"),
        "round": TensorInfo((), "number of the round that gave `result`; the first is 0", "int64"),
        "result": TensorInfo(PIXELS, "the last solution, in the unit of the source"),
        "vertical": TensorInfo(DOWN, f"coefficients (Eq. 2): {pixels} (i + 1, j)"),
        "horizontal": TensorInfo(RIGHT, f"coefficients (Eq. 2): {pixels} (i, j + 1)"),
        "mean": TensorInfo(ONE, "mean of `initial`"),
        "unit": TensorInfo(ONE, "what the network measures the source in"),
        "centred": TensorInfo(PIXELS, "(initial - mean) / unit"),
        "prepared": TensorInfo(halved, "features, prepared for the refinement network"),
        "plain_vertical": TensorInfo(DOWN, "Eq. 2 of the features alone"),
        "plain_horizontal": TensorInfo(RIGHT, "Eq. 2 of the features alone"),
        "compared": TensorInfo(("batch", config.features, "height", "width"), "the features"),
        "logarithms": TensorInfo(("batch", 2, "height", "width"), "direct changes of coefficients down and right"),
    }
