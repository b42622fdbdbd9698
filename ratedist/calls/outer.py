"""Which outer steps are stable: the stable region, the best rate and momentum, noise, libraries' choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bounds.dynamics.outer import (
    AVERAGING,
    Merge,
    OuterStep,
    Workers,
    best_outer,
    blended,
    eigenvalues,
    largest_lr,
    merge_of,
    variance_of,
    worst_factor,
)
from bounds.dynamics.outer.merge import BLOCKING
from bounds.frame import frame

from .. import numbers
from ..numbers import real, refusal, whole
from ..records import Answer, Answered, Table, plain
from .arguments import Control
from .call import Call, Command, Route

if TYPE_CHECKING:
    from pandas import DataFrame

Rule = Literal["blocking", "overwrite", "delayed", "eager", "corrected"]
WORKERS = 4
NOISE = "error: of a round; noise: over that of plain blocking averages in the same direction"
MOMENTA = (0.0, 0.5, 0.9)
MOST_STEPS = 10**6  # of a round
MOST_MOMENTA = 64
EDGE = 1e-9  # a factor nearer to 1 is rounding
MODEL = (
    "SGD inside, quadratics with curvature in [mu, L] and the same data: an outer step that diverges here cannot be "
    "trusted anywhere, one that contracts here may still fail on a network"
)


@dataclass(frozen=True)
class OuterDefault:
    """The outer step that one library takes by default, recalled; a version may differ.

    Parameters
    ----------
    library : str
        Whose.
    lr : float
        Outer learning rate.
    momentum : float
        Nesterov momentum.
    in_flight : str or None
        Merge rule for averages that arrive late; None if all wait, "" if it is none of the five that are known.
    """

    library: str
    lr: float
    momentum: float
    in_flight: str | None

    def merge(self, delay: int) -> str:
        """Return the merge rule that it uses for averages that arrive ``delay`` steps late."""
        return "blocking" if delay == 0 or self.in_flight is None else self.in_flight


DEFAULTS = (
    OuterDefault("torchft LocalSGD", 1.0, 0.0, None),
    OuterDefault("torchft DiLoCo (its example)", 0.7, 0.9, "overwrite"),
    OuterDefault("OpenDiLoCo", 0.7, 0.9, None),
    OuterDefault("MaxText DiLoCo", 0.3, 0.9, "overwrite"),
    OuterDefault("Streaming DiLoCo (the paper)", 0.4, 0.9, ""),
)


@dataclass(frozen=True)
class OuterAdvice(Answered):
    """What one round of local steps lets an outer step do, on quadratics.

    Parameters
    ----------
    merge : str
        Merge rule.
    delay : int
        Steps done while a message travels.
    h_min : float
        What a round takes off an error in the flattest direction, 1 - (1 - eta mu)^tau.
    h_max : float
        The same in the steepest.
    limits : tuple of dict
        For each "momentum" the "lr" below which Nesterov steps are stable.
    best : dict
        "lr" and "momentum" that contract fastest, the "factor" a round, the "noise" and the "loss".
    rows : tuple of dict
        The same with "name" and "merge" for plain averaging, for the step asked about, and for what libraries choose;
        "fate" is "contracts", "diverges", "stands still" or "not known"; "factor" is None where the merge rule is not
        known, "noise" where nothing is stationary or rounding hides it.
    about : str
        What the model is.
    assumed : tuple of str, optional
        What the caller did not state, with the values that were taken.
    """

    merge: str
    delay: int
    h_min: float
    h_max: float
    limits: tuple[dict[str, float], ...]
    best: dict[str, Any]
    rows: tuple[dict[str, Any], ...]
    about: str = MODEL
    assumed: tuple[str, ...] = ()

    def answer(self) -> Answer:
        """Return which outer step is best on quadratics, and which rates are stable there."""
        best, asked = self.best, next((row for row in self.rows if row["name"] == "asked"), None)
        step = f"outer rate {best['lr']:.4g} with momentum {best['momentum']:.4g}"
        if asked is None:
            verdict = f"Fastest on quadratics: {step}, error {_fate(best)} a round."
        else:
            verdict = f"The step asked about {asked['fate']} on quadratics: error {_fate(asked)} a round."
        names = ("outer step", "rate", "momentum", "merge", "error", "noise")
        rows = tuple(
            (row["name"], f"{row['lr']:.4g}", f"{row['momentum']:.4g}", row["merge"], _fate(row), _noise(row))
            for row in (best, *self.rows)
        )
        limits = ", ".join(f"{row['lr']:.4g} at momentum {row['momentum']:.4g}" for row in self.limits)
        return Answer(
            verdict,
            {
                "fastest": "" if asked is None else f"{step}: error {_fate(best)} a round",
                "stable below": f"outer rate {limits} (Nesterov)",
                "proved": "no; exact on quadratics with the same data, at 33 curvatures",
            },
            (Table(names, rows, left=frozenset({"merge", "error"}), note=NOISE),),
            left_out="networks, Adam or momentum inside, data that differ, several merges in flight",
            assumed=self.assumed,
            evidence={
                "valid for": self.about,
                "merge": f"{self.merge}, {self.delay} steps in flight",
                "a round": f"takes {self.h_min:.4g} (flattest direction) to {self.h_max:.4g} (steepest) of an error",
                "noise": "largest over the directions",
                "looked at": "33 curvatures from mu to L; a limit between them can be slightly lower for late averages",
                "libraries": "their defaults as remembered, not looked up: compare with the version that you run",
            },
        )

    @property
    def diverges(self) -> bool:
        """Whether the step asked about diverges; False where none was."""
        return any(row["name"] == "asked" and row["fate"] == "diverges" for row in self.rows)

    def to_frame(self) -> DataFrame:
        """Return one row a step, the best one first, with the fields of ``rows``."""
        return frame([self.best, *self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        listed = {name: [_plain(row) for row in fields[name]] for name in ("limits", "rows")}
        rest = {"best": _plain(self.best), "diverges": self.diverges, "assumed": list(self.assumed)}
        return fields | listed | rest


def _fate(row: dict[str, Any]) -> str:
    return f"x {row['factor']:.5f}" if row["fate"] == "contracts" else str(row["fate"])


def _noise(row: dict[str, Any]) -> str:
    text = "" if row["noise"] is None else f"{row['noise']:.4g}"
    return text if row["loss"] is None else f"{text}, loss {row['loss']:.4g}"


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in row.items()}


def outer(
    *,
    eta: numbers.Number,
    tau: numbers.Number,
    L: numbers.Number,
    mu: numbers.Number,
    delay: numbers.Number = 0,
    merge: Rule | None = None,
    local_weight: numbers.Number | None = None,
    outer: str | OuterStep | None = None,
    workers: numbers.Number = WORKERS,
    sigma2: numbers.Number | None = None,
    momenta: numbers.Numbers | None = None,
) -> OuterAdvice:
    """Return the outer rates that are stable, the best one, the noise that stays, and what libraries' choices do.

    On quadratics, exactly, and nowhere else: what diverges here is to be avoided, what contracts here is not proved to
    work on a network.

    Parameters
    ----------
    eta : array_like
        Inner learning rate, eta L <= 1.
    tau : array_like
        Local steps of a round.
    L : array_like
        Largest curvature.
    mu : array_like
        Smallest curvature that matters, > 0.
    delay : array_like, optional
        Local steps done while an average travels, at most tau.
    merge : {"blocking", "overwrite", "delayed", "eager", "corrected"} or None, optional
        Rule for an average that arrives late (blocking without delay, corrected with one, unless given).
    local_weight : array_like or None, optional
        Share of its own model that a worker keeps in an overwriting merge (torchft's fragment_update_alpha), in [0, 1).
    outer : str or OuterStep or None, optional
        A step to judge, rate:momentum such as 0.7:0.9, with Nesterov's momentum.
    workers : array_like, optional
        Number of workers.
    sigma2 : array_like, optional
        Variance of one worker's gradient in each eigen-direction; gives losses beside the relative noise.
    momenta : array_like, optional
        Momenta whose largest stable rates are wanted, besides that of the best step; 0, 1/2 and 9/10 unless given.

    Raises
    ------
    ValueError
        For arguments outside the ranges.

    Examples
    --------
    >>> import ratedist as rd
    >>> advice = rd.outer(eta=1, tau=10, L=1, mu=0.001, outer="0.7:0.9")
    >>> round(advice.best["lr"], 3), round(advice.best["momentum"], 3), round(advice.best["factor"], 5)
    (1.329, 0.794, 0.88498)
    >>> [round(row["factor"], 3) for row in advice.rows[:2]]
    [0.99, 0.945]
    >>> rd.outer(eta=1, tau=10, L=1, mu=0.001, merge="delayed", outer="0.7:0.9").diverges
    True
    """
    round_ = _Round.read(eta, tau, L, mu, delay, _rule(merge, local_weight), workers, sigma2)
    best = round_.best()
    rows = [round_.row("plain averaging", AVERAGING, round_.rule)]
    if outer is not None:
        rows.append(round_.row("asked", _step(outer), round_.rule))
    for default in DEFAULTS:
        step = OuterStep(default.lr, default.momentum)
        used = default.merge(round_.delay)
        rows.append(round_.row(default.library, step, merge_of(used) if used else None))
    stated = _momenta(momenta, best["momentum"])
    h_min, h_max = (-float(np.expm1(round_.tau * np.log1p(-x))) if x < 1 else 1.0 for x in round_.x[[0, -1]])
    return OuterAdvice(
        merge=round_.rule.name,
        delay=round_.delay,
        h_min=h_min,
        h_max=h_max,
        limits=tuple({"momentum": momentum, "lr": round_.limit(momentum)} for momentum in stated),
        best=best,
        rows=tuple(rows),
        assumed=(
            *((f"merge rule {round_.rule.name}",) if merge is None and local_weight is None else ()),
            *(("no steps in flight",) if delay == 0 else ()),
            *((f"{WORKERS} workers",) if workers == WORKERS else ()),
        ),
    )


@dataclass(frozen=True)
class _Round:
    """One round, read and checked."""

    eta: float
    tau: int
    L: float
    mu: float
    delay: int
    rule: Merge
    workers: int
    sigma2: float | None
    x: np.ndarray  # eta times the curvatures that are looked at

    @classmethod
    def read(cls, eta: Any, tau: Any, L: Any, mu: Any, delay: Any, merge: Any, workers: Any, sigma2: Any) -> _Round:
        rate, steepest, flattest = real("eta", eta), real("L", L), real("mu", mu)
        steps, late = whole("tau", tau), whole("in_flight", delay)
        if not (flattest <= steepest and rate * steepest <= 1):
            raise ValueError(
                f"outer needs mu <= L and eta L <= 1; got mu = {flattest:g}, L = {steepest:g}, eta = {rate:g}: "
                "lower eta, or give the curvatures in the unit of the loss"
            )
        if not (1 <= steps <= MOST_STEPS and late <= steps):
            remedy = f"give from {late} to {MOST_STEPS} local steps"
            raise refusal("tau", f"delay <= tau <= {MOST_STEPS}", f"{steps}, delay = {late}", remedy=remedy)
        rule = merge_of(merge if merge is not None else "corrected" if late else "blocking")
        count = whole("workers", workers)
        noise = None if sigma2 is None else real("sigma2", sigma2)
        x = rate * eigenvalues(steepest, flattest)
        return cls(rate, steps, steepest, flattest, late, rule, min(count, 10**9), noise, x)

    def best(self) -> dict[str, Any]:
        optimum = best_outer(
            self.rule, eta=self.eta, tau=self.tau, L=self.L, mu=self.mu, delay=self.delay, m=self.workers
        )
        return self.row("best", optimum.outer, self.rule) | {"factor": optimum.factor}

    def limit(self, momentum: float) -> float:
        rates = largest_lr(self.rule, x=self.x, tau=self.tau, delay=self.delay, m=self.workers, momentum=momentum)
        return float(np.min(rates))

    def row(self, name: str, step: OuterStep, merge: Merge | None) -> dict[str, Any]:
        """Return factor and noise of one step under a rule; None stands for one that is not known."""
        facts = {"name": name, "lr": step.lr, "momentum": step.momentum, "merge": merge.name if merge else "not known"}
        if merge is None:
            return facts | {"fate": "not known", "factor": None, "noise": None, "loss": None}
        factor = worst_factor(merge, x=self.x, tau=self.tau, outer=step, delay=self.delay, m=self.workers)
        fate = "contracts" if factor < 1 - EDGE else "diverges" if factor > 1 + EDGE else "stands still"
        noise = loss = None
        if fate == "contracts":
            losses, plain_losses = self._losses(merge, step), self._losses(BLOCKING, AVERAGING)
            if np.isfinite([losses, plain_losses]).all():  # eigenvalues of 1 but for their rounding leave no number
                noise = float((losses / plain_losses).max())
                loss = None if self.sigma2 is None else self.sigma2 * float(losses.max())
        return facts | {"fate": fate, "factor": factor, "noise": noise, "loss": loss}

    def _losses(self, merge: Merge, step: OuterStep) -> np.ndarray:
        """Return lambda Var theta/2 of every direction for gradient noise of variance 1."""
        curvatures, nothing = self.x / self.eta, np.zeros((1, len(self.x)))
        mean = Workers(curvatures[None], nothing, nothing + 1 / self.workers, nothing[0])
        step_of_round = merge.of_rows(mean, self.workers, outer=step, eta=self.eta, tau=self.tau, delay=self.delay)
        return np.asarray(curvatures * variance_of(step_of_round) / 2)


def _rule(merge: Any, local_weight: Any) -> Merge | None:
    """Return the rule that was asked for; None where neither it nor a weight was."""
    if local_weight is None:
        return None if merge is None else merge_of(merge)
    if merge not in (None, "overwrite"):
        raise ValueError(f"local_weight belongs to merge = overwrite; got merge = {merge}: leave one of them out")
    return blended(real("local_weight", local_weight))


def _momenta(asked: Any, best: float) -> list[float]:
    """Return the momenta whose limits are stated, in order."""
    several = MOMENTA if asked is None else [asked] if isinstance(asked, str) else np.atleast_1d(asked)
    if len(several) > MOST_MOMENTA:
        raise ValueError(f"momenta must be at most {MOST_MOMENTA} numbers; got {len(several)}: leave some out")
    return sorted({*(OuterStep(momentum=float(momentum)).momentum for momentum in several), best})


def _step(text: Any) -> OuterStep:
    if isinstance(text, OuterStep):
        return text
    parts = str(text).split(":")
    try:
        rate, momentum = (float(part) for part in (parts if len(parts) == 2 else [*parts, "0"]))
    except ValueError:
        raise ValueError(f"an outer step is rate:momentum, such as 0.7:0.9; got {str(text)[:64]!r}") from None
    return OuterStep(rate, momentum)


RULES = (
    ("", "none is late; else corrected"),
    ("overwrite", "overwrite: steps in flight are dropped"),
    ("delayed", "delayed: it counts a round later"),
    ("eager", "eager: one's own part counts at once"),
    ("corrected", "corrected: steps in flight are added"),
)
CONTROLS = {
    "tau": Control("Local steps of a round", "τ", decades=(0, 4), start="30", whole=True, field="round_steps"),
    "delay": Control("Steps while an average travels", start="0"),
    "merge": Control("An average that arrives late", choices=RULES),
    "outer": Control("Outer step to judge, ν:β", start="0.7:0.9", field="outer_step"),
}
CALL = Call(
    name="outer",
    summary="which outer rate and momentum are stable after a round of local steps",
    place=6,
    function=outer,
    command=Command(
        examples=(
            "--eta 1 --tau 10 --L 1 --mu 0.001 --outer 0.7:0.9",
            "--eta 0.1 --tau 30 --L 1 --mu 0.001 --delay 10 --merge corrected --json",
        ),
        ok=lambda result: all(row["fate"] == "contracts" for row in result.rows if row["name"] == "asked"),
    ),
    route=Route(
        about="A round of local steps on quadratics, and perhaps an outer step to judge.",
        example={"eta": 1, "tau": 10, "L": 1, "mu": "0.001", "outer": "0.7:0.9"},
        stated=False,
    ),
    controls=CONTROLS,
)
