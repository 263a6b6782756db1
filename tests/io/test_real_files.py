"""Files from published datasets are read as their descriptions say."""

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from dada.errors import InputError
from dada.io import ImageWarning, default_unit, read_image

DATA = Path(os.environ.get("DADA_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="no folder of real data: set DADA_TEST_DATA")


def path_of(name: str) -> Path:
    if not (DATA / name).is_file():
        pytest.skip(f"{name} is not among the real data")
    return DATA / name


def test_tum_depth_is_sixteen_bit_with_the_stated_range_and_holes():
    folders = sorted((DATA / "tum_rgbd").glob("*/meta.json"))
    if not folders:
        pytest.skip("tum_rgbd is not among the real data")
    stated = json.loads(folders[0].read_text())["stats"]
    depth = read_image(folders[0].parent / "depth.png")
    assert list(depth.values.shape) == stated["shape"]
    assert depth.values.dtype == np.uint16
    assert depth.values[depth.values > 0].min() == stated["min_valid"]
    assert depth.values.max() == stated["max_valid"]
    assert (depth.values == 0).mean() == pytest.approx(stated["hole_fraction"])


def test_disparity_stored_as_three_equal_channels():
    path = path_of("middlebury_2001/venus/disp2.png")
    with pytest.warns(ImageWarning, match="equal"):
        assert read_image(path).values.ndim == 2


@pytest.mark.parametrize(
    "name", ["sceneflow_sample/A-0032-0006/disp_left.pfm", "hci_lightfield/antinous/gt_disp_lowres.pfm"]
)
def test_pfm_of_others(name: str):
    disparity = read_image(path_of(name))
    assert disparity.values.dtype == np.float32
    assert default_unit(disparity).name == "m"
    assert np.isfinite(disparity.values).all()


def test_npz_with_a_guide_of_four_bands_first():
    path = path_of("pixtransform_vhm/0/original.npz")
    with pytest.raises(InputError, match="'guide', 'target'"):
        read_image(path)
    with pytest.warns(ImageWarning, match="channels, height, width"):
        assert read_image(path, key="guide", role="guide").values.shape == (256, 256, 4)
    assert read_image(path, key="target").values.shape == (256, 256)


def test_a_jpeg_of_a_camera():
    values = read_image(path_of("middlebury_2006_full/Aloe/rgb_original.jpg"), role="guide").values
    assert values.shape[:2] == (1110, 1282)


def test_one_of_every_folder_is_read():
    seen = 0
    for folder in sorted(path for path in DATA.iterdir() if path.is_dir()):
        for path in sorted(folder.glob("*/*.png"))[:4]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ImageWarning)
                assert read_image(path, role="guide").values.size > 0
            seen += 1
    assert seen > 0
