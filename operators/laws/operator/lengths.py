"""Law: the claim holds at any length, at any remainder of a length, in any circumstance (statistical, anytime-valid).

Every draw has a vector of its own: a length drawn log-uniformly up to ``budget.large``, of a drawn shape (a power of
two, a multiple of a power of two or of another number, beside one of these); mass on all of it, on its end, on a block,
on its front or on one coordinate; and a circumstance (``operator.circumstances``).  The bets are pooled
(``betting.swarm_bets``).  After a first round the draws go more often where the evidence has grown.  A vector at which
a bet of its own wins is drawn at again while it wins.  Of a strict contraction every draw is judged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, log2

import numpy as np

from bounds.claims import StrictlyContractive, Unbiased

from ..betting.budget import work_s
from ..betting.eprocess import SLACK, inflated
from ..betting.swarm_bets import SwarmBets, Winning
from ..kit.examples import Example
from ..kit.law import SLOW_S, Context, Law, NotApplicable, Violation, fail_if, fresh_key, second_moment
from ..kit.subject import OutOfTime, Subject
from ..kit.verdict import About, Outcome, Verdict
from . import circumstances

BANDS = (1, 64, 1024, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
PLACES = ("everywhere", "at the end", "in a block", "at the front", "at one coordinate")
MODULI = tuple(1 << k for k in range(2, 14))
OTHER_MODULI = (*(n for n in range(3, 16) if n not in MODULI), 100, 1000)
ANY, POWER, BESIDE_POWER = "any length", "a power of two", "beside a power of two"
MULTIPLE, BESIDE_MULTIPLE = "a multiple of a power of two", "beside such a multiple"
OTHER_MULTIPLE, BESIDE_OTHER = "a multiple of another number", "beside one of another number"
SHAPES = (ANY, POWER, BESIDE_POWER, MULTIPLE, BESIDE_MULTIPLE, OTHER_MULTIPLE, BESIDE_OTHER)
FIRST, DRAWS_SHARE = 64, 6  # draws in turn; draws in all, over those that other laws make at one vector
SUSPICION, PATIENT = 3.0, 4  # log-capital that earns more draws; draws at most, over the usual ones
TIME_SHARE, CALL_SHARE = 1.0, 0.06  # seconds of all draws and of the longest one, over the seconds of the budget
LEAST, SLOW_SHARE = 4, 0.02  # draws in any case; share of the seconds for a subject that is slow or already accused
SUSPICIOUS_SHARE = 0.7  # share of the most seconds, with suspicion
PLAIN_SHARE, FOLLOWED = 0.4, 0.6  # share of draws without a circumstance; share of labels that follow the evidence
PIECE = 1 << 13


class Lengths(Law):
    """A wrong tail or block, a narrow index, a wrong path for long vectors, a circumstance that changes the result."""

    name = "lengths"
    statistical = True

    def run(self, subject: Subject, context: Context) -> Verdict:
        """Draw until the bets are decided, or the draws or the time are over."""
        reason = self.applies(subject)
        if reason is not None:
            return Verdict(self.name, Outcome.NOT_APPLICABLE, reason)
        swarm = _Swarm(subject, context)
        try:
            swarm.run()
        except OutOfTime:
            pass
        except Exception as error:  # whatever the subject raises is a finding
            return self.failed(error, swarm.example)
        if not swarm.draws:
            return Verdict(self.name, Outcome.INCONCLUSIVE, "too slow: no vector was tried")
        if not swarm.judged:
            return Verdict(self.name, Outcome.NOT_APPLICABLE, "nothing is claimed at the lengths drawn")
        return Verdict(self.name, Outcome.PASS, swarm.summary(), domain=swarm.domain())

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Say nothing at a single vector: the evidence is that of many."""
        raise NotApplicable("judged by draws at many vectors")


@dataclass
class _Swarm:
    """The draws of one check."""

    subject: Subject
    context: Context
    draws: int = 0
    judged: int = 0  # draws at which something is claimed
    longest: int = 0
    quickest_s: float = 0.0  # of all calls
    pace_s: float = 0.0  # per coordinate, of the slowest long call
    example: Example = field(default_factory=lambda: Example("none", np.zeros(1, np.float32)))

    def __post_init__(self) -> None:
        self.rng = self.context.rng(Lengths.name)
        self.level = self.context.level(1)
        most = self.context.budget.large
        self.pool = self.rng.standard_normal(most + 1, np.float32)
        self.edges = [*(b for b in BANDS if b < most), most + 1]
        self.ends = inf
        self.bands = [f"{a} to {b - 1}" for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)]
        self.circumstances = list(circumstances.names(self.subject))
        self.families = [self.bands, list(PLACES), self.circumstances, list(SHAPES)]
        self.bets = SwarmBets(self.families)  # with half of the level; the bets on single vectors have the rest

    def run(self) -> None:
        """Draw first in turn, then where most was won, and in turn."""
        budget, began = self.context.budget, work_s()
        usual = DRAWS_SHARE * budget.draws
        first = min(FIRST, usual)
        turn = 0
        while turn < usual * PATIENT:
            suspicious = self.bets.peak() > SUSPICION
            seconds = SUSPICIOUS_SHARE * budget.most_seconds if suspicious else TIME_SHARE * budget.seconds
            self.ends = began + SUSPICIOUS_SHARE * budget.most_seconds
            if self.context.accused or self.quickest_s > SLOW_S:
                seconds = SLOW_SHARE * budget.seconds
                self.ends = began + seconds
            if turn >= LEAST and work_s() - began > seconds:
                return
            if turn >= usual and not suspicious:
                return
            place, shape = str(self.rng.choice(PLACES)), str(self.rng.choice(SHAPES))
            labels = [self._band(turn), place, self._circumstance(), shape]
            if turn >= first and turn % 4:
                followed = self.rng.random(len(labels)) < FOLLOWED
                labels = [
                    self.bets.telling(family, label) if follow else label
                    for family, label, follow in zip(self.families, labels, followed, strict=True)
                ]
            turn += 1
            self._draw(labels)
            if self.bets.rejects(self.level / 2):
                raise self._found()

    def _band(self, turn: int) -> str:
        """Return the bands in turn, afterwards the shorter ones more often: they take less time."""
        if turn < 2 * len(self.bands):
            return self.bands[turn % len(self.bands)]
        weight = 1.0 / np.sqrt(1024 + np.array(self.edges[1:], float))
        return str(self.rng.choice(self.bands, p=weight / weight.sum()))

    def _circumstance(self) -> str:
        plain = self.rng.random() < PLAIN_SHARE
        return circumstances.PLAIN if plain else str(self.rng.choice(self.circumstances))

    def _draw(self, labels: list[str]) -> None:
        band, place, circumstance, shape = labels
        number = self.bands.index(band)
        d = self._length(self.edges[number], self.edges[number + 1], shape)
        if d * self.pace_s > CALL_SHARE * self.context.budget.seconds:
            return
        x = self.subject.domain.fit(vector(self.rng, d, place, self.pool))
        if x is None or not x.any():
            return
        self.example = Example(f"mass {place} of {x.size} coordinates, {circumstance}", x)
        began, key = work_s(), fresh_key(self.rng)
        y = circumstances.drawn(self.subject, x, key, circumstance)
        self.quickest_s = min(self.quickest_s or inf, work_s() - began)
        if x.size >= BANDS[3]:
            self.pace_s = min(self.pace_s or inf, (work_s() - began) / x.size)
        if y is None:
            return
        self.draws, self.longest = self.draws + 1, max(self.longest, x.size)
        square, along = compared(x, y)
        fail_if(not np.isfinite(square), f"the output is not finite, {self.example.name}")
        claim = self.subject.claim(x.size)
        s2 = second_moment(claim)
        if s2 is None:
            return
        self.judged += 1
        if isinstance(claim, StrictlyContractive) and not square <= (s2**0.5 + SLACK) ** 2:
            raise Violation(f"|C(x) - x|^2 = {square:.8g} |x|^2, {self.example.name}; claimed at most {s2:.8g} surely")
        rounding = self.subject.rounding
        allowed = inflated(s2) if not rounding else float(inflated(s2) ** 0.5 + rounding) ** 2
        unbiased = isinstance(claim, Unbiased) and not rounding
        self.bets.update(labels, place, along, square, allowed, unbiased=unbiased)
        if unbiased:
            self._pursue(along, square, allowed, circumstance)

    def _pursue(self, along: float, square: float, s2: float, circumstance: str) -> None:
        """Draw at the present vector again while a bet on a bias along it wins."""
        x, wins = self.example.x, Winning(s2)
        wins.pay(along, square)
        needed = wins.needed(self.level / 2, PATIENT * DRAWS_SHARE * self.context.budget.draws)
        while wins.goes_on() and work_s() < self.ends:
            if wins.capital() >= needed:
                raise Violation(
                    f"E C(x) = x rejected, given E|C(x) - x|^2 <= {s2:.6g} |x|^2, at level {self.level:.1e} by "
                    f"{wins.n} draws, {self.example.name}: the mean error along x is {wins.sum / wins.n:+.3g} |x|",
                    About.MEAN,
                )
            y = circumstances.drawn(self.subject, x, fresh_key(self.rng), circumstance)
            if y is None:
                return
            self.draws += 1
            wins.pay(*reversed(compared(x, y)))

    def _length(self, least: int, most: int, shape: str) -> int:
        """Return a length of a shape in [least, most), log-uniform but for that."""
        d = int(2 ** self.rng.uniform(log2(least), log2(most)))
        if shape in (POWER, BESIDE_POWER):
            power = 1 << int(self.rng.integers((least - 1).bit_length(), (most - 1).bit_length()))
            return min(max(power + (0 if shape == POWER else int(self.rng.choice((-1, 1)))), least), most - 1)
        moduli = [m for m in (MODULI if shape in (MULTIPLE, BESIDE_MULTIPLE) else OTHER_MODULI) if m <= d]
        if moduli and shape != ANY:
            modulus = int(self.rng.choice(moduli))
            beside = (1, modulus - 1, int(self.rng.integers(modulus)))[int(self.rng.integers(3))]
            d = d // modulus * modulus + (0 if shape in (MULTIPLE, OTHER_MULTIPLE) else beside)
        return min(max(d, least), most - 1)

    def _found(self) -> Violation:
        capital, what, about = self.bets.mean, "E C(x) = x, given the claimed constant,", About.MEAN
        if self.bets.refutes_constant(self.level / 2):
            capital, what, about = self.bets.size, "E|C(x) - x|^2 as claimed", About.CONSTANT
        gains = capital.gains()
        where = ", ".join(max(family, key=lambda label: gains[label]) for family in self.families)
        return Violation(
            f"{what} rejected at level {self.level:.1e} after {self.draws} draws at lengths up to {self.longest}; most "
            f"was won at: {where}",
            about,
        )

    def domain(self) -> str:
        """Return what was tried."""
        least, most = MODULI[0], max((m for m in MODULI if m <= self.longest), default=MODULI[0])
        ways = f"{len(self.circumstances)} ways of calling"
        return f"lengths up to {self.longest}, remainders modulo {least} to {most}, {ways}"

    def summary(self) -> str:
        """Return how often, and where the mass of the vectors was."""
        return f"{self.draws} draws at {self.domain()}, with mass {', '.join(PLACES)}"


def compared(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return ``|y - x|^2/|x|^2`` and <y - x, x>``/|x|^2``, summed in float64 piece by piece."""
    norm2, square, along = 0.0, 0.0, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(0, x.size, PIECE):
            wide = x[i : i + PIECE].astype(np.float64)
            error = y[i : i + PIECE].astype(np.float64) - wide
            norm2 += float(wide @ wide)
            square += float(error @ error)
            along += float(error @ wide)
    return square / norm2, along / norm2


def vector(rng: np.random.Generator, d: int, place: str, pool: np.ndarray) -> np.ndarray:
    """Return a vector with its mass at a place: float32, shape (d,).

    Parameters
    ----------
    rng : Generator
        Draws it.
    d : int
        Number of coordinates.
    place : str
        One of PLACES.
    pool : ndarray
        Gaussian numbers, more than d, of which it takes a piece.
    """
    chosen = _mass(rng, d, place)
    n = chosen.stop - chosen.start
    offset = int(rng.integers(pool.size - n))
    piece = pool[offset : offset + n]
    kind = int(rng.integers(4))
    if kind == 1:
        piece = np.sign(piece)
    elif kind == 2:
        piece = piece / np.sqrt(np.arange(n, 0, -1, dtype=np.float32))
    elif kind == 3:
        piece = np.where(piece > 0.5, piece, np.float32(0))
    x = np.zeros(d, np.float32)
    x[chosen] = piece if piece.any() else 1.0
    x[chosen] *= np.float32(2.0 ** int(rng.integers(-20, 21)))
    return x


def _mass(rng: np.random.Generator, d: int, place: str) -> slice:
    """Return the coordinates that are not zero."""
    few = min(d, int(2 ** rng.uniform(0, log2(d) + 1e-9)))
    if place == "everywhere":
        return slice(0, d)
    if place == "at the end":
        return slice(d - few, d)
    if place == "at the front":
        return slice(0, few)
    if place == "in a block":
        size = 1 << int(rng.integers(0, max(1, d.bit_length())))
        last = (d - 1) // size
        block = (last, max(0, last - 1), int(rng.integers(last + 1)))[int(rng.integers(3))]
        return slice(block * size, min(d, (block + 1) * size))
    size = 1 << int(rng.integers(0, max(1, d.bit_length())))
    border = size * int(rng.integers(1, d // size + 1)) - int(rng.integers(0, 2))
    i = min((0, d - 1, size, border, int(rng.integers(d)))[int(rng.integers(5))], d - 1)
    return slice(i, i + 1)
