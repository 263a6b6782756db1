"""OpenEXR through its own library, after a check of the header."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dada.errors import InputError
from dada.io.exr_header import ExrHeader, read_exr_header
from dada.io.quiet import captured_output, one_line
from dada.io.raster import ImageWarning, Raster, Role


def read_exr(path: Path, role: Role, key: str | None) -> Raster:
    """Read the channel called `key`, or the only one; of a guide R, G and B, in the layer `key` if given."""
    header = read_exr_header(path)
    names = _pick(path, header, role, key)
    OpenEXR = openexr(path)
    with captured_output() as messages:
        try:
            with OpenEXR.File(str(path), separate_channels=True) as file:
                stored = file.channels()
                planes = [np.array(stored[name].pixels) for name in names]
        except Exception as error:
            failure: str | None = f"{type(error).__name__}: {error}"
        else:
            failure = None
    # the library prints its decoding errors, and goes on without the part that it could not decode
    failure = next((line for line in messages if "Exception raised" in line or "EXR_ERR" in line), failure)
    if failure is not None or any(plane.shape != (header.height, header.width) for plane in planes):
        reason = one_line(failure or "channels of unlike sizes").replace(f"{path}: ", "")
        raise InputError(f"{path}: the OpenEXR file is damaged or truncated ({reason}). Copy or export it again.")
    if header.cropped:
        warnings.warn(
            f"{path}: its data window differs from its display window; the data window is taken as the image",
            ImageWarning,
            stacklevel=2,
        )
    values = planes[0] if len(planes) == 1 else np.stack(planes, axis=-1)
    return Raster(np.ascontiguousarray(values), None, None, path, "exr")


def write_exr(path: Path, target: Path, values: np.ndarray) -> None:
    """Write float16 or float32 to `target` on behalf of `path`: (H, W) as channel Y, (H, W, 3) as RGB."""
    OpenEXR = openexr(path)
    if values.dtype not in (np.float16, np.float32):
        raise InputError(
            f"{path}: OpenEXR holds float16 and float32, not {values.dtype}. Write to .tiff, .npy or .npz, "
            f"which hold {values.dtype}, or convert to float32."
        )
    if values.ndim == 3 and values.shape[2] != 3:
        raise InputError(f"{path}: OpenEXR is written with 1 or 3 channels, not {values.shape[2]}. Write to .tiff.")
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    planes = {"Y": values} if values.ndim == 2 else {name: values[..., i] for i, name in enumerate("RGB")}
    channels = {name: np.ascontiguousarray(plane) for name, plane in planes.items()}
    with captured_output() as messages:
        try:
            with OpenEXR.File(header, channels) as file:
                file.write(str(target))
        except Exception as error:
            failure: str | None = str(error)
        else:
            failure = None
    if failure is not None:
        raise OSError(None, next((line for line in messages if "EXR_ERR" in line), failure))


def openexr(path: Path) -> Any:
    """The package OpenEXR, which is an extra.

    Raises:
        InputError: it is not installed.
    """
    try:
        import OpenEXR
    except ImportError:
        raise InputError(
            f'{path}: OpenEXR needs a package that is not installed. Run: pip install "dada-sr[exr]", or use .tiff or '
            ".npy, which hold the same values."
        ) from None
    return OpenEXR


def _pick(path: Path, header: ExrHeader, role: Role, key: str | None) -> list[str]:
    names = list(header.channels)
    if key in names:
        return [str(key)]
    if role == "guide":
        prefix = "" if key is None else f"{key}."
        colours = [prefix + colour for colour in "RGB"]
        if all(colour in names for colour in colours):
            ignored = [name for name in names if name.startswith(prefix) and name not in colours]
            if any(name.rsplit(".", 1)[-1] == "A" for name in ignored):
                warnings.warn(f"{path}: the alpha channel of the guide is ignored", ImageWarning, stacklevel=2)
            return colours
    listed = ", ".join(repr(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
    if key is not None:
        raise InputError(f"{path}: it has no channel {key!r}. Name one of these as key: {listed}.")
    if len(names) > 1:
        wanted = "the channel with the values" if role == "source" else "the channel or the layer with R, G and B"
        raise InputError(f"{path}: it has {len(names)} channels. Name {wanted} as key; there are {listed}.")
    return names
