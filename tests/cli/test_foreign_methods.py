"""Methods of other packages, found by the entry points of what is installed: they run on the bench like ours."""

import importlib
import sys
from pathlib import Path

import pytest

from tests.evaluation.problems import write_folder

METHOD = """
from dataclasses import dataclass

from {name}.numbers import AMOUNT


@dataclass(frozen=True)
class Lifted:
    amount: float = AMOUNT
    name: str = "Lifted"

    def __call__(self, sample):
        return sample.initial + self.amount

    @classmethod
    def load(cls, path):
        return cls(float(open(path).read()))


class Model:
    name, rounds, adjust = "Mine", 1, "auto"

    def prepare(self, sample):
        from dada.models.learning_free import LearningFree

        return LearningFree().prepare(sample)


def number():
    return 7


def broken():
    raise RuntimeError("no such luck")
"""


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    return f"scenes:{write_folder(tmp_path_factory.mktemp('data') / 'nyuv2_like')}"


@pytest.fixture
def package(tmp_path: Path, monkeypatch):
    """A package as pip leaves it: its modules, and a dist-info folder with entry points."""
    name = f"lifted_{tmp_path.name}"
    code, info = tmp_path / "site" / name, tmp_path / "site" / f"{name}-1.2.dist-info"
    code.mkdir(parents=True)
    info.mkdir()
    (code / "__init__.py").touch()
    (code / "numbers.py").write_text("AMOUNT = 0.25\n")
    (code / "method.py").write_text(METHOD.format(name=name))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    points = {"lifted": "Lifted", "modelled": "Model", "seven": "number", "broken": "broken", "absent": "nothing"}
    points["gf"] = "Lifted"  # a name that is ours
    lines = [f"{point} = {name}.method:{value}\n" for point, value in points.items()]
    (info / "entry_points.txt").write_text("[dada.methods]\n" + "".join(lines))
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield code
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]


@pytest.fixture
def benchmark(dada, scenes, tmp_path):
    def run(*arguments):
        options = "--crop", 32, "--crops", 2, "--factors", 4, "-o", tmp_path / "out"
        return dada("benchmark", "--dataset", scenes, *options, "--methods", *arguments)

    return run


def test_a_method_of_another_package_runs_on_the_bench(package, benchmark, tmp_path):
    (tmp_path / "weights.txt").write_text("0.5")
    ran = benchmark("lifted", f"lifted:{tmp_path / 'weights.txt'}", "modelled")
    assert (ran.code, ran.err) == (0, "")
    for label in ("lifted", "lifted:weights.txt", "modelled"):
        assert label in ran.out


def test_its_settings_are_set_as_ours_are(package, benchmark):
    ran = benchmark("lifted", "--set", "lifted.amount=2.0")
    assert ran.code == 0
    assert "lifted (amount=2.0)" in ran.out


def test_a_name_of_ours_stays_ours(package):
    from dada.baselines.guided_filter import GuidedFilter
    from dada.models.registry import load_model

    assert isinstance(load_model("gf"), GuidedFilter)


def test_upsample_takes_it_as_a_model(package, dada, pair, tmp_path):
    ran = dada("upsample", *pair, "-o", tmp_path / "fine.png", "--model", "modelled")
    assert ran.code == 0
    assert "model Mine" in ran.out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("seven", "gives int, which is no method"),
        ("broken", "cannot be loaded (RuntimeError: no such luck)"),
        ("absent", "cannot be loaded (AttributeError"),
        ("lifted:nowhere.pt", "there is no file nowhere.pt"),
        ("unheard-of", "or one of another package (absent, broken, lifted, modelled, seven)"),
    ],
)
def test_mistakes_name_the_package(package, benchmark, name, message):
    ran = benchmark(name)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_a_result_is_measured_again_when_the_other_package_changes(package, tmp_path):
    from dada.evaluation.fingerprint import code_fingerprint, method_fingerprint
    from dada.evaluation.methods import resolve

    def now(name: str) -> str:
        code_fingerprint.cache_clear()
        importlib.invalidate_caches()
        return method_fingerprint(resolve(name).method)

    before = now("lifted"), now("modelled")
    (package / "method.py").write_text((package / "method.py").read_text().replace("initial +", "initial -"))
    assert now("modelled") != before[1]
    assert (before_import := now("lifted")) != before[0]
    (package / "numbers.py").write_text("AMOUNT = 0.25\nOTHER = 1\n")
    assert now("lifted") != before_import
