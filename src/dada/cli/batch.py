"""`dada batch SOURCES GUIDES OUTDIR`: folders of pairs, on all cores, resumable."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from dada.errors import InputError
from dada.pairs.options import Options

if TYPE_CHECKING:
    from dada.pairs.job import Job
    from dada.pairs.workers import Done
    from dada.sensors import Recording

SETTINGS, LOCK = "dada-batch.json", ".dada-batch.lock"
PAIRS = "pairs"  # in the settings: what each result was made from
FRAMES = "frames"  # folder of the results: what was decoded of a recording's video
SOME_FAILED = 1

_Pair = tuple[Path, Path, Path | None]  # source, guide, confidence


@dataclass(frozen=True)
class _Pairs:
    """What is to be done, and what cannot.

    Attributes:
        ready: finds the pairs, once the folder of the results is there.
        failed: names of sources, and why they are left out; `ready` may add to them.
        inputs: folders that are read.
        recorded: whether by one device: confidences are the levels 0, 1 and 2 of a phone, and depth of the guide's size
            has holes to be filled (`dada complete`).
    """

    ready: Callable[[], list[_Pair]]
    failed: dict[str, str]
    inputs: list[Path]
    recorded: bool = False


@dataclass(frozen=True, kw_only=True)
class Batch(Options):
    """Upsample folders of images, on all cores.

    Sources and guides are paired by name: depth_0001.png with rgb_0001.png, cat_disp.pfm with cat_color.png,
    7.png with 7.png. A run that was interrupted goes on where it stopped when it is started again.

    For example: `dada batch scans/depth scans/rgb fine`

    A recording of a phone or depth camera (Stray Scanner, ARKit, Record3D, TUM RGB-D, RealSense) is known by its
    layout: `dada batch RECORDING OUTDIR`

    Names of another kind: `dada batch scans scans fine --source-pattern '*_d.png' --guide-pattern
    '*_left.png'`
    """

    sources: Annotated[Positional[Path], arg(metavar="SOURCES", help_behavior_hint="")]
    """Folder of coarse images; or, with two folders, a recording."""
    guides: Annotated[Positional[Path], arg(metavar="GUIDES", help_behavior_hint="")]
    """Folder of fine images; may be the same folder. With two folders, that of the results."""
    outdir: Annotated[Positional[Path | None], arg(metavar="OUTDIR", help_behavior_hint="")] = None
    """Folder for the results, named as their sources; made if missing."""
    source_pattern: Annotated[str | None, arg(metavar="PATTERN", help_behavior_hint="")] = None
    """Which sources, with one * for what the names of a pair share."""
    guide_pattern: Annotated[str | None, arg(metavar="PATTERN", help_behavior_hint="")] = None
    """The same for guides."""
    confidence: Annotated[Path | None, arg(metavar="FOLDER", help_behavior_hint="")] = None
    """Folder of confidences, as `dada upsample --confidence` takes them, named as their sources: conf_0001.png."""
    confidence_pattern: Annotated[str | None, arg(metavar="PATTERN", help_behavior_hint="")] = None
    """Which of them, as --source-pattern."""
    preview: Annotated[bool, arg(help_behavior_hint="")] = False
    """Also write NAME_preview.png, in colours."""
    point_cloud: Annotated[bool, arg(help_behavior_hint="")] = False
    """Also write NAME.ply, coloured points in metres; needs --intrinsics."""
    intrinsics: Annotated[str | None, arg(metavar="FX,FY,CX,CY", help_behavior_hint="")] = None
    """Camera of the guides in their pixels, for the point clouds."""
    format: Annotated[
        Literal["png", "tiff", "pfm", "exr", "npy", "npz"] | None,
        arg(metavar="FORMAT", help_behavior_hint="(default: that of the source)"),
    ] = None
    """Format of the results: png, tiff, pfm, exr, npy or npz."""
    jobs: Annotated[int | None, arg(aliases=["-j"], metavar="NUMBER", help_behavior_hint="(default: all cores)")] = None
    """How many pairs at a time."""
    resume: Annotated[bool, arg(help_behavior_hint="")] = True
    """Do all pairs again; by default complete results are kept."""
    quiet: Annotated[bool, arg(aliases=["-q"], help_behavior_hint="")] = False
    """Print only what failed."""

    def run(self) -> int:
        """Run the command; return its exit code, SOME_FAILED if a pair failed."""
        if self.outdir is not None:
            return self._run(self._named_pairs())
        from dada.sensors import recognise

        recording = recognise(self.sources)
        if self.source_pattern or self.guide_pattern or self.confidence:
            raise InputError(
                f"{self.sources}: patterns and --confidence are for two folders of images, and a single one was named. "
                "Leave them out, or name SOURCES GUIDES OUTDIR."
            )
        camera = recording.intrinsics if self.point_cloud else None
        found = dataclasses.replace(
            self,
            unit=self.unit or recording.unit,
            invalid=recording.invalid if self.invalid is None else self.invalid,
            intrinsics=self.intrinsics or camera,
        )
        return found._run(found._recorded_pairs(recording))

    def _run(self, pairs: _Pairs) -> int:
        from dada.machine import cores

        if self.point_cloud != (self.intrinsics is not None):
            raise InputError("point clouds need both --point-cloud and --intrinsics fx,fy,cx,cy. Give both or neither.")
        if self.jobs is not None and self.jobs < 1:
            raise InputError(f"jobs {self.jobs} is not a number of processes. Use 1 or more.")
        with _claim(self._folder, pairs.inputs):
            before = self._check_settings()
            ready = pairs.ready()
            dense = not (pairs.recorded and ready and _same_size(*ready[0][:2]))
            jobs = [self._job(*found, levels=pairs.recorded, complete=not dense) for found in ready]
            todo, kept = self._split(jobs, before)
            done = self._work(todo, min(self.jobs or cores(), max(len(todo), 1)))
            failed = pairs.failed | {
                result.job.source.name: result.failure for result in done if result.failure is not None
            }
        if not self.quiet:
            for text in _summary(len(todo), kept, failed, done, self._folder):
                print(text)
        for name, reason in sorted(failed.items()):
            print(f"failed: {name}: {reason}", file=sys.stderr)
        return SOME_FAILED if failed else 0

    @property
    def _folder(self) -> Path:
        """That of the results."""
        return self.guides if self.outdir is None else self.outdir

    def _named_pairs(self) -> _Pairs:
        from dada.cli.pairing import pair

        pairs = pair(self.sources, self.guides, self.source_pattern, self.guide_pattern)
        failed = {path.name: f"no guide of this name in {self.guides}." for path in pairs.alone}
        confidences = self._confidences([source for source, _ in pairs.matched], failed)
        matched = [(*found, confidences.get(found[0])) for found in pairs.matched if found[0].name not in failed]
        return _Pairs(lambda: matched, failed, [self.sources, self.guides, self.confidence or self.sources])

    def _recorded_pairs(self, recording: Recording) -> _Pairs:
        """Those of a recording; frames of its video are written beside the results first."""
        failed = {path.name: "there is no colour image of it." for path in recording.alone}
        if not self.quiet:
            print(f"{self.sources}: {_about(recording, self.unit)}")

        def ready() -> list[_Pair]:
            from dada.sensors.frames import extract

            frames: dict[int, Path] = {}
            if recording.video is not None:
                numbers = {shot.guide for shot in recording.shots if isinstance(shot.guide, int)}
                frames = extract(recording.video, numbers, self._folder / FRAMES)
            last = max(frames, default=-1)
            found = []
            for shot in recording.shots:
                guide = frames.get(shot.guide) if isinstance(shot.guide, int) else shot.guide
                if guide is None:
                    failed[shot.source.name] = f"the video ends at frame {last}."
                else:
                    found.append((shot.source, guide, shot.confidence))
            return found

        return _Pairs(ready, failed, [self.sources], recorded=True)

    def _confidences(self, sources: list[Path], failed: dict[str, str]) -> dict[Path, Path]:
        """The confidence of each source; those without one are added to what failed."""
        from dada.cli.pairing import pair_confidence

        if self.confidence is None:
            return {}
        found = pair_confidence(sources, self.confidence, self.source_pattern, self.confidence_pattern)
        missing = [source.name for source in sources if source not in found]
        failed |= dict.fromkeys(missing, f"no confidence of this name in {self.confidence}.")
        return found

    def _job(self, source: Path, guide: Path, confidence: Path | None, *, levels: bool, complete: bool) -> Job:
        from dada.pairs.job import Job

        output = self._folder / f"{source.stem}{f'.{self.format}' if self.format else source.suffix}"
        return Job(
            source,
            guide,
            output,
            self.shared(),
            confidence=confidence,
            preview=output.with_name(f"{source.stem}_preview.png") if self.preview else None,
            point_cloud=output.with_suffix(".ply") if self.point_cloud else None,
            intrinsics=self.intrinsics,
            levels=levels,
            complete=complete,
        )

    def _split(self, jobs: list[Job], before: dict[str, Any]) -> tuple[list[Job], int]:
        """Jobs to do, and the number of those already done.

        What each result is made from is written down before the work begins, with the file that stands in
        its place until then: whenever the run is killed, a file is either known to be old or whole and new.
        """
        todo = [job for job in jobs if not _complete(job, before.get(job.output.name))]
        if todo or not (self._folder / SETTINGS).exists():
            self._write_settings(before | {job.output.name: _plan(job) for job in todo})
        return todo, len(jobs) - len(todo)

    def _write_settings(self, pairs: dict[str, Any]) -> None:
        from dada.io import write_bytes_atomically

        content = json.dumps({**self._settings(), PAIRS: pairs}, indent=1)
        write_bytes_atomically(self._folder / SETTINGS, f"{content}\n".encode())

    def _settings(self) -> dict[str, Any]:
        from dada import __version__

        beside = {
            "confidence": None if self.confidence is None else str(self.confidence.resolve()),
            "preview": self.preview,
            "intrinsics": self.intrinsics,
        }
        return {"dada": __version__, "format": self.format, **beside, **dataclasses.asdict(self.shared())}

    def _check_settings(self) -> dict[str, Any]:
        """Results of one folder are made with the same settings; return what each was made from."""
        path, settings = self._folder / SETTINGS, self._settings()
        if self.resume and path.exists():
            try:
                before = json.loads(path.read_text())
            except (OSError, ValueError):
                before = None
            pairs = before.pop(PAIRS, None) if isinstance(before, dict) else None
            if json.dumps(before) != json.dumps(settings):  # as text: NaN equals NaN
                raise InputError(
                    f"{self.outdir}: it holds results made with other "
                    f"settings{_difference(before, settings)}. Choose another folder, or do them all again "
                    "with --no-resume."
                )
            return pairs if isinstance(pairs, dict) else {}
        return {}

    def _work(self, jobs: list[Job], count: int) -> list[Done]:
        from dada.cli.progress import progress
        from dada.pairs.workers import run_all

        if not jobs:
            return []
        return list(progress(run_all(jobs, count), len(jobs), shown=not self.quiet and sys.stderr.isatty()))


def _same_size(source: Path, guide: Path) -> bool:
    from dada.io import read_image

    return read_image(source).values.shape == read_image(guide, role="guide").values.shape[:2]


def _about(recording: Recording, unit: str | None) -> str:
    """Layout, number of pairs, unit and confidence of a recording."""
    from dada.io import parse_unit

    per_metre = parse_unit(unit).per_metre if unit is not None else None
    scale = "no lengths" if per_metre is None else f"{per_metre:g} units a metre"
    words = [f"layout of {recording.layout}", f"{len(recording.shots)} pairs", f"depth {unit} ({scale})"]
    if any(shot.confidence for shot in recording.shots):
        words.append("confidence 0, 1, 2 taken as 0, 0.5, 1")
    return ", ".join(words)


def _complete(job: Job, before: Any) -> bool:
    """Whether the result is there, made from these very files as they are now."""
    now = _plan(job)
    if not isinstance(before, dict) or None in (now["source"], now["guide"], now["replaces"]):
        return False
    same = all(before.get(name) == now[name] for name in ("source", "guide", "confidence"))
    whole = all(path is None or path.exists() for path in (job.preview, job.point_cloud))
    return same and whole and before.get("replaces") != now["replaces"]


def _plan(job: Job) -> dict[str, list[Any] | None]:
    """What a result is made from, and the older file that it replaces."""
    return {
        "source": _identity(job.source.resolve()),
        "guide": _identity(job.guide.resolve()),
        "confidence": None if job.confidence is None else _identity(job.confidence.resolve()),
        "replaces": (_identity(job.output) or [None])[1:] or None,  # wherever the folder may be moved
    }


def _identity(path: Path) -> list[Any] | None:
    """Path, size and time of a file; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return [str(path), status.st_size, status.st_mtime_ns]


@contextmanager
def _claim(outdir: Path, inputs: list[Path]) -> Iterator[None]:
    """Make the folder, keep other runs out of it and sweep what a killed run has left."""
    from dada.io import TEMPORARY_PREFIX

    if any(outdir.resolve() == folder.resolve() for folder in inputs):
        raise InputError(f"{outdir}: results would overwrite their sources or guides. Name another folder.")
    try:
        outdir.mkdir(parents=True, exist_ok=True)
        lock = (outdir / LOCK).open("w")
    except OSError as error:
        raise InputError(
            f"{outdir}: the folder cannot be made or written to ({error.strerror}). Choose a folder you may write to."
        ) from None
    with lock:
        _lock(lock, outdir)
        for stale in outdir.glob(f"{TEMPORARY_PREFIX}*.tmp"):
            with suppress(OSError):
                stale.unlink()
        try:
            yield
        finally:
            with suppress(OSError):
                (outdir / LOCK).unlink()


def _lock(file: Any, outdir: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows; there two runs on one folder merely do the same work twice
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(
            f"{outdir}: another run is at work in this folder. Wait for it, or choose another folder."
        ) from None


def _difference(before: Any, settings: dict[str, Any]) -> str:
    if not isinstance(before, dict):
        return ""
    names = [name for name in settings if before.get(name) != settings[name]]
    return " (" + ", ".join(f"{n} was {before.get(n)}, now {settings[n]}" for n in names) + ")" if names else ""


def _summary(todo: int, kept: int, failed: dict[str, str], done: list[Done], outdir: Path) -> list[str]:
    """One line on the whole, then each warning with the number of pairs that it is about."""
    made = sum(result.failure is None for result in done)
    parts = [f"{made} of {todo} done"]
    if kept:
        parts.append(f"{kept} complete from before (--no-resume does them again)")
    if failed:
        parts.append(f"{len(failed)} failed")
    notes = Counter(text for result in done for text in dict.fromkeys(result.warnings))
    lines = [f"{outdir}: " + ", ".join(parts)]
    return lines + [f"warning: {text} ({count} of {todo} pairs)" for text, count in notes.most_common(10)]
