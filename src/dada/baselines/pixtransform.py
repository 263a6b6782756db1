"""PixT: a network for each image (de Lutio et al., Guided Super-Resolution as Pixel-to-Pixel Transformation, 2019).

The network sees one pixel at a time, its colour and its place, and is trained until the means of its prediction over
the blocks are the source. What it learns is how colour turns into value in this image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from dada.diffusion import Blocks, partition
from dada.sample import Sample

NARROW, WIDE = 32, 2048
CHUNK = 512  # pixels at once: their hidden layer, 4 MB, stays in the cache, which halves the time on a CPU


@dataclass(frozen=True)
class PixTransform:
    """Train a network for each image of the batch, and predict its every pixel.

    The time grows with iterations x batch x pixels of a block: about 50 ms for an iteration at x8 on one core, so
    half an hour for the authors' number of them. Fewer are a rougher fit, and tables must say so.

    Attributes:
        iterations: of Adam.
        batch: source cells seen in each.
        learning_rate: of Adam.
        decay_place: weight decay of the branch that sees the place.
        decay_colour: weight decay of the branch that sees the guide.
        decay_head: weight decay of the layers after them: the authors' for depth images. Their default, for other
            data, is 1e-3.
        seed: of the first weights and of the order of the cells.
        name: what tables call it.
    """

    iterations: int = 32768
    batch: int = 32
    learning_rate: float = 1e-3
    decay_place: float = 1e-4
    decay_colour: float = 1e-3
    decay_head: float = 1e-4
    seed: int = 0
    name: str = "PixT"

    def __post_init__(self) -> None:
        if self.iterations < 1 or self.batch < 1:
            raise ValueError(f"need iterations >= 1 and batch >= 1, got {self.iterations} and {self.batch}")

    def __call__(self, sample: Sample) -> Tensor:
        """Return [B, 1, H, W], see `dada.sample.Method`. The same seed gives the same result."""
        blocks = partition(tuple(sample.source.shape[-2:]), sample.size)
        images = zip(sample.guide, sample.source, sample.source_mask, strict=True)
        return torch.stack([self._fit(guide, source[0], mask[0], blocks) for guide, source, mask in images])

    def _fit(self, guide: Tensor, source: Tensor, mask: Tensor, blocks: Blocks) -> Tensor:
        """[1, H, W] from guide [C, H, W], source and mask [h, w]."""
        if not bool(mask.any()):
            raise ValueError("an image has no valid source cell to train on")
        known = source[mask]
        mean, deviation = known.mean(), known.std(correction=0)
        if not bool(deviation > 0):  # a constant, and nothing to learn
            return mean.expand(1, *blocks.target_size).clone()
        wanted = ((source - mean) / deviation).flatten()
        inputs = _inputs(guide)
        pixels, share = (v.to(guide.device) for v in _members(blocks))
        network = self._network(guide.shape[0]).to(guide)
        optimiser = torch.optim.Adam(
            [
                {"params": network.place.parameters(), "weight_decay": self.decay_place},
                {"params": network.colour.parameters(), "weight_decay": self.decay_colour},
                {"params": network.head.parameters(), "weight_decay": self.decay_head},
            ],
            lr=self.learning_rate,
        )
        with torch.enable_grad():
            for batch in self._draw(mask.flatten().nonzero()[:, 0].cpu()):
                optimiser.zero_grad()
                for cells in torch.split(batch.to(guide.device), max(1, CHUNK // pixels.shape[1])):
                    values = network(inputs[pixels[cells].flatten()]).reshape(len(cells), -1)
                    misfit = (values * share[cells].to(values)).sum(dim=1) - wanted[cells]
                    (misfit.abs().sum() / len(batch)).backward()
                optimiser.step()
        with torch.no_grad():
            values = torch.cat([network(part) for part in torch.split(inputs, CHUNK)])
        return values.reshape(1, *blocks.target_size) * deviation + mean

    def _network(self, bands: int) -> PixelNetwork:
        """The network before training."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return PixelNetwork(bands)

    def _draw(self, cells: Tensor) -> Iterator[Tensor]:
        """Batches of valid cells, each cell once in a pass over the image; the last of a pass may be smaller."""
        generator = torch.Generator().manual_seed(self.seed)
        left = self.iterations
        while left > 0:
            order = cells[torch.randperm(len(cells), generator=generator)]
            yield from (batches := torch.split(order, self.batch))[:left]
            left -= len(batches)


class PixelNetwork(nn.Module):
    """Colour and place to value, for each pixel by itself."""

    def __init__(self, bands: int) -> None:
        super().__init__()
        self.bands = bands
        self.place = nn.Sequential(nn.Linear(2, NARROW), nn.ReLU(), nn.Linear(NARROW, WIDE))
        self.colour = nn.Sequential(nn.Linear(bands, NARROW), nn.ReLU(), nn.Linear(NARROW, WIDE))
        self.head = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(WIDE, NARROW), nn.ReLU(), nn.Linear(NARROW, 1))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return [N] from [N, bands + 2], colours first."""
        colour, place = inputs[:, : self.bands], inputs[:, self.bands :]
        result: Tensor = self.head(self.colour(colour) + self.place(place))[:, 0]
        return result


def _inputs(guide: Tensor) -> Tensor:
    """[H W, C + 2]: each band by its own mean and deviation, then row and column in -0.5..0.5."""
    mean, deviation = guide.mean(dim=(1, 2), keepdim=True), guide.std(dim=(1, 2), keepdim=True, correction=0)
    rows, cols = (torch.linspace(-0.5, 0.5, n, dtype=guide.dtype, device=guide.device) for n in guide.shape[1:])
    place = torch.stack(torch.meshgrid(rows, cols, indexing="ij"))
    return torch.cat([(guide - mean) / torch.where(deviation > 0, deviation, 1), place]).flatten(1).T.contiguous()


def _members(blocks: Blocks) -> tuple[Tensor, Tensor]:
    """The pixels of every block and their share in its mean, both [h w, largest block].

    Blocks of a non-integer ratio differ in size; the smaller ones repeat a pixel with a share of 0.
    """
    (rows, row_count), (cols, col_count) = (_span(starts) for starts in (blocks.rows, blocks.cols))
    inside = row_count[:, None, :, None] & col_count[None, :, None, :]  # [h, w, tallest, widest]
    pixels = rows[:, None, :, None] * blocks.target_size[1] + cols[None, :, None, :]
    cells = blocks.source_size[0] * blocks.source_size[1]
    inside = inside.reshape(cells, -1)
    return torch.from_numpy(pixels.reshape(cells, -1)), torch.from_numpy(inside / inside.sum(axis=1, keepdims=True))


def _span(starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lines of each span, padded to the longest, and which of them belong to it: both [spans, longest]."""
    length = np.diff(starts)
    index = np.arange(length.max())
    return starts[:-1, None] + np.minimum(index, length[:, None] - 1), index < length[:, None]
