"""An outsider's all-reduce as the kit calls it: m vectors in, the common result out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ...functions.forms.form import name_of
from ...key import Key
from ..adapt import Library
from ..kit.law import Violation


class MeanFunction:
    """Calls a function of m vectors, and sees to it that all ranks have one result.

    Parameters
    ----------
    function : callable
        From a list of m tensors of shape (d,) (``library="torch"``) or an array of shape (m, d) ("numpy"), float32, to
        m results, or to one of shape (d,).  If it takes ``key``, it gets a ``Key`` whose step counts the calls.
    library : Library
        "torch" or "numpy".
    seed : int
        Of the keys.

    Raises
    ------
    TypeError
        For what cannot be called.
    ValueError
        For an unknown library.
    """

    def __init__(self, function: Callable[..., Any], library: Library, seed: int) -> None:
        if isinstance(function, type) or not callable(function):
            raise TypeError(f"expected a function from m vectors to their mean; got {function!r}")
        if library not in ("torch", "numpy"):
            raise ValueError(f'library must be "torch" or "numpy"; got {library!r}')
        self.function, self.library, self.seed = function, library, seed
        self.name = name_of(function)
        self.takes_key = "key" in inspect.signature(function).parameters
        self.step = 0

    def mean(self, vectors: np.ndarray) -> np.ndarray:
        """Return the result of the next step: float64, shape (d,).

        Parameters
        ----------
        vectors : ndarray
            float32, shape (m, d).

        Raises
        ------
        Violation
            If ranks end with different bits, or with a result of another shape or a non-finite one.
        """
        rows = self.rows(self.call(self.given(vectors)), *vectors.shape)
        if not np.isfinite(rows).all():
            raise Violation(f"the result of {len(vectors)} finite vectors has an entry that is not finite")
        return rows[0].astype(np.float64)

    def call(self, given: Any, step: int | None = None) -> Any:
        """Return what the function returns, at the next step or at a given one.

        Parameters
        ----------
        given
            What ``given`` returned.
        step : int or None, optional
            Of the key.
        """
        if not self.takes_key:
            return self.function(given)
        if step is None:
            step, self.step = self.step, self.step + 1
        return self.function(given, key=Key(self.seed, step=step))

    def given(self, vectors: np.ndarray) -> Any:
        """Return the vectors as the function takes them: its own copies.

        Parameters
        ----------
        vectors : ndarray
            float32, shape (m, d).
        """
        return vectors.copy() if self.library == "numpy" else [torch.from_numpy(row.copy()) for row in vectors]

    def rows(self, output: Any, m: int, d: int) -> np.ndarray:
        """Return the results of the ranks, shape (m, d), or (1, d) where one is returned; bits that are all alike.

        Parameters
        ----------
        output
            What the function returned.
        m : int
            Number of workers.
        d : int
            Dimension.

        Raises
        ------
        Violation
            For another shape, and for ranks with different bits.
        """
        several = isinstance(output, list | tuple)
        rows = np.stack([_array(r) for r in output]) if several and _alike(output) else _array(output)
        rows = rows[None] if rows.ndim == 1 and not several else rows
        if rows.shape not in ((m, d), (1, d)):
            raise Violation(f"{m} vectors of {d} coordinates give results of shape {rows.shape}")
        bits = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
        different = np.flatnonzero((bits != bits[0]).any(axis=1))
        if different.size:
            raise Violation(f"ranks 0 and {different[0]} of {m} end with different bits at d = {d}")
        return rows


def _alike(output: Any) -> bool:
    """Return whether the results have one shape; raise where they have not."""
    shapes = {tuple(_array(r).shape) for r in output}
    if len(shapes) > 1:
        raise Violation(f"the ranks' results have different shapes: {sorted(shapes)}")
    return bool(shapes)


def _array(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return np.array(value)
