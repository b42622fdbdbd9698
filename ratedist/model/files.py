"""What the command line reads from outside: gradients, without pickle, and compressors by their import path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def gradient(path: str) -> np.ndarray:
    """Return the vector in a file: every number of a .npy array, or of all tensors in a .pt file, in their order.

    Nothing is unpickled: object arrays and arbitrary classes are refused.

    Raises
    ------
    ValueError
        For other files, missing ones, and what is no array or tensor of floats.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"file must exist; got {path}: save a gradient with numpy.save or torch.save")
    if file.suffix == ".npy":
        return _numpy(file)
    if file.suffix in (".pt", ".pth"):
        return _torch(file)
    raise ValueError(f"file must end in .npy or .pt; got {path}: save a gradient with numpy.save or torch.save")


def _numpy(file: Path) -> np.ndarray:
    try:
        array = np.load(file, allow_pickle=False)
    except (ValueError, OSError, EOFError) as failure:
        raise ValueError(f"{file} must be a .npy array without objects; {failure}: save it with numpy.save") from None
    return np.asarray(array).ravel()


def _torch(file: Path) -> np.ndarray:
    import pickle

    import torch

    try:
        content = torch.load(file, weights_only=True, map_location="cpu")
    except (pickle.UnpicklingError, RuntimeError, OSError, EOFError, ValueError) as failure:
        reason = str(failure).partition(".")[0]
        raise ValueError(f"{file} must hold tensors only; {reason}: save tensors with torch.save") from None
    tensors = list(_tensors(content))
    if not tensors:
        raise ValueError(f"{file} must hold tensors; got {type(content).__name__}: save the gradients with torch.save")
    return torch.cat([t.detach().to(torch.float32).flatten() for t in tensors]).numpy()


def _tensors(found: Any) -> Any:
    import torch

    if isinstance(found, torch.Tensor):
        if found.dtype.is_floating_point:
            yield found
    elif isinstance(found, Mapping):
        for part in found.values():
            yield from _tensors(part)
    elif isinstance(found, list | tuple):
        for part in found:
            yield from _tensors(part)


def subject(text: str) -> Any:
    """Return what ``check`` judges: an operator's specification, or the object at package.module:object.

    The module is looked for in the current folder too.

    Raises
    ------
    ValueError
        For what cannot be found.
    """
    from operators import all_operators, outside

    module, colon, _ = text.partition(":")
    if module in all_operators() or module in outside.announced(outside.OPERATORS) or not colon:
        return text
    try:
        return outside.imported(text)
    except (ImportError, AttributeError, ValueError) as failure:
        raise ValueError(
            f"{text!r} must be an operator or package.module:object; {failure}: see ratedist operators"
        ) from None
