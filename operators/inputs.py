"""Check and convert inputs: an array or tensor of real numbers becomes a plain tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from .kernels.norms import cpu

SMALLEST = 2.0**-126  # claims hold for SMALLEST <= max|x| <= LARGEST
LARGEST = 2.0**100


def plain_tensor(x: Any) -> torch.Tensor:
    """Return x as a dense float tensor with its shape, dtype and device, without gradient or lazy view.

    A numpy dtype that torch lacks becomes float64.

    Parameters
    ----------
    x
        A float tensor, a float array, or nested lists of numbers.

    Raises
    ------
    TypeError
        If x is not an array of real numbers.
    ValueError
        For lists of unequal lengths.
    """
    if isinstance(x, torch.Tensor):
        return _plain(x)
    array = _array(x)
    if array.dtype.newbyteorder("=") in (np.float16, np.float32, np.float64):
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
    else:
        with np.errstate(over="ignore"):
            native = array.astype(np.float64)
    if not native.flags.writeable or any(stride < 0 or stride % native.itemsize for stride in native.strides):
        native = native.copy()
    return torch.from_numpy(native)


def flat_tensor(x: Any) -> torch.Tensor:
    """Return x as a contiguous float32 tensor, shape (d,), on its device; NaN and infinity are allowed.

    Parameters
    ----------
    x
        Float tensor, float array or nested lists of numbers.
    """
    return plain_tensor(x).to(torch.float32).contiguous().reshape(-1)


def canonical_tensor(x: Any) -> torch.Tensor:
    """Return x as a finite, contiguous float32 tensor, shape (d,), d >= 1, on its device.

    Parameters
    ----------
    x
        Float tensor, float array or nested lists of numbers.

    Raises
    ------
    TypeError
        If x is not an array of real numbers.
    ValueError
        For an empty vector, and with the first offending index for NaN or infinity.
    """
    tensor = flat_tensor(x)
    if tensor.numel() == 0:
        raise ValueError("x must have at least one entry; got an empty vector: leave it out")
    if not _is_finite(tensor):
        first = int(torch.isfinite(tensor).int().argmin())
        raise ValueError(
            f"x must be finite in binary32; got {tensor[first]} at index {first}: correct or clip the input"
        )
    return tensor


def _is_finite(tensor: torch.Tensor) -> bool:
    """Return whether a non-empty float32 vector has neither NaN nor infinity, in one pass over memory."""
    if tensor.is_cpu:
        return math.isfinite(cpu.largest(tensor, tensor.numel()).item())
    return all(math.isfinite(value) for value in torch.aminmax(tensor))


def canonical_rows(x: Any) -> torch.Tensor:
    """Return x as a finite, contiguous float32 matrix, shape (m, d), m >= 1 and d >= 1, on its device.

    Parameters
    ----------
    x
        Float tensor, float array or nested lists of numbers, with two dimensions.

    Raises
    ------
    TypeError
        If x is not an array of real numbers.
    ValueError
        For another number of dimensions, an empty matrix, NaN or infinity.
    """
    matrix = plain_tensor(x)
    if matrix.ndim != 2:
        raise ValueError(f"x must be a matrix of one vector per row; got shape {tuple(matrix.shape)}")
    return canonical_tensor(matrix).reshape(matrix.shape)


def canonical(x: Any) -> np.ndarray:
    """Return ``canonical_tensor(x)`` as an array on the CPU.

    Parameters
    ----------
    x
        Float tensor, float array or nested lists of numbers.
    """
    return canonical_tensor(x).cpu().numpy()


def rows_of(vectors: Sequence[Any]) -> list[torch.Tensor]:
    """Return the vectors of all workers as canonical tensors.

    Parameters
    ----------
    vectors : sequence
        At least one vector, all with the same number of entries.

    Raises
    ------
    ValueError
        For no vector, and for vectors of different lengths.
    """
    rows = [canonical_tensor(x) for x in vectors]
    lengths = sorted({row.numel() for row in rows})
    if len(lengths) != 1:
        raise ValueError(f"vectors must be at least one, and equally long; got the lengths {lengths}")
    return rows


def outside_claims(x: np.ndarray) -> str:
    """Return the reason why no claim covers a vector, or "".

    Parameters
    ----------
    x : ndarray
        Finite, not all zero.
    """
    largest = float(np.abs(x).max())
    if largest < SMALLEST:
        return f"claims need max|x| >= 2^-126, smaller vectors may be sent as zero; got max|x| = {largest:.3g}"
    if largest > LARGEST:
        return f"claims need max|x| <= 2^100; got max|x| = {largest:.3g}"
    return ""


def _plain(x: torch.Tensor) -> torch.Tensor:
    if refusal := _unsuited(x):
        raise TypeError(refusal)
    try:
        plain = x.detach().resolve_neg()
        return plain if type(plain) is torch.Tensor or _wraps(x) else plain.as_subclass(torch.Tensor)
    except Exception as failure:
        if not _wraps(x):
            raise
        raise TypeError(
            f"x must be a tensor to compute with; got {type(x).__name__}: pass the tensor inside"
        ) from failure


def _unsuited(x: torch.Tensor) -> str:
    """Return the reason why a tensor has no readable numbers, or ""."""
    if x.is_quantized:
        return f"x must be a float tensor; got a quantised one ({x.dtype}): pass x.dequantize()"
    if not x.dtype.is_floating_point:
        remedy = "pass torch.view_as_real(x)" if x.dtype.is_complex else "convert it by x.float()"
        return f"x must be a float tensor; got {x.dtype}: {remedy}"
    if x.is_nested:
        return "x must be one tensor; got a nested one: pass its parts, or torch.cat of them"
    if _is_transformed(x):
        return "x must have data; got a tensor inside vmap, grad or functionalize: call the operator outside"
    kind = type(x).__name__
    if kind == "MaskedTensor":
        return "x must be without mask; got a MaskedTensor: pass x.to_tensor(0)"
    if kind == "DTensor":
        return "x must be a tensor of one process; got a DTensor: pass x.full_tensor() or x.to_local()"
    if x.is_meta or kind == "FakeTensor":
        return "x must have data; got a tensor on the device meta: materialise it first"
    if x.layout is not torch.strided:
        return f"x must be a dense tensor; got layout {x.layout}: pass x.to_dense()"
    if not _wraps(x) and x.element_size() * _reach(x) > x.untyped_storage().nbytes():
        return "x must have data; got a tensor whose storage was freed: gather it first"
    if "float4" in str(x.dtype):
        return f"x must have one number per entry; got {x.dtype}: unpack it to float32"
    return ""


def _wraps(x: torch.Tensor) -> bool:
    """Return whether a tensor subclass implements operations itself, on data stored elsewhere."""
    return type(x).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def _is_transformed(x: torch.Tensor) -> bool:
    """Return whether a transformation of torch.func wraps the tensor."""
    wrapped = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", None)
    return bool(wrapped is not None and wrapped(x)) or torch._is_functional_tensor(x)


def _reach(x: torch.Tensor) -> int:
    """Return the number of storage entries that a tensor spans."""
    if x.numel() == 0:
        return 0
    return int(x.storage_offset()) + 1 + sum(int((n - 1) * step) for n, step in zip(x.shape, x.stride(), strict=True))


def _array(x: Any) -> np.ndarray:
    """Return a float array of any precision and byte order."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("x must be without mask; got a masked array: pass x.filled(0) or x.compressed()")
    is_list = isinstance(x, Sequence) and not isinstance(x, str | bytes | bytearray)
    if is_list and _holds_tensors(x):
        raise TypeError("x must be one vector; got a list of tensors: pass torch.cat([t.flatten() for t in x])")
    try:
        array = np.asarray(x)
    except (TypeError, ValueError, RuntimeError, RecursionError):
        raise ValueError(
            f"x must be one array of numbers; got {type(x).__name__} of unequal parts: pass equal lengths"
        ) from None
    if array.dtype.kind in "iu" and is_list and array.size:
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        remedy = "convert it by x.astype(numpy.float32)" if array.dtype.kind in "iubcO" else "pass its numbers"
        raise TypeError(f"x must be a float array; got {array.dtype}: {remedy}")
    return np.asarray(array)


def _holds_tensors(x: Sequence[Any]) -> bool:
    first = x[0] if len(x) else None
    return isinstance(first, torch.Tensor) or (isinstance(first, list | tuple) and _deep(first, 8))


def _deep(x: Any, levels: int) -> bool:
    if isinstance(x, torch.Tensor):
        return True
    return isinstance(x, list | tuple) and bool(x) and levels > 0 and _deep(x[0], levels - 1)
