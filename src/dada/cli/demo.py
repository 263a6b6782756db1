"""`dada demo`: a rendered room goes through the whole pipeline, from files to files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from dada.errors import InputError
from dada.pairs.options import Options

if TYPE_CHECKING:
    import numpy as np

    from dada.pairs.job import Outcome

SIZE, FACTOR = (480, 640), 8
FOCAL, CENTRE = 0.96 * 640, (319.5, 239.5)  # of the scene's camera, in pixels

REPORT = """# What `dada demo` made

A rendered room with known depth ({W} x {H}). Its depth was averaged to {w} x {h} (source.png, 16 bits,
millimetres) and upsampled x{factor} with the photograph (guide.png) as the guide.

| mean absolute error against the true depth | |
| --- | --- |
| bicubic | {bicubic:.1f} mm |
| dada | {result:.1f} mm ({share:.0%} of bicubic's) |

Averaged back down, result.png differs from source.png by at most {misfit:.2g} mm (it is rounded to whole
millimetres). {pixels} pixels in {seconds:.1f} s, model {model}, adjust {adjust}, {iterations} iterations.

![guide, source, bicubic, result, truth](comparison.png)

![errors of bicubic and dada](error.png)

The same by hand: `dada upsample source.png guide.png -o result.png --preview --report report.json`
"""


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Upsample an embedded scene and leave pictures and a report in a folder.

    For example: `dada demo`

    In a folder of your choice: `dada demo /tmp/room`
    """

    outdir: Annotated[Positional[Path], arg(metavar="OUTDIR")] = Path("dada-demo")
    """Folder for the pictures and the report; made if missing."""

    def run(self) -> int:
        """Run the command; return its exit code."""
        from dada.pairs.job import Job, run_job
        from dada.scene import render

        folder = self.outdir
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{folder}: the folder cannot be made ({error.strerror}). Choose a folder you may write to."
            ) from None
        truth = render(*SIZE)
        millimetres = self._write_inputs(truth.guide, truth.depth)
        job = Job(
            folder / "source.png",
            folder / "guide.png",
            folder / "result.png",
            Options(),
            preview=folder / "result_preview.png",
            report=folder / "report.json",
            point_cloud=folder / "result.ply",
            intrinsics=f"{FOCAL},{FOCAL},{CENTRE[0]},{CENTRE[1]}",
        )
        outcome = run_job(job)
        errors = self._draw(truth.guide, millimetres)
        self._write_report(outcome, *errors)
        print(f"mean absolute error against the truth: bicubic {errors[0]:.1f} mm, dada {errors[1]:.1f} mm")
        print(
            f"averaged back down, the result differs from the source by at most {outcome.misfit[0]:.2g} mm; "
            f"{outcome.seconds:.1f} s"
        )
        print(f"look at {folder / 'comparison.png'}, {folder / 'error.png'} and {folder / 'report.md'}")
        return 0

    def _write_inputs(self, guide: np.ndarray, metres: np.ndarray) -> np.ndarray:
        """Write the guide and the averaged depth as a camera would; return the true depth in millimetres."""
        import numpy as np

        from dada.io import write_image

        H, W = metres.shape
        truth = metres.astype(np.float64) * 1000
        source = truth.reshape(H // FACTOR, FACTOR, W // FACTOR, FACTOR).mean(axis=(1, 3))
        write_image(self.outdir / "guide.png", guide)
        write_image(self.outdir / "source.png", np.rint(source).astype(np.uint16))
        return truth

    def _draw(self, guide: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
        """Draw what the files hold; return the mean absolute errors of bicubic and result in millimetres."""
        import numpy as np

        from dada import pictures
        from dada.io import read_image
        from dada.pairs.extras import plain_bicubic

        source, result = (read_image(self.outdir / f"{name}.png").values for name in ("source", "result"))
        bicubic = plain_bicubic(source, source > 0, truth.shape)
        try:
            pictures.save(
                pictures.comparison(guide, source, bicubic, result, unit="mm", truth=truth),
                self.outdir / "comparison.png",
            )
            errors = {"bicubic": bicubic - truth, "dada": result - truth}
            pictures.save(pictures.error_map(errors, "mm"), self.outdir / "error.png")
        except OSError as error:
            raise InputError(f"{self.outdir}: a picture cannot be written ({error.strerror}).") from None
        plain, ours = (float(np.abs(error).mean()) for error in errors.values())
        return plain, ours

    def _write_report(self, outcome: Outcome, bicubic: float, result: float) -> None:
        from dada.io import write_bytes_atomically

        report = outcome.report
        (h, w), (H, W) = report.source_size, report.target_size
        text = REPORT.format(
            h=h, w=w, H=H, W=W, factor=FACTOR, bicubic=bicubic, result=result, share=result / bicubic,
            misfit=outcome.misfit[0], pixels=H * W, seconds=outcome.seconds, model=report.model,
            adjust=report.adjust, iterations=report.iterations,
        )  # fmt: skip
        write_bytes_atomically(self.outdir / "report.md", text.encode())
