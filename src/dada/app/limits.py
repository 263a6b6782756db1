"""What a server takes on, and for how long it keeps it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from dada.errors import InputError


@dataclass(frozen=True)
class Limits:
    """Limits of a server; each is positive."""

    megabytes: float = 256  # of one request
    megapixels: float = 16  # of the guide, which is the size of the result
    waiting: int = 64  # jobs in the queue
    seconds: float = 300  # for one job, once it has begun
    kept: int = 64  # finished jobs
    minutes: float = 30  # that a finished job is kept after it was last asked for
    connections: int = 128  # at a time

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise InputError(f"the limit of {field.name} is {value:g}, and must be positive. Give a larger number.")


READING_SECONDS = 60  # for one file that is only looked at
