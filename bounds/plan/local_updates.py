"""Cost of a candidate on a smooth problem: the best learning rate, tau and number of rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..bound import AssumptionViolated, Bound
from ..claims import Claim, Contractive, NoClaim, Unbiased
from ..interval import Interval
from ..runtime.model import RuntimeModel
from ..runtime.rounds import count_rounds, most_rounds, rounds_by
from ..tau.in_eta import InEta, in_eta
from ..tau.least import least_integer
from ..theorems.compressed_local_sgd import pasgd_compressed, pasgd_compressed_convex, pasgd_two_shot
from ..theorems.local_sgd import pasgd_convex_sharp, pasgd_iterations
from ..theorems.memory import qsparse
from ..theorems.seconds import (
    pasgd_compressed_convex_wall_clock,
    pasgd_compressed_wall_clock,
    pasgd_convex_sharp_wall_clock,
    pasgd_two_shot_wall_clock,
    pasgd_wall_clock,
    qsparse_wall_clock,
)
from .records import UNBIASED_STAGES, Candidate, Option, Refused, Smooth

BY_THE_CLOCK = {  # theorem in rounds -> the same at a random number of rounds
    pasgd_iterations.name: pasgd_wall_clock,
    pasgd_compressed.name: pasgd_compressed_wall_clock,
    pasgd_convex_sharp.name: pasgd_convex_sharp_wall_clock,
    pasgd_compressed_convex.name: pasgd_compressed_convex_wall_clock,
    pasgd_two_shot.name: pasgd_two_shot_wall_clock,
    qsparse.name: qsparse_wall_clock,
}
PARTS = 64  # of an interval of tau, bounded one by one
EDGE = 1e-12  # relative: a number of rounds that is whole but for this counts as whole
ENDLESS = 2**200  # rounds; a target that so many do not reach lies on the floor that rounding had put below it


def theorems_for(
    claim: Claim, problem: Smooth, m: int, second: Unbiased | None = None
) -> tuple[tuple[Bound, ...], dict[str, float]]:
    """Return the Bounds for a claim and the values of their symbols but eta, K and tau; with ``second``, in two shots.

    Where there are two, neither is below the other everywhere: the convex form of compressed averaging asks for a
    smaller learning rate where the operator is coarse.
    """
    values: dict[str, float] = {"gap": problem.gap, "L": problem.L, "sigma2": problem.sigma2, "m": m}
    if second is not None:
        if not isinstance(claim, Unbiased):
            raise Refused(UNBIASED_STAGES)
        return (pasgd_two_shot,), values | {"omega1": claim.omega, "omega2": second.omega}
    if isinstance(claim, NoClaim):
        raise Refused(f"no claim, hence no theorem: {claim.reason}")
    if isinstance(claim, Unbiased):
        if claim.omega == 0:
            return _uncompressed(problem), values
        convex = (pasgd_compressed_convex,) if problem.convex else ()
        return (pasgd_compressed, *convex), values | {"omega": claim.omega}
    assert isinstance(claim, Contractive)
    if claim.alpha == 0:
        return _uncompressed(problem), values
    if problem.G is None:
        raise Refused("a biased compressor needs qsparse, which assumes E|g|^2 <= G^2 for every gradient; give G")
    return (qsparse,), values | {"alpha": claim.alpha, "G": problem.G}


def _uncompressed(problem: Smooth) -> tuple[Bound, ...]:
    return (pasgd_convex_sharp,) if problem.convex else (pasgd_iterations,)


@dataclass(frozen=True)
class Search:
    """The best (eta, tau, rounds) of one candidate."""

    candidate: Candidate
    theorem: Bound
    at: dict[str, float]
    runtime: RuntimeModel
    target: float | None
    time_s: float | None
    eta: float | None

    def best(self) -> Option:
        """Return the option with the best tau of all.

        Raises
        ------
        Refused
            If nothing is feasible.
        """
        if math.isinf(self._cost(1)):
            raise Refused(self._why())
        mean_s = self.runtime.step.mean_s
        tau = least_integer(
            self._cost,
            bound=self._least_between,
            floor=lambda n: max(self._floor(n, mean_s), n * mean_s if self.target is not None else 0.0),
            cap=None if self.time_s is None else max(1, count_rounds(self.time_s, mean_s)),  # a round fits
        )
        option = self._at(tau)
        assert option is not None
        return option

    def _seconds(self, tau: int) -> float:
        """Return seconds per local step."""
        return self.runtime.seconds_per_iteration(tau=tau, bits=self.candidate.bits)

    def _cost(self, tau: int) -> float:
        """Return seconds or error at this tau; infinite where it is not feasible, then at every larger one too."""
        option = self._at(tau)
        if option is None:
            return math.inf
        cost = option.seconds if self.target is not None else option.error
        return math.inf if math.isnan(cost) else cost

    def _least_between(self, a: int, b: int) -> float:
        """At most the cost at every tau strictly between a and b.

        The slowest worker's mean never grows with tau, so that the one at b serves for all of them.  They are cut into
        at most PARTS parts, each with the price of its first tau and as many steps a round as its last.
        """
        first = np.arange(a + 1, b, math.ceil((b - a) / PARTS))
        if not first.size:
            return math.inf
        last = np.append(first[1:] - 1, b - 1)
        averaging_s = self.runtime.seconds_per_averaging(bits=self.candidate.bits)
        compute_s = self._seconds(b) - averaging_s / b
        seconds, round_s = compute_s + averaging_s / last, compute_s * first + averaging_s
        form = in_eta(self.theorem, **self.at, tau=first)
        if self.target is not None:
            rate = form.best_for_target(self.target) if self.eta is None else self.eta
            steps = form.steps_for(rate, self.target)
            least = np.maximum(steps * seconds, np.ceil(steps / last * (1 - EDGE)) * round_s)
            if self.eta is None:
                best = self._best_between(first, last)
                rounds = best.steps_for(best.best_for_target(self.target), self.target) / last
                least = np.maximum(least, np.ceil(rounds * (1 - EDGE)) * round_s)
        else:
            time_s = float(self.time_s or 0)
            steps = np.minimum(time_s / seconds, most_rounds(time_s, round_s) * last)
            rate = form.best_for_steps(steps) if self.eta is None else self.eta
            least = form.value(rate, steps)
            if self.eta is None:
                best, steps = self._best_between(first, last), most_rounds(time_s, round_s) * last
                least = np.maximum(least, best.value(best.best_for_steps(steps), steps) * (1 - EDGE))
        possible = (np.nan_to_num(form.eta_max * (1 + 1e-9), nan=np.inf) >= rate) if self.eta is not None else True
        return float(np.where(possible, np.nan_to_num(least, nan=0.0, posinf=np.inf), np.inf).min())

    def _best_between(self, first: np.ndarray, last: np.ndarray) -> InEta:
        """Return coefficients at ``last`` with which as many rounds as at any tau from ``first`` on give less error.

        With u = eta tau, a bound after R rounds is decrease/(u R) + (first/tau) u + (second/tau^2) u^2, u <= eta_max
        tau.  From tau = 2 on, each of the three quotients only falls or only rises with tau, so that its best value is
        at one of the ends.
        """
        low, high = (in_eta(self.theorem, **self.at, tau=tau) for tau in (first, last))
        ratio = last / first
        return InEta(
            high.decrease,
            np.minimum(low.first * ratio, high.first),
            np.minimum(low.second * ratio**2, high.second),
            np.maximum(low.eta_max / ratio, high.eta_max),
        )

    def _floor(self, tau: int, seconds: float) -> float:
        """Return the cost with the price of this tau, ``seconds`` a local step, and no rounding to whole rounds."""
        form = in_eta(self.theorem, **self.at, tau=tau)
        if not self._covered(tau, form):
            return math.inf
        if self.target is not None:
            rate = float(form.best_for_target(self.target)) if self.eta is None else self.eta
            return float(form.steps_for(rate, self.target)) * seconds
        steps = float(self.time_s or 0) / seconds
        rate = float(form.best_for_steps(steps)) if self.eta is None else self.eta
        return float(form.value(rate, steps))

    def _at(self, tau: int) -> Option | None:
        """Return the option at this tau, in whole rounds; None if there is none."""
        form = in_eta(self.theorem, **self.at, tau=tau)
        if not self._covered(tau, form):
            return None
        round_s = tau * self._seconds(tau)
        if self.target is not None:
            rate = float(form.best_for_target(self.target)) if self.eta is None else self.eta
            steps = float(form.steps_for(rate, self.target))
            if not math.isfinite(steps):
                return None
            rounds = max(math.ceil(steps / tau * (1 - EDGE)), 1)
        else:
            rounds = count_rounds(float(self.time_s or 0), round_s)
            if rounds < 1:
                return None
            rate = float(form.best_for_steps(rounds * tau)) if self.eta is None else self.eta
        return self._made(rate, tau, rounds, round_s, float(form.value(rate, rounds * tau)))

    def _made(self, rate: float, tau: int, rounds: int, round_s: float, error: float) -> Option:
        return Option(
            name=self.candidate.name,
            feasible=True,
            theorem=self.theorem.name,
            status=self.theorem.status,
            eta=rate,
            tau=tau,
            rounds=rounds,
            steps=rounds * tau,
            seconds=rounds * round_s,
            bits=rounds * self.candidate.bits,
            error=error,
        )

    def _covered(self, tau: int, form: InEta) -> bool:
        """Return whether a fixed learning rate meets the theorem's condition, decided exactly near its edge."""
        if self.eta is None or self.eta <= form.eta_max:
            return True
        if self.eta > form.eta_max * (1 + 1e-9):
            return False
        try:
            self._enclosed(self.eta, tau, tau)
        except AssumptionViolated:
            return False
        return True

    def _enclosed(self, rate: float, tau: int, steps: int) -> Interval:
        """Return the enclosure of the theorem's value, every float read as the decimal it prints."""
        constants = {name: str(value) for name, value in self.at.items()}
        return self.theorem.enclose(**constants, eta=str(rate), tau=tau, K=steps)

    def certified(self, option: Option) -> Option:
        """Return the option with the certified error, and as many more rounds as the target then needs.

        Raises
        ------
        Refused
            If no number of rounds reaches the target in exact arithmetic.
        """
        assert option.eta is not None
        if self.time_s is not None:
            return self._by_the_clock(option)
        rounds, extra = option.rounds, 1
        while extra < ENDLESS:
            error = float(self._enclosed(option.eta, option.tau, rounds * option.tau).hi)
            if self.target is None or error <= self.target:
                return self._made(option.eta, option.tau, rounds, option.seconds / option.rounds, error)
            rounds, extra = rounds + extra, 2 * extra
        raise Refused(self._below_floor(option.eta, error))

    def _by_the_clock(self, option: Option) -> Option:
        """Return the option with what is certified of the rounds that end by the budget, whose number may be random."""
        tau, theorem = option.tau, BY_THE_CLOCK[self.theorem.name]
        try:
            ended = rounds_by(self.runtime, time_s=float(self.time_s or 0), tau=tau, bits=self.candidate.bits)
        except ValueError as failure:
            raise Refused(str(failure)) from None
        inverse = float(ended.inverse.hi)
        form = in_eta(self.theorem, **self.at, tau=tau)
        rate = float(form.best_for_steps(tau / inverse)) if self.eta is None else self.eta
        constants = {name: str(value) for name, value in self.at.items()}
        error = float(theorem.enclose(**constants, eta=str(rate), tau=tau, inverse_rounds=inverse).hi)
        rounds = min(option.rounds, max(math.floor(float(ended.expected.lo)), 1))
        timed = self._made(rate, tau, rounds, option.seconds / option.rounds, error)
        return replace(timed, theorem=theorem.name, status=theorem.status)

    def _why(self) -> str:
        """Return which assumption fails at tau = 1."""
        form, tau = in_eta(self.theorem, **self.at, tau=1), 1
        if not self._covered(tau, form):
            self._enclosed(float(self.eta or 0), tau, tau)  # raises AssumptionViolated with the numbers
        if self.target is not None and self.eta is None:
            return f"the target {self.target} needs more steps than a float can count: raise it"
        if self.target is not None:
            return self._below_floor(self.eta, float(form.floor(self.eta)))
        round_s = self.runtime.seconds_per_iteration(tau=tau, bits=self.candidate.bits)
        if round_s <= float(self.time_s or 0):
            return "the error is larger than a float can hold: choose milder constants"
        return f"one round takes {round_s:.6g} s on average, more than time_s = {self.time_s}: raise the budget"

    def _below_floor(self, rate: float | None, floor: float) -> str:
        return (
            f"the target {self.target} is not above {floor:.6g}, what {self.theorem.name} leaves after infinitely "
            f"many steps at eta = {rate}: lower eta"
        )
