"""Frames of a recording's video as files, for commands that work on pairs of files."""

from __future__ import annotations

import os
from pathlib import Path

from dada.io import write_image
from dada.io.video import open_video


def extract(video: Path, numbers: set[int], folder: Path) -> dict[int, Path]:
    """Write frames of a video as PNG, and return those that there are; what is there already is left as it is.

    Each has the time of the video, so that it stays the same file for whoever asks.

    Args:
        video: the file.
        numbers: of the frames, from 0.
        folder: made if missing.

    Raises:
        InputError: the video cannot be read or a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {number: folder / f"{number:06d}.png" for number in numbers}
    time = video.stat().st_mtime_ns
    missing = {number for number, path in paths.items() if not path.exists() or path.stat().st_mtime_ns != time}
    there = numbers - missing
    if missing:
        for number, frame in enumerate(open_video(video, "guide").frames()):
            if number in missing:
                write_image(paths[number], frame.values)
                os.utime(paths[number], ns=(time, time))
                there.add(number)
            if number >= max(missing):
                break
    return {number: paths[number] for number in sorted(there)}
