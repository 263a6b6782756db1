"""How much work an experiment does: minutes on two cores, or what the paper did."""

from __future__ import annotations

from dataclasses import dataclass

PAPER_NETWORKS = ("msg", "dkn", "fdkn", "pmba", "fdsr", "lgr", "dada")
PAPER_EXTRACTORS = (
    "unet-resnet18", "unet-resnet34", "unet-resnet50", "unet-efficientnet-b0", "unet-efficientnet-b1",
    "unet-efficientnet-b2", "fpn-resnet50", "deeplabv3plus-resnet50",
)  # fmt: skip


@dataclass(frozen=True)
class Effort:
    """The size of everything; experiments read what concerns them.

    Attributes:
        name: "small" or "full".
        size: side of the test crops in pixels; 256 is protocol P1.
        crops: of each data set for methods without weights; None: all.
        network_crops: of each data set for networks; None: all.
        probes: crops for experiments about the solver and about robustness; None: all.
        factors: of the tables.
        network_factors: at which networks are trained and tested.
        across_factors: of the table across data sets.
        figure_factors: of the error maps.
        qualitative_factors: of the pages with every method's results.
        networks: those compared.
        pixt_iterations: of PixTransform, which trains a network for each image.
        train_steps: of a brief training; 0: the paper's own trainings.
        slow_steps: of a brief training of DKN and PMBA, whose steps take ten times as long.
        ablation_steps: of a brief training of an ablation.
        train_crop: side of the crops of brief trainings.
        train_batch: of brief trainings.
        extractor: of DADA and LGR, where the experiment does not name one.
        extractors: those compared.
        backbone: the extractor that ImageNet weights are asked for.
        seeds: number of trainings.
        loop_steps: numbers of steps at test time that are compared.
        test_steps: number of steps at test time of an experiment that does not vary it.
        grad_steps: numbers of steps with gradient that are compared.
        pre_steps: largest numbers of steps without gradient that are compared.
        grad: steps with gradient (N_grad) of unrolled trainings that do not vary it.
        pre: largest number of steps without gradient (N_pre) of unrolled trainings that do not vary it.
        memory_crop: side of the images whose memory is measured.
        memory_batch: how many of them at once.
        repeats: of measurements of time and memory; the best or the median counts.
    """

    name: str
    size: int = 256
    crops: int | None = None
    network_crops: int | None = None
    probes: int | None = None
    factors: tuple[int, ...] = (4, 8, 16, 32)
    network_factors: tuple[int, ...] = (4, 8, 16, 32)
    across_factors: tuple[int, ...] = (8, 32)
    figure_factors: tuple[int, ...] = (16, 32)
    qualitative_factors: tuple[int, ...] = (4, 8, 16, 32)
    networks: tuple[str, ...] = PAPER_NETWORKS
    pixt_iterations: int = 32768
    train_steps: int = 0
    slow_steps: int = 0
    ablation_steps: int = 0
    train_crop: int = 256
    train_batch: int = 8
    extractor: str = "unet-resnet50"
    extractors: tuple[str, ...] = PAPER_EXTRACTORS
    backbone: str = "unet-resnet50"
    seeds: int = 5
    loop_steps: tuple[int, ...] = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8000, 9024, 16000, 32000)
    test_steps: int = 9024
    grad_steps: tuple[int, ...] = (32, 64, 128, 256, 512, 1024)
    pre_steps: tuple[int, ...] = (0, 500, 1000, 2000, 4000, 8000, 16000)
    grad: int = 1024
    pre: int = 8000
    memory_crop: int = 256
    memory_batch: int = 8
    repeats: int = 5

    @property
    def brief(self) -> bool:
        """Whether trainings are brief ones on painted scenes."""
        return self.train_steps > 0


FULL = Effort("full")
SMALL = Effort(
    "small",
    crops=4,
    network_crops=2,
    probes=3,
    network_factors=(8, 32),
    across_factors=(8,),
    pixt_iterations=10,
    train_steps=120,
    slow_steps=24,
    ablation_steps=60,
    train_crop=64,
    train_batch=2,
    extractor="light",
    extractors=("light", "lite0", "unet-resnet18", "unet-resnet50", "unet-efficientnet-b0", "fpn-resnet50"),
    backbone="lite0",
    loop_steps=(32, 128, 512, 2048, 9024, 32000),
    grad_steps=(2, 8, 32, 128),
    pre_steps=(0, 32, 256, 2000),
    grad=32,
    pre=2000,
    memory_crop=128,
    memory_batch=2,
    repeats=3,
)
EFFORTS = {effort.name: effort for effort in (SMALL, FULL)}
