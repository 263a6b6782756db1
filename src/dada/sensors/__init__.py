"""Recordings as phones and depth cameras write them, recognised by the layout of their folder."""

from dada.sensors.recognising import recognise
from dada.sensors.recording import Recording, Shot

__all__ = ["Recording", "Shot", "recognise"]
