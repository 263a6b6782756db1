"""A plain folder of pairs, in two layouts, through the readers of `dada.io`."""

import numpy as np
import pytest

from dada.datasets import Dataset, load_dataset
from dada.errors import InputError
from dada.io import write_image


@pytest.fixture
def write(tmp_path, rng):
    """Write a pair: a picture, and depth that starts with a hole."""

    def make(guide, depth, dtype=np.uint16):
        for name in (guide, depth):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write_image(tmp_path / guide, rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
        values = np.arange(1000, 1048).reshape(6, 8).astype(dtype)
        values[0, 0] = np.nan if np.dtype(dtype).kind == "f" else 0
        write_image(tmp_path / depth, values)
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("guide", "depth", "query"),
    [
        ("guide/a.png", "depth/a.tiff", ""),
        ("a_guide.png", "a_depth.png", ""),
        ("rgb/a.png", "disp/a.png", "?guide=rgb&depth=disp"),
        ("a_rgb.png", "a_d.png", "?guide=rgb&depth=d"),
        ("test/guide/a.png", "test/depth/a.png", ""),
    ],
)
def test_layouts(write, guide, depth, query):
    dataset = load_dataset(f"folder:{write(guide, depth)}{query}")
    assert isinstance(dataset, Dataset)
    assert len(dataset) == 1
    pair = dataset[0]
    assert pair.name in ("a", "a_depth", "a_d")
    assert (dataset.quantity, pair.target[1, 1], pair.valid.sum()) == ("depth mm", 1009, 47)
    assert dataset.unit == pytest.approx(np.nanstd(pair.target))


def test_pairs_come_in_order_of_their_names(write):
    for name in "bca":
        root = write(f"guide/{name}.png", f"depth/{name}.png")
    dataset = load_dataset(f"folder:{root}", "train")
    assert [dataset[i].name for i in range(3)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("dtype", "file", "query", "quantity", "value"),
    [
        (np.float32, "depth/a.pfm", "", "depth mm", 1_009_000),
        (np.uint16, "depth/a.png", "?unit=tum", "depth mm", 1009 / 5),
        (np.uint16, "depth/a.png", "?unit=raw", "stored values", 1009),
        (np.uint16, "depth/a.png", "?unit=100", "depth mm", 10090),
    ],
)
def test_units(write, dtype, file, query, quantity, value):
    dataset = load_dataset(f"folder:{write('guide/a.png', file, dtype)}{query}")
    assert dataset.quantity == quantity
    assert dataset[0].target[1, 1] == pytest.approx(value)
    assert np.isnan(dataset[0].target[0, 0])


def test_another_mark_of_holes(write):
    pair = load_dataset(f"folder:{write('guide/a.png', 'depth/a.png')}?invalid=1009")[0]
    assert np.isnan(pair.target[1, 1])
    assert pair.target[0, 0] == 0
    with pytest.raises(InputError, match="invalid=none is not a number"):
        load_dataset(f"folder:{write('guide/a.png', 'depth/a.png')}?invalid=none")


def test_mistakes_say_what_was_looked_for(write, tmp_path):
    with pytest.raises(InputError, match=r"no pairs in it.*subfolders guide and depth.*0001_guide\.png"):
        load_dataset(f"folder:{tmp_path}")
    with pytest.raises(InputError, match="not a folder"):
        load_dataset(f"folder:{tmp_path / 'nowhere'}")
    root = write("guide/a.png", "depth/a.png")
    write_image(root / "guide/b.png", np.zeros((6, 8), np.uint8))
    with pytest.raises(InputError, match="1 images have no partner, such as 'b'"):
        load_dataset(f"folder:{root}")
    write_image(root / "depth/a.pfm", np.ones((6, 8), np.float32))
    with pytest.raises(InputError, match=r"a\.pfm and a\.png have the same name"):
        load_dataset(f"folder:{root}")


def test_images_of_two_sizes_are_refused(write):
    root = write("guide/a.png", "depth/a.png")
    write_image(root / "guide/a.png", np.zeros((12, 16, 3), np.uint8))
    with pytest.raises(InputError, match=r"guide has shape \(12, 16, 3\) and the target \(6, 8\)"):
        load_dataset(f"folder:{root}")[0]
