"""Arrays in, a finer image out: source, guide, registration, the choice of adjustment, solving, bounds, the report."""

from dada.upsampling.completion import complete
from dada.upsampling.pipeline import upsample
from dada.upsampling.result import Report, Result, UpsampleWarning

__all__ = ["Report", "Result", "UpsampleWarning", "complete", "upsample"]
