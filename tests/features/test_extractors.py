"""Facts about every extractor: any size in, the same size out, the features asked for, gradients to all weights."""

import pytest
import torch
from torch import Tensor, nn

from dada.errors import InputError
from dada.features import NAMES, build
from dada.features.framing import Framed
from dada.features.light import FineHead


class ExtractorFacts:
    """What holds for each of them; a subclass names one."""

    name: str
    size = (33, 47)  # odd, not square, no multiple of any stride

    @pytest.fixture(scope="class")
    @classmethod
    def extractor(cls) -> nn.Module:
        torch.manual_seed(0)
        return build(cls.name, classes=6, upsample=False).eval()

    def test_any_size_in_same_size_out(self, extractor: nn.Module) -> None:
        with torch.no_grad():
            features = extractor(torch.rand(1, 4, *self.size))
        assert features.shape == (1, 6, *self.size)
        assert torch.isfinite(features).all()

    def test_the_enlargement_keeps_the_size_too(self, extractor: nn.Module) -> None:
        with torch.no_grad():
            features = Framed(extractor.net, extractor.stride, upsample=True)(torch.rand(1, 4, 17, 23))
        assert features.shape == (1, 6, 17, 23)

    def test_other_images_of_a_batch_do_not_matter(self, extractor: nn.Module) -> None:
        images = torch.rand(2, 4, 32, 32)
        with torch.no_grad():
            both, alone = extractor(images), extractor(images[1:])
        torch.testing.assert_close(both[1:], alone, rtol=1e-3, atol=1e-5)


def touched(head: FineHead, row: int, col: int) -> torch.Tensor:
    """How much each pixel's features change with one pixel of the image, [32, 32]."""
    coarse, image = torch.zeros(1, 8, 16, 16), torch.rand(1, 4, 32, 32)
    changed = image.clone()
    changed[..., row, col] += 1
    with torch.no_grad():
        return (head(coarse, changed) - head(coarse, image)).abs().sum(1)[0]


class OwnExtractorFacts(ExtractorFacts):
    def test_every_weight_learns(self, extractor: nn.Module) -> None:
        extractor(torch.rand(1, 4, *self.size)).square().sum().backward()
        silent = [name for name, p in extractor.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
        extractor.zero_grad()
        assert silent == []


class TestLight(OwnExtractorFacts):
    name = "light"

    def test_has_about_a_million_parameters(self) -> None:
        assert parameters(build("light")) == pytest.approx(1.07, abs=0.01)

    def test_edges_are_placed_to_the_pixel(self) -> None:
        """What is coarse cannot tell the pixels of a stack apart; the look at the image can."""
        torch.manual_seed(0)
        head = FineHead(8, 4, classes=6)
        change = touched(head, 11, 14)
        rows, cols = change.nonzero(as_tuple=True)
        assert (rows.min(), rows.max(), cols.min(), cols.max()) == (9, 13, 12, 16)
        assert change[10:13, 13:16].sum() > change.sum() / 2

    def test_far_parts_of_the_image_do_not_matter(self) -> None:
        """No layer takes statistics of the image: a crop sees what the whole image sees."""
        torch.manual_seed(0)
        net = build("light", classes=4, upsample=False).double()
        image = torch.rand(1, 4, 32, 640, dtype=torch.float64)
        other = image.clone()
        other[..., -32:] += 1
        with torch.no_grad():
            torch.testing.assert_close(net(image)[..., :32], net(other)[..., :32], rtol=0, atol=0)


class TestLite0(OwnExtractorFacts):
    name = "lite0"

    def test_every_weight_learns(self, extractor: nn.Module) -> None:
        extractor.train()  # at random weights, only batch statistics keep the signal alive through 16 blocks
        super().test_every_weight_learns(extractor)
        extractor.eval()


class TestLite0Fine(ExtractorFacts):
    name = "lite0-fine"

    def test_more_is_looked_at_around_each_pixel(self) -> None:
        torch.manual_seed(0)
        head = FineHead(8, 4, classes=6, more=2)
        change = touched(head, 16, 16)
        rows, _ = change.nonzero(as_tuple=True)
        assert (rows.min(), rows.max()) == (12, 20)  # two pixels further than that of `light`


class TestUnetResnet18(ExtractorFacts):
    name = "unet-resnet18"


class TestUnetResnet34(ExtractorFacts):
    name = "unet-resnet34"


class TestUnetResnet50(ExtractorFacts):
    name = "unet-resnet50"

    def test_is_the_papers(self) -> None:
        assert parameters(build("unet-resnet50")) == pytest.approx(32.53, abs=0.005)


class TestUnetEfficientnetB0(ExtractorFacts):
    name = "unet-efficientnet-b0"


class TestUnetEfficientnetB1(ExtractorFacts):
    name = "unet-efficientnet-b1"


class TestUnetEfficientnetB2(ExtractorFacts):
    name = "unet-efficientnet-b2"


class TestFpnResnet50(ExtractorFacts):
    name = "fpn-resnet50"


class TestDeeplabResnet50(ExtractorFacts):
    name = "deeplabv3plus-resnet50"


class TestAnyOtherEncoder(ExtractorFacts):
    name = "unet-mobilenet_v2"


def test_every_name_is_tested() -> None:
    tested = {kind.name for kind in globals().values() if isinstance(kind, type) and hasattr(kind, "name")}
    assert set(NAMES) <= tested


def test_the_enlargement_is_bicubic_and_averages() -> None:
    class Keep(nn.Module):
        def forward(self, image: Tensor) -> Tensor:
            seen.append(tuple(image.shape))
            return image

    seen: list[tuple[int, ...]] = []
    image = torch.rand(1, 4, 12, 20)
    features = Framed(Keep(), 16, upsample=True)(image)
    twice = nn.functional.interpolate(image, scale_factor=2.0, mode="bicubic")
    torch.testing.assert_close(features, nn.functional.avg_pool2d(twice, 2))
    assert seen == [(1, 4, 32, 48)]


@pytest.mark.parametrize(
    ("name", "said"), [("resnet50", "unknown"), ("unet", "unknown"), ("unet-resnet51", "knows no encoder")]
)
def test_unknown_names_say_what_there_is(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        build(name)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr("dada.features.backbones.import_module", missing)
    with pytest.raises(InputError, match=r'pip install "dada-sr\[backbones\]"'):
        build("unet-resnet18")


def parameters(module: nn.Module) -> float:
    """In millions."""
    return sum(p.numel() for p in module.parameters()) / 1e6
