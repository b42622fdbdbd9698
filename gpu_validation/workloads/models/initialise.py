"""Initial parameters from the project's own generator, independent of global state."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from operators import Key
from operators.random import normal, uniform


def initialised(build: Callable[[], torch.nn.Module], key: Key) -> torch.nn.Module:
    """Build a network on the meta device and initialise its parameters.

    Convolutions: normal with variance 2/(fan out) (He et al. 2015, arXiv:1502.01852).  Linear layers: uniform within
    1/sqrt(fan in), also the bias.  BatchNorm: weight 1, bias 0, fresh statistics.  Layer i uses ``key.fold_in(i)``.

    Raises
    ------
    TypeError
        For a layer with parameters of another kind.
    """
    with torch.device("meta"):
        network = build()
    network.to_empty(device="cpu")
    with torch.no_grad():
        for index, layer in enumerate(network.modules()):
            _fill(layer, key.fold_in(index))
    return network


def _fill(layer: torch.nn.Module, key: Key) -> None:
    if isinstance(layer, torch.nn.Conv2d):
        fan_out = layer.out_channels * math.prod(layer.kernel_size) // layer.groups
        _copy(layer.weight, math.sqrt(2 / fan_out) * normal(key, layer.weight.numel()))
        if layer.bias is not None:
            layer.bias.zero_()
    elif isinstance(layer, torch.nn.Linear):
        for part, p in enumerate(layer.parameters()):
            _copy(p, (2 * uniform(key.fold_in(part), p.numel()) - 1) / math.sqrt(layer.in_features))
    elif isinstance(layer, torch.nn.BatchNorm2d):
        layer.weight.fill_(1.0)
        layer.bias.zero_()
        layer.reset_running_stats()
    elif [*layer.parameters(recurse=False), *layer.buffers(recurse=False)]:
        raise TypeError(f"no rule for the initial parameters of a {type(layer).__name__}: add one here")


def _copy(parameter: torch.Tensor, values: object) -> None:
    parameter.copy_(torch.as_tensor(values).view_as(parameter))
