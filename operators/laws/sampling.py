"""Random draws of a subject's error, made once and shared by every statistical law."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from ..key import Key
from ..message import Message
from .subject import Subject, to_numpy

BATCH = 100


class Sample:
    """Errors (x_hat - x)/|x| of independent draws, extended on demand.

    Every draw has its own fresh key.  bits : message lengths of the same draws (0 where none is counted).
    """

    def __init__(self, subject: Subject, x: np.ndarray, next_key: Callable[[], Key]) -> None:
        self.subject = subject
        self.x = x
        self.wide = x.astype(np.float64)
        self.norm = float(np.linalg.norm(self.wide))
        self.next_key = next_key
        self.errors = np.empty((0, x.size))
        self.bits = np.empty(0)
        self.spent_s = 0.0

    def batches(self, draws: int, seconds: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(errors, bits) in batches, ``draws`` in all: stored ones first, then new ones.

        New ones are made only until ``seconds`` have been spent on this vector, by whichever law; at least one
        batch is.
        """
        done = 0
        while done < draws:
            if done >= len(self.errors):
                if done and self.spent_s >= seconds:
                    return
                started = time.monotonic()
                self._extend(min(BATCH, draws - done))
                self.spent_s += time.monotonic() - started
            stop = min(done + BATCH, len(self.errors), draws)
            yield self.errors[done:stop], self.bits[done:stop]
            done = stop

    def _extend(self, n: int) -> None:
        errors, bits = np.empty((n, self.x.size)), np.zeros(n)
        independent = 1 if self.subject.randomness == "none" else n
        for i in range(independent):
            key = self.next_key()
            if self.subject.is_codec:
                message = self.subject.encode(self.x, key)
                output = to_numpy(self.subject.decode(message, self.x.size, key)).reshape(self.x.shape)
                bits[i] = message.bits if isinstance(message, Message) else 0
            else:
                output = self.subject.draw(self.x, key)
            errors[i] = (output - self.wide) / self.norm
        errors[independent:], bits[independent:] = errors[0], bits[0]  # a deterministic operator is run once
        self.errors = np.vstack([self.errors, errors])
        self.bits = np.concatenate([self.bits, bits])
