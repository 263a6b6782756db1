"""`dada train`: flags on top of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dada.cli.train import parse
from dada.models.registry import load_method
from dada.training import DataConfig

NETWORK = """
[network]
extractor = "light"
features = 8
"""
SMALL = f"""
steps = 2
factors = [8]
crop = [32]
batch = [2]
interpolation = "torch"
workers = 0
threads = 1
{NETWORK}
[[data]]
dataset = "painted:1"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_help_tells_of_every_setting(dada):
    ran = dada("train", "--help")
    assert ran.code == 0
    for flag in ("--config FILE", "--method", "--data DATASET", "--loss.mse", "--schedule.kind", "--validation.every"):
        assert flag in ran.out
    assert "For example" in ran.out


def test_file_is_read_and_flags_go_before_it(file: Path):
    plain = parse(["--config", str(file)])
    assert (plain.steps, plain.crop, plain.network["extractor"]) == (2, (32,), "light")
    network = ["--network", "rounds=2", "kappa=0.1", "distance=euclidean"]
    data = ["--data", "painted:7", "painted:8; weight=0.5; zoom=[1, 2]"]
    flagged = parse([f"--config={file}", "--steps=5", "--factors", "4", "8", *network, *data, "--loss.mse", "0.5"])
    assert flagged.steps == 5
    assert flagged.factors == (4, 8)
    assert flagged.network == {
        "extractor": "light", "features": 8, "rounds": 2, "kappa": 0.1, "distance": "euclidean"
    }  # fmt: skip
    assert flagged.loss.mse == 0.5
    assert flagged.data == (
        DataConfig(dataset="painted:7"),
        DataConfig(dataset="painted:8", weight=0.5, zoom=(1.0, 2.0)),
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "none.toml"], "none.toml: the configuration cannot be read"),
        (["--config", "a.toml", "--config", "b.toml"], "there are 2 configurations"),
        (["--data", "painted:1; wait=3"], "key painted:1.wait is unknown"),
        (["--data", "painted:1; weight"], "must be key=value as in TOML"),
        (["--network", "light"], "'light' is not a setting: write KEY=VALUE"),
        (["--clip", "-1"], "clip is -1.0"),
    ],
)
def test_bad_arguments_are_told(dada, arguments: list[str], message: str):
    ran = dada("train", *arguments)
    assert ran.code == 2
    assert message in " ".join(ran.err.replace("│", " ").split())


@pytest.mark.parametrize("method", ["dada", "fdkn", "msg"])
def test_training_leaves_weights_that_load(dada, file: Path, tmp_path: Path, method: str):
    if method != "dada":
        file.write_text(file.read_text().replace(NETWORK, ""))
    threads = torch.get_num_threads()
    ran = dada("train", "--config", file, "--output", tmp_path / "run", "--method", method)
    torch.set_num_threads(threads)
    assert ran.code == 0, ran.err
    assert Path(ran.out.strip()) == tmp_path / "run" / "best.safetensors"
    assert load_method(f"{method}:{ran.out.strip()}")
    assert (tmp_path / "run" / "config.toml").exists()


def test_bad_settings_end_with_a_message(dada, file: Path, tmp_path: Path):
    ran = dada("train", "--config", file, "--output", tmp_path / "run", "--network", "extractor=magic")
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert "magic" in ran.err


def test_msg_is_trained_at_x32_by_the_configuration_for_x8(dada, tmp_path: Path):
    config = Path(__file__).parents[2] / "configs" / "paper-msg-x8.toml"
    small = ["--crop", "64", "--batch", "1", "--steps", "1", "--workers", "0", "--data", "painted:1"]
    ran = dada("train", "--config", config, "--factors", "32", "--network", "factor=32", "--root", tmp_path,
               "--output", tmp_path / "run", *small, "--validation.data", "painted:2,1", "--validation.crops", "1",
               "--validation.size", "64")  # fmt: skip
    assert ran.code == 0, ran.err
    assert load_method(f"msg:{tmp_path / 'run' / 'best.safetensors'}").config == {"factor": 32}
