"""Build wheel and sdist, and try each in a fresh environment away from the repository: `make release-check`.

Checks that versions agree, what the two hold and how large they are, what `twine` says of them, and that the demo and
`dada upsample` run. Prints sizes and seconds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
LARGEST = {"wheel": 6e6, "sdist": 12e6}  # bytes
IN_WHEEL = {"dada/__init__.py", "dada/py.typed", "dada/weights/learned.safetensors", "dada/app/page/index.html"}
IN_SDIST = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "tests/conftest.py"}
SOURCE = """
import cv2, numpy
cv2.imwrite("photo.jpg", numpy.random.default_rng(0).integers(0, 255, (480, 640, 3), numpy.uint8))
cv2.imwrite("depth.png", (1000 + numpy.arange(60 * 80).reshape(60, 80)).astype(numpy.uint16))
"""


def main() -> int:
    """Run every check; 0 where all hold."""
    version = check_versions()
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    wheel, sdist = DIST / f"dada_sr-{version}-py3-none-any.whl", DIST / f"dada_sr-{version}.tar.gz"
    check_contents(wheel, sdist)
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    for package in (wheel, sdist):
        with tempfile.TemporaryDirectory() as folder:
            try_package(package, Path(folder))
    print(f"{wheel.name} and {sdist.name} may be released")
    return 0


def check_versions() -> str:
    """The version; package, CHANGELOG and CITATION name the same."""
    found = {
        "src/dada/__init__.py": r'__version__ = "([\d.]+)"',
        "CHANGELOG.md": r"^## ([\d.]+)",
        "CITATION.cff": r"^version: ([\d.]+)",
    }
    versions = {name: re.search(at, (ROOT / name).read_text(), re.MULTILINE)[1] for name, at in found.items()}
    if len(set(versions.values())) != 1:
        sys.exit(f"the versions differ: {versions}")
    return versions["CHANGELOG.md"]


def check_contents(wheel: Path, sdist: Path) -> None:
    """What has to be in them is, nothing else is in the wheel, and both are small."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    strays = sorted(name for name in names if not name.startswith(("dada/", "dada_sr-")) or "__pycache__" in name)
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    missing = sorted((IN_WHEEL - names) | (IN_SDIST - inside))
    if strays or missing:
        sys.exit(f"in the wheel by mistake: {strays}; missing: {missing}")
    for kind, path in (("wheel", wheel), ("sdist", sdist)):
        size = path.stat().st_size
        print(f"{path.name}: {size / 1e6:.1f} MB")
        if size > LARGEST[kind]:
            sys.exit(f"{path.name} has {size / 1e6:.1f} MB, more than {LARGEST[kind] / 1e6:.0f}: what is in it?")


def try_package(package: Path, folder: Path) -> None:
    """Install the package alone and use it in an empty folder."""
    environment, here = folder / "environment", folder / "here"
    here.mkdir()
    run(sys.executable, "-m", "venv", environment)
    pip = (environment / "bin" / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt")
    run(*pip, "torch")  # the one that is for this machine, as in the Makefile
    run(*pip, package)
    print(f"{package.name}: environment of {used(environment) / 1e6:.0f} MB")
    python, dada = environment / "bin" / "python", environment / "bin" / "dada"
    run(python, "-c", SOURCE, cwd=here)
    for command in (
        (python, "-c", "import dada"),
        (dada, "--version"),
        (dada, "demo"),
        (dada, "demo"),
        (dada, "upsample", "depth.png", "photo.jpg", "-o", "fine.png"),
    ):
        begin = time.perf_counter()
        run(*command, cwd=here, environment={"PATH": "/usr/bin:/bin", "HOME": str(folder)})
        print(f"    {' '.join(Path(word).name for word in map(str, command))}: {time.perf_counter() - begin:.1f} s")
    if not (here / "dada-demo" / "report.md").exists() or not (here / "fine.png").exists():
        sys.exit(f"{package.name}: the commands ended well, but their files are not there")


def used(folder: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def run(*command: object, cwd: Path = ROOT, environment: dict[str, str] | None = None) -> None:
    """Run a program quietly; end with what it printed where it fails."""
    ran = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())
