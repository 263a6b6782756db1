from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dada.errors import InputError
from dada.models.config import DadaConfig
from dada.models.dada import DADA
from dada.models.files import save
from dada.sample import make_sample
from dada.training import DataConfig, TrainConfig, ValidationConfig, read_config, toml, train
from dada.training.networks import build, save_weights

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_configs_of_the_project_are_valid(path: Path):
    config = read_config(path)
    assert config.data
    assert config.output == f"runs/{path.stem}"


def test_lgr_is_trained_as_in_its_authors_code():
    config = read_config(CONFIGS / "paper-lgr-x8.toml")
    assert (config.weight_decay, config.clip, config.learning_rate, config.loss.scale) == (1e-5, 0.01, 1e-4, 1.0)
    network = build(replace(config, network=config.network | {"features": "light", "pretrained": False}))
    assert (network.config["centre"], network.config["solver"]) == ("dataset", "authors")
    assert network.log_lambda.exp().item() == 1.0


def test_written_config_reads_back_equal(small: TrainConfig, tmp_path: Path):
    (tmp_path / "config.toml").write_text(toml.write(small))
    assert read_config(tmp_path / "config.toml") == small


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step = 3", r"key step is unknown. Use some of output, method"),
        ("steps = 'many'", "steps is 'many': expected whole number"),
        ("steps = 1.5", "steps is 1.5: expected whole number"),
        ("steps = true", "steps is True: expected whole number"),
        ("steps = 0", "steps is 0: it must be at least 1"),
        ("factors = 8", "factors is 8: expected a list of whole numbers"),
        ("factors = [8, 'x']", r"factors\[1\] is 'x': expected whole number"),
        ("factors = []", r"factors are \[\]"),
        ("factors = [3]", "crop 256 is not a multiple of factor 3: use 258"),
        ("batch = [1, 2]", r"batch is \[1, 2\]: give one number from 1, or one for each of the 1 factors"),
        ("scheme = 'magic'", "scheme is 'magic': expected one of implicit, unrolled"),
        ("learning_rate = 0", "learning_rate is 0.0: it must be a positive number"),
        ("[loss]\nmse = 2", "loss.mse is 2.0: it is a share"),
        ("[loss]\nl2 = 2", "key loss.l2 is unknown. Use some of scale, mse"),
        ("[[data]]\nweight = 2", r"data\[0\] lacks dataset"),
        ("[[data]]\ndataset = 'painted:0'\nzoom = [1]", r"data\[0\].zoom is \[1\]: expected 2 of: number"),
        ("[[data]]\ndataset = 'painted:0'\nzoom = [3, 1]", "zoom of painted:0 is 3.0 to 1.0"),
        ("[network]\nextractor = []", "network.extractor is .*: expected true or false or whole number or"),
        ("steps = ", "is not TOML"),
    ],
)
def test_bad_config_is_refused_by_name(tmp_path: Path, text: str, message: str):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(InputError, match=message) as told:
        read_config(tmp_path / "bad.toml")
    assert "bad.toml" in str(told.value)


def test_missing_config_is_told(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "magic"}, "method 'magic' cannot be trained. Use one of msg"),
        ({"network": {"extractors": "light"}}, "key network.extractors is unknown. Use some of extractor"),
        ({"network": {"features": "many"}}, "network.features is 'many': expected whole number"),
        ({"method": "fdkn", "network": {"extractor": "light"}}, "key network.extractor is unknown. fdkn takes"),
        ({"data": ()}, "there is no data to train on"),
        ({"start": "nowhere.safetensors"}, "start nowhere.safetensors: there is no such file"),
    ],
)
def test_unusable_config_is_told_before_training(small: TrainConfig, changes: dict, message: str):
    with pytest.raises(InputError, match=message):
        train(replace(small, **changes))
    assert not Path(small.output, "last.pt").exists()


def test_a_network_for_rgb_starts_one_with_near_infrared_that_computes_the_same(tmp_path: Path):
    settings = {"extractor": "lite0-fine", "edges": True, "direct": True, "source": "own", "rounds": 2}
    settings |= {"feedback": "refinement", "adjust": "shift"}
    network = build(TrainConfig(network=settings))
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(0.02 * torch.randn_like(weight))
    save_weights(network, tmp_path / "rgb.safetensors")
    wider = build(TrainConfig(network=settings | {"bands": 4}, start=str(tmp_path / "rgb.safetensors")))
    for bands in (1, 3):
        target, valid = 1 + torch.rand(1, 1, 64, 64), torch.ones(1, 1, 64, 64, dtype=torch.bool)
        sample = make_sample(torch.rand(1, bands, 64, 64), target, valid, 8, interpolation="torch")
        with torch.no_grad():
            assert torch.allclose(wider.eval()(sample), network.eval()(sample), atol=2e-4)


def test_a_training_starts_from_given_weights_of_the_same_network_alone(tmp_path: Path):
    settings = {"features": 4, "rounds": 2}
    given = DADA(DadaConfig(**settings))
    save(given, tmp_path / "given.safetensors")
    start = str(tmp_path / "given.safetensors")
    network = build(TrainConfig(network=settings, start=start))
    assert all(torch.equal(network.state_dict()[name], value) for name, value in given.state_dict().items())
    for other in ({"rounds": 3}, {"feedback": "refinement"}, {"bands": 1}):
        with pytest.raises(InputError, match="do not fit"):
            build(TrainConfig(network=settings | other, start=start))


def test_samplings_are_checked_before_a_training_begins():
    with pytest.raises(InputError, match="sampling 'nearest' is unknown"):
        TrainConfig(sampling=("mean", "nearest"))
    with pytest.raises(InputError, match=r"validation\.sampling is empty"):
        TrainConfig(validation=ValidationConfig(sampling=()))
    with pytest.raises(InputError, match='augmentation "paper" averages'):
        TrainConfig(data=(DataConfig(dataset="painted:0", augmentation="paper"),), factors=(8,), sampling=("point",))
