"""Image after image of one camera: what does not change is kept."""

from dada.streams.upsampler import Frame, Upsampler

__all__ = ["Frame", "Upsampler"]
