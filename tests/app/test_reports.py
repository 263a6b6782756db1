"""What the page says of a result is true of all its cells."""

from types import SimpleNamespace

import pytest

from dada.app.working import _about_cells

CASES = [
    ((0.1, 0.05), (None, None), "differs from the source by at most 0.1 mm, mean 0.05 mm"),
    ((0.1, 0.05), (73.0, 9.0), "exact cells differ by at most 0.1 mm, mean 0.05 mm; 4 uncertain cells differ by"),
    ((None, None), (73.0, 9.0), "no source cell is exact; 4 uncertain cells differ by up to 73 mm, mean 9 mm"),
]


@pytest.mark.parametrize(("exact", "soft", "words"), CASES)
def test_uncertain_cells_are_not_called_exact(exact, soft, words):
    outcome = SimpleNamespace(misfit=exact, soft_misfit=soft, report=SimpleNamespace(uncertain_cells=4))
    assert _about_cells(outcome, " mm").startswith(words)
