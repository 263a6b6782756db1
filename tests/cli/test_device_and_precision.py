"""Where and in which precision `dada upsample` computes."""

import numpy as np

from dada.io import read_image, write_image


def test_a_device_that_is_not_there_is_a_mistake_of_the_user(dada, pair):
    ran = dada("upsample", *pair, "--device", "abacus")
    assert ran.code == 2
    assert "device 'abacus' cannot be used: torch has none of this name. Use cpu" in ran.err
    assert not (pair[0].parent / "depth_upsampled.png").exists()


def test_float64_files_agree_to_all_their_digits_in_either_precision(dada, pair, metres):
    write_image(pair[0].with_suffix(".npy"), metres)
    for precision in ("float32", "float64"):
        ran = dada("upsample", pair[0].with_suffix(".npy"), pair[1], "--precision", precision, "--device", "cpu",
                   "--model", "none")  # fmt: skip
        assert ran.code == 0, ran.err
        fine = read_image(pair[0].parent / "depth_upsampled.npy").values
        assert fine.dtype == np.float64
        assert np.abs(fine.reshape(12, 8, 16, 8).mean(axis=(1, 3)) - metres).max() < 1e-14
