"""How often does the conformance kit accuse an honest compressor?  Count the alarms of its statistical laws.

Run i checks subject i mod n with seed ``--seed`` + i and the false-alarm budget 1e-6.  Subjects are the randomised
operators of the catalogue that claim a constant, and an honest function in the forms of other libraries.  So that ten
thousand runs are hours of one core, a run draws 30 times a vector, asks for no power and takes part in the laws in
turn: those that share their draws (error, mean, constant reached, expected length) in every run; the independence of
streams, and the enumeration of outcomes, each in one run of four of a subject; the hidden words of a function's exact
marginals in every run of a function.  A run of fewer laws or draws has no larger level.

Zero alarms in 10^4 runs say little of a level of 1e-6.  So the largest capital that a law reached is recorded too: of
a valid law it exceeds 1/a with probability at most a, for every a, and the summary counts how often it exceeded 2,
10, 100 and 1000 beside what a valid law may have reached.

One JSON line a run is appended to ``--out``, with its commit; runs already there are not repeated, so an interrupted
study goes on where it stopped.  The totals go to a file beside it.

    nice python docs/measure.py studies/false_alarms.py
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from measure import resume, summarised
from scipy.stats import binom

from bounds.claims import NoClaim, Unbiased
from gpu_validation.records.environment import commit
from operators import all_operators
from operators.laws import Budget, Subject, adapt
from operators.laws.check import LAWS, statistical_laws
from operators.laws.kit.law import Context
from operators.laws.kit.statistical import StatisticalLaw
from operators.laws.kit.verdict import Outcome

BUDGET = replace(Budget.quick().untimed(), draws=30, bias=1.0)  # untimed: a run depends on its seed alone
ELSEWHERE = ("hook-mean",)  # it needs groups of ranks
STATISTICAL = {
    law.name: law
    for law in LAWS
    if law.statistical and law.needs not in ("aggregate", "feedback") and law.name not in ELSEWHERE
}
SHARED = tuple(name for name, law in STATISTICAL.items() if isinstance(law, StatisticalLaw))
IN_TURN = ((), ("independent-streams",), ("every-coordinate",), ("enumeration",), ("lengths",))
CAPITALS = (2, 10, 100, 1000)
QUANTILE = 0.999


def keep_half(x: torch.Tensor) -> torch.Tensor:
    """Unbiased, omega = 1."""
    return 2 * x * (torch.rand(x.shape) < 0.5)


def keep_half_of_an_array(x: np.ndarray) -> np.ndarray:
    """The same for numpy."""
    return 2 * x * (np.random.default_rng().random(x.size) < 0.5)


def random_half(x: torch.Tensor) -> torch.Tensor:
    """Half of the coordinates, rounded up, and scaled: unbiased, omega <= 1."""
    kept = (len(x) + 1) // 2
    chosen = torch.randperm(len(x))[:kept]
    return torch.zeros_like(x).index_copy_(0, chosen, x[chosen]) * len(x) / kept


class MaskAndValues:
    """As in GRACE: compress(tensor, name) -> (tensors, ctx), decompress(tensors, ctx)."""

    def compress(self, tensor: torch.Tensor, name: str) -> tuple[Any, Any]:
        """Survivors of fair coins."""
        kept = torch.rand(tensor.shape) < 0.5
        return (tensor[kept], kept), tensor.shape

    def decompress(self, tensors: Any, ctx: Any) -> torch.Tensor:
        """Doubled."""
        out = torch.zeros(ctx)
        out[tensors[1]] = 2 * tensors[0]
        return out


@cache
def honest() -> dict[str, Any]:
    """Every example of the catalogue that is randomised and claims a constant; functions by name."""
    examples = (op for cls in all_operators().values() for op in cls.examples())
    operators = [op for op in examples if op.randomness != "none" and not isinstance(op.claim(65), NoClaim)]
    claim = Unbiased(omega=1.0)
    return {repr(op): op for op in operators} | {
        "a torch function, keep half": adapt(keep_half, claim=claim),
        "a torch function, random half": adapt(random_half, claim=claim),
        "a numpy function, keep half": adapt(keep_half_of_an_array, library="numpy", claim=claim),
        "a GRACE compressor, keep half": adapt(MaskAndValues(), claim=claim),
    }


def one(run: int, seed: int) -> dict[str, object]:
    """The record of one run: number, subject, laws, alarms, log10 of the largest capitals, seconds, commit."""
    subjects = honest()
    name = list(subjects)[run % len(subjects)]
    subject = subjects[name] if isinstance(subjects[name], Subject) else Subject(subjects[name])
    marginals = ("exact-marginals",) * (not subject.is_operator)
    laws = [STATISTICAL[law] for law in (*marginals, *SHARED, *IN_TURN[run // len(subjects) % len(IN_TURN)])]
    context = Context(BUDGET, seed + run, parts=statistical_laws(), laws=tuple(laws))
    torch.manual_seed(seed + run)
    started = time.process_time()
    with subject.session():
        alarms = [law.name for law in laws if law.run(subject, context).outcome is Outcome.FAIL]
    bets = context.study.bets if context.study else {}
    return {
        "run": run,
        "subject": name,
        "laws": [law.name for law in laws],
        "alarms": alarms,
        "log10_capital": {law: round(b.ledger.peak / math.log(10), 2) for law, b in bets.items()},
        "seconds": round(time.process_time() - started, 3),
        "commit": commit(),
    }


def study(runs: Iterable[int], seed: int, processes: int) -> Iterator[dict[str, object]]:
    """The records of the runs, as they finish."""
    if processes == 1:
        yield from (one(run, seed) for run in runs)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(partial(one, seed=seed), runs, chunksize=4)


def summary(records: list[dict[str, Any]], seed: int) -> dict[str, object]:
    """Totals, and the most alarms and large capitals that a correct kit may have reached at the quantile."""
    seconds = sorted(float(r["seconds"]) for r in records)
    return {
        "runs": len(records),
        "level_per_run": BUDGET.false_alarm,
        "runs_by_law": dict(Counter(law for r in records for law in r["laws"])),
        "alarms": sum(bool(r["alarms"]) for r in records),
        "allowed_at_99.9_percent": int(binom.ppf(QUANTILE, len(records), BUDGET.false_alarm)),
        "largest_capitals": {law: _capitals(records, law) for law in SHARED},
        "runs_by_subject": dict(sorted(Counter(str(r["subject"]) for r in records).items())),
        "alarms_by_subject": dict(Counter(str(r["subject"]) for r in records if r["alarms"])),
        "median_processor_seconds_a_run": seconds[len(seconds) // 2],
        "seed": seed,
        "runs_by_commit": dict(Counter(str(r["commit"]) for r in records)),
    }


def _capitals(records: list[dict[str, Any]], law: str) -> dict[str, dict[str, int]]:
    """How many runs reached each capital, and how many a valid law may have reached."""
    reached = [10 ** r["log10_capital"][law] for r in records if law in r["log10_capital"]]
    return {
        f">= {capital}": {
            "runs": len(reached),
            "seen": sum(largest >= capital for largest in reached),
            "allowed_at_99.9_percent": int(binom.ppf(QUANTILE, len(reached), 1 / capital)),
        }
        for capital in CAPITALS
    }


def main(
    runs: int = 10_000, seed: int = 1, processes: int = 1, out: str = "false_alarms.jsonl"
) -> Iterator[dict[str, Any]]:
    """Continue the study, then summarise it."""
    records = resume(out, range(runs), lambda r: r["run"], partial(study, seed=seed, processes=processes))
    yield summarised(summary(records, seed), out)
