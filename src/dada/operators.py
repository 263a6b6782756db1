"""Functions of N images that torch takes as one opaque operator: torch.compile, torch.func.vmap, grad and jacrev."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Results = tuple[Tensor, ...]


def recorded() -> bool:
    """Whether somebody records the operations, for other values and sizes than those at hand."""
    traced: bool = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return traced


def operator(
    schema: str,
    run: Callable[..., Results],
    like: Callable[..., Results] | tuple[int, ...],
    backward: Callable[..., Sequence[Tensor]] | None = None,
    differentiable: int = sys.maxsize,
) -> Callable[..., Results]:
    """Register an operator with torch.library, and return it as a function that torch.func takes too.

    Args:
        schema: "name(Tensor a, ...) -> (Tensor, ...)". The first dimension of each tensor is that of the images, which
            do not depend on each other: what torch.vmap adds is folded into it.
        run: computes the results, new tensors, from tensors without a gradient.
        like: the same from shapes alone; or for each result, which argument has its shape and type.
        backward: (arguments, first result, gradients of the results), which returns the gradients of as many
            arguments, from the first one on, as have any; None: there are no further derivatives.
        differentiable: how many of the results, from the first one on, have a gradient.
    """
    name, _, signature = schema.partition("(")
    if isinstance(like, tuple):
        numbers = like
        like = lambda *given: tuple(given[i].new_empty(given[i].shape) for i in numbers)  # noqa: E731

    def save(ctx: Any, inputs: tuple[Any, ...], output: Results) -> None:
        ctx.rest = [None if isinstance(part, Tensor) else part for part in inputs]
        ctx.mark_non_differentiable(*output[differentiable:])
        ctx.save_for_backward(output[0], *(part if isinstance(part, Tensor) else None for part in inputs))

    def gradients(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        first, *saved = ctx.saved_tensors
        given = [rest if part is None else part for part, rest in zip(saved, ctx.rest, strict=True)]
        if backward is None:
            raise NotImplementedError(f"no further derivative is there of {name}, which is one of dada's operators.")
        computed = backward(given, first, cotangents)
        found = [None if part is None else gradient for part, gradient in zip(given, computed, strict=False)]
        return *found, *(None for _ in given[len(found) :])

    registered: Any = torch.library.custom_op(f"dada::{name}", run, mutates_args=(), schema="(" + signature)
    registered.register_fake(like)
    registered.register_autograd(gradients, setup_context=save)
    registered.register_vmap(lambda info, dims, *given: _folded(registered, info.batch_size, dims, given))
    alone, mapped = (_function(name, forward, save, gradients) for forward in (run, registered))

    def call(*given: Any) -> Results:
        if torch.compiler.is_compiling():
            results: Results = registered(*given)
        elif torch._C._are_functorch_transforms_active():  # torch.func takes only an autograd.Function, and vmap
            results = mapped.apply(*given)  # only what is registered
        else:  # without what is registered, whose first call imports a compiler
            results = alone.apply(*given)
        return results

    return call


def _function(name: str, forward: Any, save: Any, gradients: Any) -> Any:
    members = {"forward": forward, "setup_context": save, "backward": gradients, "jvp": _no_forward_mode}
    parts: dict[str, Any] = {key: staticmethod(part) for key, part in members.items()}
    return type(name, (torch.autograd.Function,), parts | {"generate_vmap_rule": True})


def outside() -> int:
    """The stacklevel of a warning from within an operator: that of the code that is neither ours nor torch's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("torch", "dada"):
        level, frame = level + 1, frame.f_back
    return level


def _folded(run: Any, count: int, dims: tuple[int | None, ...], given: tuple[Any, ...]) -> tuple[Results, Any]:
    """Run on images of which there are `count` times as many in the tensors with a dimension of torch.vmap."""
    parts = [
        (part.expand(count, *part.shape) if dim is None else part.movedim(dim, 0)).flatten(0, 1)
        if isinstance(part, Tensor)
        else part
        for part, dim in zip(given, dims, strict=True)
    ]
    results = run(*parts)
    return tuple(part.unflatten(0, (count, -1)) for part in results), (0,) * len(results)


def _no_forward_mode(ctx: Any, *tangents: Any) -> Any:
    raise NotImplementedError(
        "the equilibrium has no derivative of forward mode (jvp, jacfwd, hessian). Use one of reverse mode: "
        "torch.autograd, or grad, vjp and jacrev of torch.func."
    )
