"""Functions of N images that torch takes as one opaque operator: torch.compile, torch.func.vmap, grad and jacrev."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Results = tuple[Tensor, ...]


def operator(schema: str, run: Any, like: Any, save: Any, backward: Any) -> Callable[..., Any]:
    """Register an operator with torch.library, and return it as a function that torch.func takes too.

    Args:
        schema: "name(Tensor a, ...) -> (Tensor, ...)". The first dimension of each tensor is that of the images, which
            do not depend on each other: what torch.vmap adds is folded into it.
        run: computes the results, new tensors, from tensors without a gradient.
        like: returns tensors of the results' shapes and types from the same arguments, without computing them.
        save: (ctx, inputs, output), what the gradient needs; see torch.library.register_autograd.
        backward: (ctx, *gradients of the results), the gradients of the arguments.
    """
    name, _, signature = schema.partition("(")
    registered: Any = torch.library.custom_op(f"dada::{name}", run, mutates_args=(), schema="(" + signature)
    registered.register_fake(like)
    registered.register_autograd(backward, setup_context=save)
    registered.register_vmap(lambda info, dims, *given: _folded(registered, info.batch_size, dims, given))
    members = {"forward": registered, "setup_context": save, "backward": backward, "jvp": _no_forward_mode}
    parts: dict[str, Any] = {key: staticmethod(part) for key, part in members.items()}
    function: Any = type(name, (torch.autograd.Function,), parts | {"generate_vmap_rule": True})

    def call(*given: Any) -> Any:
        # torch.compile takes the operator as it is, torch.func only an autograd.Function around it
        return registered(*given) if torch.compiler.is_compiling() else function.apply(*given)

    return call


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
