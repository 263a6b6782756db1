"""The networks of a DADA as ONNX graphs, for programs without torch; docs/how-to/export.md."""

from dada.export.folder import MANIFEST, export

__all__ = ["MANIFEST", "export"]
