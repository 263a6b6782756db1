"""Write the seeds: a small file of every kind that is read. `python -m tests.fuzz.make_seeds` makes them anew.

The scene is the demo's, so that what is read as a pair is a pair. Sources have 6 x 8 pixels, guides 24 x 32.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dada.io import Georeference, write_image
from dada.scene import render

SEEDS = Path(__file__).parent / "seeds"
PLACE = (0.5, 0.0, 7.0, 0.0, -0.5, 9.0)
UTM = 'PROJCS["local",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],'
UTM += 'UNIT["degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],PARAMETER["latitude_of_origin",0],'
UTM += 'PARAMETER["central_meridian",9],PARAMETER["scale_factor",0.9996],PARAMETER["false_easting",500000],'
UTM += 'PARAMETER["false_northing",0],UNIT["metre",1]]'

TIFFS: dict[str, tuple[str, str, dict[str, Any]]] = {
    # name: role, dtype, options of GDAL
    "plain": ("source", "uint16", {}),
    "deflate": ("source", "uint16", {"compress": "deflate", "predictor": 2, "nodata": 0}),
    "lzw": ("source", "int16", {"compress": "lzw", "predictor": 2, "nodata": -32768}),
    "float_predictor": ("source", "float32", {"compress": "deflate", "predictor": 3}),
    "double": ("source", "float64", {}),
    "big_endian": ("source", "uint16", {"endianness": "big"}),
    "bigtiff": ("source", "float32", {"bigtiff": "yes"}),
    "lerc": ("source", "float32", {"compress": "lerc"}),
    "lerc_zstd": ("source", "float32", {"compress": "lerc_zstd", "max_z_error": 0.01}),
    "zstd": ("source", "int32", {"compress": "zstd"}),
    "lzma": ("source", "uint32", {"compress": "lzma"}),
    "half": ("source", "float32", {"nbits": 16}),
    "scaled": ("source", "int16", {"scales": (0.1,), "offsets": (273.15,)}),
    "tiled": ("guide", "uint8", {"tiled": True, "blockxsize": 16, "blockysize": 16}),
    "tiled_deflate": ("guide", "uint16", {"tiled": True, "blockxsize": 16, "blockysize": 16, "compress": "deflate"}),
    "packbits": ("guide", "uint8", {"compress": "packbits"}),
    "planar": ("guide", "uint8", {"interleave": "band", "compress": "lzw"}),
    "pixel": ("guide", "uint8", {"interleave": "pixel", "photometric": "rgb", "compress": "deflate"}),
    "jpeg": ("guide", "uint8", {"compress": "jpeg", "photometric": "ycbcr", "blockysize": 16, "interleave": "pixel"}),
    "webp": ("guide", "uint8", {"compress": "webp", "webp_lossless": True, "interleave": "pixel"}),
    "twelve_bits": ("guide", "uint16", {"nbits": 12}),
    "big_endian_float": ("guide", "float32", {"endianness": "big", "compress": "deflate"}),
    "palette": ("palette", "uint8", {"compress": "packbits"}),
    "palette_four_bits": ("palette", "uint8", {"nbits": 4, "endianness": "big"}),
    "one_bit": ("bits", "uint8", {"nbits": 1}),
    "fax3": ("bits", "uint8", {"nbits": 1, "compress": "ccittfax3"}),
    "fax4": ("bits", "uint8", {"nbits": 1, "compress": "ccittfax4", "photometric": "miniswhite"}),
    "rle": ("bits", "uint8", {"nbits": 1, "compress": "ccittrle", "endianness": "big"}),
    "alpha": ("alpha", "uint8", {"alpha": "yes", "compress": "lzw"}),
    "sparse": ("sparse", "float32", {"sparse_ok": True, "tiled": True, "blockxsize": 16, "blockysize": 16}),
}


def write_seeds(folder: Path) -> None:
    """Write every seed: names begin with source_, guide_ or weights_."""
    folder.mkdir(exist_ok=True)
    scene = render(24, 32)
    depth = scene.depth.reshape(6, 4, 8, 4).mean(axis=(1, 3)).astype(np.float32)
    millimetres = np.rint(depth * 1000).astype(np.uint16)
    _write_ours(folder, scene.guide, depth, millimetres)
    _write_opencv(folder, scene.guide)
    for name, (role, dtype, options) in TIFFS.items():
        _write_tiff(folder, name, role, dtype, options, scene.guide, depth)
    _write_exr(folder, scene.guide, depth)
    _write_weights(folder)


def _write_weights(folder: Path) -> None:
    import torch

    from dada.io.weights import write_weights

    state = {"layer.weight": torch.arange(6.0).reshape(2, 3), "layer.bias": torch.ones(2, dtype=torch.float16)}
    write_weights(folder / "weights_layer.safetensors", state, {"dada": '{"features": 16, "rounds": 3}'})
    (folder / "weights_settings.json").write_text('{"model": "dynamic", "kappa": 0.02, "rounds": 2}')
    torch.save(state, folder / "weights_layer.pt")


def _write_ours(folder: Path, guide: np.ndarray, depth: np.ndarray, millimetres: np.ndarray) -> None:
    write_image(folder / "source_mm.png", millimetres)
    write_image(folder / "source_eight_bits.png", (depth * 40).astype(np.uint8))
    write_image(folder / "source_m.pfm", depth)
    write_image(folder / "source_m.npy", depth)
    write_image(folder / "source_double.npy", depth.astype(np.float64))
    write_image(folder / "source_mm.npz", millimetres)
    write_image(folder / "source_m.exr", depth)
    write_image(folder / "source_utm.tif", depth, nodata=-9999, georeference=Georeference(UTM, PLACE))
    write_image(folder / "guide_rgb.png", guide)
    write_image(folder / "guide_sixteen_bits.png", guide.astype(np.uint16) * 257)
    write_image(folder / "guide_grey.pfm", (guide[..., 1] / 255).astype(np.float32))
    write_image(folder / "guide_rgb.pfm", (guide / 255).astype(np.float32))
    write_image(folder / "guide_rgb.npy", guide)
    write_image(folder / "guide_rgb.exr", (guide / 255).astype(np.float16))


def _write_opencv(folder: Path, guide: np.ndarray) -> None:
    import cv2

    blue_first = np.ascontiguousarray(guide[..., ::-1])
    cv2.imwrite(str(folder / "guide_rgb.jpg"), blue_first)
    cv2.imwrite(str(folder / "guide_progressive.jpg"), blue_first, [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])
    cv2.imwrite(str(folder / "guide_grey.jpg"), guide[..., 1])
    cv2.imwrite(str(folder / "guide_alpha.png"), np.dstack([blue_first, guide[..., :1]]))


def _write_tiff(
    folder: Path, name: str, role: str, dtype: str, options: dict[str, Any], guide: np.ndarray, depth: np.ndarray
) -> None:
    import rasterio

    scale = 1 if dtype.startswith("float") else 1000
    bands = {
        "source": lambda: [depth * scale],
        "guide": lambda: list(np.moveaxis(guide, -1, 0).astype(float) * (16 if dtype == "uint16" else 1)),
        "palette": lambda: [guide[..., 0] // 16],
        "bits": lambda: [guide[..., 0] > 100],
        "alpha": lambda: [*np.moveaxis(guide, -1, 0), 255 - guide[..., 0]],
        "sparse": lambda: [guide[..., 0]],
    }[role]()
    own = {key: options[key] for key in ("scales", "offsets") if key in options}
    options = {key: value for key, value in options.items() if key not in own}
    path = folder / f"{'source' if role == 'source' else 'guide'}_{name}.tif"
    height, width = bands[0].shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(
            path, "w", driver="GTiff", height=height, width=width, count=len(bands), dtype=dtype, **options
        ) as dataset:
            for number, band in enumerate(bands, 1):
                if role == "sparse":
                    dataset.write(band[None, :16, :16].astype(dtype), window=rasterio.windows.Window(0, 0, 16, 16))
                else:
                    dataset.write(band.astype(dtype), number)
            if role == "palette":
                dataset.write_colormap(1, {i: (i * 16, 255 - i * 16, i * 7, 255) for i in range(16)})
            for key, value in own.items():
                setattr(dataset, key, value)
    for beside in folder.glob(f"{path.name}.*"):  # what GDAL writes beside a TIFF
        beside.unlink()


def _write_exr(folder: Path, guide: np.ndarray, depth: np.ndarray) -> None:
    import OpenEXR

    for name in ("NO", "RLE", "ZIPS", "PIZ", "PXR24", "B44", "B44A", "DWAA", "DWAB"):
        header = {"compression": getattr(OpenEXR, f"{name}_COMPRESSION"), "type": OpenEXR.scanlineimage}
        with OpenEXR.File(header, {"Z": depth}) as file:
            file.write(str(folder / f"source_{name.lower()}.exr"))
    planes = {colour: np.ascontiguousarray(guide[..., i] / 255, np.float16) for i, colour in enumerate("RGB")}
    for name in ("ZIP", "PIZ", "B44", "DWAA", "DWAB"):
        compression = {"compression": getattr(OpenEXR, f"{name}_COMPRESSION")}
        tiles = {"type": OpenEXR.tiledimage, "tiles": OpenEXR.TileDescription()}
        for kind, header in (("lines", {"type": OpenEXR.scanlineimage}), ("tiled", tiles)):
            with OpenEXR.File(compression | header, planes) as file:
                file.write(str(folder / f"guide_{kind}_{name.lower()}.exr"))


if __name__ == "__main__":
    write_seeds(SEEDS)
