"""Inner products with what a vector quantiser keeps: the forms that quantisers have, and the queries asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..functions.forms.form import name_of
from ..operator import Operator
from .adapt import Library
from .kit.evidence import Draws, Source
from .kit.examples import Example, drawn, structured
from .kit.law import Violation, fresh_key
from .kit.subject import to_numpy

Quantise = Callable[[Any], Any] | tuple[Callable[[Any], Any], Callable[[Any, Any], Any]] | Operator
_STRUCTURED = ("flat", "one-hot, last", "pair (1, 1/2", "pair (1, -1", "one large", "two scales", "alternating")
_SEEDS = 1 << 31


class Quantiser:
    """Estimates of <q, x> from what is kept of x, with fresh randomness at every call.

    Parameters
    ----------
    quantise
        A function ``x -> decoded x``; a pair ``(encode, estimate)`` with ``estimate(q, encode(x))``; an Operator; or,
        if ``seeded``, a function of a seed that returns one of these.
    library : Library
        Of the vectors that it receives, "torch" or "numpy", float32.

    Attributes
    ----------
    fresh
        Whether every call certainly draws new randomness.
    """

    def __init__(self, quantise: Any, library: Library, seeded: bool) -> None:
        if library not in ("torch", "numpy"):
            raise ValueError(f'library must be "torch" or "numpy"; got {library!r}')
        if isinstance(quantise, type) and not seeded:
            raise TypeError(f"expected an instance; got the class {quantise.__name__}: pass seeded=True, or call it")
        pair = isinstance(quantise, tuple) and len(quantise) == 2 and all(map(callable, quantise))
        if not (callable(quantise) or pair):
            raise TypeError(f"expected a function, a pair (encode, estimate) or an Operator; got {quantise!r}")
        if seeded and (pair or isinstance(quantise, Operator)):
            raise TypeError(f"with seeded=True a function of a seed is expected; got {quantise!r}")
        self.quantise, self.library, self.seeded = quantise, library, seeded
        self.fresh = seeded or isinstance(quantise, Operator)
        self.name = repr(quantise) if isinstance(quantise, Operator) else name_of(quantise[0] if pair else quantise)

    def estimates(self, x: np.ndarray, queries: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Of <q, x> for every query: float64, shape (m,).

        Parameters
        ----------
        x : float32, shape (d,)
        queries : float32, shape (m, d)

        Raises
        ------
        Violation
            For an output of another shape, and for estimates that are not finite.
        """
        quantiser = self.quantise(int(rng.integers(_SEEDS))) if self.seeded else self.quantise
        if isinstance(quantiser, tuple):
            code = quantiser[0](self._given(x))
            values = np.array([float(quantiser[1](self._given(q), code)) for q in queries])
        else:
            y = quantiser(x, key=fresh_key(rng)) if isinstance(quantiser, Operator) else quantiser(self._given(x))
            decoded = to_numpy(y)
            if decoded.shape != x.shape:
                raise Violation(f"decoded x has the shape {decoded.shape}; x has {x.shape}")
            values = queries.astype(np.float64) @ decoded
        if not np.isfinite(values).all():
            first = int(np.flatnonzero(~np.isfinite(values))[0])
            raise Violation(
                f"an estimate of <q, x> is {values[first]} at |x| = {np.linalg.norm(x.astype(np.float64)):.4g}"
            )
        return values

    def _given(self, x: np.ndarray) -> Any:
        return torch.from_numpy(x.copy()) if self.library == "torch" else x.copy()


@dataclass(frozen=True, eq=False)
class Bank:
    """The queries asked at one x.

    Parameters
    ----------
    queries : float32, shape (m, d), m >= 2
    names : tuple of str
        Of each.
    exact : ndarray
        <q, x>, shape (m,).
    sizes : ndarray
        ``|q| |x|``, shape (m,).
    """

    queries: np.ndarray
    names: tuple[str, ...]
    exact: np.ndarray
    sizes: np.ndarray

    @property
    def cosines(self) -> np.ndarray:
        """Of the angles between q and x, shape (m,)."""
        return self.exact / self.sizes


def bank(x: np.ndarray, rng: np.random.Generator) -> Bank:
    """Return x itself, a vector orthogonal to it, up to five coordinates and two Gaussian vectors; at d =
    1, 1 and -1.
    """
    named = dict(_queries(x.astype(np.float64), rng))
    queries = np.array(list(named.values()), np.float32)
    wide = queries.astype(np.float64)
    sizes = np.linalg.norm(wide, axis=1) * np.linalg.norm(x.astype(np.float64))
    return Bank(queries, tuple(named), wide @ x.astype(np.float64), sizes)


def _queries(x: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    d, unit = x.size, x / np.linalg.norm(x)
    if d == 1:
        yield from (("1", np.ones(1)), ("-1", -np.ones(1)))
        return
    yield "x/|x|", unit
    across = rng.standard_normal(d)
    across -= (across @ unit) * unit
    yield "orthogonal to x", across / np.linalg.norm(across)
    size = np.abs(x)
    for i in dict.fromkeys((int(size.argmax()), int(size.argmin()), 0, 1, d - 1)):
        yield f"e_{i}", (np.arange(d) == i).astype(np.float64)
    for i in (1, 2):
        yield f"Gaussian {i}", rng.standard_normal(d)


def vectors_of(d: int, norms: tuple[float, ...], rng: np.random.Generator) -> list[Example]:
    """Return structured vectors of norm 1, a Gaussian and a Cauchy one, and one Gaussian vector of each given norm."""
    vectors = [
        Example(e.name, (e.x / np.linalg.norm(e.x.astype(np.float64))).astype(np.float32))
        for e in structured(d)
        if e.name.startswith(_STRUCTURED)
    ]
    vectors += [next(drawn(d, 1, rng))]
    cauchy = list(drawn(d, 2, rng))[1]
    vectors += [Example(cauchy.name, (cauchy.x / np.linalg.norm(cauchy.x.astype(np.float64))).astype(np.float32))]
    for norm in norms:
        g = rng.standard_normal(d)
        vectors.append(Example(f"Gaussian, |x| = {norm:g}, d = {d}", (norm * g / np.linalg.norm(g)).astype(np.float32)))
    return vectors


class QuerySource(Source):
    """Fresh draws of the errors of inner products.

    ``draw`` gives ``(estimate - <q, x>)/(|q| |x|)`` for every query of a vector's bank, shape (n, m).
    """

    def __init__(self, quantiser: Quantiser, banks: dict[str, Bank], rng: np.random.Generator) -> None:
        self.quantiser, self.banks, self.rng = quantiser, banks, rng

    def draw(self, example: Example, n: int) -> Draws:
        """Return n draws at a vector."""
        asked = self.banks[example.name]
        estimates = np.array([self.quantiser.estimates(example.x, asked.queries, self.rng) for _ in range(n)])
        return Draws((estimates - asked.exact) / asked.sizes, np.zeros(n))
