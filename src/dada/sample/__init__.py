"""A problem as every method sees it, how it is made, and what a method is."""

from dada.sample.data_unit import DataUnit
from dada.sample.interpolation import Interpolation, bicubic, convolved, fill, initialise, within
from dada.sample.sample import BATCH, Method, Sample, Whole, deviation, make_sample
from dada.sample.sampling import MEAN, Sampling

__all__ = [
    "BATCH",
    "MEAN",
    "DataUnit",
    "Interpolation",
    "Method",
    "Sample",
    "Sampling",
    "Whole",
    "bicubic",
    "convolved",
    "deviation",
    "fill",
    "initialise",
    "make_sample",
    "within",
]
