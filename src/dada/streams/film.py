"""A guide video and its depth to finer depth, frame by frame: images or a lossless video, and a preview."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from dada.errors import InputError
from dada.io import (
    ImageWarning,
    Raster,
    Role,
    atomic_folder,
    atomic_path,
    cast,
    detect,
    parse_amount,
    read_image,
    valid_pixels,
    video,
    write_image,
)
from dada.io.rounding import limits
from dada.pairs.job import PHONE_LEVELS
from dada.pairs.options import Options
from dada.pairs.storage import Storage, choose_storage
from dada.pictures.colours import Scale
from dada.pictures.values import guide_painter, whole_window
from dada.sample import Sampling
from dada.streams.upsampler import Frame, Upsampler
from dada.upsampling.bounds import kept_within
from dada.upsampling.confidence import read_trust
from dada.upsampling.result import Result, UpsampleWarning

LOSSLESS = ".mkv"
PANEL = 960  # pixels: widest part of a preview
COLORMAP = "viridis"


@dataclass(frozen=True)
class Film:
    """What to read, how to compute, and what to write.

    Attributes:
        guide: video, or folder of images in the order of their names.
        depth: the same of depth.
        output: folder for 16-bit PNG, or a lossless video (.mkv).
        options: how files are understood, computed and stored.
        confidence: folder of confidences, as many as there is depth; whole numbers are 0, 1 and 2.
        preview: video in colours, .mp4.
        temporal_weight: see `Upsampler`, as is `keep`.
        keep: whether coefficients are kept.
    """

    guide: Path
    depth: Path
    output: Path
    options: Options
    confidence: Path | None = None
    preview: Path | None = None
    temporal_weight: float = 0.0
    keep: bool = True


@dataclass(frozen=True)
class Done:
    """What became of a frame."""

    frame: Frame
    storage: Storage
    warnings: list[str]


@dataclass(frozen=True)
class Frames:
    """Images one after another.

    Attributes:
        length: how many, if that is known.
        rate: of a video, frames a second.
        read: begins to read them.
    """

    length: int | None
    rate: Fraction | None
    read: Callable[[], Iterator[Raster]]


def open_frames(path: Path, role: Role) -> Frames:
    """Look at a folder of images or a video.

    Raises:
        InputError: there is nothing to read.
    """
    if not path.is_dir():
        found = video.open_video(path, role)
        return Frames(found.length, found.rate, found.frames)
    names = sorted(file for file in path.iterdir() if file.suffix.lower() in detect.SUFFIXES)
    if not names:
        raise InputError(f"{path}: the folder holds no image that can be read ({detect.READABLE}). Name another.")
    return Frames(len(names), None, lambda: (read_image(name, role=role) for name in names))


def count(film: Film) -> int | None:
    """How many frames there will be, if that is known."""
    known = [frames.length for frames in (open_frames(film.guide, "guide"), open_frames(film.depth, "source"))]
    return None if None in known else min(length for length in known if length is not None)


def run_film(film: Film) -> Iterator[Done]:
    """Compute frame after frame; the files appear complete after the last one, or not at all.

    Raises:
        InputError: a frame cannot be used or a file cannot be written; the message says which.
    """
    _check(film)
    guides, depths = open_frames(film.guide, "guide"), open_frames(film.depth, "source")
    confidences = None if film.confidence is None else open_frames(film.confidence, "source")
    upsampler = _upsampler(film)
    rate = guides.rate or depths.rate or video.RATE
    with ExitStack() as files:
        writers: _Writers | None = None
        trios = zip_longest(guides.read(), depths.read(), confidences.read() if confidences else ())
        for number, (guide, source, confidence) in enumerate(trios):
            if guide is None or source is None or (confidences and confidence is None):
                which = "guide" if guide is None else "depth" if source is None else "confidence"
                raise InputError(_ended(film, which, number))
            storage = choose_storage(source, Path("frame.png"), film.options)
            try:
                result, notes = _result(upsampler, (source, guide, confidence), storage, film.options)
                stored = _stored(result, source, storage)
            except InputError as error:
                raise InputError(f"frame {number}: {error}") from None
            writers = writers or _Writers(film, files, rate, result)
            writers.write(number, (guide, source), result, stored)
            assert upsampler.frame is not None
            yield Done(upsampler.frame, storage, notes)
        if writers is None:
            raise InputError(f"{film.guide}: the video holds no frame. Name another.")


def _check(film: Film) -> None:
    suffix = film.output.suffix.lower()
    if suffix in video.SUFFIXES and suffix != LOSSLESS:
        raise InputError(f"{film.output}: depth would lose its values in {suffix}. Name a folder, or a file in .mkv.")
    if film.preview is not None and film.preview.suffix.lower() != ".mp4":
        raise InputError(f"{film.preview}: a preview is written as MP4. Name a file that ends in .mp4.")
    inputs = [path.resolve() for path in (film.guide, film.depth, film.confidence) if path is not None]
    for path in (film.output, film.preview):
        if path is not None and path.resolve() in inputs:
            raise InputError(f"{path}: this would overwrite an input. Name another.")


def _upsampler(film: Film) -> Upsampler:
    options = film.options
    return Upsampler(
        model=options.model,
        invalid=None,  # pixels without a measurement are masked
        adjust=options.adjust,
        tolerance=options.tolerance,
        fill=options.fill,
        sampling=options.sampling,
        unit=options.unit,
        precision=options.precision,
        device=options.device,
        keep=film.keep,
        temporal_weight=film.temporal_weight,
    )


def _ended(film: Film, which: str, number: int) -> str:
    path = {"guide": film.guide, "depth": film.depth, "confidence": film.confidence}[which]
    return (
        f"{path}: the {which} ends after {number} frames, and the others go on. Every frame needs its guide and its "
        "depth: cut them to the same frames."
    )


def _result(
    upsampler: Upsampler, images: tuple[Raster, Raster, Raster | None], storage: Storage, options: Options
) -> tuple[Result, list[str]]:
    """Result and warnings of a frame: source, guide and confidence."""
    source, guide, confidence = images
    valid = valid_pixels(source.values, storage.invalid)
    given: dict[str, Any] = {"mask": valid}
    if confidence is not None:
        given["confidence"] = _shares(confidence)
    if options.noise is not None:
        given["noise"] = parse_amount(options.noise, storage.unit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = upsampler(source.values, guide.values, **given)
    notes = [str(w.message) for w in caught if issubclass(w.category, UpsampleWarning | ImageWarning)]
    return result, notes


def _shares(confidence: Raster) -> NDArray[Any]:
    """A confidence of phones in 0..1, also where no pixel of a frame is sure; any other as it is."""
    values = confidence.values
    levels = values.dtype.kind in "ui" and values.max() <= PHONE_LEVELS
    return values / PHONE_LEVELS if levels else values


@dataclass(frozen=True)
class Stored:
    """The numbers that a file holds [H, W], and what they mean."""

    numbers: NDArray[Any]
    storage: Storage


def _stored(result: Result, source: Raster, storage: Storage) -> Stored:
    values = result.values
    if storage.dtype.kind in "ui":
        numbers, (least, most) = np.rint(storage.stored(values)), limits(storage.dtype)
        if bool(((numbers < least) | (numbers > most))[result.valid].any()):
            valid = valid_pixels(source.values, storage.invalid)
            trust = read_trust(None, None, source.values, valid, lambda text: None)
            known = np.where(valid, source.values, 0).astype(np.float64)
            values = kept_within(values, known, trust, storage.limits, Sampling.of(result.report.sampling))
    return Stored(cast(storage.stored(values), result.valid, storage.dtype, invalid=storage.marker)[0], storage)


class _Writers:
    """The files of a film, opened at its first frame, whose size and colours they take."""

    def __init__(self, film: Film, files: ExitStack, rate: Fraction, first: Result) -> None:
        height, width = first.values.shape
        shrink = min(1.0, PANEL / width)
        self._panel = tuple(max(2, round(shrink * side / 2) * 2) for side in (width, height))
        self._scale = Scale.robust(first.values, first.valid, None, COLORMAP)
        self._preview = self._video = self._folder = None
        if film.preview is not None:
            path = files.enter_context(atomic_path(film.preview))
            size = self._panel[1], 3 * self._panel[0]
            self._preview = files.enter_context(video.writing(path, size, rate, lossless=False))
        if film.output.suffix.lower() == LOSSLESS:
            path = files.enter_context(atomic_path(film.output))
            self._video = files.enter_context(video.writing(path, (height, width), rate, lossless=True))
        else:
            self._folder = files.enter_context(atomic_folder(film.output))

    def write(self, number: int, images: tuple[Raster, Raster], result: Result, stored: Stored) -> None:
        """Write one frame to each; `images` are its guide and its source."""
        if self._folder is not None:
            write_image(self._folder / f"{number:06d}.png", stored.numbers)
        if self._video is not None:
            self._video(stored.numbers.astype(np.uint16))
        if self._preview is not None:
            self._preview(self._panels(*images, result, stored.storage))

    def _panels(self, guide: Raster, source: Raster, result: Result, storage: Storage) -> NDArray[np.uint8]:
        """Guide, source and result side by side, [H, 3 W, 3] of even sides."""
        valid = valid_pixels(source.values, storage.invalid)
        colours = guide_painter(guide.values)(whole_window(result.values.shape))
        coarse, fine = self._scale.paint(source.values, valid), self._scale.paint(result.values, result.valid)
        panels = [
            cv2.resize(colours, self._panel, interpolation=cv2.INTER_AREA),
            cv2.resize(coarse, self._panel, interpolation=cv2.INTER_NEAREST),
            cv2.resize(fine, self._panel, interpolation=cv2.INTER_AREA),
        ]
        return np.concatenate(panels, axis=1).astype(np.uint8)
