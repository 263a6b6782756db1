"""A problem as every method sees it, how it is made, and what a method is."""

from dada.sample.interpolation import Interpolation, bicubic, fill, initialise, within
from dada.sample.sample import Method, Sample, Whole, make_sample

__all__ = ["Interpolation", "Method", "Sample", "Whole", "bicubic", "fill", "initialise", "make_sample", "within"]
