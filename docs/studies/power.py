"""Is the stated power true?  Inject the least fault that an honest run states, and count how often it is found.

A case is a compressor, a fault and a budget.  Of each case ``HONEST`` honest runs are made; each states the least
fault that it would have found with probability 99 %; exactly that fault is put into ``WRONG`` runs with fresh draws,
and those that end in an accusation by the same law are counted.  A run is one statistical law alone, with the vectors,
bets and draws that ``check`` gives it; the compressors are drawn from in bulk, so that it takes some hundredths of a
second.  ``beyond`` puts in FACTOR times that fault instead, in one wrong run for each honest one, and has two faults in
a direction that nobody knows.  Records are appended to ``--out``, and those already there are not repeated; the totals
go to a file beside it.

    nice python docs/measure.py studies/power.py stated
    nice python docs/measure.py studies/power.py beyond --honest 5 --out stated_powers.jsonl
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Any, Literal

import numpy as np
from measure import in_data, resume, summarised

from bounds.claims import Unbiased
from gpu_validation.records.environment import commit
from operators.laws import Budget, Subject
from operators.laws.betting.eprocess import inflated
from operators.laws.betting.power import coordinate_powers
from operators.laws.check import statistical_laws
from operators.laws.kit.examples import Example
from operators.laws.kit.law import Context
from operators.laws.kit.statistical import ClaimBets, Draws, collect, statistical_examples
from operators.laws.operator.draws import Distortion, Unbiasedness

HONEST, WRONG = 20, 50
BUDGETS = {"quick": Budget.quick().untimed(), "standard": Budget().untimed()}
ASKED = 0.98
FACTOR = 1.2
Case = tuple[str, str, str]  # budget, compressor, fault

Outputs = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]
Put = Callable[[np.ndarray, np.ndarray, float, float], np.ndarray]


@dataclass(frozen=True)
class Compressor:
    """outputs : (x of shape (d,), n, generator) -> C(x), n times, shape (n, d).  omega : as claimed.  looseness :
    omega over the true one."""

    outputs: Outputs
    omega: float
    looseness: float = 1.0


def keep_half(x: np.ndarray, n: int, rng: np.random.Generator, probability: float = 0.5) -> np.ndarray:
    """Every coordinate survives a coin and is doubled: omega = 1, reached."""
    return 2 * x * (rng.random((n, x.size)) < probability)


def spread(x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Gaussian errors in all coordinates alike: omega = 4, reached."""
    return x + rng.standard_normal((n, x.size)) * np.linalg.norm(x) * sqrt(4 / x.size)


def all_or_nothing(x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """The whole vector, ten times, with probability 1/10: omega = 9, reached, all of it along x."""
    return 10 * x * (rng.random((n, 1)) < 0.1)


def rare_and_small(x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """An error at one coordinate in ten, with a random sign: omega = 1/100, reached."""
    signs = rng.choice([-1.0, 1.0], (n, x.size)) * (rng.random((n, x.size)) < 0.1)
    return x + signs * np.linalg.norm(x) / sqrt(10 * x.size)


def small(x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Errors of a twentieth at two values: omega = 1/400, reached."""
    return x + rng.choice([-1.0, 1.0], (n, x.size)) * np.linalg.norm(x) / sqrt(400 * x.size)


COMPRESSORS = {
    "keep half": Compressor(keep_half, 1.0),
    "keep half, twice its omega claimed": Compressor(keep_half, 2.0, looseness=2.0),
    "spread errors": Compressor(spread, 4.0),
    "all or nothing": Compressor(all_or_nothing, 9.0),
    "small errors": Compressor(small, 1 / 400),
    "rare and small errors": Compressor(rare_and_small, 1 / 100),
}


@dataclass(frozen=True)
class Fault:
    """law : the one that must find it.  stated : what an honest run says of it, and at which vector (None: all).
    put : (honest outputs of shape (n, d), x, size, claimed over true omega) -> wrong outputs."""

    law: str
    stated: Callable[[ClaimBets], tuple[float, int | None]]
    put: Put


def _power(name: str) -> Callable[[ClaimBets], tuple[float, int | None]]:
    """Return what states a power by its name, at all vectors."""

    def stated(bets: ClaimBets) -> tuple[float, int | None]:
        size = getattr(bets.power(), name)
        assert size is not None
        return size, None

    return stated


def _weakest(bets: ClaimBets) -> tuple[float, int | None]:
    powers = coordinate_powers(bets.mean, bets.level)  # type: ignore[attr-defined]
    weakest = max(powers, key=lambda vector: powers[vector])
    return _power("coordinate")(bets)[0], weakest


def _off_at(i: int | None) -> Put:
    """Return a bias at one coordinate; None is the middle one."""

    def off(y: np.ndarray, x: np.ndarray, size: float, looseness: float) -> np.ndarray:
        wrong = y.copy()
        wrong[:, x.size // 2 if i is None else i] -= size * np.linalg.norm(x)
        return wrong

    return off


def _drawn_direction(y: np.ndarray, x: np.ndarray, size: float, looseness: float) -> np.ndarray:
    z = np.random.default_rng([x.size, 11]).standard_normal(x.size)
    return y + size * np.linalg.norm(x) * z / np.linalg.norm(z)


FAULTS = {
    "less a share of x": Fault("unbiasedness", _power("along_x"), lambda y, x, b, loose: y - b * x),
    "more by a share of x": Fault("unbiasedness", _power("along_x"), lambda y, x, b, loose: y + b * x),
    "output multiplied": Fault("unbiasedness", _power("along_x"), lambda y, x, b, loose: (1 - b) * y),
    "first coordinate of the weakest vector": Fault("unbiasedness", _weakest, _off_at(0)),
    "last coordinate of every vector": Fault("unbiasedness", lambda bets: (_weakest(bets)[0], None), _off_at(-1)),
    "error larger": Fault("distortion", _power("excess"), lambda y, x, r, loose: x + sqrt((1 + r) * loose) * (y - x)),
}
DIRECTIONS = {  # of ``beyond`` alone
    "in a drawn direction": Fault("unbiasedness", _power("any_direction"), _drawn_direction),
    "along one coordinate of every vector": Fault("unbiasedness", _power("any_direction"), _off_at(None)),
}
PROBABILITY = "wrong probability"  # of keep half, with survivors doubled as before: the mean is short by the same share
LAWS = {"unbiasedness": Unbiasedness(), "distortion": Distortion()}


def cases() -> list[Case]:
    """(budget, compressor, fault): all with the quick budget, some with the standard one, which takes ten times as
    long; a coordinate only where some bias of it, below 2 |x|, is said to be found."""
    every = [(c, f) for c in COMPRESSORS for f in FAULTS if "vector" not in f or "small" in c]
    standard = [
        ("keep half", "less a share of x"),
        ("keep half", PROBABILITY),
        ("spread errors", "less a share of x"),
        ("spread errors", "error larger"),
        ("small errors", "first coordinate of the weakest vector"),
    ]
    return [("quick", *case) for case in [*every, ("keep half", PROBABILITY)]] + [("standard", *c) for c in standard]


def cases_beyond() -> list[Case]:
    """40 cases with the quick budget, four with the standard one."""
    quick = [case for case in cases() if case[0] == "quick" and case[2] != PROBABILITY][:28]
    directions = [("quick", compressor, fault) for compressor in COMPRESSORS for fault in DIRECTIONS]
    return [*quick, *directions, *(case for case in cases() if case[0] == "standard" and case[2] != PROBABILITY)]


class Bulk:
    """A source of draws that needs no subject."""

    def __init__(self, outputs: Callable[[Example, int], np.ndarray]) -> None:
        self.outputs = outputs

    def draw(self, example: Example, n: int) -> Draws:
        """n draws at a vector."""
        x = example.x.astype(np.float64)
        return Draws((self.outputs(example, n) - x) / np.linalg.norm(x), np.zeros(n))


@cache
def vectors(budget: str) -> list[Example]:
    """Those of ``check`` with seed 1."""
    return list(statistical_examples(Context(BUDGETS[budget], 1)))


def run(budget: str, law: str, omega: float, outputs: Callable[[Example, int], np.ndarray]) -> ClaimBets:
    """The bets of one law after the draws of one check."""
    subject, examples = Subject(lambda x: x, Unbiased(omega)), vectors(budget)
    level = BUDGETS[budget].false_alarm / statistical_laws()
    bets = LAWS[law].bets(subject, examples, level, BUDGETS[budget])
    assert bets is not None
    collect(Bulk(outputs), examples, [bets], BUDGETS[budget])
    return bets


def judged(case: Case, rng: np.random.Generator, wrong: int, factor: float) -> tuple[float, int]:
    """What an honest run states, and how many of the wrong runs with a factor of it are accused."""
    budget, name, fault_name = case
    compressor = COMPRESSORS[name]
    fault = (FAULTS | DIRECTIONS)["less a share of x" if fault_name == PROBABILITY else fault_name]

    def honestly(example: Example, n: int) -> np.ndarray:
        return compressor.outputs(example.x.astype(np.float64), n, rng)

    beyond = compressor.looseness * inflated(compressor.omega) / compressor.omega  # rounding is allowed
    size, at = fault.stated(run(budget, fault.law, compressor.omega, honestly))

    def wrongly(example: Example, n: int) -> np.ndarray:
        x = example.x.astype(np.float64)
        if fault_name == PROBABILITY:
            return keep_half(x, n, rng, (1 - factor * size) / 2)
        y = compressor.outputs(x, n, rng)
        return fault.put(y, x, factor * size, beyond) if at is None or example is vectors(budget)[at] else y

    runs = wrong if size < np.inf else 0
    return size, sum(run(budget, fault.law, compressor.omega, wrongly).rejected() for _ in range(runs))


def record(case: Case, honest: int, wrong: int = WRONG, seed: int = 1) -> dict[str, Any]:
    """One honest run and the wrong ones: what was stated, how many were accused."""
    size, accused = judged(case, np.random.default_rng([seed, honest, *case_number(case)]), wrong, 1.0)
    found = size < np.inf
    stated = {"stated": size if found else None, "runs": wrong if found else 0, "accused": accused}
    return dict(zip(KEY, case, strict=True)) | {"honest": honest} | stated


def record_beyond(case: Case, seed: int) -> dict[str, Any]:
    """One honest run and a wrong one with FACTOR times the stated fault: what was stated, whether it is refuted."""
    size, accused = judged(case, np.random.default_rng([seed, cases_beyond().index(case)]), 1, FACTOR)
    stated = {"stated": size if size < np.inf else None, "refuted": bool(accused)}
    return dict(zip(KEY, case, strict=True)) | {"seed": seed} | stated


KEY = ("budget", "compressor", "fault")


def case_of(row: dict[str, Any]) -> Case:
    """The case of a record."""
    return row["budget"], row["compressor"], row["fault"]


def case_number(case: Case) -> tuple[int, int, int]:
    """A seed for a case that does not depend on the others."""
    budget, name, fault = case
    return list(BUDGETS).index(budget), list(COMPRESSORS).index(name), [*FAULTS, PROBABILITY].index(fault)


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """For every case the sizes stated, the runs and how many were accused."""
    rows = []
    for case in cases():
        own = [r for r in records if case_of(r) == case]
        stated = sorted(r["stated"] for r in own if r["stated"] is not None)
        runs, accused = sum(r["runs"] for r in own), sum(r["accused"] for r in own)
        row: dict[str, Any] = {**dict(zip(KEY, case, strict=True)), "runs": runs}
        if runs:
            row |= {"stated_median": round(stated[len(stated) // 2], 5), "accused": accused}
            row["share"] = round(accused / runs, 4)
        elif own:
            row["stated_median"] = "none of any size"
        rows.append(row)
    return {"asked": ASKED, "cases": rows, "runs_by_commit": sorted({r["commit"] for r in records})}


def summary_beyond(records: list[dict[str, Any]]) -> dict[str, Any]:
    """How many were refuted, and the median stated power of each case over that of ``power.json``."""
    stated = [r for r in records if r["stated"] is not None]
    recorded = {case_of(c): c["stated_median"] for c in json.loads(in_data("power.json").read_text())["cases"]}
    both = [case for case in recorded if case in cases_beyond()]
    medians = {case: float(np.median([r["stated"] for r in stated if case_of(r) == case])) for case in both}
    ratios = sorted(medians[case] / recorded[case] for case in both)
    over = {"least": ratios[0], "median": float(np.median(ratios)), "largest": ratios[-1]}
    return {
        "factor": FACTOR,
        "runs": len(stated),
        "refuted": sum(r["refuted"] for r in stated),
        "medians_over_recorded_ones": {"cases": len(ratios), **over},
        "missed": [r for r in stated if not r["refuted"]],
        "without_a_power": len(records) - len(stated),
    }


def main(part: Literal["stated", "beyond"], honest: int = HONEST, out: str = "power.jsonl") -> Iterator[dict[str, Any]]:
    """Continue a part of the study, those with the quick budget first, then summarise it."""
    if part == "stated":
        every = [(case, i) for budget in BUDGETS for i in range(honest) for case in cases() if case[0] == budget]
        number, make, totals = "honest", record, summary
    else:
        every = [(case, seed) for seed in range(1, honest + 1) for case in cases_beyond()]
        number, make, totals = "seed", record_beyond, summary_beyond
    records = resume(
        out,
        every,
        lambda r: (case_of(r), r[number]),
        lambda missing: ({**make(*run), "commit": commit()} for run in missing),
    )
    yield summarised(totals(records), out)
