"""Imports of the rooms of data and experiments are written out, so that the bench's fingerprint follows them."""

import ast
from pathlib import Path

import pytest

import dada
from dada.evaluation import fingerprint

SRC = Path(dada.__file__).parent


@pytest.mark.parametrize("room", ["datasets", "io", "pictures", "scene", "reproduce"])
def test_no_import_is_made_from_a_string(room: str) -> None:
    files = sorted((SRC / room).rglob("*.py"))
    assert files
    for file in files:
        assert not {"import_module", "__import__"} & {
            node.id for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.Name)
        }, file


@pytest.mark.parametrize(
    ("module", "reached"),
    [
        ("datasets", "datasets.nyuv2"),
        ("datasets", "datasets.painted.kernels"),
        ("reproduce.registry", "reproduce.video"),
    ],
)
def test_the_fingerprint_reaches_what_is_imported_when_it_is_used(module: str, reached: str) -> None:
    found, waiting = set(), [f"dada.{module}"]
    while waiting:
        name = waiting.pop()
        if name not in found and name.startswith("dada."):
            found.add(name)
            tree = fingerprint._parse(name)
            waiting += fingerprint._imports(tree, name) if tree else []
    assert f"dada.{reached}" in found
