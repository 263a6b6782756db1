"""Guided super-resolution that never contradicts the measurement."""

__version__ = "0.1.0"
