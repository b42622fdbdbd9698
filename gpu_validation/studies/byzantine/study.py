"""Majority vote under faulty workers: the chance of a wrong vote, training through attacks, and election coding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from operators import Aggregate, CoordinateMedian, MajorityVote, Mean, TrimmedMean
from operators.aggregate.election_coding import MINIMAL

from ...records.storage import Record
from ...reporting.plotting import LINES, MARKS, PALETTE, canvas
from ...verdicts.comparisons import exact_row, out_of_scope, share_row, unjudged_row
from ...verdicts.verdict import Comparison
from ..study import Figure, Study
from ..unit import Unit, of_kind, read_unit
from .attacks import Attack, Collude, Negate, RandomSigns, Rescale
from .training import HORIZON, train, tuned
from .votes import crowd, election, votes

ATTACKS: dict[str, Attack] = {a.name: a for a in (Rescale(), RandomSigns(), Negate(), Collude())}
RULES: dict[str, Aggregate] = {
    "mean": Mean(),
    "majority_vote": MajorityVote(),
    "coordinate_median": CoordinateMedian(),
    "trimmed_mean": TrimmedMean(0.41),
}


@dataclass(frozen=True)
class Vote(Unit, kind="vote"):
    """A majority vote under an attack."""

    attack: str
    faulty: int


@dataclass(frozen=True)
class Wide(Unit, kind="wide"):
    """The same in the wide case."""

    attack: str


@dataclass(frozen=True)
class Crowd(Unit, kind="crowd"):
    """A vote of honest workers only."""

    workers: int


@dataclass(frozen=True)
class Election(Unit, kind="election"):
    """Election coding of n workers, b of them faulty."""

    n: int
    b: int


@dataclass(frozen=True)
class Train(Unit, kind="train"):
    """Training by a rule under an attack, or "none"."""

    rule: str
    attack: str


KINDS: tuple[type[Vote | Wide | Crowd | Election | Train], ...] = (Vote, Wide, Crowd, Election, Train)


@dataclass(frozen=True)
class Byzantine(Study):
    """n workers, some faulty.

    Votes: one coordinate of gradient S and unit Gaussian noise, ``coordinates`` independent copies, real messages.
    The wide case (workers, faulty, S) is one where the published law for negating workers is below 1 and colluders
    exceed it.  Training: logistic regression on the digits, every rule under every attack at the best of the same
    learning rates on ``tuning_seeds``; the trimmed mean drops as many workers from either end as are faulty.
    """

    workers: int = 27
    faulty: tuple[int, ...] = (0, 5, 9, 11, 13)
    snr: float = 1.0
    coordinates: int = 20_000
    wide: tuple[int, int, float] = (501, 200, 0.5)
    crowd: tuple[int, ...] = (1, 3, 9, 27, 81)
    steps: int = 100
    seeds: tuple[int, ...] = (0, 1, 2)
    tuning_seeds: tuple[int, ...] = (1000, 1001)

    name = "byzantine"
    description = "majority vote, median, trimmed mean and mean under four attacks; the exact chance of a wrong vote"
    minutes = 2

    def units(self) -> Sequence[str]:
        """Return vote:ATTACK:FAULTY, wide:ATTACK, crowd:WORKERS, election:N:B, train:RULE:ATTACK."""
        return [
            *(str(Vote(attack, f)) for attack in ATTACKS for f in self.faulty),
            *(str(Wide(attack)) for attack in ("negate", "collude")),
            *(str(Crowd(n)) for n in self.crowd),
            *(str(Election(n, b)) for n, b in MINIMAL),
            *(str(Train(rule, attack)) for rule in RULES for attack in ("none", *ATTACKS)),
        ]

    def measure(self, unit: str) -> Record:
        """Count votes, hold elections or train."""
        match read_unit(unit, KINDS):
            case Vote(attack, faulty):
                return votes(self.workers, faulty, self.snr, self.coordinates, ATTACKS[attack], self.seed)
            case Wide(attack):
                workers, faulty, snr = self.wide
                return votes(workers, faulty, snr, self.coordinates // 10, ATTACKS[attack], self.seed)
            case Crowd(workers):
                return crowd(workers, self.snr, self.coordinates, self.seed)
            case Election(n, b):
                return election(n, b)
            case Train(rule, attack):
                return self._train(RULES[rule], ATTACKS.get(attack))

    def _train(self, rule: Aggregate, attack: Attack | None) -> Record:
        workers, faulty = self.workers, self.faulty[-2]
        rate = tuned(rule, attack, workers, faulty, self.steps, self.tuning_seeds)
        runs = [train(rule, attack, workers, faulty, self.steps, seed, rate) for seed in self.seeds]
        return {
            "rate": rate,
            "tuning_seeds": list(self.tuning_seeds),
            "loss": [r[0] for r in runs],
            "accuracy": [r[1] for r in runs],
            "curve": runs[0][2],
        }

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return exact laws where there are any; published bounds only where their assumptions hold."""
        level = self.false_alarm / (3 * len(self.units()))
        rows: list[Comparison] = []
        for record in records:
            match read_unit(record["unit"], KINDS):
                case Vote(attack=attack) | Wide(attack=attack):
                    rows += _vote_rows(record, ATTACKS[attack], level)
                case Crowd():
                    rows += _crowd_rows(record, level)
                case Election(n, b):
                    rows += _election_rows(record, n, b)
                case Train(rule, attack):
                    rows += _training_rows(record, rule, attack)
        return rows

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return wrong votes against the faulty share, and losses under attack."""
        drawn = []
        voted, trained = of_kind(records, Vote), dict(of_kind(records, Train))
        if voted:
            drawn.append(
                Figure(
                    lambda: _draw_votes(voted),
                    f"Measured (marks): share of wrong majority votes of {self.workers} workers at S = {self.snr:g}, "
                    f"{self.coordinates} coordinates. Theory (lines): the exact probability.",
                )
            )
        if trained:
            drawn.append(
                Figure(
                    lambda: _draw_training(trained),
                    f"Measured: training loss of logistic regression on the digits, {self.workers} workers, "
                    f"{self.faulty[-2]} of them faulty, first seed; a curve that leaves the frame has diverged.",
                )
            )
        return drawn


# -- judgements --------------------------------------------------------------------------------------------------
def honest_right(snr: float) -> float:
    """Return the probability that the sign of S + N(0, 1) is positive."""
    return 0.5 * math.erfc(-snr / math.sqrt(2))


def _vote_rows(record: Record, attack: Attack, level: float) -> list[Comparison]:
    from bounds.theorems import vote_error
    from bounds.theorems.signs import exact_vote_error

    n, faulty, snr = record["workers"], record["faulty"], record["snr"]
    p = honest_right(snr)
    exact = exact_vote_error(workers=n, faulty=faulty, right=p, faulty_right=attack.right(p))
    about: dict[str, Any] = {"operator": f"majority_vote, {faulty} of {n} {attack.name}", "workload": f"S = {snr:g}"}
    counts = record["wrong"], record["trials"]
    rows = [
        share_row(
            *counts, exact, "tight", level=level, quantity="wrong votes, exact law", theorem="binomial laws", **about
        )
    ]
    law = vote_error(faulty_fraction=faulty / n, m=n, snr=snr)
    about |= {"quantity": "wrong votes, published bound", "theorem": vote_error.name}
    row = share_row(*counts, law, "upper", level=level, **about)
    if attack.colludes and faulty:
        reason = "the bound needs faulty workers that do not collude"
        row = out_of_scope(row, reason)
    return [*rows, row]


def _crowd_rows(record: Record, level: float) -> list[Comparison]:
    from bounds.theorems.signs import exact_vote_error

    n, snr, trials = record["workers"], record["snr"], record["trials"]
    about: dict[str, Any] = {"workload": f"S = {snr:g}, {n} workers, none faulty", "theorem": "binomial, normal law"}
    exact = exact_vote_error(workers=n, faulty=0, right=honest_right(snr))
    mean = 1 - honest_right(snr * math.sqrt(n))
    voted = {"operator": "majority_vote", "quantity": "wrong signs", **about}
    return [
        share_row(record["wrong"], trials, exact, "tight", level=level, **voted),
        share_row(record["mean_wrong"], trials, mean, "tight", level=level, **{**voted, "operator": "mean, 32 bits"}),
    ]


def _training_rows(record: Record, rule: str, attack: str) -> list[Comparison]:
    about: dict[str, Any] = {"operator": rule, "workload": f"digits, {attack}", "theorem": ""}
    reason = "no theorem covers constant steps here; recorded to compare the rules"
    return [
        unjudged_row(record["loss"], reason, quantity="final loss", **about),
        unjudged_row(record["accuracy"], reason, quantity="held-out accuracy", **about),
    ]


def _election_rows(record: Record, n: int, b: int) -> list[Comparison]:
    rows = []
    for liars, criterion, wrong in zip((b, b + 1), record["criterion"], record["wrong"], strict=True):
        rows.append(
            exact_row(
                wrong,
                0.0,
                (wrong == 0) == criterion,
                operator=f"election_coding, n = {n}, {record['partitions']} partitions",
                workload=f"{liars} liars, all patterns",
                quantity="wrong elections " + ("where the criterion holds" if criterion else "where it fails (> 0)"),
                theorem="tolerance criterion",
            )
        )
    return rows


# -- drawings ----------------------------------------------------------------------------------------------------
def _draw_votes(records: Sequence[tuple[Vote, Record]]) -> Any:
    from bounds.theorems.signs import exact_vote_error

    figure, axes = canvas(1, 1, height=4.2)
    ax = axes[0, 0]
    for i, (name, attack) in enumerate(ATTACKS.items()):
        attacked = [r for unit, r in records if unit.attack == name]
        if not attacked:
            continue
        n, p = attacked[0]["workers"], honest_right(attacked[0]["snr"])
        faulty = range(max(r["faulty"] for r in attacked) + 1)
        exact = [exact_vote_error(workers=n, faulty=f, right=p, faulty_right=attack.right(p)) for f in faulty]
        ax.plot(faulty, exact, LINES[i], color=PALETTE[i])
        shares = [r["wrong"] / r["trials"] for r in attacked]
        ax.plot([r["faulty"] for r in attacked], shares, MARKS[i], color=PALETTE[i], label=name)
    ax.set(xlabel="faulty workers", ylabel="share of wrong votes", yscale="symlog")
    ax.set_yscale("symlog", linthresh=1e-4)
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    return figure


def _draw_training(records: dict[Train, Record]) -> Any:
    cases = list(dict.fromkeys(unit.attack for unit in records))
    figure, axes = canvas(1, len(cases), height=3.4)
    for ax, case in zip(axes[0], cases, strict=True):
        for i, rule in enumerate(RULES):
            record = records.get(Train(rule, case))
            if record:
                steps = 10 * np.arange(1, len(record["curve"]) + 1)
                ax.plot(steps, record["curve"], LINES[i], color=PALETTE[i], label=rule)
        ax.set(title=case, xlabel="step", yscale="log", ylim=(0.05, HORIZON))
        ax.grid(alpha=0.3)
    axes[0, 0].set_ylabel("training loss")
    axes[0, 0].legend(fontsize=7)
    return figure


PRESET = Byzantine()
