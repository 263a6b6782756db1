"""Dependencies point one way: a room imports only rooms below it."""

import ast
from pathlib import Path

import pytest

import dada

ROOT = Path(dada.__file__).parent
FLOORS = (
    {"compiling", "errors", "forking", "machine", "operators"},
    {"diffusion"},
    {"features", "sample"},
    {"io", "pictures", "scene"},
    {"baselines", "datasets", "sensors"},
    {"models"},
    {"upsampling"},
    {"evaluation", "export", "pairs", "rasters"},
    {"app", "streams", "training"},
    {"reproduce"},
    {"cli"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def imported(file: Path) -> set[str]:
    """Rooms that a file imports, also within functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{a.name}" for a in node.names] if node.module == "dada" else [node.module or ""]
        found |= {name.split(".")[1] for name in names if name.startswith("dada.")}
    return found & FLOOR.keys()


@pytest.mark.parametrize("room", sorted(FLOOR))
def test_a_room_imports_only_what_is_below(room):
    files = (ROOT / room).rglob("*.py") if (ROOT / room).is_dir() else ROOT.glob(f"{room}.py")
    wrong = {f"{file.relative_to(ROOT)}: {other}" for file in files for other in imported(file) - {room}
             if FLOOR[other] >= FLOOR[room]}  # fmt: skip
    assert not wrong


def test_every_room_has_its_floor_and_nothing_stands_outside():
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages <= FLOOR.keys()
    assert {path.stem for path in ROOT.glob("*.py")} <= {"__init__", *FLOORS[0]}
