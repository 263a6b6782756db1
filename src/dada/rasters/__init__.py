"""Rasters larger than memory: GeoTIFF in, cloud-optimised GeoTIFF out, tile by tile, on one machine or on many."""

from dada.rasters.arrays import upsample_xarray
from dada.rasters.plan import Settings
from dada.rasters.run import RasterReport, upsample_raster

__all__ = ["RasterReport", "Settings", "upsample_raster", "upsample_xarray"]
