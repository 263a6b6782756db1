"""Every block of code in README and documentation runs, or is parsed, or says why not.

Blocks of Python run in their order, with the names of `given`, in a folder of their own. Each `dada ...` line
is read by the command's own parser. A block after `<!-- not run: REASON -->` is left out. Blocks of text are output.
"""

import json
import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rasterio.crs import CRS

from dada import DADA
from dada.cli import OLD_NAMES, parse
from dada.errors import InputError
from dada.io import write_image
from dada.io.raster import Georeference
from dada.models.files import save

from ..models.samples import SMALL, random_sample
from .pages import PAGES, ROOT, Block, blocks

DATA = Path(os.environ.get("DADA_TEST_DATA", ROOT.parent / "shared" / "data"))
LANGUAGES = {"python", "console", "toml", "json", "yaml", "text", "indented", "bibtex", "mermaid"}
ALL = [block for page in PAGES for block in blocks(page)]
PYTHON = [page for page in PAGES if any(b.language == "python" and b.run for b in blocks(page))]
PLACEHOLDERS = {"/data": "middlebury_2005_full", "PATH": "middlebury_2005_full"}
COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(dada |torchrun .*-m dada\.cli )(.*)$")


def given(folder: Path) -> dict[str, Any]:
    """What blocks of Python may use without making it, and the files that they may read."""
    random = np.random.default_rng(0)
    torch.manual_seed(0)
    sample = random_sample()
    depth, photo = 1000 + 10 * random.random((8, 10), np.float32), random.random((32, 40, 3), np.float32)
    write_image(folder / "depth.png", depth.astype(np.uint16))
    write_image(folder / "photo.png", (255 * photo).astype(np.uint8))
    for name, values, pixel in (("height", depth, 4.0), ("orthophoto", (255 * photo).astype(np.uint8), 1.0)):
        place = Georeference(CRS.from_epsg(32632).to_wkt(), (pixel, 0.0, 500000.0, 0.0, -pixel, 5200000.0))
        for file in (name, {"height": "dsm", "orthophoto": "ortho"}[name]):
            write_image(folder / f"{file}.tif", values, georeference=place)
    save(DADA(SMALL), folder / "model.safetensors")
    sparse = np.full((32, 40), np.nan, np.float32)
    sparse[::5, ::5] = 2 + random.random((7, 8), np.float32)
    return {
        "camera": [(depth, photo)] * 2,
        "sparse": sparse,
        "guide": photo,
        "depth": depth,
        "photo": photo,
        "depths": np.stack([depth, depth + 5]),
        "photos": np.stack([photo, photo[::-1]]),
        "features": torch.rand(1, 4, 32, 32, requires_grad=True),
        "kappa": 0.1,
        "source": 1 + torch.rand(1, 1, 4, 4),
        "truth": 1 + torch.rand(1, 1, 32, 32),
        "sample": sample,
        "rng": random,
        "np": np,
        "torch": torch,
    }


@pytest.mark.parametrize("page", PYTHON, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names = given(tmp_path)
    for block in blocks(page):
        if block.language != "python" or not block.run:
            continue
        code = "\n".join(block.lines).replace("steps=9024", "steps=8")
        for placeholder in re.findall(r"\w+:(/data|PATH)\b", code):
            if not (DATA / PLACEHOLDERS[placeholder]).is_dir():
                pytest.skip(f"{block}: needs the data of {DATA} (set DADA_TEST_DATA)")
            code = code.replace(f":{placeholder}", f":{DATA / PLACEHOLDERS[placeholder]}")
        exec(compile("\n" * (block.line - 1) + code, str(page), "exec"), names)  # tracebacks name the line of the page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_languages_are_known(page: Path):
    assert not [f"{block} {block.language or 'none'}" for block in blocks(page) if block.language not in LANGUAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_stands_in_blocks_that_run(page: Path):
    code = re.compile(r"(import \w+$|from [\w.]+ import |(\w+ = )?dada\.\w+\()")
    others = [block for block in blocks(page) if block.language != "python"]
    assert not [f"{block}: {line}" for block in others for line in block.lines if code.match(line)]


@pytest.mark.parametrize("block", [b for b in ALL if b.language in ("toml", "json")], ids=str)
def test_settings_are_well_formed(block: Block):
    {"toml": tomllib.loads, "json": json.loads}[block.language]("\n".join(block.lines))


def commands_of(block: Block) -> list[str]:
    """The `dada` lines of a block, whole where a backslash breaks them; where there are `$`, the others are output."""
    text = re.sub(r"\\\n\s*", " ", "\n".join(block.lines))
    lines = text.splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line for line in lines if line.startswith("$ ")]
    return [line for line in lines if COMMAND.match(line) and not line.startswith("dada: ")]


LINES = [
    (block, line)
    for block in ALL
    if block.run and block.language in ("console", "indented", "")
    for line in commands_of(block)
]


@pytest.mark.parametrize(("block", "line"), LINES, ids=[str(block) for block, _ in LINES])
def test_command_lines_are_understood(block: Block, line: str, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(ROOT)
    match = COMMAND.match(re.split(r"\s{3,}|\s+[|>&] ", line)[0])
    call = re.sub(r" \[(-[^]]*|[A-Z]+)\]", r" \1", match[2])  # brackets of a synopsis: may be left out
    words = [word for word in shlex.split(call, comments=True) if word != "..."]
    if words[0] in ("upsample", "batch"):
        assert not set(OLD_NAMES) & set(words), f"{block}: {line}: the option has another name now"
    if words[0] in ("--version", "--help"):
        return
    try:
        parse(words)
    except (SystemExit, InputError) as ended:
        if not isinstance(ended, SystemExit) or ended.code:
            pytest.fail(f"{block}: {line}\n{ended} {capsys.readouterr().err}", pytrace=False)


def test_command_lines_are_found():
    assert len(LINES) > 40
