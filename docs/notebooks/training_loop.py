# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # The operator in a training loop
#
# `dada.diffusion.equilibrium` is a differentiable function of torch. This notebook trains a very small network that
# turns a guide into features, with the operator as its last layer. Whatever the network computes, the result averages
# to the source.

# %%
import matplotlib.pyplot as plt
import torch
from torch import nn

from dada.datasets import load_dataset
from dada.datasets.crops import to_sample
from dada.diffusion import coefficients, down, equilibrium

torch.manual_seed(0)
torch.set_num_threads(1)

# %% [markdown]
# ## Data
#
# Painted scenes need no download. A sample has a guide `[B, 3, H, W]`, a source `[B, 1, h, w]` of block means, its
# bicubic enlargement `initial` and the true `target`.

# %%
dataset = load_dataset("painted:0,40?size=64")


def batch(first: int, count: int = 4):
    """A batch of painted scenes, x8, in units of the data set."""
    return to_sample([dataset[i] for i in range(first, first + count)], factor=8, unit=dataset.unit)


sample = batch(0)
sample.guide.shape, sample.source.shape, sample.initial.shape, sample.target.shape

# %% [markdown]
# ## Network and operator
#
# Three convolutions make eight features of the guide and the bicubic source. Eq. 2 turns features into coefficients:
# neighbouring pixels with different features are hardly connected. `equilibrium` solves for the image where the
# paper's loop ends. `adjust="shift"` allows values of any sign.


# %%
class Upsampler(nn.Module):
    """Features of guide and source, then diffusion that keeps every cell's mean."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Conv2d(4, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 8, 1)
        )

    def forward(self, sample):
        """Return `[B, 1, H, W]`."""
        initial = sample.initial - sample.initial.mean((2, 3), keepdim=True)
        features = self.network(torch.cat([sample.guide, initial], dim=1))
        c = coefficients(features, kappa=0.1)
        return equilibrium(sample.source, c, adjust="shift", initial=sample.initial).values


model = Upsampler()
result = model(sample)
result.shape, (down(result, sample.source.shape[-2:]) - sample.source).abs().max()

# %% [markdown]
# ## Training
#
# The gradient goes through the equilibrium by the implicit function theorem: memory does not grow with the number of
# iterations. The loss is the absolute error as a share of bicubic's.

# %%
optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
batches = [batch(first) for first in range(0, 32, 4)]
losses = []
for step in range(32):
    sample = batches[step % 8]
    error = (model(sample) - sample.target).abs().mean()
    loss = error / (sample.initial - sample.target).abs().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
print(f"share of bicubic's error: first five steps {sum(losses[:5]) / 5:.2f}, last five {sum(losses[-5:]) / 5:.2f}")

# %% [markdown]
# On scenes that were not trained on:

# %%
with torch.no_grad():
    sample = batch(32, 8)
    result = model(sample)
share = (result - sample.target).abs().mean() / (sample.initial - sample.target).abs().mean()
misfit = (down(result, sample.source.shape[-2:]) - sample.source).abs().max()
print(f"share of bicubic's error: {share:.2f}; averaged back down within {misfit:.0e} of the source")

# %%
figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
one = 0
shown = {
    "guide": sample.guide[one].permute(1, 2, 0),
    "source": sample.source[one, 0],
    "result": result[one, 0],
    "truth": sample.target[one, 0],
}
low, high = float(sample.target[one].min()), float(sample.target[one].max())
for ax, (title, image) in zip(axes, shown.items(), strict=True):
    ax.imshow(image, vmin=low, vmax=high, interpolation="nearest")
    ax.set_title(title)
    ax.axis("off")
