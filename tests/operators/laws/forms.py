"""Any operator as other projects would write it: a torch function, a numpy function, a DDP hook, a GRACE-style pair.

The operator's words come from a generator of that library, seeded with the whole key, so that equal keys give equal
words; the key's step counts the calls.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from operators import Key, Operator
from operators.laws import Subject, adapt
from operators.random import words_from


def torch_words(key: Key, n: int, start: int) -> np.ndarray:
    generator = torch.Generator().manual_seed(zlib.crc32(repr(key).encode()))
    words = torch.randint(0, 1 << 32, (start + n,), generator=generator, dtype=torch.int64)
    return words[start:].numpy().astype(np.uint32)


def numpy_words(key: Key, n: int, start: int) -> np.ndarray:
    seed = zlib.crc32(repr(key).encode())
    return np.random.default_rng(seed).integers(0, 1 << 32, start + n, dtype=np.uint32)[start:]


class Calls:
    """compress and decompress of an operator, with a key whose step counts the calls."""

    def __init__(self, operator: Operator, words: Callable[[Key, int, int], np.ndarray]) -> None:
        self.operator, self.words = operator, words
        self.seed = int(np.random.default_rng(7).integers(1 << 40))
        self.steps = itertools.count()

    def compress(self, x: Any) -> tuple[Any, tuple[int, Key]]:
        key = replace(Key(self.seed), step=next(self.steps), rank=0)
        with words_from(self.words):
            return self.operator.encode(x, key=key), (len(x), key)

    def decompress(self, message: Any, ctx: tuple[int, Key]) -> torch.Tensor:
        d, key = ctx
        with words_from(self.words):
            return self.operator.decode(message, d=d, key=key)

    def __call__(self, x: Any) -> torch.Tensor:
        return self.decompress(*self.compress(x))


class Grace:
    """compress(tensor, name) -> (tensors, ctx) and decompress(tensors, ctx)."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def compress(self, tensor: torch.Tensor, name: str) -> tuple[list[Any], tuple[int, Key]]:
        message, ctx = self.calls.compress(tensor)
        return [message], ctx

    def decompress(self, tensors: list[Any], ctx: tuple[int, Key]) -> torch.Tensor:
        return self.calls.decompress(tensors[0], ctx)


def torch_function(operator: Operator) -> Subject:
    return adapt(Calls(operator, torch_words), claim=operator.claim)


def numpy_function(operator: Operator) -> Subject:
    calls = Calls(operator, numpy_words)
    return adapt(lambda x: calls(x).numpy(), library="numpy", claim=operator.claim)


def hook(operator: Operator) -> Subject:
    calls = Calls(operator, torch_words)

    def compressed(state: Any, bucket: Any) -> torch.futures.Future[torch.Tensor]:
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        y = calls(bucket.buffer())
        torch.distributed.all_reduce(y)
        future.set_result(y.div_(torch.distributed.get_world_size()))  # in place, so that a reused memory shows
        return future

    return adapt(compressed, claim=operator.claim)


def pair(operator: Operator) -> Subject:
    return adapt(Grace(Calls(operator, torch_words)), claim=operator.claim)


FORMS = {"torch": torch_function, "numpy": numpy_function, "hook": hook, "pair": pair}
