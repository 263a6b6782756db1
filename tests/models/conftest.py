"""What the tests of DADA share."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from dada.io import read_image
from dada.sample import Sample, make_sample


@pytest.fixture(autouse=True)
def _one_thread_and_seed() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def real() -> Sample:
    """A crop across the edge of an object at x8, in units of 300 mm."""
    data = Path(os.environ.get("DADA_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
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
