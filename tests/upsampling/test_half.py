"""Networks in bfloat16: asked for by an option, said in the report, and the promise kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import dada
from dada.errors import InputError
from dada.models.config import DadaConfig
from dada.models.dada import DADA
from dada.scene import render
from dada.upsampling import half

SCENE = render(128, 96)
SOURCE = SCENE.depth.reshape(16, 8, 12, 8).mean((1, 3)).astype(np.float32)

needs_bfloat16 = pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="this processor has no bfloat16"
)


@needs_bfloat16
def test_bfloat16_changes_little_keeps_the_means_and_is_the_same_each_time() -> None:
    exact = dada.upsample(SOURCE, SCENE.guide, precision="float32")
    first, second = (dada.upsample(SOURCE, SCENE.guide, precision="bfloat16") for _ in range(2))
    assert (exact.report.precision, first.report.precision) == ("float32", "bfloat16")
    assert np.array_equal(first.values, second.values)
    assert not np.array_equal(first.values, exact.values)
    span = float(np.ptp(SOURCE))
    assert np.abs(first.values - exact.values).mean() < 2e-3 * span
    assert first.report.consistency_max is not None
    assert first.report.consistency_max < 1e-5 * span


def test_auto_takes_bfloat16_where_the_processor_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dada.upsample(SOURCE, SCENE.guide).report.precision
    assert found == ("bfloat16" if half.native() else "float32")
    assert dada.upsample(SOURCE, SCENE.guide, model="none").report.precision == "float32"
    monkeypatch.setattr(half, "_possible", lambda: False)
    plain = dada.upsample(SOURCE, SCENE.guide, precision="float32")
    without = dada.upsample(SOURCE, SCENE.guide)
    assert without.report.precision == "float32"
    assert np.array_equal(plain.values, without.values)
    with pytest.raises(InputError, match="this processor does not have it"):
        dada.upsample(SOURCE, SCENE.guide, precision="bfloat16")


@needs_bfloat16
def test_weights_of_others_are_run_in_float32_unless_asked_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half, "native", lambda: True)
    network = DADA(DadaConfig(extractor="light", features=4, source="own")).eval()
    assert dada.upsample(SOURCE, SCENE.guide, model=network).report.precision == "float32"
    assert dada.upsample(SOURCE, SCENE.guide, model=network, precision="bfloat16").report.precision == "bfloat16"
