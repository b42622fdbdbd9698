"""Monte Carlo of the vector quantisers' errors, within two standard errors of their exact constants."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from bounds import limits
from operators import EDEN, Key, RaBitQ, TurboQuant

RECORD = Path(__file__).parents[2] / "docs" / "data" / "inner_products.jsonl"
D, MESSAGES = 24, 300


def constants():
    for b in (1, 2, 3, 4):
        at = {"bits_per_coordinate": b, "d": D}
        yield TurboQuant(b), limits.turboquant_inner_product(**at)
        yield TurboQuant(b, "mse"), limits.turboquant_mse(**at)
        yield EDEN(b), limits.eden_inner_product(**at)
    yield RaBitQ(1), RaBitQ(1).claim(D).omega


@pytest.mark.every(3)
@pytest.mark.parametrize(("operator", "constant"), list(constants()), ids=lambda value: repr(value)[:50])
def test_error_of_random_queries_is_the_constant(operator, constant):
    """One seed, 8 queries a message."""
    rng, found = np.random.default_rng(0), []
    for i in range(MESSAGES):
        x = rng.standard_normal(D).astype(np.float32)
        error = operator(x, key=Key(0, step=i)).astype(float) - x
        q = rng.standard_normal((8, D))
        found.append(D * ((q @ error) ** 2 / ((q * q).sum(axis=1) * (x @ x))).mean())

    assert abs(np.mean(found) - constant) < 2 * np.std(found, ddof=1) / math.sqrt(MESSAGES)


def test_exact_constants_of_the_record_lie_within_two_standard_errors_but_for_the_one_in_twenty_of_chance():
    """All together no further off than one record in a thousand would be."""
    rows = [json.loads(line) for line in RECORD.read_text().splitlines()]
    exact = [row for row in rows if row.get("kind") == "exact"]
    assert {row["d"] for row in exact} == {64, 256}
    z = np.array([(row["omega_ip"] - row["constant"]) / row["standard_error"] for row in exact])
    assert (np.abs(z) < 2).mean() >= 0.95
    assert z @ z < chi2.ppf(0.999, z.size)
