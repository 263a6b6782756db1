"""The graphs of a DADA: what runs before the first solution, and what runs between two.

A graph is the network's own code, recorded: nothing of it is written twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dada.diffusion import Coefficients
from dada.export.cells import GraphBlocks
from dada.export.tensors import carried
from dada.models.dada import DADA
from dada.models.learned_guidance import Known, LearnedGuidance
from dada.models.model import Round
from dada.sample import Sample, convolved, within

EXAMPLE = (2, 70, 90), (9, 11)  # batch, height and width; rows and columns: sizes with no common factor


class Start(nn.Module):
    """A source without holes to the image that the first solution starts from, as large as the guide."""

    def forward(self, guide: Tensor, source: Tensor, mask: Tensor) -> Tensor:
        """Return `initial`."""
        return within(convolved(source, (guide.shape[-2], guide.shape[-1])), source, mask)


class First(nn.Module):
    """Guide and source to the coefficients of the first round, and what later rounds need."""

    def __init__(self, network: DADA) -> None:
        super().__init__()
        self.network = network

    def forward(self, guide: Tensor, source: Tensor, mask: Tensor, initial: Tensor) -> tuple[Tensor, ...]:
        """Return vertical, horizontal and what `carried` names."""
        guidance = self.network.prepare(Sample(guide, source, mask, initial))
        known = guidance.known
        found = {
            "mean": known.mean,
            "unit": known.unit,
            "centred": known.initial,
            "plain_vertical": known.plain.vertical,
            "plain_horizontal": known.plain.horizontal,
            "logarithms": known.logarithms,
            "compared": known.compared,
            "prepared": known.prepared,
        }
        return (*guidance.coefficients(), *(found[name] for name in carried(self.network.config)))


class Later(nn.Module):
    """A solution to the coefficients of the next round."""

    def __init__(self, network: DADA) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, number: Tensor, result: Tensor, vertical: Tensor, horizontal: Tensor, mask: Tensor, *known: Tensor
    ) -> tuple[Tensor, ...]:
        """Return vertical and horizontal; `known` is what `carried` names."""
        given = dict(zip(carried(self.network.config), known, strict=True))
        none = result[:, :0]
        plain = Coefficients(given.get("plain_vertical", none), given.get("plain_horizontal", none))
        channels = (given.get(name, none) for name in ("logarithms", "compared", "prepared"))
        blocks = GraphBlocks.between(mask, result)
        start = Known(mask, blocks, given["mean"], given["unit"], given.get("centred", none), plain, *channels)
        before = Round(number, Coefficients(vertical, horizontal), result)  # type: ignore[arg-type]  # a number
        return tuple(LearnedGuidance(self.network, start).coefficients(before))


@dataclass(frozen=True)
class Graph:
    """One to be recorded.

    Attributes:
        file: its name.
        module: what computes.
        inputs: names of its inputs and examples of them.
        outputs: names of what it returns.
        meaning: what it is for.
    """

    file: str
    module: nn.Module
    inputs: dict[str, Tensor]
    outputs: tuple[str, ...]
    meaning: str


def graphs_of(network: DADA) -> list[Graph]:
    """Those of a network, in the order in which they run."""
    (batch, height, width), (rows, columns) = EXAMPLE
    cells, pixels = (batch, 1, rows, columns), (batch, 1, height, width)
    guide = torch.rand(batch, network.config.bands, height, width)
    source, mask, initial = 1 + torch.rand(cells), torch.rand(cells) > 0.1, 1 + torch.rand(pixels)
    begin = {"guide": guide, "source": source, "mask": mask}
    first = First(network).eval()
    found = {**begin, "initial": initial}
    edges, known = ("vertical", "horizontal"), carried(network.config)
    graphs = [Graph("first.onnx", first, found, (*edges, *known), "the coefficients of round 0, before any result")]
    if network.config.source == "own":
        text = "the interpolated source, from a source without holes; of the guide only the size counts"
        graphs.insert(0, Graph("start.onnx", Start().eval(), begin, ("initial",), text))
    if network.rounds > 1:
        with torch.no_grad():
            made = [values.contiguous() for values in first(**found)]
        given = {"round": torch.tensor(0), "result": initial, **dict(zip(edges, made, strict=False)), "mask": mask}
        given |= dict(zip(known, made[2:], strict=True))
        graphs.append(Graph("later.onnx", Later(network).eval(), given, edges, "the coefficients of the next round"))
    return graphs
