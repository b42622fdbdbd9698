"""Wrong operators: each overrides one method of an honest one, and names the law that must convict it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from bounds.claims import Claim, Contractive, StrictlyContractive, Unbiased
from operators import CorruptMessage, Identity, Key, Message, Operator, Size, TopK
from operators.operator import canonical_tensor
from operators.random import bits32, uniform

from . import honest_rotation as rotation
from .honest import Dithering, Natural, Ternary
from .honest_rotation import Rotated, Subtractive
from .honest_selection import Largest, MaskedK, MeanSign, RandomK, TwoMeans
from .text_operator import Reader, float32, unsigned


@dataclass(frozen=True)
class Mutant:
    """what : the mistake.  wrong : the operator.  parent : the honest one.  law : must fail on wrong only."""

    what: str
    wrong: Operator
    parent: Operator
    law: str


MUTANTS: list[Mutant] = []


def mutant(what: str, parent: Operator, law: str, **methods: Any) -> None:
    """Register the parent's class with some methods replaced."""
    cls = type(parent)
    wrong = type(f"Wrong{cls.__name__}", (cls,), methods)(**vars(parent))
    MUTANTS.append(Mutant(what, wrong, parent, law))


def rounding(what: str, level: Callable[[float, float], int]) -> None:
    mutant(what, Dithering(), "exact-marginals", level=lambda self, a, u: level(a, u))


# -- rounding ----------------------------------------------------------------------------------------------------
rounding("level + 1", lambda a, u: math.floor(a) + 1 + (u < a % 1))
rounding("nearest level", lambda a, u: round(a))
rounding("up with probability p^2", lambda a, u: math.floor(a) + (u < (a % 1) ** 2))
rounding("a fair coin", lambda a, u: math.floor(a) + (u < 0.5))
rounding("up with probability 1 - p", lambda a, u: math.floor(a) + (u < 1 - a % 1))
rounding("always up", lambda a, u: math.ceil(a))
rounding("always down", lambda a, u: math.floor(a))
rounding("u on a grid of eighths and u <= p", lambda a, u: math.floor(a) + (math.floor(8 * u) / 8 <= a % 1))
rounding("up with twice the probability", lambda a, u: math.floor(a) + (u < 2 * (a % 1)))


def _toward_zero(self: Dithering, x: np.ndarray, key: Key) -> str:
    scale = self.scale(x)
    text = [float32(scale)]
    for v, u in zip(x.tolist(), self.uniform(key, x.size), strict=True):
        level = math.trunc(self.s * v / scale + u)  # the signed value: negative ones lose a level
        text.append("1" + self.sign(level) + self.level_text(abs(level)) if level else "0")
    return "".join(text)


mutant("floor toward zero on the signed value", Dithering(), "exact-marginals", write=_toward_zero)
mutant("one word for all coordinates", Dithering(), "key-separation",
       uniform=lambda self, key, d: np.full(d, 0.5))  # fmt: skip
mutant("natural: logarithmic probability", Natural(), "exact-marginals",
       up=lambda self, fraction, u: u < math.log2(1 + fraction))  # fmt: skip
mutant("natural: nearest power of two", Natural(), "exact-marginals", up=lambda self, fraction, u: fraction > 0.5)

# -- scale -------------------------------------------------------------------------------------------------------
mutant("1/s missing", Dithering(), "exact-marginals", value=lambda self, scale, level: scale * level)
mutant("s/(s + 1)", Dithering(), "exact-marginals", value=lambda self, scale, level: scale * level / (self.s + 1))
mutant("2 % shrink", Dithering(), "exact-marginals", value=lambda self, scale, level: 0.98 * scale * level / self.s)
mutant("norm in binary16 at the decoder", Dithering(), "exact-marginals",
       value=lambda self, scale, level: _half(scale) * level / self.s)  # fmt: skip
mutant("L1 norm", Dithering(), "exact-marginals", scale=lambda self, x: float(np.float32(np.abs(x).sum() * 1.000001)))
mutant("max norm under the claim of the L2 norm", Dithering(s=1), "constant-reached",
       scale=lambda self, x: float(np.abs(x).max()))  # fmt: skip
mutant("norm accumulated in binary32", Dithering(), "extremes",
       scale=lambda self, x: _narrow_norm(x))  # fmt: skip
mutant("d/k missing", RandomK(), "enumeration", factor=lambda self, d: 1.0)
mutant("k/d for d/k", RandomK(), "enumeration", factor=lambda self, d: self.k(d) / d)
mutant("d - 1", RandomK(), "enumeration", factor=lambda self, d: max(1.0, (d - 1) / self.k(d)))


def _half(value: float) -> float:
    """Rounded to the 11 significant bits of binary16, any exponent."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * 2**11), exponent - 11)


def _narrow_norm(x: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        return float(np.sqrt((x * x).sum(dtype=np.float32)))


SIGN_SCALES: dict[str, Callable[[np.ndarray], float]] = {
    "sign scale |x|_2/sqrt d": lambda x: float(np.linalg.norm(x.astype(np.float64))) / math.sqrt(x.size),
    "sign scale max": lambda x: float(np.abs(x).max()),
    "sign scale sum": lambda x: float(np.abs(x.astype(np.float64)).sum()),
    "sign scale median": lambda x: float(np.median(np.abs(x))),
    "sign scale 1": lambda x: 1.0,
    "sign scale, mean over non-zeros": lambda x: float(np.abs(x.astype(np.float64))[x != 0].mean()) if x.any() else 0.0,
}
for name, scale in SIGN_SCALES.items():
    mutant(name, MeanSign(), "sure-contraction", scale=lambda self, x, scale=scale: scale(x))


# -- selection ---------------------------------------------------------------------------------------------------
def _fewer(self: Largest, x: np.ndarray) -> list[int]:
    order = sorted(range(x.size), key=lambda i: (-abs(float(x[i])), i))
    kept = order[: max(1, self.k(x.size) - 1)]
    return sorted(kept + order[-(self.k(x.size) - len(kept)) :] if len(kept) < self.k(x.size) else kept)


def _smallest(self: Largest, x: np.ndarray) -> list[int]:
    return sorted(sorted(range(x.size), key=lambda i: abs(float(x[i])))[: self.k(x.size)])


def _signed(self: Largest, x: np.ndarray) -> list[int]:
    return sorted(sorted(range(x.size), key=lambda i: -float(x[i]))[: self.k(x.size)])


def _replacement(self: RandomK, d: int, key: Key) -> list[int]:
    return (uniform(key, self.k(d)) * d).astype(int).tolist()


def _never_last(self: RandomK, d: int, key: Key) -> list[int]:
    u = uniform(key, d)
    u[-1] = 2.0 if self.k(d) < d else 0.0
    return np.argsort(u)[: self.k(d)].tolist()


mutant("k - 1 largest, the k-th spent on a small one", Largest(), "sure-contraction", chosen=_fewer)
mutant("smallest instead of largest", Largest(), "sure-contraction", chosen=_smallest)
mutant("ordered by signed value", Largest(), "sure-contraction", chosen=_signed)
mutant("random-k with replacement", RandomK(), "enumeration", chosen=_replacement)
mutant("last index never drawn", RandomK(), "enumeration", chosen=_never_last)
mutant("the same mask at every call", RandomK(), "key-separation", chosen=lambda self, d, key: list(range(self.k(d))))

# -- signs -------------------------------------------------------------------------------------------------------
mutant("sign lost", Dithering(), "exact-marginals", read_sign=lambda self, bit: 1.0)
mutant("sign negated", Dithering(), "exact-marginals", read_sign=lambda self, bit: 1.0 if bit == "1" else -1.0)
mutant("sign(0) = 0 smuggled in as a second bit", MeanSign(), "declared-size",
       sign=lambda self, v: "00" if v == 0 else "01" if v < 0 else "10",
       read=lambda self, reader, d, key: reader.float32()
       * np.array([{"00": 0, "01": -1, "10": 1, "11": 0}[reader.take(2)] for _ in range(d)]))  # fmt: skip
mutant("-0.0 counts as negative", MeanSign(), "negative-zero",
       sign=lambda self, v: "1" if math.copysign(1, v) < 0 else "0")  # fmt: skip

# -- codec -------------------------------------------------------------------------------------------------------


def _gamma_of_zero(self: Dithering, x: np.ndarray, key: Key) -> str:
    scale = self.scale(x)
    levels = [
        self.level(self.s * abs(v) / scale, u) for v, u in zip(x.tolist(), self.uniform(key, x.size), strict=True)
    ]
    return float32(scale) + "".join("0" * math.floor(math.log2(n)) + f"{n:b}" for n in levels)


def _sign_of_zero_written(self: Dithering, x: np.ndarray, key: Key) -> str:
    text = [float32(self.scale(x))]
    for v, u in zip(x.tolist(), self.uniform(key, x.size), strict=True):
        level = self.level(self.s * abs(v) / self.scale(x), u)
        text.append("1" + self.sign(v) + self.level_text(level) if level else "0" + self.sign(v))
    return "".join(text)


def _unfinished(self: Operator, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
    text = "".join(map(str, np.unpackbits(payload)[:bits].tolist()))
    return np.asarray(self.read(Reader(text), d, key), np.float32)  # type: ignore[attr-defined]


def _forgiving(self: Operator, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
    text = "".join(map(str, np.unpackbits(payload)[:bits].tolist()))
    reader = Reader(text.ljust(32 + 4 * d, "0"))
    return np.asarray(self.read(reader, d, key), np.float32)  # type: ignore[attr-defined]


def _contiguous_memory(self: Operator, x: Any, *, key: Key) -> Message:
    if isinstance(x, torch.Tensor) and x.dtype == torch.float32:
        x = x.detach().untyped_storage()
        x = torch.frombuffer(bytearray(bytes(x)), dtype=torch.float32)
    return Largest.encode(self, x, key=key)  # type: ignore[arg-type]


mutant("Elias code of a level that may be 0", Dithering(), "output-form", write=_gamma_of_zero)
mutant("sign bit written for zeros, not read", Dithering(), "output-form", write=_sign_of_zero_written)
mutant("Rice remainder one bit narrower than read", Largest(), "output-form",
       low_text=lambda self, gap: unsigned(gap % 2 ** (self.low - 1), self.low - 1))  # fmt: skip
mutant("index kept in 16 bits", Largest(), "lengths",
       index=lambda self, previous, gap: (previous + 1 + gap) % (1 << 16))  # fmt: skip
mutant("strided view read as contiguous", Largest(), "circumstances", encode=_contiguous_memory)
mutant("bytes left over accepted", MeanSign(), "corruption", _decode=_unfinished)
mutant("missing bits read as zeros", MeanSign(), "corruption", _decode=_forgiving)
mutant("bits declared for d only, scale forgotten", MeanSign(), "declared-size", bits=lambda self, d: Size.fixed(d))
mutant("expected length declared too small", Dithering(), "expected-size",
       bits=lambda self, d: Size(expected_upper=32 + 1.2 * d))  # fmt: skip
mutant("worst case declared too small", Dithering(), "declared-size",
       bits=lambda self, d: Size(worst_case=32 + 2 * d))  # fmt: skip

# -- values ------------------------------------------------------------------------------------------------------


def _unguarded(self: Dithering, x: np.ndarray, key: Key) -> str:
    with np.errstate(all="ignore"):
        norm = np.float32(np.linalg.norm(x.astype(np.float64)))
        levels = np.float32(self.s) * np.abs(x) / norm
    return float32(float(norm)) + "".join(
        "0" if v == 0 else "1" + self.sign(v) + self.level_text(int(v)) for v in levels
    )


def _empty_mean(self: TwoMeans, entries: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(entries.sum()) / np.float64(entries.size))


def _clipped(self: Ternary, x: np.ndarray, key: Key) -> str:
    limit = 2.5 * float(x.astype(np.float64).std())
    return Ternary.write(self, np.clip(x, -limit, limit).astype(np.float32) if limit else x, key)


mutant("no guard for the zero vector", Dithering(), "zero", write=_unguarded)
mutant("0/0 in an empty sign class", TwoMeans(), "output-form", mean=_empty_mean)
mutant("exponents clamped at 2^-30", Natural(), "exact-marginals", code=lambda self, e: max(e, -30) + 150)
mutant("subnormal range reached too early", Dithering(), "exact-marginals",
       scale=lambda self, x: 0.0 if np.abs(x).max() < 2.0**-100 else Dithering.scale(self, x))  # fmt: skip
mutant("TernGrad clipped and still called unbiased", Ternary(), "exact-marginals", write=_clipped)
mutant("NaN replaced by zero in silence", MeanSign(), "input-contract",
       encode=lambda self, x, *, key: MeanSign.encode(self, torch.as_tensor(x).nan_to_num(), key=key))  # fmt: skip
mutant("half input computed in half precision", MeanSign(), "circumstances",
       encode=lambda self, x, *, key: MeanSign.encode(
           self, x / x.abs().max() if isinstance(x, torch.Tensor) and x.dtype == torch.float16 else x, key=key
       ))  # fmt: skip


# -- rotation ----------------------------------------------------------------------------------------------------
def _no_inverse_signs(self: Rotated, z: np.ndarray, key: Key) -> np.ndarray:
    p, x = 1 << (z.size.bit_length() - 1), np.array(z, np.float64)
    if p < z.size:
        x[-p:] = rotation.hadamard(x[-p:])
    x[:p] = rotation.hadamard(x[:p])
    return x


def _drive_write(self: Rotated, x: np.ndarray, key: Key) -> str:
    z = self.forth(x, key)
    wide = x.astype(np.float64)
    scale = float(wide @ wide) / float(np.abs(z).sum()) if x.any() else 0.0
    return float32(scale) + "".join("01" if v >= 0 else "11" for v in z)


mutant("inverse rotation without its signs", Rotated(), "unbiasedness", back=_no_inverse_signs)
mutant("the same rotation and words on all workers", Rotated(), "key-separation",
       write=lambda self, x, key: Rotated.write(self, x, key.shared()),
       read=lambda self, reader, d, key: Rotated.read(self, reader, d, key.shared()))  # fmt: skip
mutant("one Hadamard rotation declared unbiased (DRIVE)", Rotated(), "enumeration", write=_drive_write,
       claim=lambda self, d: Unbiased(max(0.5708, 0.5 * (math.sqrt(d) - 1)) if d > 1 else 0.0))  # fmt: skip


# -- dither ------------------------------------------------------------------------------------------------------
mutant("dither subtracted twice", Subtractive(), "exact-marginals",
       undo=lambda self, n, key: n - 2 * self.dither(key, n.size))  # fmt: skip
mutant("dither not subtracted", Subtractive(), "exact-marginals", undo=lambda self, n, key: n)
mutant("decoder's words offset by one", Subtractive(), "distortion",
       undo=lambda self, n, key: n - (bits32(key, n.size, start=1) + 0.5) * 2.0**-32)  # fmt: skip


# -- keys and state ----------------------------------------------------------------------------------------------
def _global_draw(self: Dithering, key: Key, d: int) -> np.ndarray:
    return np.random.random_sample(d)  # noqa: NPY002  the mistake


def _reseeding(self: Dithering, key: Key, d: int) -> np.ndarray:
    np.random.seed(key.seed % (1 << 32))  # noqa: NPY002  the mistake
    return np.random.random_sample(d)  # noqa: NPY002


def _mutating(self: MeanSign, x: np.ndarray, key: Key) -> str:
    text = MeanSign.write(self, x, key)
    x[x < 0] = 0.0
    return text


class _Memory:
    last = 0.0


def _remembering(self: MeanSign, x: np.ndarray) -> float:
    _Memory.last = 0.9 * _Memory.last + 0.1 * float(np.abs(x).mean())
    return _Memory.last


mutant("numpy's global generator", Dithering(), "random-state", uniform=_global_draw)
mutant("the caller's generator re-seeded", Dithering(), "random-state", uniform=_reseeding)
mutant("the input overwritten", MeanSign(), "no-mutation", write=_mutating)
mutant("hidden state from call to call", MeanSign(), "determinism", scale=_remembering)
mutant("step ignored by the key", Dithering(), "key-separation",
       uniform=lambda self, key, d: uniform(replace(key, step=0), d))  # fmt: skip
mutant("half of the words shared by all ranks", Dithering(), "independent-streams",
       uniform=lambda self, key, d: np.where(np.arange(d) % 2, uniform(key, d), uniform(key.shared(), d)))  # fmt: skip
mutant("private by declaration, key read by the decoder", RandomK(), "private-randomness",
       randomness="private", decode=lambda self, message, *, d, key=None: (
           RandomK.decode(self, message, d=d, key=key or Key(0))))  # fmt: skip
mutant("decode needs no key though shared", Subtractive(), "private-randomness",
       decode=lambda self, message, *, d, key=None: (
           Subtractive.decode(self, message, d=d, key=key or Key(0))))  # fmt: skip
mutant("__call__ by another path than the codec", MeanSign(), "round-trip",
       __call__=lambda self, x, *, key: x)  # fmt: skip


def _variance(self: Dithering, rounded: np.ndarray, x: np.ndarray) -> float:
    wide, norm = np.abs(rounded.astype(np.float64)), float(np.linalg.norm(x.astype(np.float64)))
    rest = np.mod(self.s * wide / norm, 1)
    return float((rest * (1 - rest)).sum()) / self.s**2


# -- claims ------------------------------------------------------------------------------------------------------
def claiming(what: str, parent: Operator, law: str, claim: Callable[[int], Claim]) -> None:
    mutant(what, parent, law, claim=lambda self, d: claim(d))


claiming("omega halved", Natural(), "exact-marginals", lambda d: Unbiased(1 / 16))
mutant("claim_at misses the rounding of small entries", Dithering(), "exact-marginals",
       claim_at=lambda self, x: Unbiased(_variance(self, np.where(np.abs(x) > 0.1 * np.abs(x).max(), x, 0), x)),
)  # fmt: skip
claiming("omega = 0 declared", Ternary(), "exact-marginals", lambda d: Unbiased(0.0))
claiming("alpha halved", Largest(), "sure-contraction", lambda d: StrictlyContractive((1 - max(1, d // 4) / d) / 2))
claiming("strict contraction of an average one", MaskedK(), "sure-contraction",
         lambda d: StrictlyContractive(1 - max(1, d // 2) / d))  # fmt: skip
claiming("average contraction too good", MaskedK(), "distortion",
         lambda d: Contractive(0.9 * (1 - max(1, d // 2) / d)))  # fmt: skip
claiming("a loose constant called tight", Subtractive(), "exact-marginals", lambda d: Unbiased(0.53, tight=True))
claiming("a very loose constant called tight", RandomK(), "constant-reached", lambda d: Unbiased(3.0, tight=True))
claiming("a contraction called tight", MeanSign(), "sure-contraction",
         lambda d: StrictlyContractive(1 - 1 / d, tight=True))  # fmt: skip


# -- what the remaining laws are for -----------------------------------------------------------------------------
def _floor_of_signed(self: Dithering, x: np.ndarray, key: Key) -> str:
    """Unbiased, but C(-x) is not -C(x)."""
    scale = self.scale(x)
    text = [float32(scale)]
    for v, u in zip(x.tolist(), self.uniform(key, x.size), strict=True):
        level = math.floor(self.s * v / scale + u)
        text.append("1" + self.sign(level) + self.level_text(abs(level)) if level else "0")
    return "".join(text)


def _first_entry_heavy(self: TwoMeans, x: np.ndarray, key: Key) -> str:
    weights = np.ones(x.size)
    weights[0] = 1.001
    means = [float(np.average(x[s], weights=weights[s])) if s.any() else 0.0 for s in (x >= 0, x < 0)]
    return "".join(map(float32, means)) + "".join("1" if v < 0 else "0" for v in x.tolist())


class _Stash:
    kept: dict[int, np.ndarray] = {}  # noqa: RUF012  the mistake: a side channel


def _stashing(self: MeanSign, x: np.ndarray, key: Key) -> str:
    _Stash.kept[x.size] = x.copy()
    return MeanSign.write(self, x, key)


def _from_stash(self: MeanSign, reader: Reader, d: int, key: Key | None) -> np.ndarray:
    MeanSign.read(self, reader, d, key)
    return _Stash.kept[d]


claiming("alpha 3 % too small", Largest(), "adversarial-search",
         lambda d: StrictlyContractive(0.97 * (1 - max(1, d // 4) / d)))  # fmt: skip
mutant("an absolute epsilon in the scale", MeanSign(), "scale",
       scale=lambda self, x: float(np.abs(x.astype(np.float64)).mean()) + 1e-8)  # fmt: skip
mutant("signed values floored, said to be odd", Dithering(), "sign", write=_floor_of_signed)
mutant("the first entry weighs more", TwoMeans(), "permutation", write=_first_entry_heavy)
mutant("the vector handed over in a side channel", MeanSign(), "payload-alone", write=_stashing, read=_from_stash)
mutant("kept entries 2 % short, said to be a projection", TopK(k=1), "projection",
       decode=lambda self, message, *, d, key=None: 0.98 * TopK.decode(self, message, d=d, key=key))  # fmt: skip
for what, changed in {
    "step taken modulo 1000": lambda key: replace(key, step=key.step % 1000),
    "rank added to the seed": lambda key: Key(key.seed + (key.rank or 0), step=key.step, layer=key.layer),
    "seed cut to 32 bits": lambda key: replace(key, seed=key.seed % (1 << 32)),
}.items():
    mutant(what, Dithering(), "key-separation",
           uniform=lambda self, key, d, changed=changed: uniform(changed(key), d))  # fmt: skip


# -- memory ------------------------------------------------------------------------------------------------------
_BUFFERS: dict[int, torch.Tensor] = {}


def _into_a_buffer(self: Operator, message: Message, *, d: int, key: Key | None = None) -> torch.Tensor:
    """Right, but in the memory that every output of this length shares."""
    buffer = _BUFFERS.setdefault(d, torch.empty(d))
    return buffer.copy_(MeanSign.decode(self, message, d=d, key=key))  # type: ignore[arg-type]


def _view_of_the_gradient(self: Identity, x: Any, *, key: Key) -> Message:
    """Right, but the payload lies in the caller's own memory."""
    return Message(canonical_tensor(x).view(torch.uint8), 32 * canonical_tensor(x).numel())


def _viewed(self: Identity, message: Message, *, d: int, key: Key | None = None) -> torch.Tensor:
    if message.bits != 32 * d or not message.payload.clone().view(torch.float32).isfinite().all():
        raise CorruptMessage(f"32 d = {32 * d} bits of finite numbers are sent; got {message.bits}")
    return message.payload.clone().view(torch.float32)


mutant("every output in one buffer", MeanSign(), "kept-output", decode=_into_a_buffer)
mutant("the payload is a view of the gradient", Identity(), "own-message",
       encode=_view_of_the_gradient, decode=_viewed)  # fmt: skip


# -- one coordinate ----------------------------------------------------------------------------------------------
def at_one(parent: Operator, i: int, factor: float) -> Callable[..., torch.Tensor]:
    """The parent's decode with coordinate i (counted from the end where negative) off, beyond 60 coordinates."""

    def decode(self: Operator, message: Message, *, d: int, key: Key | None = None) -> torch.Tensor:
        y = type(parent).decode(self, message, d=d, key=key)
        if d > max(i, 60):
            y[i] *= factor
        return y

    return decode


mutant("coordinate 64 halved", Dithering(), "every-coordinate", decode=at_one(Dithering(), 64, 0.5))
mutant("last element of a long vector dropped", Largest(), "every-coordinate", decode=at_one(Largest(), -1, 0.0))
