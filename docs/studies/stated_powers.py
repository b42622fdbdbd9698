"""Is a defect of 1.2 times the stated power found?  SEEDS honest and as many wrong runs of each of 44 subjects.

Compressors, faults, laws and draws are those of ``power.py``, and two faults in a direction that nobody knows.  The
honest run states a power, whose median is compared with that of ``power.json``; the wrong run has FACTOR times
that defect, and draws of its own.  One JSON line a subject is appended to ``--out``; those there are not repeated.

    nice env OMP_NUM_THREADS=1 python docs/studies/stated_powers.py --out docs/data/stated_powers.jsonl
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import power
from resumable import DATA, command_line, conclude, resume

from gpu_validation.records.environment import commit, environment
from operators.laws.betting.eprocess import inflated
from operators.laws.kit.examples import Example
from operators.laws.kit.statistical import ClaimBets

FACTOR, SEEDS = 1.2, 5
RECORD = DATA / "power.json"
Case = tuple[str, str, str]


def _any_direction(bets: ClaimBets) -> tuple[float, int | None]:
    length = bets.power().any_direction
    assert length is not None
    return length, None


def _drawn_direction(y: np.ndarray, x: np.ndarray, size: float, looseness: float) -> np.ndarray:
    z = np.random.default_rng([x.size, 11]).standard_normal(x.size)
    return y + size * np.linalg.norm(x) * z / np.linalg.norm(z)


def _one_coordinate(y: np.ndarray, x: np.ndarray, size: float, looseness: float) -> np.ndarray:
    wrong = y.copy()
    wrong[:, x.size // 2] += size * np.linalg.norm(x)
    return wrong


FAULTS = power.FAULTS | {
    "in a drawn direction": power.Fault("unbiasedness", _any_direction, _drawn_direction),
    "along one coordinate of every vector": power.Fault("unbiasedness", _any_direction, _one_coordinate),
}


def cases() -> list[Case]:
    """Budget, compressor and fault: 40 with the quick budget, four with the standard one."""
    directions = [("quick", c, f) for c in power.COMPRESSORS for f in FAULTS if f not in power.FAULTS]
    return (
        [case for case in power.cases() if case[2] != power.PROBABILITY][:28]
        + directions
        + [case for case in power.cases() if case[0] == "standard" and case[2] != power.PROBABILITY]
    )


def record(case: Case, seed: int) -> dict[str, Any]:
    """What the honest run states, and whether FACTOR times that is refuted."""
    budget, name, fault_name = case
    compressor, fault = power.COMPRESSORS[name], FAULTS[fault_name]
    rng = np.random.default_rng([seed, cases().index(case)])

    def honestly(example: Example, n: int) -> np.ndarray:
        return compressor.outputs(example.x.astype(np.float64), n, rng)

    def wrongly(example: Example, n: int) -> np.ndarray:
        x = example.x.astype(np.float64)
        y = compressor.outputs(x, n, rng)
        beyond = compressor.looseness * inflated(compressor.omega) / compressor.omega
        return fault.put(y, x, FACTOR * size, beyond) if at is None or example is power.vectors(budget)[at] else y

    size, at = fault.stated(power.run(budget, fault.law, compressor.omega, honestly))
    stated = bool(size < np.inf)
    refuted = stated and power.run(budget, fault.law, compressor.omega, wrongly).rejected()
    key = {"budget": budget, "compressor": name, "fault": fault_name, "seed": seed}
    return {**key, "stated": size if stated else None, "refuted": refuted, "commit": commit()}


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """How many were refuted."""
    stated = [r for r in records if r["stated"] is not None]
    return {
        "factor": FACTOR,
        "runs": len(stated),
        "refuted": sum(r["refuted"] for r in stated),
        "medians_over_recorded_ones": _against_the_record(stated),
        "missed": [r for r in stated if not r["refuted"]],
        "without_a_power": len(records) - len(stated),
        **environment(),
    }


def _against_the_record(stated: list[dict[str, Any]]) -> dict[str, float]:
    """The median stated power of each case over that of ``power.json``: least, median and largest."""
    recorded = {
        (c["budget"], c["compressor"], c["fault"]): c["stated_median"] for c in json.loads(RECORD.read_text())["cases"]
    }
    ratios = sorted(
        float(np.median([r["stated"] for r in stated if (r["budget"], r["compressor"], r["fault"]) == case])) / size
        for case, size in recorded.items()
        if case in cases()
    )
    return {"cases": len(ratios), "least": ratios[0], "median": float(np.median(ratios)), "largest": ratios[-1]}


def main() -> None:
    """Continue the study, then summarise it."""
    parser = command_line(__doc__, "stated_powers")
    options = parser.parse_args()
    records = resume(
        options.out,
        [(case, seed) for seed in range(1, SEEDS + 1) for case in cases()],
        lambda r: ((r["budget"], r["compressor"], r["fault"]), r["seed"]),
        lambda missing: (record(*run) for run in missing),
    )
    conclude(summary(records), options.summary)


if __name__ == "__main__":
    main()
