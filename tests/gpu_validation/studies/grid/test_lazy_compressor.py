"""An honest compressor that sends all of x/p with probability p, else nothing, judged as a run is, ten thousand times.

Its messages are equal n times out of n with probability p^n: what made a point of an interval once.  A run depends on
the number of messages sent alone, so that the chance of an accusation is also summed exactly.
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from bounds.claims import Unbiased
from gpu_validation.judging.verdict import Verdict
from gpu_validation.records.compression import Compression, Declared, Sample
from gpu_validation.studies.grid.records import Probe
from gpu_validation.studies.grid.rows import compare
from operators import Size

BUDGET, RUNS, D = 1e-4, 10_000, 1000
FULL_BITS = 1 + 32 * D


@cache
def accused(p, n, sent):
    """How many rows of a run in which so many of n messages were sent are VIOLATED."""
    hits = np.arange(n) < sent
    ratio = np.where(hits, (1 / p - 1) ** 2, 1.0)
    declared = Declared.of(Unbiased(1 / p - 1), Size(expected_upper=1 + 32 * D * p, worst_case=FULL_BITS))
    bits = Sample.of(np.where(hits, FULL_BITS, 1))
    runs = [
        Probe("lazy", Compression(source, D, declared, bits, Sample.of(ratio), Sample.of(ratio)))
        for source in ("gaussian", "flat")
    ]
    return sum(row.verdict is Verdict.VIOLATED for row in compare(runs, false_alarm=BUDGET))


@pytest.mark.every(3)
@pytest.mark.parametrize("p", [0.95, 0.5, 0.01])
@pytest.mark.parametrize("n", [6, 16, pytest.param(200, marks=pytest.mark.slow)])  # slow: many different runs
def test_an_honest_lazy_compressor_is_not_violated_in_ten_thousand_runs(p, n):
    rng = np.random.default_rng([n, round(100 * p)])
    drawn = rng.binomial(n, p, RUNS)
    violated = sum(bool(accused(p, n, int(sent))) for sent in drawn)

    assert violated == 0, f"{violated} of {RUNS} honest runs have a VIOLATED row"
    counts = np.arange(n + 1)
    likely = counts[binom.pmf(counts, n, p) > 1e-9]
    assert sum(binom.pmf(sent, n, p) for sent in likely if accused(p, n, int(sent))) <= BUDGET


def test_a_lazy_compressor_that_claims_too_little_is_violated():
    hits = np.arange(200) < 100
    ratio = Sample.of(np.where(hits, 1.0, 1.0))  # p = 1/2: (1/p - 1)^2 is 1 as well
    declared = Declared.of(Unbiased(0.5), Size(expected_upper=FULL_BITS))
    probe = Probe("lazy", Compression("flat", D, declared, Sample.of(np.where(hits, FULL_BITS, 1)), ratio, ratio))

    assert Verdict.VIOLATED in {row.verdict for row in compare([probe], false_alarm=BUDGET)}
