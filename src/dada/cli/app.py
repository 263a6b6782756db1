"""`dada app`: a page to look at, on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg


@dataclass(frozen=True, kw_only=True)
class App:
    """Show a page that upsamples files which are dropped on it.

    It runs on this machine, and only this machine reaches it unless --host says otherwise. Nothing is loaded from
    elsewhere. It ends with Ctrl-C, and its files are deleted.

    For example: `dada app`

    With a browser: `dada app --open`
    """

    host: Annotated[str, arg(metavar="ADDRESS")] = "127.0.0.1"
    """Address to listen at. 127.0.0.1 is reached from this machine alone, 0.0.0.0 from every machine in the network."""
    port: Annotated[int, arg(metavar="NUMBER")] = 7860
    """Port to listen at; 0 is any free one."""
    jobs: Annotated[int | None, arg(aliases=["-j"], metavar="NUMBER", help_behavior_hint="(default: all cores)")] = None
    """How many pairs at a time, each on one core; others wait in a queue."""
    open: Annotated[bool, arg(help_behavior_hint="")] = False
    """Also open the page in a browser."""
    max_megabytes: Annotated[float, arg(metavar="NUMBER")] = 256
    """Largest request."""
    max_megapixels: Annotated[float, arg(metavar="NUMBER")] = 16
    """Largest guide."""
    max_waiting: Annotated[int, arg(metavar="NUMBER")] = 64
    """Longest queue."""
    max_seconds: Annotated[float, arg(metavar="NUMBER")] = 300
    """Longest time for one pair; then it is stopped."""
    keep_minutes: Annotated[float, arg(metavar="NUMBER")] = 30
    """How long results are kept after they were last used."""

    def run(self) -> int:
        """Run the command; return its exit code."""
        from dada.app.limits import Limits
        from dada.app.serving import serve

        limits = Limits(
            megabytes=self.max_megabytes,
            megapixels=self.max_megapixels,
            waiting=self.max_waiting,
            seconds=self.max_seconds,
            minutes=self.keep_minutes,
        )
        return serve(self.host, self.port, limits, jobs=self.jobs, show=self.open)
