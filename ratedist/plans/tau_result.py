"""The number of local steps to use, with the values around it, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from bounds import Setting
from bounds.runtime import count_rounds
from bounds.tau import (
    Derivation,
    TauConvex,
    TauCurved,
    TauStar,
    TauStraggler,
    TauThirdOrder,
    tau_straggler,
    tau_third_order,
)
from bounds.theorems import (
    pasgd_convex_sharp,
    pasgd_runtime,
    pasgd_smooth_sharp,
    pasgd_third_order,
    pasgd_third_order_convex,
)

from ..cluster.cluster import Cluster
from ..numbers import real
from ..records import Answer, Quantity, Statement, number_text
from .problem import LEFT_OUT, RESCALING
from .ranking import bandwidth_text, crossing
from .run import scaled

CONSTANTS = ("L", "sigma2", "gap")
FLAT = 1.05  # times the least bound: what differs less is as good
FASTEST = 1e9  # factor of the bandwidth beyond which links are taken to be instantaneous


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words.

    Parameters
    ----------
    names : sequence of str
        At least one.
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _values(at: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {real(name, at[name]):g}" for name in CONSTANTS)


def _steps_text(steps: int) -> str:
    return "local step" if steps == 1 else f"{number_text(steps)} local steps"


ONE_WORKER = "One worker has nobody to average with: tau changes nothing"


def late_round(cluster: Cluster, steps: int, given: Mapping[str, Any]) -> str:
    """Return the sentence that no round of so many steps ends in the budget; empty if one does.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    steps : int
        Local steps of a round.
    given : mapping of str to Any
        With the length of a message and the budget.
    """
    round_s = Fraction(cluster.step_seconds_value(steps, real("bits", given["bits"]))[0]) * steps
    time_s = Fraction(given["time_s"])
    if count_rounds(time_s, round_s) >= 1:
        return ""
    late = f"{float(round_s):.6g} s, longer than the budget of {float(time_s):g} s"
    return (
        f"A round of {number_text(steps)} steps and its averaging takes {late}: give more time, or average more often"
    )


class TauResult(Quantity):
    """The number of local steps to use, as a float, with the values around it.

    Attributes
    ----------
    lo
        Least tau over estimated or assumed constants; tau itself where all are known.
    hi
        Greatest tau over them.
    tau : int
        The best integer by Theorem 2 (equal to the float itself).
    tau_real : float
        Its real minimiser; of the third-order bound, that of its leading order on a convex F.
    cap : int or None
        The largest tau that the learning rate allows, None if eta L > 1.
    safe : int or None
        tau within that cap: the worst case is covered.
    sharp : int or None
        The best integer within the cap when stragglers count too, so at least as good.
    smooth : int or None
        Of the third-order law, where ``third_derivative`` was given: smooth problems allow that many, kinked ones do
        not; else None.
    rho : float or None
        What was assumed of the curvature: every Hessian >= -rho; None if nothing.
    third_order : dict of str to str
        ``hessian_lipschitz`` and ``kurtosis`` where the third-order bound was minimised; else empty.
    straggling : TauStraggler or None
        The minimum with random step times, which gives ``sharp``; None for the third-order bound.
    """

    tau: int
    tau_real: float
    cap: int | None
    safe: int | None
    sharp: int | None
    smooth: int | None
    rho: float | None
    third_order: dict[str, str]
    straggling: TauStraggler | None

    @property
    def recommended(self) -> int | None:
        """The local steps to use, ``sharp`` where step times vary, else ``safe``; None if no theorem holds."""
        return self.sharp if self.statement.at["cluster"].is_random or self.rho is not None else self.safe

    def derivation(self) -> Derivation:
        """Return the proof, by sympy, that tau_real is the only positive minimiser of the bound.

        Raises
        ------
        ValueError
            With rho > 0 or a Lipschitz Hessian, where the minimiser has no closed form.
        """
        if self.third_order:
            raise ValueError("the third-order bound has no derivation in closed form: see bounds.tau.tau_third_order")
        if self.rho:
            raise ValueError(f"the minimiser for rho > 0 is derived in bounds.tau.price; got rho = {self.rho}")
        return TauStar.derivation() if self.rho is None else TauConvex.derivation()

    def to_dict(self) -> dict[str, Any]:
        """With the values around it."""
        names = ("tau", "tau_real", "recommended", "safe", "sharp", "smooth", "cap", "rho")
        return super().to_dict() | {name: getattr(self, name) for name in names}

    def answer(self) -> Answer:
        """Return how often to average, what that rests on, and where the choice turns."""
        shown = super().answer()
        cluster, given = self.statement.at["cluster"], self.statement.at
        if cluster.workers == 1:
            return replace(shown, facts={"status": shown.facts["status"]}, follow_up="")
        bits, steps = real("bits", given["bits"]), self.recommended
        averaging_s = cluster.averaging_s(bits).midpoint
        best = "no number of steps" if steps is None else f"every {_steps_text(steps)}"
        averaging = f"takes {averaging_s:.3g} s, as long as {averaging_s / (cluster.step_s or 1):.3g} local steps"
        facts = {
            "best guess": "" if self.certified else f"{best}, if {_values(given)}",
            "status": f"{shown.facts['status']}; minimises a bound on the error",
            "how sure": self._flat(steps),
            "changes with": self._changes(cluster, bits, steps),
            "one averaging": averaging if cluster.step_s else "",
            "no stragglers": self._without_stragglers() if cluster.is_random and not self.third_order else "",
            "learning rate": self._rate(),
            "smooth losses": "" if self.smooth is None else f"every {_steps_text(self.smooth)}, by the third-order law",
        }
        command = "" if self.certified else f"ratedist plan --pilot pilot.json --workers {cluster.workers}"
        evidence = {**shown.evidence}
        if self.certified and steps not in (None, self.tau):
            why = "the learning rate allows no more" if steps == self.cap else "waiting for stragglers is counted"
            published = f"{self.theorem} gives {number_text(self.tau)} exactly, for steps of equal length"
            evidence["interval"] = f"{published}; the answer is {number_text(steps)} because {why}"
        return replace(shown, facts=facts, evidence=evidence, follow_up=self._follow_up(), command=command)

    @property
    def verdict(self) -> str:
        """How often to average."""
        steps, given = self.recommended, self.statement.at
        cluster = given["cluster"]
        if cluster.workers == 1 and self.safe is not None:
            return f"{ONE_WORKER}."
        if steps is None and self.rho is not None:
            return "Any number of steps: here local steps cost nothing."
        if not self.certified and self.lo < self.hi:
            names = self.statement.assumed and [
                name for name in CONSTANTS if any(text.startswith(f"{name} =") for text in self.statement.assumed)
            ]
            why = f"{listed(names)} {'were' if len(names) > 1 else 'was'} not given" if names else "estimates are wide"
            ends = f"{number_text(self.lo)} and {number_text(self.hi)}".replace("inf", "any number of")
            return f"Not decided: between {ends} local steps (optimizer steps), because {why}."
        if steps is None:
            return f"No number of steps: eta L > 1 is outside Theorem 1; lower eta from {given['eta']}."
        if late := late_round(cluster, steps, given):
            return f"{late}."
        counted = "not counted" if self.third_order else "counted"
        waiting = f"; waiting for stragglers is {counted}" if cluster.is_random else ""
        if steps == 1:
            return f"Average after every step of the optimizer{waiting}."
        return f"Average every {_steps_text(steps)} (optimizer steps){waiting}."

    def _without_stragglers(self) -> str:
        """Return what would be best if every step took its mean time."""
        if self.safe is None:
            return ""
        return f"every {_steps_text(self.safe)}, if each took its mean time"

    def _flat(self, steps: int | None) -> str:
        """Return how far from the best the bound is hardly greater."""
        if steps is None or self.straggling is None or not self.certified:
            return ""
        if late_round(self.statement.at["cluster"], steps, self.statement.at):
            return ""
        least, most = self.straggling.near(steps, FLAT)
        others = " and at ".join(number_text(n) for n in (least, most) if n != steps)
        return f"at {others} steps the bound is at most {FLAT - 1:.0%} greater" if others else ""

    def _rate(self) -> str:
        """Return how long a round the learning rate allows, and how to change it with tau or the workers."""
        allows = "" if self.cap is None else f"the theorem covers rounds up to tau = {number_text(self.cap)} at it; "
        return f"{allows}{RESCALING}"

    def _changes(self, cluster: Cluster, bits: float, steps: int | None) -> str:
        if not self.certified:
            return "longer rounds if gap is larger, shorter if L or sigma2 is"
        return "" if steps is None else self._turn(cluster, bits, steps)

    def _turn(self, cluster: Cluster, bits: float, steps: int) -> str:
        """Return the bandwidth at which the choice becomes to average after every step, or that there is none."""
        if cluster.workers == 1 or not bits:
            return ""
        problem = {name: real(name, self.statement.at[name]) for name in ("gap", "eta", "L", "sigma2", "time_s")}

        def best(scale: float) -> int | None:
            runtime = scaled(cluster, "between", bandwidth=scale).model()
            if self.third_order:
                delay_s = runtime.seconds_per_averaging(bits=bits)
                m, rho = cluster.workers, self.rho
                return tau_third_order(**problem, delay_s=delay_s, m=m, rho=rho, **self.third_order).integer
            straggling = tau_straggler(runtime=runtime, bits=bits, rho=self.rho, **problem)
            return straggling.capped if self.rho is None else straggling.integer

        def is_one(scale: float) -> bool:
            return best(scale) == 1

        if steps > 1 and not is_one(FASTEST):
            fastest = best(FASTEST)
            if fastest == steps:
                return "not with the bandwidth: instant links change nothing"
            return f"little with the bandwidth: every {fastest} steps with instant links"
        if steps == 1 and is_one(1 / FASTEST):
            return "no bandwidth makes longer rounds best"
        factor = crossing(lambda scale: is_one(scale) == (steps == 1), FASTEST if steps > 1 else 1 / FASTEST)
        assert factor is not None
        turned = bandwidth_text(factor, cluster)
        best_there = f"every step is best above {turned}" if steps > 1 else f"longer rounds are best below {turned}"
        return f"bandwidth: {best_there}"

    def _costs_nothing(self) -> bool:
        cluster = self.statement.at["cluster"]
        return not cluster.is_random and not cluster.averaging_s(real("bits", self.statement.at["bits"])).hi

    def _follow_up(self) -> str:
        if not self.certified:
            return "or measure, and plan with it"
        if self.rho is not None or self.recommended is None or self._costs_nothing():
            return ""
        return "let the run choose tau from measurements: PeriodicAveraging(schedule='auto')"


def published_statement(
    cluster: Cluster,
    given: dict[str, str],
    delay_s: float,
    best: TauStar,
    sharp: int | None,
    function: Callable[..., Any],
) -> Statement:
    """Return what is said where nothing is known of the curvature."""
    cap, safe = best.cap, best.capped
    if cap is None:
        advice = f"eta L > 1 is outside Theorem 1: lower eta from {given['eta']} before trusting any tau"
    else:
        waiting = "" if sharp is None or sharp == safe else f", every {number_text(sharp)} if stragglers count too"
        assert safe is not None
        every = "step" if safe == 1 else f"{number_text(safe)} steps"
        pays = delay_s or cluster.is_random
        smooth = "; on smooth losses more pays: schedule='auto' measures how many while training" if pays else ""
        advice = f"Average every {every} to be safe in the worst case{waiting}{smooth}"
    return Statement(
        quantity="local steps between two averagings that minimise the published error bound",
        unit="step",
        side="tight",
        theorem="tau_star",
        reference="wang2018, Theorem 2, arXiv:1810.08313",
        status="proved",
        about="minimiser of pasgd_runtime, a bound, not of the error itself",
        needs=pasgd_runtime.setting.hypotheses(),
        assumptions=(
            "counting only rounds ended by time_s adds about one round in N to the bound (rd.error_bound), and the "
            "best tau may differ while rounds are few",
            f"one averaging takes D = {delay_s:.6g} s on {cluster.in_words()}; sharp counts its random steps",
            f"eta*L + (eta*L)**2*tau*(tau - 1) <= 1 holds {_up_to(cap, given)}",
        ),
        advice=advice,
        assumed=cluster.assumed(),
        left_out=LEFT_OUT,
        formula=TauStar.latex(),
        at={**given, "cluster": cluster},
        function=function,
    )


def _up_to(cap: int | None, given: dict[str, str]) -> str:
    if cap is None:
        return f"at no tau: eta*L = {float(Fraction(given['eta']) * Fraction(given['L'])):.6g}"
    return f"up to tau = {number_text(cap)}"


def curved_statement(
    plain: Statement, rho: Fraction, tau: int, sharp: int | None, function: Callable[..., Any]
) -> Statement:
    """Return what is said where the curvature is known, from what is said without."""
    bound = pasgd_smooth_sharp if rho else pasgd_convex_sharp
    waiting = "" if sharp is None or sharp == tau else f", every {number_text(sharp)} if stragglers count too"
    every = "step" if tau == 1 else f"{number_text(tau)} steps"
    classed = f"of every F whose Hessians are >= -{float(rho):g}" if rho else "of every convex F"
    return replace(
        plain,
        quantity=f"local steps between two averagings that minimise the bound {bound.name} in seconds",
        theorem="tau_curved" if rho else "tau_convex",
        reference=str(bound.reference),
        about=f"minimiser of {bound.name} in seconds, a bound, not of the error itself",
        needs=Setting(bound.setting.needs | pasgd_runtime.setting.needs, bound.setting.concludes).hypotheses(),
        assumptions=(*plain.assumptions[:-1], "eta*L <= 1; no tau is too long for it"),
        advice=f"Average every {every} to be safe in the worst case {classed}{waiting}",
        formula=TauCurved.latex() if rho else TauConvex.latex(),
        function=function,
    )


def third_order_statement(
    plain: Statement, rho: float | None, tau: int, third_order: dict[str, str], function: Callable[..., Any]
) -> Statement:
    """Return what is said where the Hessian is Lipschitz, from what is said without."""
    bound = pasgd_third_order if rho else pasgd_third_order_convex
    Q, kurtosis = (float(Fraction(text)) for text in third_order.values())
    every = "step" if tau == 1 else f"{number_text(tau)} steps"
    return replace(
        plain,
        quantity=f"local steps between two averagings that minimise the bound {bound.name} in seconds",
        theorem="tau_third_order",
        reference=str(bound.reference),
        about=f"minimiser of {bound.name} in seconds, a bound, not of the error itself",
        needs=Setting(bound.setting.needs | pasgd_runtime.setting.needs, bound.setting.concludes).hypotheses(),
        assumptions=(
            *plain.assumptions[:-2],
            "steps take their mean time: stragglers are not counted",
            "eta*L <= 1; no tau is too long for it",
        ),
        advice=(
            f"Average every {every} to be safe in the worst case of every F whose Hessian is {Q:g}-Lipschitz and >= "
            f"{-rho if rho else 0:g}, at a kurtosis of {kurtosis:g} at most"
        ),
        formula=TauThirdOrder.latex(),
        function=function,
    )
