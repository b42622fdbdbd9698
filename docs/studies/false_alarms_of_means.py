"""How often does ``check_mean`` accuse an honest exchange?  Count its alarms, exact laws included.

Run i checks subject i mod n with m in turn, seed ``--seed`` + i and the false-alarm budget 1e-6; few draws a group and
no power asked for, so that a run takes a second or two: a run of fewer draws has no larger level.  One JSON line a run
is appended to ``--out``; runs already there are not repeated.  ``--summary`` writes the totals.

    nice python docs/studies/false_alarms_of_means.py --runs 10000 --out docs/data/false_alarms_of_means.jsonl \
        --summary docs/data/false_alarms_of_means.json
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from honest_exchanges import BothEnds, Gather, SharedScale, TwoShot, kept_halves, plain
from resumable import command_line, conclude, resume

from bounds.claims import ConservedMean, Unbiased, UnbiasedMean
from gpu_validation.records.environment import commit
from operators import QSGD, TCDQ, RandomK, TopK
from operators.laws import Budget, check_mean

BUDGET = replace(Budget.quick().untimed(), draws=8, least_draws=100, bias=2.0)
WORKERS = (2, 3, 5)


def half_of_all(d: int, m: int) -> UnbiasedMean:
    """Every coordinate is kept with probability 1/2."""
    return UnbiasedMean(1 / m, tight=True)


def with_memory() -> BothEnds:
    """Top-1/2 at both ends."""
    return BothEnds(TopK(0.5), TopK(0.5))


@cache
def honest() -> dict[str, tuple[Callable[..., Any], Any]]:
    """The exchanges and their claims."""
    exchanges = {
        "gather, QSGD(16)": Gather(QSGD(16)),
        "gather, TCDQ(.5)": Gather(TCDQ(0.5)),
        "gather, random quarter": Gather(RandomK(0.25)),
        "two shots, QSGD(16)": TwoShot(QSGD(16), QSGD(16)),
        "two shots, QSGD(4)": TwoShot(QSGD(4), QSGD(4)),
        "two shots, TCDQ(.3) and (.1)": TwoShot(TCDQ(0.3), TCDQ(0.1)),
        "two shots, random half": TwoShot(RandomK(0.5), RandomK(0.5)),
        "shared scale, 12 bits": SharedScale(),
        "shared scale, 8 bits": SharedScale(8),
    }
    return {name: (exchange, exchange.claim) for name, exchange in exchanges.items()} | {
        "no compression": (plain, Unbiased(0.0, tight=True)),
        "halves by torch's generator": (kept_halves, half_of_all),
        "error feedback at both ends": (with_memory, ConservedMean(5.0)),
    }


def one(run: int, seed: int) -> dict[str, object]:
    """The record of one run."""
    subjects = honest()
    name = list(subjects)[run % len(subjects)]
    exchange, claim = subjects[name]
    m = WORKERS[run // len(subjects) % len(WORKERS)]
    started = time.process_time()
    report = check_mean(exchange, m=m, claim=claim, budget=BUDGET, seed=seed + run)
    seconds = round(time.process_time() - started, 3)
    alarms = [failure.law for failure in report.failures]
    return {"run": run, "subject": name, "m": m, "alarms": alarms, "seconds": seconds, "commit": commit()}


def summary(records: list[dict[str, Any]]) -> dict[str, object]:
    """The totals."""
    seconds = sorted(float(r["seconds"]) for r in records)
    return {
        "runs": len(records),
        "level_per_run": BUDGET.false_alarm,
        "alarms": sum(bool(r["alarms"]) for r in records),
        "runs_by_subject": dict(sorted(Counter(str(r["subject"]) for r in records).items())),
        "alarms_by_subject": dict(Counter(str(r["subject"]) for r in records if r["alarms"])),
        "median_processor_seconds_a_run": seconds[len(seconds) // 2] if seconds else None,
        "runs_by_commit": dict(Counter(str(r["commit"]) for r in records)),
    }


def main() -> None:
    """Continue the study, then summarise it."""
    parser = command_line(__doc__, "false_alarms_of_means")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    make = partial(one, seed=options.seed)
    records = resume(options.out, range(options.runs), lambda r: r["run"], lambda missing: map(make, missing))
    conclude(summary(records), options.summary)


if __name__ == "__main__":
    main()
