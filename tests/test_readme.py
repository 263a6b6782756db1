"""What the front page shows works as it stands there."""

import re
from pathlib import Path

import torch

README = Path(__file__).parents[1] / "README.md"


def test_the_loss_of_the_differentiable_operator_has_a_gradient():
    """The sum of a result is fixed by its source: its gradient would be zero."""
    (code,) = re.findall(r"```python\n(from dada.diffusion import.*?)```", README.read_text(), re.DOTALL)
    torch.manual_seed(0)
    features = torch.rand(1, 4, 32, 32, requires_grad=True)
    given = {
        "features": features,
        "kappa": 0.1,
        "source": 1 + torch.rand(1, 1, 4, 4),
        "truth": 1 + torch.rand(1, 1, 32, 32),
    }
    exec(code.replace("9024", "4"), given)
    assert float(features.grad.abs().max()) > 1e-6
    assert given["solution"].converged.all()
