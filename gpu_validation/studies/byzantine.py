"""Majority vote under faulty workers: the chance of a wrong vote, training through attacks, and election coding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, islice
from typing import Any

import numpy as np
import torch

from operators import Aggregate, CoordinateMedian, ElectionCoding, Key, MajorityVote, Mean, Message, TrimmedMean
from operators.aggregate.election_coding import MINIMAL, minimal_allocation, tolerates
from operators.random import normal

from ..judging.comparisons import exact_row, out_of_scope, share_row, unjudged_row
from ..judging.plotting import LINES, MARKS, PALETTE, canvas, chart
from ..workloads import LogisticRegression
from ..workloads.digits import DIGITS
from .byzantine_attacks import Attack, Collude, Negate, RandomSigns, Rescale
from .runs.shared_model import shared_steps
from .study import Comparison, Figure, Record, Study

# -- votes -----------------------------------------------------------------------------------------------------------

NOISE, ATTACK, SEND = 0, 1, 2  # folds of a worker's key


def votes(workers: int, faulty: int, snr: float, coordinates: int, attack: Attack, seed: int = 0) -> Record:
    """Count the wrong coordinates of one vote on the gradient S in every coordinate; signs really packed."""
    rule, truth = MajorityVote("negative"), np.full(coordinates, snr, np.float32)  # a tie is wrong
    keys = [Key(seed, rank=i) for i in range(workers)]
    messages = []
    for i, key in enumerate(keys):
        x = (truth + normal(key.fold_in(NOISE), coordinates)).astype(np.float32)
        if i < faulty:
            x = attack.corrupt(x, truth=truth, key=key.fold_in(ATTACK))
        messages.append(rule.uplink.encode(x, key=key.fold_in(SEND)))
    elected = rule.downlink.decode(rule.merge(messages, d=coordinates, keys=keys), d=coordinates)
    bits = sum(m.bits for m in messages)
    wrong = int((elected < 0).sum())
    return {"workers": workers, "faulty": faulty, "snr": snr, "wrong": wrong, "trials": coordinates, "bits": bits}


def crowd(workers: int, snr: float, coordinates: int, seed: int = 0) -> Record:
    """Return the same noise twice: how often the vote of signs, and the sign of the exact mean, is wrong."""
    voted = votes(workers, 0, snr, coordinates, Rescale(), seed)
    mean = sum(snr + normal(Key(seed, rank=i).fold_in(NOISE), coordinates) for i in range(workers))
    return {**voted, "mean_wrong": int((np.asarray(mean) < 0).sum())}


def election(n: int, b: int) -> Record:
    """Return every sign pattern of n partitions as one coordinate each; all sets of b, and of b + 1, workers lie."""
    G = minimal_allocation(n, b)
    patterns = 1 - 2 * ((np.arange(1 << n) >> np.arange(n)[:, None]) & 1)
    truth = np.sign(patterns.sum(axis=0))
    gradients = [torch.from_numpy(row.astype(np.float32)) for row in patterns]
    rule, keys = ElectionCoding(b=b), [Key(0, rank=i) for i in range(n)]
    honest = [rule.local_vote(gradients, G[i], key=keys[i]) for i in range(n)]
    lie = rule.uplink.encode(torch.from_numpy(-truth.astype(np.float32)), key=keys[0])

    def worst(liars: int) -> int:
        return max(_wrong(rule, honest, lie, who, truth, keys) for who in combinations(range(n), liars))

    return {
        "partitions": int(G.sum()),
        "criterion": [tolerates(G, b), tolerates(G, b + 1)],
        "wrong": [worst(b), worst(b + 1)],
        "patterns": 1 << n,
    }


def _wrong(
    rule: ElectionCoding,
    honest: list[Message],
    lie: Message,
    who: tuple[int, ...],
    truth: np.ndarray,
    keys: list[Key],
) -> int:
    sent = [lie if i in who else message for i, message in enumerate(honest)]
    elected = rule.downlink.decode(rule.merge(sent, d=truth.size, keys=keys), d=truth.size)
    return int((elected.numpy() != truth).sum())


# -- training --------------------------------------------------------------------------------------------------------

FIRST_RATE, RATIO = 0.1, math.sqrt(10)  # tuning walks from the first rate, by this factor, while the loss falls
LONGEST_WALK = 12  # steps of that walk
HORIZON = 10.0  # a loss above it is recorded as it


def tuned(rule: Aggregate, attack: Attack | None, workers: int, faulty: int, steps: int, seeds: Sequence[int]) -> float:
    """Return the learning rate with the least final loss, averaged over the tuning seeds, among neighbours by RATIO."""

    @cache
    def loss(exponent: int) -> float:
        rate = FIRST_RATE * RATIO**exponent
        return sum(train(rule, attack, workers, faulty, steps, seed, rate)[0] for seed in seeds)

    best = 0
    for _ in range(LONGEST_WALK):
        best = min((best, best - 1, best + 1), key=loss)
    return FIRST_RATE * RATIO**best


def train(
    rule: Aggregate, attack: Attack | None, workers: int, faulty: int, steps: int, seed: int, rate: float
) -> tuple[float, float, list[float]]:
    """Return (final loss, held-out accuracy, losses every tenth step) of synchronous training with one merge a step."""
    workload = LogisticRegression(source=DIGITS)
    model, done = workload.model(), 0
    curve: list[float] = []

    def merge(gradients: list[torch.Tensor], keys: Sequence[Key]) -> torch.Tensor | None:
        sent = [gradient.float().numpy() for gradient in gradients]
        if attack is not None:
            truth = np.stack(sent[faulty:]).mean(axis=0)
            for i in range(faulty):
                sent[i] = attack.corrupt(sent[i], truth=truth, key=keys[i].fold_in(ATTACK))
        if not all(np.isfinite(x).all() for x in sent):  # diverged
            return None
        return rate * rule.round([torch.from_numpy(x) for x in sent], keys=[k.fold_in(SEND) for k in keys])

    for done in islice(shared_steps(workload, model, merge, workers=workers, seed=seed, stream=NOISE), steps):
        if done % 10 == 0:
            curve.append(_capped(float(workload.objective(model).detach())))
    curve += [HORIZON] * (steps // 10 - len(curve))
    return curve[-1] if done == steps else HORIZON, workload.accuracy(model) or 0.0, curve


def _capped(loss: float) -> float:
    return min(loss, HORIZON) if math.isfinite(loss) else HORIZON


# -- the study -------------------------------------------------------------------------------------------------------

ATTACKS: dict[str, Attack] = {a.name: a for a in (Rescale(), RandomSigns(), Negate(), Collude())}
RULES: dict[str, Aggregate] = {
    "mean": Mean(),
    "majority_vote": MajorityVote(),
    "coordinate_median": CoordinateMedian(),
    "trimmed_mean": TrimmedMean(0.41),
}


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

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield votes under attack, wide ones, honest crowds, elections and trainings."""
        yield from (("vote", attack, f) for attack in ATTACKS for f in self.faulty)
        yield from (("wide", attack) for attack in ("negate", "collude"))
        yield from (("crowd", n) for n in self.crowd)
        yield from (("election", n, b) for n, b in MINIMAL)
        yield from (("train", rule, attack) for rule in RULES for attack in ("none", *ATTACKS))

    def measure_vote(self, attack: str, faulty: int) -> Record:
        """Count wrong votes under an attack."""
        return votes(self.workers, faulty, self.snr, self.coordinates, ATTACKS[attack], self.seed)

    def measure_wide(self, attack: str) -> Record:
        """Count wrong votes in the wide case."""
        workers, faulty, snr = self.wide
        return votes(workers, faulty, snr, self.coordinates // 10, ATTACKS[attack], self.seed)

    def measure_crowd(self, workers: int) -> Record:
        """Count wrong votes of honest workers."""
        return crowd(workers, self.snr, self.coordinates, self.seed)

    def measure_election(self, n: int, b: int) -> Record:
        """Hold elections of n workers, b of them faulty."""
        return election(n, b)

    def measure_train(self, rule: str, attack: str) -> Record:
        """Train by a rule under an attack, or "none"."""
        chosen, attacker, workers, faulty = RULES[rule], ATTACKS.get(attack), self.workers, self.faulty[-2]
        rate = tuned(chosen, attacker, workers, faulty, self.steps, self.tuning_seeds)
        runs = [train(chosen, attacker, workers, faulty, self.steps, seed, rate) for seed in self.seeds]
        return {
            "rate": rate,
            "tuning_seeds": list(self.tuning_seeds),
            "loss": [r[0] for r in runs],
            "accuracy": [r[1] for r in runs],
            "curve": runs[0][2],
        }

    @property
    def level(self) -> float:
        """Probability of a false alarm in one row."""
        return self.false_alarm / (3 * len(self.units()))

    def judge_vote(self, record: Record, attack: str, faulty: int) -> list[Comparison]:
        """Judge by the exact law, and by the published bound where its assumptions hold."""
        return _vote_rows(record, ATTACKS[attack], self.level)

    def judge_wide(self, record: Record, attack: str) -> list[Comparison]:
        """Judge the wide case as the others."""
        return _vote_rows(record, ATTACKS[attack], self.level)

    def judge_crowd(self, record: Record, workers: int) -> list[Comparison]:
        """Judge the votes of honest workers by exact laws."""
        from bounds.theorems.signs import exact_vote_error

        n, snr, trials = record["workers"], record["snr"], record["trials"]
        workload, theorem = f"S = {snr:g}, {n} workers, none faulty", "binomial, normal law"
        about: dict[str, Any] = {
            "quantity": "wrong signs",
            "workload": workload,
            "theorem": theorem,
            "level": self.level,
        }
        exact = exact_vote_error(workers=n, faulty=0, right=honest_right(snr))
        mean = 1 - honest_right(snr * math.sqrt(n))
        return [
            share_row(record["wrong"], trials, exact, "tight", operator="majority_vote", **about),
            share_row(record["mean_wrong"], trials, mean, "tight", operator="mean, 32 bits", **about),
        ]

    def judge_election(self, record: Record, n: int, b: int) -> list[Comparison]:
        """Judge elections by the criterion of tolerance."""
        rows = []
        for liars, criterion, wrong in zip((b, b + 1), record["criterion"], record["wrong"], strict=True):
            about: dict[str, Any] = {"operator": f"election_coding, n = {n}, {record['partitions']} partitions"}
            about |= {"workload": f"{liars} liars, all patterns", "theorem": "tolerance criterion"}
            where = "where the criterion holds" if criterion else "where it fails (> 0)"
            rows.append(exact_row(wrong, 0.0, (wrong == 0) == criterion, quantity=f"wrong elections {where}", **about))
        return rows

    def judge_train(self, record: Record, rule: str, attack: str) -> list[Comparison]:
        """Compare the rules without a verdict."""
        about: dict[str, Any] = {"operator": rule, "workload": f"digits, {attack}", "theorem": ""}
        reason = "no theorem covers constant steps here; recorded to compare the rules"
        return [
            unjudged_row(record["loss"], reason, quantity="final loss", **about),
            unjudged_row(record["accuracy"], reason, quantity="held-out accuracy", **about),
        ]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return wrong votes against the faulty share, and losses under attack."""
        drawn = []
        voted, trained = self.table(records, "vote"), dict(self.table(records, "train"))
        votes = (
            f"Measured (marks): share of wrong majority votes of {self.workers} workers at S = {self.snr:g}, "
            f"{self.coordinates} coordinates. Theory (lines): the exact probability."
        )
        losses = (
            f"Measured: training loss of logistic regression on the digits, {self.workers} workers, "
            f"{self.faulty[-2]} of them faulty, first seed; a curve that leaves the frame has diverged."
        )
        if voted:
            worst = max((r for u, r in voted), key=lambda r: (r["faulty"], r["wrong"]))
            share = f"{worst['wrong'] / worst['trials']:.0%} of votes are wrong"
            finding = f"With {worst['faulty']} of {worst['workers']} workers faulty, up to {share}"
            drawn.append(Figure(lambda: _draw_votes(voted), votes, finding=finding))
        return [*drawn, Figure(lambda: _draw_training(trained), losses)] if trained else drawn


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
    wrong, trials = record["wrong"], record["trials"]
    words: dict[str, Any] = {"quantity": "wrong votes, exact law", "theorem": "binomial laws"}
    rows = [share_row(wrong, trials, exact, "tight", level=level, **words, **about)]
    law = vote_error(faulty_fraction=faulty / n, m=n, snr=snr)
    about |= {"quantity": "wrong votes, published bound", "theorem": vote_error.name}
    row = share_row(wrong, trials, law, "upper", level=level, **about)
    if attack.colludes and faulty:
        row = out_of_scope(row, "the bound needs faulty workers that do not collude")
    return [*rows, row]


# -- drawings ----------------------------------------------------------------------------------------------------
def _draw_votes(records: Sequence[tuple[Any, Record]]) -> Any:
    from bounds.theorems.signs import exact_vote_error

    figure, ((ax,),) = canvas(1, 1, height=4.2)
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
    ax.legend()
    return figure


def _draw_training(records: dict[Any, Record]) -> Any:
    def draw(ax: Any, case: str) -> None:
        for i, rule in enumerate(RULES):
            record = records.get((rule, case))
            if record:
                steps = 10 * np.arange(1, len(record["curve"]) + 1)
                ax.plot(steps, record["curve"], LINES[i], color=PALETTE[i], label=rule)

    cases = list(dict.fromkeys(unit.attack for unit in records))
    return chart(cases, draw, height=3.4, x="step", y="training loss", logs="y", ylim=(0.05, HORIZON))


PRESET = Byzantine()
