"""Statements of the paper that need no experiment."""

import torch

from dada.diffusion import coefficients, iterate, up
from dada.diffusion.loop import diffuse


def scene():
    """A guide of two flat halves with noise, and a source of 3 x 4 cells."""
    generator = torch.Generator().manual_seed(0)
    guide = torch.rand((1, 3, 12, 16), generator=generator, dtype=torch.float64) * 0.05
    guide[..., 8:] += 0.5
    return guide, 1 + torch.rand((1, 1, 3, 4), generator=generator, dtype=torch.float64)


def test_coefficients_lie_between_0_and_1_and_need_no_order_of_the_two_pixels():
    guide, _ = scene()
    c = coefficients(guide, 0.03)
    assert all(bool(((edges > 0) & (edges < 1)).all()) for edges in c)
    turned = coefficients(guide.flip(-1), 0.03)
    torch.testing.assert_close(turned.horizontal.flip(-1), c.horizontal, rtol=0, atol=0)


def test_the_first_step_from_a_constant_gives_the_source_enlarged_by_repetition():
    guide, source = scene()
    constant = torch.full((1, 1, 12, 16), 7.0, dtype=torch.float64)
    first = iterate(source, coefficients(guide, 0.03), initial=constant, steps=1).values
    torch.testing.assert_close(first, up(source, (12, 16)))


def test_diffusion_without_adjustment_ends_at_the_mean_of_its_start():
    guide, _ = scene()
    c = coefficients(guide, 10.0)
    y = begun = torch.rand((1, 12, 16), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for _ in range(3000):
        y = diffuse(y, c)
    torch.testing.assert_close(y, begun.mean().expand_as(y))


def test_unguided_diffusion_is_that_with_the_last_image_as_guide():
    """Perona and Malik's, written out: each step takes its coefficients from the image it changes."""
    y = torch.rand((1, 1, 5, 6), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    for _ in range(3):
        change = torch.zeros_like(y)
        for dim in (-2, -1):
            step = y.diff(dim=dim)
            flow = step * 0.1**2 / (0.1**2 + step**2)
            size = y.shape[dim]
            change.narrow(dim, 0, size - 1).add_(flow)
            change.narrow(dim, 1, size - 1).sub_(flow)
        torch.testing.assert_close(diffuse(y[:, 0], coefficients(y, 0.1), 0.2), (y + 0.2 * change)[:, 0])
        y = y + 0.2 * change
