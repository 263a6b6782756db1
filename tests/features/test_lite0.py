"""Facts about the encoder that starts from ImageNet offline."""

import pytest
import torch

from dada.errors import InputError
from dada.features import build
from dada.features.backbones import import_smp
from dada.features.lite0 import DEVIATION, MEAN, PACKAGE, Lite0Encoder, Lite0UNet, read_package
from dada.features.standardising import standardise

pytest.importorskip(PACKAGE)


@pytest.mark.parametrize("size", [(96, 64), (75, 101)])
def test_encoder_is_timms(size: tuple[int, int]) -> None:
    timm = _timm()
    weights = dict(zip(timm.state_dict(), read_package().values(), strict=True))
    timm.load_state_dict(weights)
    own = Lite0Encoder(3)
    own.load_state_dict({name: weights[name] for name in own.state_dict()})
    image = torch.randn(2, 3, *size, dtype=torch.float64)
    for training in (False, True):  # with fixed statistics, and with those of the batch
        timm.double().train(training)
        own.double().train(training)
        with torch.no_grad():
            for ours, theirs in zip(own(image), timm.forward_intermediates(image)[1], strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_start_is_imagenets_for_guides_as_dada_gives_them() -> None:
    plain = Lite0Encoder(3).eval()
    plain.load_state_dict(dict(zip(plain.state_dict(), read_package().values(), strict=False)))
    guide = torch.rand(1, 3, 64, 64)
    source = torch.randn(1, 1, 64, 64)  # a channel ImageNet has not seen says nothing yet
    started = Lite0UNet(pretrained=True).eval().encoder
    with torch.no_grad():
        expected = plain((guide - MEAN) / DEVIATION)[0]
        found = started(torch.cat([standardise(guide), source], dim=1))[0]
    inside = (..., slice(2, -2), slice(2, -2))  # at the border, zero padding stands for another grey
    torch.testing.assert_close(found[inside], expected[inside], rtol=1e-4, atol=1e-4)


def test_imagenet_statistics_stay_frozen_also_after_loading() -> None:
    trained = build("lite0", classes=4, pretrained=True, upsample=False)
    loaded = build("lite0", classes=4, upsample=False)
    loaded.load_state_dict(trained.state_dict())
    for net in (trained, loaded):
        net.train()
        before = net.net.encoder.bn1.running_mean.clone()
        net(torch.rand(1, 4, 32, 32))
        assert torch.equal(net.net.encoder.bn1.running_mean, before)


def test_features_begin_near_kappa() -> None:
    """So that at the start of training most coefficients are neither 0 nor 1."""
    torch.manual_seed(0)
    image = torch.nn.functional.interpolate(torch.randn(1, 4, 24, 24), size=(96, 96), mode="bicubic")
    for name in ("light", "lite0"):
        net = build(name, classes=32, pretrained=name == "lite0", upsample=False)
        with torch.no_grad():
            difference = net(image).diff(dim=-1).square().sum(1).sqrt().median()
        assert 0.003 < difference < 0.3


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dada.features.lite0.find_spec", lambda name: None)
    with pytest.raises(InputError, match=PACKAGE):
        build("lite0", pretrained=True)


def _timm() -> torch.nn.Module:
    import_smp("timm's lite0")  # imports timm, also beside a torchvision that does not fit
    import timm

    return timm.create_model("tf_efficientnet_lite0", pretrained=False)
