"""The networks of other authors: the same numbers as theirs, and fit for every sample."""

import json
import os
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dada.baselines.caffe import read_caffemodel
from dada.baselines.dkn import Dkn
from dada.baselines.fdkn import Fdkn
from dada.baselines.fdsr import Fdsr
from dada.baselines.learned import Learned, source_range
from dada.baselines.lgr import Lgr
from dada.baselines.msg import Msg, caffe_names
from dada.baselines.pmba import Pmba
from dada.errors import InputError
from dada.models.registry import load_method, network_class
from dada.sample import Method, Sample, make_sample

from ..oracle.vectors import filled

FACTOR = 4
SMALL = {
    "msg": lambda: Msg(FACTOR),
    "dkn": Dkn,
    "fdkn": Fdkn,
    "pmba": lambda: Pmba(FACTOR, base=8, feat=8),
    "fdsr": lambda: Fdsr(8),
    "lgr": lambda: Lgr("light", channels=8, strength=0.01),
}


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny images: threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def scene(height: int, width: int, factor: int = FACTOR, holes: bool = False, batch: int = 2) -> Sample:
    """Random colours, a slanted plane with a step, in units far from 0..1."""
    draw = torch.Generator().manual_seed(zlib.crc32(f"{height} {width} {holes}".encode()))
    guide = torch.rand(batch, 3, height, width, generator=draw)
    column = torch.arange(width, dtype=torch.float32).expand(batch, 1, height, width)
    target = 20 + 0.1 * column + 5 * (column > width / 3)
    valid = torch.ones_like(target, dtype=torch.bool)
    if holes:
        valid[..., : height // 2, width // 2 :] = False
    return make_sample(guide, torch.where(valid, target, -1e6), valid, factor)


def small(key: str) -> Learned:
    """A network that does more than bicubic: where the last layer starts near 0 it is enlarged."""
    torch.manual_seed(0)
    network = SMALL[key]().eval()
    if isinstance(network, Msg):
        torch.nn.init.normal_(network.residual.weight, std=0.05)
    return network


@pytest.mark.parametrize("key", SMALL)
class TestEveryNetwork:
    def test_it_is_a_method_of_that_name(self, key):
        network = small(key)
        assert isinstance(network, Method)
        assert network.key == key
        assert network_class(key) is type(network)

    @pytest.mark.parametrize("size", [(16, 16), (20, 28), (4, 12)])
    def test_the_result_has_the_size_of_the_target(self, key, size):
        sample = scene(*size)
        with torch.inference_mode():
            result = small(key)(sample)
        assert result.shape == sample.initial.shape
        assert result.dtype == torch.float32
        assert bool(torch.isfinite(result).all())

    def test_sizes_that_no_factor_divides_will_do(self, key):
        sample = scene(16, 20)
        odd = replace(sample, guide=sample.guide[..., :13, :19], initial=sample.initial[..., :13, :19])
        with torch.inference_mode():
            result = small(key)(odd)
        assert result.shape == (2, 1, 13, 19)
        assert bool(torch.isfinite(result).all())

    def test_what_stands_in_invalid_cells_does_not_matter(self, key):
        sample = scene(16, 16, holes=True)
        assert not bool(sample.source_mask.all())
        other = replace(sample, source=torch.where(sample.source_mask, sample.source, 1e6))
        network = small(key)
        with torch.inference_mode():
            result = network(sample)
            torch.testing.assert_close(network(other), result)
        assert float(result.abs().max()) < 1e3

    def test_a_source_without_any_valid_cell_gives_numbers(self, key):
        if key == "lgr":
            pytest.skip("a solver, which says that there is nothing to solve for")
        sample = scene(16, 16)
        empty = replace(
            sample, source_mask=torch.zeros_like(sample.source_mask), initial=torch.zeros_like(sample.initial)
        )
        with torch.inference_mode():
            assert bool(torch.isfinite(small(key)(empty)).all())

    def test_a_constant_source_gives_numbers(self, key):
        sample = scene(16, 16)
        flat = replace(sample, source=torch.ones_like(sample.source), initial=torch.ones_like(sample.initial))
        with torch.inference_mode():
            assert bool(torch.isfinite(small(key)(flat)).all())

    def test_the_unit_does_not_matter(self, key):
        if key == "lgr":
            pytest.skip("works in the sample's unit, as its authors' does")
        sample = scene(16, 24)
        other = replace(sample, source=1000 * sample.source + 7, initial=1000 * sample.initial + 7)
        network = small(key)
        with torch.inference_mode():
            torch.testing.assert_close(network(other), 1000 * network(sample) + 7, rtol=1e-4, atol=0.5)

    def test_guides_of_one_band_or_of_many_will_do(self, key):
        sample = scene(16, 16)
        network = small(key)
        grey = sample.guide[:, :1]
        five = torch.cat([sample.guide, sample.guide[:, :2]], dim=1)
        with torch.inference_mode():
            equal = network(replace(sample, guide=grey.expand(-1, 3, -1, -1)))
            torch.testing.assert_close(network(replace(sample, guide=grey)), equal)
            torch.testing.assert_close(network(replace(sample, guide=five)), network(sample))
            with pytest.raises(InputError, match="2 bands"):
                network(replace(sample, guide=five[:, :2]))

    def test_the_images_of_a_batch_do_not_meet(self, key):
        sample = scene(16, 24)
        network = small(key)
        with torch.inference_mode():
            torch.testing.assert_close(network(sample)[1:], network(sample[1]), rtol=1e-5, atol=1e-4)

    def test_gradients_flow_to_every_parameter_in_use(self, key):
        sample = scene(16, 16)
        network = small(key).train()
        (network(sample) - sample.target).abs().mean().backward()
        unused = network.unused
        for name, parameter in network.named_parameters():
            if name in unused:
                assert parameter.grad is None, name
            else:
                assert parameter.grad is not None, name
                assert float(parameter.grad.abs().sum()) > 0 or name.endswith("bias"), name

    def test_steps_of_adam_lower_the_loss(self, key):
        sample = scene(8, 8, batch=1)
        network = small(key).train()
        optimiser = torch.optim.Adam(network.parameters(), 1e-3)
        losses = []
        for _ in range(6):
            loss = (network(sample) - sample.target).abs().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert min(losses[-3:]) < 0.98 * losses[0]

    def test_the_same_numbers_each_time(self, key):
        sample = scene(16, 16)
        with torch.inference_mode():
            assert torch.equal(small(key)(sample), small(key)(sample))

    def test_saving_and_loading_changes_nothing(self, key, tmp_path):
        sample, network = scene(16, 16), small(key)
        network.save(tmp_path / "net.safetensors")
        torch.save(network.state_dict(), tmp_path / "net.pt")
        with torch.inference_mode():
            expected = network(sample)
            # a bare state dict of LGR is taken for the authors' U-Net, see test_lgr.py
            for file in ("net.safetensors", "net.pt")[: 1 if key == "lgr" else 2]:
                loaded = load_method(f"{key}:{tmp_path / file}")
                assert loaded.config == network.config
                assert torch.equal(loaded(sample), expected)

    def test_a_file_of_another_network_is_refused(self, key, tmp_path):
        other = "fdkn" if key != "fdkn" else "dkn"
        path = tmp_path / "net"
        small(other).save(path)
        with pytest.raises(InputError, match=f"they are of {other}"):
            type(small(key)).load(path)
        torch.save(small(other).state_dict(), path)
        with pytest.raises(InputError, match="the method the file was made for"):
            type(small(key)).load(path)

    def test_a_damaged_file_is_refused(self, key, tmp_path):
        path = tmp_path / "net"
        small(key).save(path)
        whole = path.read_bytes()
        for data in (b"", whole[:-100], whole[:20], b"\x80\x02" + whole[:50], b"PK\x03\x04" + whole[:50], b"{}" * 20):
            path.write_bytes(data)
            with pytest.raises(InputError, match="net"):
                type(small(key)).load(path)

    def test_numbers_that_are_not_finite_are_refused(self, key, tmp_path):
        network = small(key)
        with torch.no_grad():
            next(network.parameters()).view(-1)[0] = torch.nan
        network.save(tmp_path / "net")
        with pytest.raises(InputError, match="not finite"):
            type(network).load(tmp_path / "net")


@pytest.mark.parametrize("key", ["msg", "pmba"])
def test_networks_for_one_factor_refuse_another(key):
    with pytest.raises(InputError, match="is x8; this network is for x4"):
        small(key)(scene(32, 32, factor=8))


class TestMsgAtX32:
    """The paper's tables have it; there is no published network."""

    def test_it_has_one_level_more_than_that_for_x16(self):
        with torch.device("meta"):
            counts = {
                factor: sum(parameter.numel() for parameter in Msg(factor).parameters()) for factor in (4, 8, 16, 32)
            }
        assert counts == {4: 326_404, 8: 454_660, 16: 582_916, 32: 711_172}

    def test_it_is_a_network_like_the_others(self, tmp_path):
        sample = scene(64, 96, factor=32, holes=True)
        torch.manual_seed(0)
        network = Msg(32).eval()
        torch.nn.init.normal_(network.residual.weight, std=0.05)
        with torch.inference_mode():
            result = network(sample)
            assert result.shape == sample.initial.shape
            assert bool(result.isfinite().all())
            network.save(tmp_path / "net.safetensors")
            torch.save(network.state_dict(), tmp_path / "net.pt")
            for file in ("net.safetensors", "net.pt"):
                loaded = load_method(f"msg:{tmp_path / file}")
                assert loaded.config == {"factor": 32}
                assert torch.equal(loaded(sample), result)

    def test_the_source_begins_no_weaker_than_at_x16(self):
        """With the authors' start it would be a third of that, and a training would not begin to learn."""

        def strength(factor):
            torch.manual_seed(0)
            network, source = Msg(factor), torch.randn(1, 1, 5, 5)
            with torch.inference_mode():
                return network.network(torch.zeros(1, 1, 5 * factor - 1, 5 * factor - 1), source).std()

        assert strength(32) > strength(16)

    def test_it_learns_and_the_guide_reaches_every_level(self):
        torch.manual_seed(0)
        network, sample = Msg(32), scene(64, 64, factor=32, batch=1)
        optimiser = torch.optim.Adam(network.parameters(), 1e-3)
        losses = []
        for _ in range(12):
            loss = (network(sample) - sample.target).abs().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert min(losses[-3:]) < 0.95 * losses[0]
        assert all(float(step.conv.weight.grad.abs().sum()) > 0 for step in network.guide)


def test_code_in_a_torch_file_is_never_run(tmp_path):
    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    torch.save({"conv": Payload()}, tmp_path / "net")
    with pytest.raises(InputError, match="safely"):
        Fdkn.load(tmp_path / "net")
    assert not (tmp_path / "ran").exists()


def test_the_range_is_that_of_the_valid_cells():
    sample = scene(16, 16, holes=True)
    low, span = source_range(sample)
    values = sample.source[0][sample.source_mask[0]]
    assert float(low[0]) == float(values.min())
    assert float(low[0] + span[0]) == pytest.approx(float(values.max()))


class TestAuthors:
    """Vectors computed with the authors' own networks."""

    @pytest.mark.parametrize(
        ("make", "count"),
        [(Fdkn, 693_856), (Dkn, 1_158_070), (Fdsr, 601_105), (lambda: Pmba(8), 46_035_666)],
    )
    def test_as_many_parameters(self, make, count):
        with torch.device("meta"):
            network = make()
        assert sum(parameter.numel() for parameter in network.parameters()) == count

    @pytest.mark.parametrize(
        ("name", "network"),
        [
            ("fdkn_filled", Fdkn),
            ("dkn_filled", Dkn),
            ("fdsr_filled", Fdsr),
            ("pmba_x4_filled", Pmba),
            ("pmba_x8_filled", Pmba),
        ],
    )
    def test_filled_weights_give_their_numbers(self, oracle, name, network):
        state = filled(json.loads((oracle / f"{name}.json").read_text())["state"])
        loaded = network.of_state(state, network.config_of(state, oracle), oracle)
        assert list(loaded.state_dict()) == list(state)
        assert error(loaded, oracle / f"{name}.npz") < 1e-5

    def test_released_fdkn_gives_their_numbers(self, oracle):
        network = load_method(f"fdkn:{weights(oracle, 'fdkn/FDKN_8x')}")
        assert error(network, oracle / "fdkn_x8_released.npz") < 1e-5

    @pytest.mark.parametrize("factor", [4, 8, 16])
    def test_released_msg_gives_their_numbers(self, oracle, factor):
        network = load_method(f"msg:{weights(oracle, f'msg/MSGNet_x{factor}.caffemodel')}")
        assert network.config == {"factor": factor}
        assert error(network, oracle / f"msg_x{factor}_released.npz") < 1e-4

    @pytest.mark.parametrize("factor", [4, 8, 16])
    def test_the_key_map_names_every_layer_of_the_released_msg(self, oracle, factor):
        layers = read_caffemodel(weights(oracle, f"msg/MSGNet_x{factor}.caffemodel"))
        assert {name for pair in caffe_names(factor) for name in pair[:2] if name} == set(layers)

    def test_a_caffe_model_of_something_else_is_refused(self, oracle, tmp_path):
        data = weights(oracle, "msg/MSGNet_x4.caffemodel").read_bytes()
        path = tmp_path / "net.caffemodel"
        path.write_bytes(data.replace(b"conv2a-x4", b"conv9z-x4"))
        with pytest.raises(InputError, match="no layer conv2a-x4"):
            Msg.load(path)


def error(network: Learned, path: Path) -> float:
    """Largest difference from the authors' output, relative to its largest number."""
    with np.load(path) as vectors:
        guide, depth, expected = (torch.from_numpy(vectors[key]) for key in ("in0", "in1", "out"))
    with torch.inference_mode():
        return float((network.network(guide, depth) - expected).abs().max() / expected.abs().max())


def weights(oracle: Path, name: str) -> Path:
    path = oracle.parent / "weights" / name
    if not path.exists():
        pytest.skip(f"no released weights at {path}")
    return path
