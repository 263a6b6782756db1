"""Facts about the package: what it exposes, and which models `dada.upsample` takes."""

import subprocess
import sys

import numpy as np
import pytest

import dada
from dada.errors import InputError
from dada.models.learning_free import LearningFree
from dada.models.memory import available_memory
from dada.models.registry import load_model
from dada.upsampling.adjust import reconsidered
from dada.upsampling.memory import needed_memory

from .averaging import averaged


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import dada, sys; print([m for m in ('torch', 'numba', 'cv2', 'numpy') if m in sys.modules], dada.__version__)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == f"[] {dada.__version__}\n"


def test_the_package_exposes_its_front_door_and_nothing_unknown():
    from dada import InputError, Result, load_model, upsample

    assert callable(upsample)
    assert Result.__name__ == "Result"
    assert issubclass(InputError, ValueError)
    assert load_model().name == load_model("default").name
    assert set(dada.__all__) <= set(dir(dada))
    with pytest.raises(AttributeError, match="downsample"):
        _ = dada.downsample


def test_a_model_of_ones_own(scene, source):
    smooth = dada.upsample(source, scene.guide, model=LearningFree(kappa=10.0)).values
    sharp = dada.upsample(source, scene.guide, model=load_model("none")).values
    assert np.abs(np.diff(smooth)).max() < np.abs(np.diff(sharp)).max()


def test_settings_of_the_learning_free_variant_come_from_a_json_file(scene, source, tmp_path):
    path = tmp_path / "smooth.json"
    path.write_text('{"kappa": 10, "distance": "euclidean"}')
    result = dada.upsample(source, scene.guide, model=path)
    assert result.report.model == "smooth.json"
    by_hand = dada.upsample(source, scene.guide, model=LearningFree(kappa=10.0, distance="euclidean"))
    np.testing.assert_array_equal(result.values, by_hand.values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kappa: 1", "is not JSON"),
        ("[1]", "some of kappa, distance, source_scale"),
        ('{"kapa": 1}', "some of kappa, distance, source_scale"),
        ('{"kappa": 0}', "kappa must be a positive number, got 0"),
        ('{"kappa": "x"}', "kappa must be a positive number"),
        ('{"distance": "cosine"}', "euclidean or mean_absolute"),
    ],
)
def test_settings_that_cannot_be_used_are_named(text, message, tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_model(path)


def test_the_estimate_of_memory_is_below_what_there_is_for_ordinary_images():
    available = available_memory()
    assert available is None or needed_memory((1088, 1376), 3, 4) < available
    assert needed_memory((1088, 1376), 3, 4) < 1e9


@pytest.mark.parametrize("name", ["bicubic", "gf", "dada-free"])
def test_methods_of_the_bench_are_models_too_and_say_how_far_they_miss_the_source(scene, source, name):
    result = dada.upsample(source, scene.guide, model=name)
    report = result.report
    assert (report.solver, report.adjust, report.converged) == ("direct", "none", True)
    assert np.isfinite(result.values).all()
    missed = np.abs(averaged(result.values, *source.shape) - source).max()
    assert report.consistency_max == pytest.approx(missed, rel=1e-3, abs=1e-6)
    assert (missed < 1e-4) == (name == "dada-free")


def test_a_source_over_many_magnitudes_is_shifted_and_not_scaled(scene, source):
    wide = np.geomspace(1e-3, 10, source.size).reshape(source.shape)
    assert dada.upsample(wide, scene.guide).report.adjust == "shift"
    assert dada.upsample(wide, scene.guide, model="none", adjust="ratio").report.adjust == "ratio"


def test_auto_leaves_ratio_where_it_does_not_end_or_runs_away() -> None:
    assert reconsidered("ratio", 2.0, 3.0, converged=True) == "ratio"
    assert reconsidered("ratio", 2.0, 3.0, converged=False) == "shift"
    assert reconsidered("ratio", 2.0, 8.1, converged=True) == "shift"
    assert reconsidered("shift", 2.0, 3.0, converged=True) == "shift"


def test_a_result_that_runs_away_is_solved_for_again(scene, source, monkeypatch) -> None:
    assert dada.upsample(source, scene.guide, model="none").report.adjust == "ratio"
    monkeypatch.setattr("dada.upsampling.adjust.RUNAWAY", 0.5)  # half of the largest value: every result exceeds it
    assert dada.upsample(source, scene.guide, model="none").report.adjust == "shift"
    assert dada.upsample(source, scene.guide, model="none", adjust="ratio").report.adjust == "ratio"
