"""Frames of video files in and out, by PyAV: a guide in colour, depth without loss in 16 bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dada.errors import InputError
from dada.io.quiet import one_line
from dada.io.raster import Raster, Role

SUFFIXES = (".mp4", ".mov", ".mkv", ".avi", ".webm", ".m4v")
RATE = Fraction(30)  # frames a second of what does not state it
COLOUR, DEPTH = "rgb24", "gray16le"


@dataclass(frozen=True)
class VideoFile:
    """A video that can be read.

    Attributes:
        path: of the file.
        role: "guide" gives (H, W, 3) uint8, "source" (h, w) uint8 or uint16.
        length: frames, as the file states; None: it does not.
        rate: frames a second.
    """

    path: Path
    role: Role
    length: int | None
    rate: Fraction

    def frames(self) -> Iterator[Raster]:
        """Read frame after frame.

        Raises:
            InputError: the file is damaged, or does not hold what its role needs.
        """
        wanted = COLOUR if self.role == "guide" else None
        with _opened(self.path) as container:
            for frame in container.decode(video=0):
                kind = wanted or _measured(self.path, frame.format.name)
                yield Raster(frame.to_ndarray(format=kind), None, None, self.path, "png")  # as from a PNG of its bits


def open_video(path: Path, role: Role) -> VideoFile:
    """Look at a video file.

    Raises:
        InputError: PyAV is missing, or the file cannot be read.
    """
    with _opened(path) as container:
        stream = container.streams.video[0]
        return VideoFile(path, role, stream.frames or None, stream.average_rate or RATE)


class VideoWriter:
    """Writes frames of one size; use as `with writing(...) as write`."""

    def __init__(self, container: Any, stream: Any, kind: str) -> None:
        self._container, self._stream, self._kind = container, stream, kind

    def __call__(self, image: NDArray[Any]) -> None:
        """Append a frame: (H, W, 3) uint8, or (H, W) uint16."""
        frame = _av().VideoFrame.from_ndarray(np.ascontiguousarray(image), format=self._kind)
        self._container.mux(self._stream.encode(frame))

    def finish(self) -> None:
        """Write what the encoder still holds."""
        self._container.mux(self._stream.encode(None))


@contextmanager
def writing(path: Path, size: tuple[int, int], rate: Fraction, lossless: bool) -> Iterator[VideoWriter]:
    """Write a video: FFV1 in 16 bits of grey (Matroska) where lossless, else H.264 in colour (MP4).

    Args:
        path: of a file that may have any suffix.
        size: H, W; of colour both even.
        rate: frames a second.
        lossless: which of the two.

    Raises:
        InputError: this PyAV lacks the encoder.
    """
    av = _av()
    codec = "ffv1" if lossless else next((c for c in ("libx264", "mpeg4") if c in av.codecs_available), "mpeg4")
    if codec not in av.codecs_available:
        raise InputError(f"{path}: the installed PyAV cannot encode {codec}. Write a folder of images instead.")
    with av.open(str(path), "w", format="matroska" if lossless else "mp4") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.height, stream.width = size
        stream.pix_fmt = DEPTH if lossless else "yuv420p"
        writer = VideoWriter(container, stream, DEPTH if lossless else COLOUR)
        yield writer
        writer.finish()


def _av() -> Any:
    try:
        import av

        return av
    except ImportError:
        raise InputError("videos need the package av. Install it with: pip install 'dada-sr[video]'") from None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    av = _av()
    if not path.is_file():
        raise InputError(f"{path}: there is no such file. Name a video, or a folder of images.")
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise InputError(f"{path}: the file holds no video. Name another.")
            yield container
    except av.FFmpegError as error:
        raise InputError(f"{path}: the video cannot be read ({one_line(error)}). Is it whole?") from None


def _measured(path: Path, kind: str) -> str:
    """The format of a frame that holds one number for each pixel, of 8 or 16 bits."""
    if kind.startswith("gray"):
        return "gray" if kind in ("gray", "gray8") else DEPTH
    raise InputError(
        f"{path}: a depth video holds one band, and this one is {kind}, colours. Name a folder of 16-bit PNG, or a "
        "lossless video of 16 bits of grey (FFV1, gray16le)."
    )
