import sys

import pytest
import torch

from dada.diffusion import coefficients
from dada.diffusion.coefficients import BAND


@pytest.mark.parametrize("channels", [1, 3, 64])
def test_equation_2_uses_the_squared_norm(channels):
    f = torch.rand(2, channels, 4, 5, dtype=torch.float64)
    c = coefficients(f, 0.1)
    d = ((f[:, :, 1, 2] - f[:, :, 2, 2]) ** 2).sum(1)
    torch.testing.assert_close(c.vertical[:, 1, 2], 0.01 / (0.01 + d))
    d = ((f[:, :, 3, 3] - f[:, :, 3, 4]) ** 2).sum(1)
    torch.testing.assert_close(c.horizontal[:, 3, 3], 0.01 / (0.01 + d))
    assert c.size == (4, 5)


def test_the_released_code_squares_the_mean_absolute_difference():
    f = torch.tensor([0.0, 0.3]).reshape(1, 1, 1, 2).repeat(1, 4, 1, 1)
    f[:, 3] = 0
    c = coefficients(f, 0.03, "mean_absolute")
    torch.testing.assert_close(c.horizontal.item(), 0.03**2 / (0.03**2 + (3 * 0.3 / 4) ** 2))


def test_coefficients_do_not_depend_on_the_direction():
    f = torch.rand(1, 3, 6, 7)
    c, flipped = coefficients(f, 0.1), coefficients(f.flip(-1), 0.1)
    torch.testing.assert_close(c.horizontal, flipped.horizontal.flip(-1))


@pytest.mark.parametrize("distance", ["euclidean", "mean_absolute"])
def test_gradients_to_features_and_kappa(distance):
    f = torch.rand(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    kappa = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda f, k: tuple(coefficients(f, k, distance)), (f, kappa))


def test_one_kappa_for_each_image():
    f = torch.rand(2, 3, 4, 5)
    together = coefficients(f, torch.tensor([0.1, 0.5])[:, None, None])
    for n, kappa in enumerate((0.1, 0.5)):
        torch.testing.assert_close(together.vertical[n], coefficients(f[n : n + 1], kappa).vertical[0])
    with pytest.raises(ValueError, match="one element or be"):
        coefficients(f, torch.full((2, 4, 5), 0.1))


def test_a_tiny_kappa_does_not_underflow():
    assert coefficients(torch.ones(1, 1, 4, 4), 1e-25).vertical.eq(1).all()


def test_mistakes_are_named():
    f = torch.rand(1, 3, 4, 5)
    with pytest.raises(ValueError, match=r"\[B, C, H, W\], got shape \(3, 4, 5\)"):
        coefficients(f[0], 0.1)
    with pytest.raises(ValueError, match="kappa must be positive"):
        coefficients(f, 0.0)
    with pytest.raises(ValueError, match='"euclidean" or "mean_absolute", got'):
        coefficients(f, 0.1, "cosine")  # type: ignore[arg-type]


@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("distance", ["euclidean", "mean_absolute"])
def test_bands_change_nothing(height, distance, monkeypatch) -> None:
    """Of four rows, and for the gradient of one channel, where otherwise one holds all."""
    features, kappa = torch.rand(2, 5, height, 7, requires_grad=True), torch.tensor([0.3, 0.5])[:, None, None]
    found = []
    for band in (BAND, 4 * 2 * 5 * 7):
        monkeypatch.setattr(sys.modules["dada.diffusion.coefficients"], "BAND", band)
        with torch.no_grad():
            c = coefficients(features, kappa, distance)
        assert c.size == (height, 7)
        sums = [part.square().sum() for part in coefficients(features, kappa, distance)]
        found.append((*c, *torch.autograd.grad(sum(sums), features)))
    for whole, banded in zip(*found, strict=True):
        torch.testing.assert_close(banded, whole, rtol=1e-5, atol=1e-7)
