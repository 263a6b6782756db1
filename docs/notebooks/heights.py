# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # A height model
#
# A coarse height model and a fine orthophoto of the same place give a fine height model. The town is drawn by the
# package, with known heights. Files of your own are read in the same way; maps larger than memory go through [`dada
# raster`](../how-to/rasters.md).

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import rasterio
from rasterio.transform import from_origin

import dada
from dada.rasters import Settings, upsample_raster
from dada.scene.town import draw_town

# %% [markdown]
# Heights in metres above the sea, 32 x 48 cells of 8 m. The orthophoto has pixels of 1 m.

# %%
town = draw_town(256, 384)
ortho, truth = town.guide, town.height
heights = truth.reshape(32, 8, 48, 8).mean(axis=(1, 3))
heights.min(), heights.max()

# %% [markdown]
# ## Two models
#
# `default` is the learned network, `dynamic` needs no learning. The mean error is printed beside that of each cell
# copied to its block.

# %%
results = {name: dada.upsample(heights, ortho, model=name) for name in ("default", "dynamic")}
copied = np.repeat(np.repeat(heights, 8, 0), 8, 1)
print(f"cells copied: {np.abs(copied - truth).mean():.2f} m")
for name, result in results.items():
    misfit = result.report.consistency_max
    print(
        f"{name}: {np.abs(result.values - truth).mean():.2f} m; averaged back down within {misfit:.0e} m of the source"
    )

# %%
figure, axes = plt.subplots(1, 4, figsize=(13, 2.6), layout="constrained")
shown = {"orthophoto": ortho, "source": heights, "result": results["default"].values, "truth": truth}
for ax, (title, image) in zip(axes, shown.items(), strict=True):
    ax.imshow(image, vmin=truth.min(), vmax=truth.max(), interpolation="nearest")
    ax.set_title(title)
    ax.axis("off")

# %% [markdown]
# ## The same as maps
#
# Two GeoTIFFs with a coordinate system. The result has the orthophoto's grid, and the heights' type, unit and nodata
# value.

# %%
folder = Path(tempfile.mkdtemp())
profile = {"driver": "GTiff", "crs": "EPSG:32632"}
with rasterio.open(
    folder / "heights.tif", "w", **profile, height=32, width=48, count=1, dtype="float32", nodata=-9999,
    transform=from_origin(500_000, 5_200_000, 8, 8),
) as file:  # fmt: skip
    file.write(heights.astype(np.float32), 1)
with rasterio.open(
    folder / "ortho.tif", "w", **profile, height=256, width=384, count=3, dtype="uint8",
    transform=from_origin(500_000, 5_200_000, 1, 1),
) as file:  # fmt: skip
    file.write(ortho.transpose(2, 0, 1))

# %%
report = upsample_raster(
    folder / "heights.tif", folder / "ortho.tif", folder / "fine.tif", settings=Settings(model="dynamic"), workers=1
)
with rasterio.open(folder / "fine.tif") as file:
    fine = file.read(1)
    print(file.crs, file.res, file.nodata, file.dtypes, fine.shape)
print(f"averaged back down within {report.measured.consistency_max:.0e} m of the source")
print(f"mean error {np.abs(fine - truth).mean():.2f} m")
