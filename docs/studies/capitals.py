"""Do the bets of the statistical laws keep their level?  How large does their capital become for honest compressors?

Block b makes ``BLOCK`` checks of each of the compressors of ``power.py``, whose claims are true, and bets on the mean,
on the error and on the constant being reached as ``check`` does, with some 20 draws at each of the vectors of the quick
budget.  Of a valid law the capital ever exceeds 1/a with probability at most a, for every a: the blocks count how
often it exceeded 2, 10, 100 and 1000, and the level of a law in a check.  (``false_alarms.py`` runs whole operators and
all laws; that is slower by a hundred times.)

Records are appended to ``--out``, and blocks already there are not repeated; the totals go to a file beside it.

    nice python docs/measure.py studies/capitals.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
from measure import resume, summarised
from power import COMPRESSORS, Bulk
from scipy.stats import binom

from bounds.claims import Unbiased
from gpu_validation.records.environment import commit
from operators.laws import Budget, Subject
from operators.laws.check import statistical_laws
from operators.laws.kit.law import Context
from operators.laws.kit.statistical import collect, statistical_examples
from operators.laws.operator.draws import Distortion, Tightness, Unbiasedness

BLOCK, BLOCKS = 50, 34  # of each of six compressors: 10 200 checks
BUDGET = replace(Budget.quick().untimed(), draws=20, bias=2.0)
LEVEL = BUDGET.false_alarm / statistical_laws()
LAWS = {law.name: law for law in (Unbiasedness(), Distortion(), Tightness())}
CAPITALS = (2, 10, 100, 1000, 1 / LEVEL)
QUANTILE = 0.999


def peaks(name: str, rng: np.random.Generator) -> dict[str, float]:
    """Logarithm of the largest capital of each law in one check of an honest compressor."""
    compressor = COMPRESSORS[name]
    subject = Subject(lambda x: x, Unbiased(compressor.omega, tight=compressor.looseness == 1))
    examples = list(statistical_examples(Context(BUDGET, int(rng.integers(1 << 32)))))
    bets = {law.name: law.bets(subject, examples, LEVEL, BUDGET) for law in LAWS.values()}
    made = {law: one for law, one in bets.items() if one is not None}
    source = Bulk(lambda example, n: compressor.outputs(example.x.astype(np.float64), n, rng))
    collect(source, examples, list(made.values()), BUDGET)
    return {law: one.ledger.peak for law, one in made.items()}


def block(number: int, size: int = BLOCK, seed: int = 1) -> dict[str, Any]:
    """The record of a block: for every law how many checks it judged, and in how many each capital was reached."""
    counts = {law: [0] * (1 + len(CAPITALS)) for law in LAWS}
    for at, name in enumerate(COMPRESSORS):
        rng = np.random.default_rng([seed, number, at])
        for _ in range(size):
            for law, peak in peaks(name, rng).items():
                counts[law][0] += 1
                for i, capital in enumerate(CAPITALS):
                    counts[law][1 + i] += peak >= log(capital)
    return {"block": number, "counts": counts, "commit": commit()}


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """For every law the checks, and for every capital how many reached it and how many a valid law may have."""
    laws: dict[str, Any] = {}
    for law in LAWS:
        runs, *reached = np.sum([r["counts"][law] for r in records], axis=0).tolist()
        laws[law] = {"checks": runs} | {
            f">= {capital:g}": {"seen": seen, "allowed_at_99.9_percent": int(binom.ppf(QUANTILE, runs, 1 / capital))}
            for capital, seen in zip(CAPITALS, reached, strict=True)
        }
    return {"level_of_a_law": LEVEL, "laws": laws, "commits": sorted({r["commit"] for r in records})}


def main(blocks: int = BLOCKS, out: str = "capitals.jsonl") -> Iterator[dict[str, Any]]:
    """Continue the study, then summarise it."""
    records = resume(out, range(blocks), lambda r: r["block"], lambda missing: map(block, missing))
    yield summarised(summary(records), out)
