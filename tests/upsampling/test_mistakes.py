"""Facts about mistakes, which are explained, and about oddities, which are warned of."""

import functools
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import dada
from dada.upsampling.result import UpsampleWarning

from .averaging import holes

GUIDE, SOURCE = np.zeros((64, 96, 3), np.uint8), np.ones((8, 12), np.float32)
GUIDE[:, 48:] = 200
MIXED = np.where(np.indices((8, 12)).sum(0) % 5 == 0, -1, 1)
CHECKS = GUIDE.copy()
CHECKS[4::8] = 255


@pytest.mark.parametrize(
    ("source", "guide", "options", "said"),
    [
        (GUIDE[..., 0], SOURCE, {}, "smaller than the source.*Swap"),
        (GUIDE, GUIDE, {}, "colour image has no measurements"),
        (SOURCE[None, None], GUIDE, {}, "one image at a time"),
        (SOURCE[0], GUIDE, {}, "expected .height, width."),
        (SOURCE[:0], GUIDE, {}, "no side of length 0"),
        (SOURCE.astype(complex), GUIDE, {}, "complex128"),
        (SOURCE.astype(str), GUIDE, {}, "not measurements"),
        (SOURCE > 0, GUIDE, {}, "bool"),
        (SOURCE * np.nan, GUIDE, {}, "nothing but NaN"),
        (SOURCE * 0, GUIDE, {"invalid": 0}, "all zeros"),
        (SOURCE, GUIDE, {"invalid": 1}, "equals the invalid marker 1"),
        (SOURCE, GUIDE, {"invalid": "0"}, "invalid '0' is no number"),
        (SOURCE, GUIDE, {"invalid": [0, 1]}, "is no number.*mask="),
        (SOURCE, GUIDE, {"invalid": True}, "is no number"),
        (SOURCE, GUIDE, {"mask": SOURCE < 0}, "inverted"),
        (SOURCE, GUIDE, {"mask": SOURCE * np.nan}, "96 values that are NaN"),
        (SOURCE * np.float64(1e308) * MIXED, GUIDE, {}, "invalid= .--invalid."),
        ((SOURCE * MIXED * 65500).astype(np.float16), CHECKS, {}, "ranges from -6.* to 6.*invalid="),
        (SOURCE, GUIDE, {"mask": GUIDE[..., 0] > 0}, r"mask has shape \(64, 96\)"),
        (SOURCE, GUIDE, {"confidence": SOURCE * 2}, "0 .no measurement. to 1"),
        (SOURCE, GUIDE, {"confidence": SOURCE * np.nan}, "NaN"),
        (SOURCE, GUIDE, {"confidence": SOURCE * 0}, "confidence 0"),
        (SOURCE, GUIDE, {"confidence": SOURCE[:4]}, "one value for each source cell"),
        (-SOURCE, GUIDE, {"adjust": "ratio"}, "adjust shift"),
        (SOURCE, GUIDE, {"adjust": "scale"}, "auto, ratio or shift"),
        (SOURCE, GUIDE, {"solver": "jump"}, "equilibrium or iterate"),
        (SOURCE, GUIDE, {"steps": 5}, "has no steps"),
        (SOURCE, GUIDE, {"solver": "iterate", "tolerance": 1e-3}, "has no tolerance"),
        (SOURCE, GUIDE, {"solver": "iterate", "steps": 0}, "1 or more"),
        (SOURCE, GUIDE, {"tolerance": 0}, "between 0 and 1"),
        (SOURCE, GUIDE, {"model": "best"}, "default, learned, fast, dynamic and none"),
        (SOURCE, np.moveaxis(GUIDE, -1, 0), {}, "numpy.moveaxis"),
        (SOURCE, torch.from_numpy(GUIDE), {}, r"permute\(2, 0, 1\)"),
        (SOURCE, GUIDE[None], {}, "the guide has shape"),
        (SOURCE, GUIDE[:0], {}, "no side of length 0"),
        (SOURCE, GUIDE.astype(complex), {}, "complex"),
        (SOURCE, torch.zeros(64, 96, dtype=torch.complex64), {}, "complex"),
        (SOURCE, np.full((64, 96), np.nan), {}, "nothing but NaN"),
        (SOURCE, np.broadcast_to(np.uint8(0), (200_000, 300_000, 3)), {}, "needs about .* GB .* are available"),
    ],
)  # fmt: skip
def test_mistakes_are_explained(source, guide, options, said):
    with pytest.raises(dada.InputError, match=said) as refused:
        dada.upsample(source, guide, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("source", "guide", "said"),
    [
        (SOURCE.astype(np.uint8), GUIDE, "256 levels"),
        (SOURCE, GUIDE[:60], "the factors differ"),
        (SOURCE, GUIDE * 0, "uniform"),
        (SOURCE, GUIDE[:8, :12], "nothing to upsample"),
    ],
)
def test_oddities_warn(source, guide, said):
    with pytest.warns(UpsampleWarning, match=said):
        result = dada.upsample(source, guide)
    assert any(said in text for text in result.report.warnings)


def test_what_did_not_converge_is_said(scene, source, monkeypatch):
    from dada.upsampling import solver as module

    monkeypatch.setattr(module, "equilibrium", functools.partial(module.equilibrium, max_iterations=1))
    with pytest.warns(UpsampleWarning, match="equilibrium not reached: stopped after 1 iterations"):
        result = dada.upsample(source, scene.guide)
    assert result.report.converged is False


def test_threads_leave_the_warnings_of_the_process_alone(scene, source):
    holed = np.where(holes(), source, np.nan)
    before = list(warnings.filters)
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(4) as pool:
        patch.setattr(warnings, "catch_warnings", None)  # it is not safe in threads: not to be used
        list(pool.map(lambda _: dada.upsample(holed, scene.guide), range(8)))
    assert list(warnings.filters) == before
