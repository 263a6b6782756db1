# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # A depth camera
#
# A depth camera measures a coarse image, with holes, and a colour camera takes a fine one of the same scene. This
# notebook brings the depth to the size of the colour image. The scene is drawn by the package, so that the true depth
# is known; replace the second cell with arrays of your own.

# %%
import matplotlib.pyplot as plt
import numpy as np

import dada
from dada.scene import render

# %% [markdown]
# The colour image has 192 x 256 pixels. The depth has 24 x 32 cells, in millimetres as 16-bit integers, as many
# cameras store it. Each cell is the mean over 8 x 8 pixels. A tenth of the cells has no measurement, which the value
# 0 marks.

# %%
scene = render(192, 256)
photo, truth = scene.guide, 1000 * scene.depth
depth = np.rint(truth.reshape(24, 8, 32, 8).mean(axis=(1, 3))).astype(np.uint16)
depth[np.random.default_rng(0).random(depth.shape) < 0.1] = 0
depth.shape, photo.shape

# %% [markdown]
# ## One call
#
# `fill=True` also gives values to the pixels of cells without a measurement. Without it they are NaN.

# %%
result = dada.upsample(depth, photo, fill=True)
result.values.shape, result.values.dtype

# %%
figure, axes = plt.subplots(1, 4, figsize=(12, 2.6), layout="constrained")
source = np.where(depth == 0, np.nan, depth)
shown = {"guide": photo, "source, holes white": source, "result": result.values, "truth": truth}
for ax, (title, image) in zip(axes, shown.items(), strict=True):
    ax.imshow(image, vmin=truth.min(), vmax=truth.max(), interpolation="nearest")
    ax.set_title(title)
    ax.axis("off")

# %% [markdown]
# ## What is promised, and what is not
#
# Averaged back down, the result is the source in every measured cell. The report states the largest difference in the
# unit of the source.

# %%
report = result.report
averaged = result.values.reshape(24, 8, 32, 8).mean(axis=(1, 3), dtype=np.float64)
measured = depth > 0
by_hand = np.abs(averaged - depth)[measured].max()
print(f"largest difference: {report.consistency_max:.1e} mm, checked by hand: {by_hand:.1e} mm")
print(f"{report.invalid_cells} cells without a measurement, {report.filled_pixels} pixels filled")
print(f"model {report.model}, adjust {report.adjust}, {report.rounds} rounds, {report.iterations} iterations")

# %% [markdown]
# The promise says nothing of the error within a cell. Here the truth is known, so that the error can be measured. It
# is split into pixels of measured cells and pixels of holes, where nothing but the surroundings is known.

# %%
hole = np.repeat(np.repeat(~measured, 8, 0), 8, 1)
error = np.abs(result.values - truth)
copied = np.repeat(np.repeat(depth, 8, 0), 8, 1)
error_copied = np.abs(copied - truth)[~hole].mean()
print(f"mean error in measured cells: {error[~hole].mean():.0f} mm (each cell copied: {error_copied:.0f} mm)")
print(f"mean error in holes: {error[hole].mean():.0f} mm")

# %% [markdown]
# ## Cells that are not certain
#
# Phones and time-of-flight cameras say how far each cell can be trusted. A confidence of 1 is exact, 0 is no
# measurement. Between them the cell may move. Here one corner of the depth is wrong by 400 mm, and its confidence is
# 0.1.

# %%
wrong, confidence = depth.copy(), np.ones(depth.shape)
wrong[:6, :6] += 400
confidence[:6, :6] = 0.1
trusted = dada.upsample(wrong, photo, fill=True)
doubted = dada.upsample(wrong, photo, fill=True, confidence=confidence)
for name, one in {"taken as exact": trusted, "confidence 0.1": doubted}.items():
    print(f"{name}: mean error in that corner {np.abs(one.values - truth)[:48, :48].mean():.0f} mm")
