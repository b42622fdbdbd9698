"""Text from a Markov chain of letters, of any length and with known entropy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from operators import Key
from operators.random import normal, uniform

from .dataset import Dataset, Samples, Source

CHAIN, TEXT = 0, 1  # folded into the key


@dataclass(frozen=True)
class MarkovText(Source):
    """Windows of a second-order Markov text with ``P(c | a, b)`` ~ exp(contrast z_abc) for normal z.

    Parameters
    ----------
    letters : int, optional
        Size of the alphabet, >= 2.
    window : int, optional
        Letters per window; a model predicts the letter after each of them.
    contrast : float, optional
        Strength of the dependence on the last two letters.
    samples : int, optional
        Number of training windows.
    held_out : int, optional
        Number of held-out windows.
    seed : int, optional
        Seed of chain and text.

    Raises
    ------
    ValueError
        For fewer than two letters, an empty window or no samples.
    """

    letters: int = 6
    window: int = 8
    contrast: float = 2.0
    samples: int = 512
    held_out: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        if self.letters < 2 or self.window < 1 or self.samples < 1 or self.held_out < 0:
            raise ValueError(f"need letters >= 2, window >= 1, samples >= 1 and held_out >= 0; got {self}")

    def chain(self) -> np.ndarray:
        """Return ``P(c | a, b)``, shape (letters, letters, letters)."""
        n = self.letters
        weights = np.exp(self.contrast * normal(self._key(CHAIN), n**3)).reshape(n, n, n)
        return weights / weights.sum(axis=2, keepdims=True)

    def pairs(self) -> np.ndarray:
        """Return the stationary probability of two successive letters, shape (letters, letters)."""
        chain, n = self.chain(), self.letters
        step = np.zeros((n, n, n, n))  # from (a, b) to (b, c)
        for b in range(n):
            step[:, b, b, :] = chain[:, b, :]
        system = np.vstack([step.reshape(n * n, n * n).T - np.eye(n * n), np.ones(n * n)])
        return np.linalg.lstsq(system, np.append(np.zeros(n * n), 1.0), rcond=None)[0].reshape(n, n)

    def floor(self) -> float:
        """Return the smallest mean loss, in nats per letter, of any model that sees only the window's letters so far.

        The first prediction has one letter, ``H(X2 | X1)``; all others have both relevant letters, ``H(X3 | X1, X2)``.
        """
        pairs, chain = self.pairs(), self.chain()
        first = -float(np.sum(pairs * np.log(pairs / pairs.sum(axis=1, keepdims=True))))
        rate = -float(np.sum(pairs[:, :, None] * chain * np.log(chain)))
        return (first + (self.window - 1) * rate) / self.window

    def read(self) -> Dataset:
        """Return windows: inputs are letters by number, targets the following letters, both of shape (n, window)."""
        total = self.samples + self.held_out
        text = self._text(total * self.window + 1)
        inputs, targets = text[:-1].reshape(total, -1), text[1:].reshape(total, -1)
        train, rest = slice(None, self.samples), slice(self.samples, None)
        return Dataset(
            name=f"Markov text, {self.letters} letters",
            train=Samples(inputs[train].double(), targets[train]),
            held_out=Samples(inputs[rest].double(), targets[rest]),
            classes=self.letters,
            synthetic=True,
        )

    def _text(self, length: int) -> torch.Tensor:
        """Return a path of the chain, int64, that starts in its stationary law."""
        sums = self.chain().cumsum(axis=2)
        draws = uniform(self._key(TEXT), length)
        first = int(np.searchsorted(self.pairs().cumsum(), draws[0] * (1 - 1e-12)))
        text = [*divmod(first, self.letters)]
        for k in range(2, length):
            text.append(min(int(np.searchsorted(sums[text[-2], text[-1]], draws[k])), self.letters - 1))
        return torch.tensor(text[:length])

    def _key(self, part: int) -> Key:
        return Key(self.seed, rank=None).fold_in(part)
