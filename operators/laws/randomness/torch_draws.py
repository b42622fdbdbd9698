"""Intercept what torch draws, on any device and through any layer: its operators tagged as random.

The operator runs first, so that its result has the right shape, type and device and the generator moves on;
then its numbers are replaced by numbers made of the supplied words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from torch.utils._python_dispatch import TorchDispatchMode

from .source import ORDER, Cursor, Source, Uninterceptable

WORD = 1 << 32
UNIFORM_BITS = {torch.float64: 32, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}
LARGEST_KIND = 64
Values = np.ndarray | torch.Tensor


class TorchDraws(TorchDispatchMode):
    """Replaces the random numbers of torch inside the block.

    Attributes
    ----------
    resolution
        The coarsest spacing of the uniform numbers drawn.

    Raises
    ------
    Uninterceptable
        For a random operator that is not known here (``torch.poisson``, for instance), unless the source leaves its
        generator alone.
    """

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.cursor = Cursor()
        self.resolution = 0.0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return no: torch would import its compiler, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator of torch; replace its numbers if it is random."""
        kwargs = kwargs or {}
        if not _is_random(func):
            return func(*args, **kwargs)
        given = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
        before = _generator(args, kwargs)
        root, position = self.cursor.at(_state(before))
        result = func(*args, **kwargs)
        target = result[0] if isinstance(result, tuple) else result
        draw = Draw(self, root, position, _keywords(func, given, kwargs), target)
        rule = RULES.get(func.overloadpacket.__name__)
        if rule is None:
            draw.require_left_alone(func)
        values = None if rule is None else rule(draw)
        self.cursor.moved(_state(before), root, draw.position)
        if values is None:
            return result
        _write(result, values, draw)
        return result


class Draw:
    """One random operator: its arguments by name, its result, and the words it takes."""

    def __init__(self, mode: TorchDraws, root: Any, position: int, named: dict[str, Any], out: torch.Tensor) -> None:
        self.mode, self.root, self.position, self.named, self.out = mode, root, position, named, out

    def words(self, n: int, kind: int | None = None) -> np.ndarray | None:
        """Return the next n words of its generator's stream."""
        words = self.mode.source(self.root, n, self.position, kind)
        self.position += n
        return words

    def require_left_alone(self, func: Any) -> None:
        """A random operator without a rule: fine where its generator is left alone."""
        if self.mode.source(self.root, 1, self.position) is not None:
            raise Uninterceptable(f"it draws from {func.overloadpacket}, whose numbers cannot be chosen")

    def uniform(self) -> np.ndarray | None:
        """Return numbers on [0, 1) as fine as torch's own of this type, shape of the result flattened."""
        words = self.words(self.out.numel())
        bits = UNIFORM_BITS.get(self.out.dtype, 32)
        if words is None:
            return None
        self.mode.resolution = max(self.mode.resolution, 2.0**-bits)
        return (words >> np.uint32(32 - bits)) * 2.0**-bits

    def fine(self) -> np.ndarray | None:
        """Return numbers in (0, 1), half a word away from both ends."""
        words = self.words(self.out.numel())
        return None if words is None else (words + 0.5) * 2.0**-32

    def mapped(self, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
        """Return a function of ``fine``."""
        u = self.fine()
        return None if u is None else of(u)

    def get(self, name: str, default: float = 0.0) -> Any:
        """Return an argument: a number, or a tensor's entries broadcast to the result and flattened."""
        value = self.named.get(name)
        if isinstance(value, torch.Tensor):
            return value.detach().cpu().to(torch.float64).expand(self.out.shape).reshape(-1).numpy()
        return default if value is None else value


def _bernoulli(draw: Draw) -> Values | None:
    p = draw.get("p" if draw.named.get("p") is not None else "self")
    return draw.mapped(lambda u: u < p)


def _uniform_between(draw: Draw) -> Values | None:
    low, high = draw.get("from"), draw.get("to", 1.0)
    u = draw.uniform()
    return None if u is None else low + (high - low) * u


def _integers(draw: Draw, low: int, high: int) -> Values | None:
    span = high - low
    n = draw.out.numel()
    if span <= WORD:
        words = draw.words(n, span if span <= LARGEST_KIND else None)
        return None if words is None else low + (words.astype(np.uint64) * np.uint64(span) >> np.uint64(32))
    words = draw.words(2 * n)
    if words is None:
        return None
    wide = (words[0::2].astype(np.uint64) << np.uint64(32)) | words[1::2]
    return np.array([low + (int(w) * span >> 64) for w in wide], dtype=np.int64)


def _randint(draw: Draw) -> Values | None:
    return _integers(draw, int(draw.get("low", 0)), int(draw.get("high")))


def _random(draw: Draw) -> Values | None:
    dtype = draw.out.dtype
    most = 1 << {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24, torch.float64: 53}.get(dtype, 0)
    if not dtype.is_floating_point:
        most = torch.iinfo(dtype).max
    return _integers(draw, int(draw.get("from", 0)), int(draw.get("to", most + dtype.is_floating_point)))


def _randperm(draw: Draw) -> Values | None:
    words = draw.words(draw.out.numel(), ORDER)
    return None if words is None else np.argsort(words, kind="stable")


def _normal(draw: Draw) -> Values | None:
    return draw.mapped(lambda u: draw.get("mean", 0.0) + draw.get("std", 1.0) * ndtri(u))


def _multinomial(draw: Draw) -> Values | None:
    """With replacement one word a sample; without, the first k arrivals of an exponential race."""
    weights = draw.named["self"].detach().cpu().to(torch.float64)
    rows = weights.reshape(-1, weights.shape[-1]).numpy()
    samples = int(draw.named["num_samples"])
    if draw.named.get("replacement"):
        u = draw.fine()
        if u is None:
            return None
        ends = np.cumsum(rows, axis=1) / rows.sum(axis=1, keepdims=True)
        return np.concatenate(
            [np.searchsorted(e, v, side="right") for e, v in zip(ends, u.reshape(-1, samples), strict=True)]
        )
    uniform = all(len(set(row.tolist())) == 1 for row in rows) and len(rows) == 1
    words = draw.words(rows.size, ORDER if uniform else None)
    if words is None:
        return None
    with np.errstate(divide="ignore"):
        arrivals = -np.log1p(-(words + 0.5) * 2.0**-32).reshape(rows.shape) / rows
    return np.argsort(arrivals, axis=1, kind="stable")[:, :samples].reshape(-1)


def _dropout(draw: Draw) -> Values | None:
    p = float(draw.get("p", 0.5))
    return draw.mapped(lambda u: u < 1 - p)


RULES: dict[str, Callable[[Draw], Values | None]] = {
    "rand": Draw.uniform,
    "rand_like": Draw.uniform,
    "uniform_": _uniform_between,
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli,
    "native_dropout": _dropout,
    "randint": _randint,
    "randint_like": _randint,
    "random_": _random,
    "randperm": _randperm,
    "randn": _normal,
    "randn_like": _normal,
    "normal": _normal,
    "normal_": _normal,
    "multinomial": _multinomial,
    "exponential_": lambda draw: draw.mapped(lambda u: -np.log1p(-u) / draw.get("lambd", 1.0)),
    "geometric_": lambda draw: draw.mapped(lambda u: np.ceil(np.log1p(-u) / np.log1p(-draw.get("p")))),
    "cauchy_": lambda draw: draw.mapped(
        lambda u: draw.get("median", 0.0) + draw.get("sigma", 1.0) * np.tan(np.pi * (u - 0.5))
    ),
    "log_normal_": lambda draw: draw.mapped(lambda u: np.exp(draw.get("mean", 1.0) + draw.get("std", 2.0) * ndtri(u))),
}


def _write(result: Any, values: Values, draw: Draw) -> None:
    if isinstance(result, tuple):  # native_dropout: the scaled input and the mask
        out, mask = result
        kept = torch.as_tensor(values).reshape(mask.shape).to(mask.device)
        mask.copy_(kept)
        scale = 1 / (1 - float(draw.get("p", 0.5))) if float(draw.get("p", 0.5)) < 1 else 0.0
        out.copy_(draw.named["input"] * kept * scale)
        return
    result.copy_(torch.as_tensor(np.asarray(values)).reshape(result.shape))


@cache
def _is_random(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags


@cache
def _defaults(func: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names of its arguments, and the values of those that have one."""
    arguments = func._schema.arguments
    return tuple(a.name for a in arguments), {a.name: a.default_value for a in arguments if a.has_default_value()}


def _keywords(func: Any, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    names, defaults = _defaults(func)
    return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}


def _generator(args: Any, kwargs: dict[str, Any]) -> torch.Generator:
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Generator):
            return value
    device = kwargs.get("device") or next((a.device for a in args if isinstance(a, torch.Tensor)), torch.device("cpu"))
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.default_generators[device.index or 0]
    return torch.default_generator


def _state(generator: torch.Generator) -> tuple[str, bytes]:
    return "torch", generator.get_state().numpy().tobytes()
