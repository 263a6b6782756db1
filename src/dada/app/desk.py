"""What the server does for those who ask: take jobs, look at files, hand out examples."""

from __future__ import annotations

import shutil
import threading
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dada.app.examples import EXAMPLES, TRUTH, Example
from dada.app.folders import make_folder, remove_folder
from dada.app.forms import Form
from dada.app.jobs import Entry, FullError, Jobs
from dada.app.limits import READING_SECONDS, Limits
from dada.app.processes import FailedError, RefusedError, Task, Worker
from dada.app.requests import (
    FACTORS,
    FIELD_OF_VIEW,
    FIELDS,
    MODELS,
    VIEW,
    FieldError,
    Request,
    options_of,
    read_fields,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = ("source", "guide", "confidence")
OWN_FIELDS = ("range", "intrinsics", "field_of_view", "format", "factor")  # beside the options of the command
DRAWING_SECONDS = 120.0


class ProblemError(Exception):
    """A request that cannot be served: the status of the answer, and a message for the user."""

    def __init__(self, status: HTTPStatus, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.field = status, field


class Desk:
    """One server's jobs, its reader of files and its examples."""

    def __init__(self, limits: Limits, workers: int) -> None:
        """Take limits and the number of jobs at a time; a folder for temporary files is made."""
        self.limits = limits
        self.folder = make_folder()
        for name in ("jobs", "examples"):
            (self.folder / name).mkdir()
        self.jobs = Jobs(self.folder / "jobs", limits, workers)
        self._reader, self._reading = Worker("reader", self.folder), threading.Lock()
        self._drawn = {name: threading.Event() for name in EXAMPLES}

    def start(self) -> None:
        """Begin to work; examples are drawn meanwhile."""
        self.jobs.start()
        threading.Thread(target=self._draw_examples, daemon=True).start()

    def close(self) -> None:
        """Stop all processes and delete all files."""
        self.jobs.close()
        self._reader.stop()
        remove_folder(self.folder)

    def about(self) -> dict[str, Any]:
        """What this server offers."""
        from dada import __version__

        return {
            "version": __version__,
            "models": MODELS,
            "factors": FACTORS,
            "field_of_view": FIELD_OF_VIEW,
            "fields": {name: expected for name, (_, expected) in FIELDS.items()},
            "limits": vars(self.limits) | {"jobs_at_a_time": self.jobs.workers},
            "examples": [_told(example) for example in EXAMPLES.values()],
            "jobs": self.jobs.counts(),
        }

    def submit(self, form: Form, folder: Path) -> Entry:
        """Put what a form asks for into the queue; its files lie in the folder, which becomes the job's."""
        name = form.texts.pop("example", "")
        if name:
            self._lay_out(name, form, folder)
        for wanted in ("source", "guide"):
            if wanted not in form.files:
                message = f"there is no {wanted}. Send both files, source and guide, or example={'|'.join(EXAMPLES)}."
                raise ProblemError(HTTPStatus.BAD_REQUEST, message, wanted)
        _check_files(form)
        _free_names(form)
        values = self._values(form)
        example = EXAMPLES.get(name)
        request = Request(
            form.files["source"].name,
            form.files["guide"].name,
            form.files["confidence"].name if "confidence" in form.files else None,
            truth=None if example is None else TRUTH,
            options=options_of(values),
            label="" if example is None else example.label,
            megapixels=self.limits.megapixels,
            **{name: values[name] for name in OWN_FIELDS if name in values},
        )
        try:
            return self.jobs.submit(folder, request)
        except FullError:
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{self.limits.waiting} jobs are waiting already. Try again in a while.",
            ) from None

    def inspect(self, form: Form, folder: Path) -> dict[str, Any]:
        """Describe the one file of a form, which is its source or its guide."""
        roles = [role for role in ("source", "guide") if role in form.files]
        if len(roles) != 1:
            message = "expected one file, in the field source or guide. Send it as curl does with -F source=@depth.png."
            raise ProblemError(HTTPStatus.BAD_REQUEST, message)
        role = roles[0]
        options = options_of(self._values(form))
        task = Task("inspect", folder, (Path(form.files[role].name), role, options))
        try:
            with self._reading:
                return self._reader.run(task, READING_SECONDS, lambda text: None)
        except RefusedError as error:
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), role) from None
        except FailedError as error:
            raise ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, str(error), role) from None

    def example(self, name: str) -> Path:
        """The folder of an example, once it is drawn."""
        if name not in EXAMPLES:
            raise ProblemError(HTTPStatus.NOT_FOUND, f"there is no example {name!r}. Use one of {', '.join(EXAMPLES)}.")
        if not self._drawn[name].wait(DRAWING_SECONDS):
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "the examples are not drawn yet. Try again in a while.")
        return self.folder / "examples" / name

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for the files of a request, deleted unless the request has become a job."""
        folder = self.jobs.new_folder()
        try:
            yield folder
        finally:
            if self.jobs.find(folder.name) is None:
                shutil.rmtree(folder, ignore_errors=True)

    def _values(self, form: Form) -> dict[str, Any]:
        try:
            return read_fields(form.texts)
        except FieldError as error:
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), error.field) from None

    def _lay_out(self, name: str, form: Form, folder: Path) -> None:
        """Put the files of an example where uploaded ones would be, and its options where none are given."""
        if form.files:
            message = "there is an example and a file. Send either the example or files of your own."
            raise ProblemError(HTTPStatus.BAD_REQUEST, message)
        ready, example = self.example(name), EXAMPLES[name]
        for file in (example.source, example.guide, TRUTH):
            shutil.copyfile(ready / file, folder / file)
        form.files = {"source": folder / example.source, "guide": folder / example.guide}
        form.texts = example.fields | {field: text for field, text in form.texts.items() if text}
        if form.texts.get("factor"):
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "an example is coarse already, and its error is shown in any case. Leave the self-test off.",
                "factor",
            )

    def _draw_examples(self) -> None:
        for name in EXAMPLES:
            folder = self.folder / "examples" / name
            with suppress(FailedError, RefusedError, OSError):  # whoever asks for it is told that it is not drawn
                folder.mkdir()
                with self._reading:
                    self._reader.run(Task("example", folder, (name,)), DRAWING_SECONDS, lambda text: None)
                self._drawn[name].set()


def _check_files(form: Form) -> None:
    unknown = [name for name in form.files if name not in FILES]
    if unknown:
        message = f"the file {unknown[0]!r} is unknown. Send source, guide and, if there is one, confidence."
        raise ProblemError(HTTPStatus.BAD_REQUEST, message, unknown[0])


def _free_names(form: Form) -> None:
    """Rename files that have the name of one that the job will write."""
    stem = form.files["source"].stem
    for field, path in form.files.items():
        written = (f"{stem}_upsampled", f"{stem}_averaged_x")
        if path.name == VIEW or (field != "source" and path.name.startswith(written)):
            form.files[field] = path.rename(path.with_name(f"{field}_{path.name}"))


def _told(example: Example) -> dict[str, Any]:
    files = {"source": example.source, "guide": example.guide}
    about = {"name": example.name, "title": example.title, "words": example.words, "factor": example.factor}
    return about | files | {"fields": example.fields}
