"""Inner products with what a vector quantiser keeps: the forms that quantisers have, and the queries asked."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bounds.special.elementary import InversePowerOfTwoLessOne
from bounds.special.sphere_quantiser import lloyd_max_sphere_distortion

from ..functions.forms import name_of
from ..operator import Operator
from .adapt import Library, _name
from .betting.budget import Budget, spelled
from .betting.eprocess import STAKES, Ledger, SizeBets, inflated, log_growth
from .betting.mean_bets import MeanBets
from .betting.power import Power, bias_along_x, excess
from .kit.examples import Example, drawn, structured
from .kit.law import Violation, fail_if, fresh_key
from .kit.statistical import ClaimBets, Draws, OnMeans, Source, collect
from .kit.subject import to_numpy
from .kit.verdict import Outcome, Report, Verdict

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
            fail_if(decoded.shape != x.shape, f"decoded x has the shape {decoded.shape}; x has {x.shape}")
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


# -- Is a vector quantiser what it claims to be, for inner products: unbiased, with no larger error, above the limit?

OVERHEAD_BITS = 64  # of norms, beside the bits of the coordinates: two in binary32
NORMS = (2.0**-10, 2.0**17)  # the larger one is beyond what 16 bits hold
_AGAIN = 3  # calls that must not all agree
_ROUNDING = 1e-4


def check_inner_product(
    quantise: Any,
    d: int,
    bits: float,
    *,
    omega_ip: float | None = None,
    seeded: bool = False,
    library: Library = "torch",
    norms: tuple[float, ...] = NORMS,
    budget: Budget | None = None,
    seed: int | None = None,
    accept_inconclusive: bool = False,
) -> Report:
    """Judge estimates of inner products: E estimate = <q, x>, ``E(estimate - <q, x>)^2 <= omega_ip |q|^2 |x|^2/d``.

    Both for every q and x, from what a vector quantiser keeps of x.

    Parameters
    ----------
    quantise
        A function ``x -> decoded x`` (the estimate is its inner product with q); a pair ``(encode, estimate)``, called
        as ``estimate(q, encode(x))``; or an Operator.
    d : int
        Dimension of x and q.
    bits : float, bits
        Of each coordinate's code; norms of up to 64 bits in all are free.
    omega_ip : float or None, optional
        The claimed constant; the default is that of TurboQuant for inner products at this d, pi/2 times the distortion
        of bits - 1 bits (``bounds.limits.turboquant_inner_product_worst``).
    seeded : bool, optional
        Whether ``quantise`` is a function of an int that returns one of the above.  The mean is one over random
        rotations: where the rotation is drawn once and kept, pass the function that draws it.
    library : Library, optional
        "torch" or "numpy", what the functions receive, float32.
    norms : tuple of float, optional
        Of x, tried beside 1.
    budget : Budget or None, optional
        How many draws, as for ``check``.
    seed : int or None, optional
        Replays a verdict, as for ``check``.
    accept_inconclusive : bool, optional
        Whether an inconclusive verdict passes, as for ``check``.

    Returns
    -------
    Report
        a Report whose ``ok`` is false with probability at most ``budget.false_alarm`` if the claim is true.

    Raises
    ------
    TypeError
        For what has none of these forms.
    ValueError
        For a wrong d, bits, omega_ip or library.

    Notes
    -----
    The queries are x itself, a vector orthogonal to it, coordinates and Gaussian vectors, at structured and random x.
    """
    budget = Budget() if budget is None else budget
    seed = secrets.randbits(32) if seed is None else seed
    claimed = _claimed(d, bits, omega_ip)
    quantiser, rng = Quantiser(quantise, library, seeded), np.random.default_rng([seed, d])
    examples = vectors_of(d, norms, rng)
    banks = {example.name: bank(example.x, rng) for example in examples}
    source = QuerySource(quantiser, banks, rng)
    verdicts = (_above_the_limit(d, bits, claimed), *_judged(source, examples, claimed, budget))
    given = f"omega_ip={claimed!r}, seeded={seeded}, library={library!r}, norms={norms!r}, seed={seed}"
    given += f", {spelled(budget)}" * bool(spelled(budget))
    reproduce = f"operators.laws.check_inner_product({_name(quantise)}, {d}, {bits!r}, {given})"
    return Report(f"{quantiser.name}, d = {d}, {bits:g} bits", seed, verdicts, reproduce, accept_inconclusive)


def _claimed(d: int, bits: float, omega_ip: float | None) -> float:
    if d != int(d) or d < 1:
        raise ValueError(f"d must be an integer with d >= 1; got d = {d}")
    if not 0 < bits < math.inf:
        raise ValueError(f"bits must satisfy bits > 0; got bits = {bits}")
    if omega_ip is not None:
        if not 0 <= omega_ip < math.inf:
            raise ValueError(f"omega_ip must be finite and >= 0; got omega_ip = {omega_ip}")
        return float(omega_ip)
    if bits not in range(1, 9):
        raise ValueError(f"TurboQuant has 1 to 8 bits; got bits = {bits}: pass omega_ip, the constant that is claimed")
    return math.pi / 2 * lloyd_max_sphere_distortion(int(bits) - 1, d)


def _above_the_limit(d: int, bits: float, claimed: float) -> Verdict:
    """Return whether the claim is possible at all."""
    least = float(InversePowerOfTwoLessOne.kernel(2 * (bits + OVERHEAD_BITS / d)))  # ``inner_product_limit``
    if claimed >= least:
        return Verdict("limit", Outcome.PASS)
    text = (
        f"omega_ip = {claimed:.4g} at {bits:g} bits per coordinate and {OVERHEAD_BITS} bits of norms: no unbiased "
        f"estimate is below {least:.4g}; count the bits again, or the constant"
    )
    return Verdict("limit", Outcome.FAIL, text)


def _judged(source: QuerySource, examples: list[Example], claimed: float, budget: Budget) -> tuple[Verdict, ...]:
    """Return what the edge cases and the draws say."""
    try:
        _zero(source, examples[0])
        repeats = None if source.quantiser.fresh else _repeats(source, examples)
        banks = [source.banks[example.name] for example in examples]
        mean = Bias(banks, claimed, budget.false_alarm / 2, budget.bias)
        error = QueryErrors(banks, claimed, budget.false_alarm / 2)
        if repeats is None:
            draws = collect(source, examples, [mean, error], budget)
    except Exception as found:  # whatever the subject raises is a finding
        text = str(found) if isinstance(found, Violation) else f"raised {type(found).__name__}: {found}"
        return (Verdict("estimates", Outcome.FAIL, text),)
    edges = Verdict("estimates", Outcome.PASS)
    if repeats is not None:
        return edges, Verdict("unbiasedness", Outcome.INCONCLUSIVE, repeats)
    return edges, _verdict("unbiasedness", mean, examples, draws), _verdict("error", error, examples, draws)


def _verdict(law: str, bets: Bias | QueryErrors, examples: list[Example], made: int) -> Verdict:
    if bets.rejected():
        example = examples[bets.richest()]
        return Verdict(law, Outcome.FAIL, bets.finding(), example.name, example.x)
    power = bets.power()
    text = f"{made} draws; {bets.remark()}{power}"
    if isinstance(bets, Bias) and not bets.enough():
        return Verdict(law, Outcome.INCONCLUSIVE, f"{text}; asked for: {bets.bias:g} |x| along x", power=power)
    return Verdict(law, Outcome.PASS, text, power=power)


def _zero(source: QuerySource, example: Example) -> None:
    """Nothing is left of the zero vector."""
    queries = source.banks[example.name].queries
    values = source.quantiser.estimates(np.zeros_like(example.x), queries, source.rng)
    fail_if(np.abs(values).max() > _ROUNDING, f"an estimate of <q, 0> is {values[np.abs(values).argmax()]:.4g}")


def _repeats(source: QuerySource, examples: list[Example]) -> str | None:
    """Return why the mean cannot be judged: an error that is the same at every call."""
    for example in examples:
        errors = source.draw(example, _AGAIN).errors
        if np.ptp(errors, axis=0).max() <= _ROUNDING < np.abs(errors).max() and example.d > 1:
            return (
                f"at {example.name} every call gives the same estimates, with an error: its randomness is not drawn "
                "afresh; pass seeded=True and the function that makes the quantiser from a seed"
            )
    return None


class Bias(OnMeans):
    """Bets on the mean error at every vector: along x, where errors are proportional to <q, x>, and at every query.

    The errors of the m queries are taken as one vector of m coordinates, over the length of their cosines: a shrinking
    of x by a share b is then a bias of b along the direction of the cosines, and their second moment is at most
    m omega_ip/d over that length squared.
    """

    def __init__(self, banks: list[Bank], claimed: float, level: float, asked: float) -> None:
        self.banks = banks
        self.lengths = [float(np.linalg.norm(b.cosines)) for b in banks]
        pairs = list(zip(banks, self.lengths, strict=True))
        moments = [len(b.names) * claimed / b.queries.shape[1] / length**2 for b, length in pairs]
        mean = MeanBets([b.cosines / length for b, length in pairs], moments)
        super().__init__(mean, range(len(banks)), level, asked)

    def update(self, vector: int, draws: Draws) -> None:
        """Bet on a batch."""
        self.mean.update(vector, draws.errors / self.lengths[vector])

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        vector = self.richest()
        moments = self.mean.moments[vector]
        errors = moments.error / max(1, moments.n) * self.lengths[vector]
        worst = int(np.abs(errors).argmax())
        return (
            f"E estimate = <q, x> rejected at level {self.level:.1e}; over all vectors x shrinks by "
            f"{-self.mean.mean_error():+.3g}, and at this one the mean error is {errors[worst]:+.3g} |q| |x| for "
            f"q = {self.banks[vector].names[worst]}"
        )

    def remark(self) -> str:
        """Nothing more."""
        return ""

    def power(self) -> Power:
        """Return what would have been found."""
        return Power(along_x=bias_along_x(self.mean, self.level))


LEAST_EXCESS = 0.4  # of the claimed error, that the draws should show


class QueryErrors(ClaimBets):
    """Bets that d ``(estimate - <q, x>)^2/(|q| |x|)^2`` is larger than claimed: for each query, and on average over
    them.

    The average leaves out q = x, where many quantisers have no error.
    """

    def __init__(self, banks: list[Bank], claimed: float, level: float) -> None:
        self.banks, self.level, self.d = banks, level, banks[0].queries.shape[1]
        self.claimed = self.d * inflated(claimed / self.d)
        self.average = SizeBets([self.claimed] * len(banks), [2] * len(banks))  # all of them count together
        self.single = Ledger((1,), [(STAKES.size,) * len(b.names) for b in banks])

    def update(self, vector: int, draws: Draws) -> None:
        """Bet on a batch; the queries of one draw are not independent, so each has capital of its own."""
        y = self.d * draws.errors**2
        self.average.update(vector, (y[:, 1:] if self.d > 1 else y).mean(axis=1))
        for query in range(y.shape[1]):
            growth = log_growth(1 + STAKES * (y[:, query, None] / self.claimed - 1))
            self.single.pay_own(vector, query, growth)
        self.single.close(vector)

    def rejected(self) -> bool:
        """Return whether either capital has reached its level."""
        return self.average.ledger.rejects(self.level / 2) or self.single.rejects(self.level / 2)

    def enough(self) -> bool:
        """Return whether an error that is larger by ``LEAST_EXCESS`` would be found."""
        return excess(self.average, self.level / 2) <= LEAST_EXCESS

    def richest(self) -> int:
        """Return the vector on which the most was won."""
        return (self.average.ledger if self.average.ledger.rejects(self.level / 2) else self.single).richest()

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        vector = self.richest()
        query = int(np.argmax([group.max() for group in self.single.own[vector]]))
        return (
            f"d E(estimate - <q, x>)^2 <= {self.claimed:.4g} |q|^2 |x|^2 rejected at level {self.level:.1e}; the mean "
            f"is {self.average.ratio(vector):.4g} of it over the queries at this vector, "
            f"{self.average.overall_ratio():.4g} over all, and most is won at q = {self.banks[vector].names[query]}"
        )

    def remark(self) -> str:
        """Return how large the error is."""
        return f"the mean error over the queries tried is {self.average.overall_ratio():.3g} of the claimed; "

    def power(self) -> Power:
        """Return what would have been found."""
        return Power(excess=excess(self.average, self.level / 2))
