"""Files in LIBSVM format ("label index:value ..."), which the user provides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from .dataset import Dataset, Source, hold_out, standardised

LARGEST = 2**27  # entries of the dense table, 1 GiB of float64


@dataclass(frozen=True)
class Libsvm(Source):
    """A LIBSVM file as a dense float64 table; files that end in .gz or .bz2 are decompressed.

    Parameters
    ----------
    path : str
        Path of the file; its last part names the data set.
    task : {"classification", "regression"}, optional
        "classification" treats every distinct label as a class, numbered in ascending order; "regression" uses the
        labels as numbers.
    scaling : {"standard", "none"}, optional
        "standard" standardises every column to mean 0 and variance 1.
    held_out : float, optional
        Fraction of held-out samples, in [0, 1).

    Raises
    ------
    ValueError
        If the file is malformed or empty, has a number that is not finite or a single class, or needs more than 2^27
        entries.
    OSError
        If the file cannot be read.
    """

    path: str
    task: Literal["classification", "regression"] = "classification"
    scaling: Literal["standard", "none"] = "none"
    held_out: float = 0.0

    def read(self) -> Dataset:
        """Parse the file with scikit-learn's reader and check its content."""
        table, labels = self._table()
        if self.scaling == "standard":
            table = standardised(table)
        classes = 0
        if self.task == "classification":
            distinct, targets = np.unique(labels, return_inverse=True)
            labels, classes = targets.astype(np.int64), len(distinct)
            if classes < 2:
                raise ValueError(f"{self.path} has the single label {distinct[0]:g}; a classification needs two")
        train, held = hold_out(table, labels, self.held_out)
        return Dataset(Path(self.path).name, train, held, classes, synthetic=False)

    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        from sklearn.datasets import load_svmlight_file

        try:
            sparse, labels = load_svmlight_file(self.path, dtype=np.float64)
        except (ValueError, OverflowError, EOFError) as error:
            raise ValueError(f"{self.path} is not in LIBSVM format ('label index:value ...'): {error}") from error
        n, d = sparse.shape
        if n == 0 or d == 0:
            raise ValueError(f"{self.path} holds {n} samples with {d} features; it needs at least one of each")
        if n * d > LARGEST:
            raise ValueError(f"{self.path} would need {n} x {d} numbers in dense form; at most {LARGEST} are read")
        if not np.isfinite(sparse.data).all() or not np.isfinite(labels).all():
            raise ValueError(f"{self.path} holds a number that is not finite")
        return sparse.toarray(), np.asarray(labels, np.float64)
