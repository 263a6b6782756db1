"""One convolution with what follows it: with gradients plain torch, without them one operation of oneDNN on the CPU.

oneDNN adds, rectifies and stores in the same pass, and takes 1 x 1 kernels as well on one thread as on many. Under
`torch.autocast` both compute in its type.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, hardtanh_
from torch.utils._python_dispatch import _get_current_dispatch_mode

from dada.operators import recorded

After = Literal["none", "relu", "relu6"]
_ALONE: dict[After, tuple[str, list[float]]] = {
    "none": ("none", []),
    "relu": ("relu", []),
    "relu6": ("hardtanh", [0, 6]),
}
_WITH_SUM: dict[After, tuple[str | None, list[float]]] = {"none": (None, []), "relu": ("relu", [])}
_TYPES = (torch.float32, torch.bfloat16)


def convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    after: After = "none",
    plus: Tensor | None = None,
    whole: bool = False,
) -> Tensor:
    """Return after(conv(x) + plus).

    Args:
        x: [B, C, H, W].
        weight: [F, C / groups, k, k].
        bias: [F].
        stride: of the convolution, as are the next three.
        padding: with zeros, on each side.
        dilation: distance of the pixels it looks at.
        groups: of channels that do not mix.
        after: "relu", or "relu6", which ends at 6 (without `plus`); "none".
        plus: as large as the result; not changed.
        whole: compute in the type of the weights also under `torch.autocast`, for what comes out of a network.
    """
    if whole and torch.is_autocast_enabled(x.device.type):
        with torch.autocast(x.device.type, enabled=False):
            return convolve(
                x.to(weight.dtype), weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups,
                after=after, plus=plus,
            )  # fmt: skip
    if not _fusible(x, weight):
        y = conv2d(x, weight, bias, stride, padding, dilation, groups)
        y = y if plus is None else y.add_(plus)
        return y if after == "none" else y.relu_() if after == "relu" else hardtanh_(y, 0.0, 6.0)
    kind = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else weight.dtype
    x, weight, bias = x.to(kind), weight.to(kind), None if bias is None else bias.to(kind)
    given = weight, bias, [padding] * 2, [stride] * 2, [dilation] * 2, groups
    fused: Tensor
    if plus is None:
        fused = torch.ops.mkldnn._convolution_pointwise(x, *given, *_ALONE[after], "")
    else:
        sum_with = torch.ops.mkldnn._convolution_pointwise.binary
        fused = sum_with(x, plus.to(kind), *given, "add", 1.0, *_WITH_SUM[after], "")
    return fused


def convolve_by(
    layer: nn.Module, x: Tensor, after: After = "none", plus: Tensor | None = None, whole: bool = False
) -> Tensor:
    """The same with the weights and the geometry of a convolution whose kernel is square."""
    assert isinstance(layer, nn.Conv2d)
    return convolve(
        x,
        layer.weight,
        layer.bias,
        stride=layer.stride[0],
        padding=int(layer.padding[0]),
        dilation=layer.dilation[0],
        groups=layer.groups,
        after=after,
        plus=plus,
        whole=whole,
    )


def gradient_free() -> bool:
    """Whether plain results are all that is asked for: no gradient, and nobody records the operations."""
    return not (torch.is_grad_enabled() or recorded() or _get_current_dispatch_mode() is not None)


def _fusible(x: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN can compute it as one."""
    return (
        gradient_free()
        and type(x) is Tensor
        and x.device.type == "cpu"
        and x.dtype in _TYPES
        and weight.dtype in _TYPES
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and bool(torch.backends.mkldnn.enabled)
        and hasattr(torch.ops.mkldnn, "_convolution_pointwise")
    )
