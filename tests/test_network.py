"""Facts about DADA: what it computes, what its gradients are, what its files hold."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate, pixel_unshuffle

from dada import InputError, upsample
from dada.checkpoint import save
from dada.diffusion import Coefficients, down
from dada.diffusion.coefficients import coefficients
from dada.features.backbones import import_smp
from dada.features.review import Review
from dada.io import read_image
from dada.learning_free import standardise
from dada.methods import load_method
from dada.model import Model
from dada.network import DADA, PAPER, DadaConfig
from dada.sample import Method, Sample, make_sample

SMALL = DadaConfig(features=8)


@pytest.fixture(autouse=True)
def _one_thread_and_seed():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def real() -> Sample:
    """A crop across the edge of an object at x8, in units of 300 mm."""
    data = Path(os.environ.get("DADA_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
    folder = data / "middlebury_2005_2006_third" / "Baby1"
    if not folder.is_dir():
        pytest.skip(f"no photographs at {folder} (set DADA_TEST_DATA)")
    part = slice(150, 214), slice(140, 204)
    guide = torch.from_numpy(read_image(folder / "rgb.png", role="guide").values[part] / np.float32(255)).permute(
        2, 0, 1
    )[None]
    disparity = read_image(folder / "disp1.png").values[part].astype(np.float32)
    depth = torch.from_numpy(3740 * 160 / (disparity + 200) / 300)[None, None]
    return make_sample(guide, depth, torch.from_numpy(disparity > 0)[None, None], 8, interpolation="torch")


def random_sample(batch: int = 1, factor: int = 4, low: float = 1.0) -> Sample:
    """With a hole in the last image; 20 x 28."""
    valid = torch.ones(batch, 1, 20, 28, dtype=torch.bool)
    valid[-1, :, 4:12, 4:12] = False
    return make_sample(
        torch.rand(batch, 3, 20, 28), low + torch.rand(batch, 1, 20, 28), valid, factor, interpolation="torch"
    )


def opinionated(model: DADA) -> DADA:
    """The network with a review that has something to say, where it has one."""
    if model.review:
        torch.nn.init.normal_(model.review.out.weight, std=0.01)
    return model


# ---- what it computes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjust", ["ratio", "shift", "auto"])
@pytest.mark.parametrize("source", ["dataset", "own"])
@pytest.mark.parametrize(
    ("rounds", "edges", "direct", "sees"),
    [
        (1, False, False, "coefficients"),
        (3, False, False, "coefficients"),
        (1, True, False, "coefficients"),
        (2, True, True, "coefficients"),
        (3, True, True, "review"),
        (2, True, True, "wide review"),
    ],
)
def test_downsampling_the_result_gives_back_the_source(adjust, source, rounds, edges, direct, sees) -> None:
    sample = random_sample(batch=2)
    config = replace(SMALL, adjust=adjust, source=source, rounds=rounds, edges=edges, direct=direct, sees=sees)
    model = opinionated(DADA(config).eval())
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


def test_features_are_those_of_guide_and_source_less_its_mean() -> None:
    sample, model = random_sample(), DADA(SMALL)
    source = (sample.initial - sample.initial.mean()) / sample.deviation().float()
    features = model.extractor(torch.cat([standardise(sample.guide), source], dim=1))
    torch.testing.assert_close(model.coefficients(sample), coefficients(features, 0.03))


def test_direct_compares_guide_and_source_too_each_with_its_learned_weight() -> None:
    sample, model = random_sample(), DADA(replace(SMALL, direct=True, edges=True))
    image = torch.cat([standardise(sample.guide), sample.initial / sample.deviation().float()], dim=1)
    made = model.extractor(torch.cat([image[:, :3], image[:, 3:] - image[:, 3:].mean()], dim=1))
    weights = torch.tensor([0.5, 0.5, 0.5, 0.5])[:, None, None]
    expected = coefficients(torch.cat([weights * image, made[:, :8]], dim=1), 0.03)
    found = model.coefficients(sample)
    strength = (found.vertical / expected.vertical).detach().log()
    torch.testing.assert_close(strength, made[:, 8, :-1].detach(), rtol=1e-2, atol=1e-4)  # what `edges` changes
    model(sample).square().mean().backward()
    assert model.logg.grad != 0
    assert model.logs.grad != 0


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


def test_loop_ends_at_the_equilibrium() -> None:
    sample, model = random_sample(), DADA(replace(SMALL, tolerance=1e-6, steps=4000)).eval()
    with torch.no_grad():
        torch.testing.assert_close(model(sample, method="iterate"), model(sample), rtol=0, atol=1e-4)


@pytest.mark.parametrize("sees", ["coefficients", "review", "wide review", "features"])
def test_the_second_round_sees_the_first_result(sees) -> None:
    sample, model = random_sample(), DADA(replace(SMALL, rounds=3, sees=sees)).eval()
    found: list[Coefficients] = []
    calls: list[Tensor] = []
    model.extractor.register_forward_hook(lambda module, given, made: calls.append(made))

    def solve(c: Coefficients, start: Tensor) -> Tensor:
        found.append(c)
        return start + torch.rand(20, 28)

    with torch.no_grad():
        model.diffuse(sample, solve)
    assert len(found) == 3
    assert not torch.allclose(found[0].vertical, found[1].vertical)
    assert not torch.allclose(found[1].vertical, found[2].vertical)
    assert len(calls) == (3 if sees == "features" else 1)


@pytest.mark.parametrize("distance", ["euclidean", "mean_absolute"])
def test_later_rounds_compare_the_result_as_one_more_feature_each_with_its_own_weight(distance) -> None:
    sample, model = random_sample(), DADA(replace(SMALL, rounds=3, distance=distance, source="own")).eval()
    torch.nn.init.constant_(model.extractor.net.head.out.weight, 0.1)
    model.logw.data = torch.tensor([0.3, 1.1])
    made: list[Tensor] = []
    model.extractor.register_forward_hook(lambda module, given, features: made.append(features))
    rounds: list[tuple[Coefficients, Tensor]] = []

    def solve(c: Coefficients, start: Tensor) -> Tensor:
        rounds.append((c, start))
        return start + torch.rand(20, 28)

    with torch.no_grad():
        model.diffuse(sample, solve)
        for (found, result), logarithm in zip(rounds[1:], model.logw, strict=True):
            seen = torch.cat([made[0], logarithm.exp() * result / sample.deviation()], dim=1)
            for ours, plain in zip(found, coefficients(seen, model.kappa, distance), strict=True):
                torch.testing.assert_close(ours, plain.float(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("sees", ["review", "wide review"])
@pytest.mark.parametrize(("edges", "direct"), [(False, False), (True, True)])
def test_a_review_says_nothing_at_first(edges, direct, sees) -> None:
    sample, config = random_sample(), replace(SMALL, rounds=3, edges=edges, direct=direct)
    plain, reviewed = DADA(config).eval(), DADA(replace(config, sees=sees)).eval()
    reviewed.load_state_dict(plain.state_dict(), strict=False)
    with torch.no_grad():
        assert torch.equal(reviewed(sample), plain(sample))


def test_a_review_changes_the_weight_of_the_result_and_the_coefficients() -> None:
    """What it says of a pixel holds for its edges down and right: 1 / c = (1 / c_0 + (e^g w step / kappa)^2) / e^a."""
    sample = random_sample()
    model = DADA(replace(SMALL, rounds=2, sees="review", source="own")).eval()
    said = torch.randn(1, 3, 20, 28) / 10  # small, so that it is hardly bounded
    model.review.register_forward_hook(lambda module, given, made: said)
    rounds: list[Coefficients] = []
    result = sample.initial + torch.rand(20, 28)

    def solve(c: Coefficients, start: Tensor) -> Tensor:
        rounds.append(c)
        return result

    with torch.no_grad():
        model.diffuse(sample, solve)
        share = model.logw.exp() / model.kappa / sample.deviation()[0, 0]
        for dim, (first, found) in enumerate(zip(rounds[0], rounds[1], strict=True)):
            down, right = (-1, None) if dim == 0 else (None, -1)
            step = result.diff(dim=dim - 2)[:, 0] * share
            a, g = (said[:, number, :down, :right] for number in (dim, 2))
            expected = a.exp() / (1 / first + (g.exp() * step).square())
            torch.testing.assert_close(found, expected.float(), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("sees", ["review", "wide review"])
def test_all_of_a_review_is_learned(sees) -> None:
    model = opinionated(DADA(replace(SMALL, rounds=2, edges=True, direct=True, sees=sees)))
    model(random_sample()).square().mean().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in model.review.parameters())


@pytest.mark.parametrize(("wide", "stacks"), [(False, 5), (True, 11)])
def test_a_review_tells_the_pixels_of_a_stack_apart_sees_so_far_and_takes_odd_sizes(wide, stacks) -> None:
    review = Review(4, wide)
    torch.nn.init.normal_(review.out.weight)
    for residual in review.more:
        torch.nn.init.normal_(residual.conv.weight)
    result = torch.rand(1, 1, 51, 27)
    other = result.clone()
    other[..., 24, 13] += 1
    with torch.no_grad():
        prepared = review.prepare(torch.rand(1, 4, 51, 27), torch.ones(4))
        said, changed = review(prepared, result, result), review(prepared, other, result)
    assert said.shape == (1, 3, 51, 27)
    change = (said - changed).abs().sum(1)[0]
    rows = change.any(dim=1).nonzero()
    assert (rows.min(), rows.max()) == (24 - 2 * stacks, 25 + 2 * stacks)  # so many to each side, no further
    assert len({float(x) for x in change[24:26, 12:14].flatten()}) == 4


def test_what_a_review_prepares_is_a_convolution_of_scaled_stacks() -> None:
    review, known, scale = Review(4), torch.rand(1, 4, 6, 8), torch.tensor([0.5, 1.0, 2.0, 3.0])
    stacks = pixel_unshuffle(known * scale[:, None, None], 2)
    torch.testing.assert_close(review.prepare(known, scale), review.known(stacks))


def test_the_weight_of_the_result_is_learned() -> None:
    sample, model = random_sample(), DADA(replace(SMALL, rounds=2))
    model(sample).square().mean().backward()
    assert model.logw.grad is not None
    assert float(model.logw.grad) != 0


def test_a_grey_guide_serves_an_rgb_network_and_five_bands_do_not() -> None:
    sample, model = random_sample(), DADA(SMALL).eval()
    grey = replace(sample, guide=sample.guide[:, :1])
    with torch.no_grad():
        assert torch.equal(model(grey), model(replace(sample, guide=grey.guide.expand(-1, 3, -1, -1))))
    with pytest.raises(InputError, match="5 bands"):
        model(replace(sample, guide=torch.rand(1, 5, 20, 28)))


@pytest.mark.parametrize(
    "setting",
    [
        {"adjust": "multiply"},
        {"rounds": 0},
        {"kappa": -1.0},
        {"features": 2.5},
        {"edges": "yes"},
        {"extractor": "x"},
        {"sees": "review", "distance": "mean_absolute"},
    ],
)
def test_wrong_settings_are_refused(setting) -> None:
    with pytest.raises(InputError, match=next(iter(setting))):
        DADA(DadaConfig(**setting))


# ---- its gradients -----------------------------------------------------------------------------------------


def test_gradients_through_a_review_are_those_of_central_differences(real: Sample) -> None:
    crop = double(cut(real, 24))
    config = replace(SMALL, rounds=3, edges=True, direct=True, sees="review", source="own", adjust="shift")
    model = opinionated(DADA(replace(config, tolerance=1e-13)).double().eval())
    left = (model(crop) - crop.target).square().mean()
    left.backward()
    for weight in (model.review.out.bias, model.review.seen.weight, model.review.known.weight, model.logw):
        way = torch.randn_like(weight)
        values = []
        with torch.no_grad():
            for step in (1e-6, -2e-6):  # short, as there are kinks
                weight += step * way
                values.append((model(crop) - crop.target).square().mean())
            weight += 1e-6 * way
        torch.testing.assert_close((weight.grad * way).sum(), (values[0] - values[1]) / 2e-6, rtol=1e-5, atol=1e-9)


def test_unrolled_and_implicit_gradients_agree_at_convergence(real: Sample) -> None:
    crop = double(cut(real, 24))
    model = DADA(replace(SMALL, tolerance=1e-8)).double()
    implicit = gradient(model, crop)
    unrolled = gradient(model, crop, method="iterate", n_pre=2000, n_grad=1500)
    assert torch.nn.functional.cosine_similarity(implicit, unrolled, dim=0) > 0.999
    few = gradient(model, crop, method="iterate", n_pre=2000, n_grad=4)
    assert torch.nn.functional.cosine_similarity(implicit, few, dim=0) < 0.999  # so the test can fail


def test_light_network_overfits_a_crop(real: Sample) -> None:
    model = DADA(DadaConfig())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    bicubic = error(real.initial, real)
    for _ in range(300):
        loss = error(model(real), real)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if loss < 0.095 * bicubic:
            break
    model.eval()
    with torch.no_grad():
        assert error(model(real), real) < 0.1 * bicubic


# ---- its files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config", [SMALL, replace(SMALL, rounds=2, edges=True, direct=True, adjust="auto", distance="mean_absolute")]
)
def test_a_saved_network_comes_back(tmp_path: Path, config: DadaConfig) -> None:
    model = DADA(config).eval()
    with torch.no_grad():
        model.logk.fill_(-2.0)
    model.save_pretrained(tmp_path / "folder")
    save(model, tmp_path / "one.safetensors")
    sample = random_sample()
    for read in (
        DADA.from_pretrained(tmp_path / "folder"),
        DADA.load(tmp_path / "folder"),
        DADA.load(tmp_path / "one.safetensors"),
        load_method(f"dada:{tmp_path / 'one.safetensors'}"),
    ):
        assert read.config == config
        with torch.no_grad():
            assert torch.equal(read(sample), model(sample))
    assert read.name == "one.safetensors"
    assert not read.training


def test_upsample_takes_a_saved_network_whatever_the_unit(tmp_path: Path) -> None:
    save(DADA(SMALL), tmp_path / "net.safetensors")
    guide, source = np.random.default_rng(0).random((24, 32, 3), np.float32), np.arange(12.0).reshape(3, 4) + 5
    metres = upsample(source, guide, model=tmp_path / "net.safetensors")
    millimetres = upsample(1000 * source, guide, model=tmp_path / "net.safetensors")
    assert metres.report.model == "net.safetensors"
    assert metres.report.consistency_max < 1e-5
    np.testing.assert_allclose(millimetres.values, 1000 * metres.values, rtol=1e-3)


def test_half_precision_halves_the_file_and_hardly_the_quality(tmp_path: Path) -> None:
    model = DADA(SMALL).eval()
    save(model, tmp_path / "full.safetensors")
    save(model, tmp_path / "half.safetensors", half=True)
    assert (tmp_path / "half.safetensors").stat().st_size < 0.51 * (tmp_path / "full.safetensors").stat().st_size
    sample, read = random_sample(), DADA.load(tmp_path / "half.safetensors")
    assert read.extractor.net.stem.weight.dtype == torch.float32
    with torch.no_grad():
        torch.testing.assert_close(read(sample), model(sample), rtol=0, atol=1e-3)


def test_a_checkpoint_of_the_authors_gives_the_features_of_the_plain_network(tmp_path: Path) -> None:
    plain = import_smp("unet-resnet50").Unet("resnet50", encoder_weights=None, classes=64, in_channels=4).eval()
    weights = {f"feature_extractor.1.{name}": value for name, value in plain.state_dict().items()}
    weights |= {"logk": torch.tensor(-3.0), "logk2": torch.tensor(0.0)}
    weights |= {"mean_guide": torch.zeros(3), "std_guide": torch.ones(3)}
    torch.save({"model": weights, "epoch": 3}, tmp_path / "best_model.pth")
    model = DADA.load(tmp_path / "best_model.pth")
    assert model.config == PAPER
    assert model.logk.item() == -3.0
    image = torch.randn(1, 4, 32, 32)
    twice = interpolate(image, scale_factor=2.0, mode="bicubic")
    with torch.no_grad():
        torch.testing.assert_close(model.extractor(image), avg_pool2d(plain(twice), 2))


def test_wrong_files_say_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "text.pth").write_text("not a checkpoint")
    (tmp_path / "text.safetensors").write_text("nor this")
    (tmp_path / "empty").mkdir()
    torch.save([1, 2], tmp_path / "list.pth")
    torch.save({"model": {"conv.weight": torch.zeros(1)}}, tmp_path / "other.pth")
    torch.save({"model": {"feature_extractor.1.x": torch.zeros(1), "logk": torch.zeros(())}}, tmp_path / "part.pth")
    torch.save({"model": Path("code")}, tmp_path / "code.pth")
    for name, said in {
        "text.pth": "neither",
        "text.safetensors": "not a .safetensors",
        "empty": "holds no model.safetensors",
        "list.pth": "holds a list",
        "other.pth": "`conv.weight`",
        "part.pth": "is missing",
        "code.pth": "could run code",
        "absent.pth": "no such file",
    }.items():
        with pytest.raises(InputError, match=said):
            DADA.load(tmp_path / name)


def test_a_config_of_another_kind_is_refused(tmp_path: Path) -> None:
    DADA(SMALL).save_pretrained(tmp_path)
    for text, said in {'{"layers": 3}': "unknown layers", "[": "not JSON", '{"features": 9}': "instead of"}.items():
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(InputError, match=said):
            DADA.load(tmp_path)


# ---- beneath -----------------------------------------------------------------------------------------------


def error(result: Tensor, sample: Sample) -> Tensor:
    """Mean absolute error of the valid pixels."""
    assert sample.target is not None
    return (result - sample.target)[sample.target_mask].abs().mean()


def gradient(model: DADA, sample: Sample, **how) -> Tensor:
    """Of the error with respect to all weights, in one row."""
    model.zero_grad()
    error(model(sample, **how), sample).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def cut(sample: Sample, size: int) -> Sample:
    """The middle of a sample at x8."""
    at = (sample.size[0] - size) // 16 * 8
    part = (..., slice(at, at + size), slice(at, at + size))
    return make_sample(sample.guide[part], sample.target[part], sample.target_mask[part], 8, interpolation="torch")


def double(sample: Sample) -> Sample:
    """The same in float64."""
    fields = ("guide", "source", "initial", "target")
    return replace(sample, **{name: getattr(sample, name).double() for name in fields})
