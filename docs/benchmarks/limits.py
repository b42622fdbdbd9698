"""Speed and accuracy of the rate-distortion limits, as JSON lines.

Run ``python docs/measure.py benchmarks/limits.py``; a quarter of a minute.  One line a measurement: what, how many
points, points a second or milliseconds, and for the cap probability the time over that of scipy's incomplete beta
function where that still works: both in turns, the ratio of the medians with its 95 % bootstrap interval.  Processor
time of one thread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from comparing import quotient
from scipy.special import betainc

from bounds import limits
from bounds.special.cap_probability import cap_lead_and_excess, enclose_cap_excess, enclose_neg_log2_cap, neg_log2_cap
from bounds.special.sphere_rate import enclose_sphere_rate, sphere_rate
from gpu_validation.records.environment import environment

POINTS = 1_000_000
REPEATS = 3
TURNS, POINTS_A_TURN = 40, 100_000  # of what is compared
GRID = [
    (share, dimension)
    for share in ("0.001", "0.1", "0.5", "0.9", "0.999", "0.999999999")
    for dimension in (3, 10, 10**3, 10**6, 10**9, 10**12)
]


def seconds_of(function, *arguments):
    start = time.thread_time()
    function(*arguments)
    return time.thread_time() - start


def best_seconds(function, *arguments):
    return min(seconds_of(function, *arguments) for _ in range(REPEATS))


def random_points(generator, shares, dimensions, count=POINTS):
    low, high = np.log(dimensions)
    return generator.uniform(*shares, count), np.round(np.exp(generator.uniform(low, high, count)))


def against_betainc(generator):
    alpha, d = random_points(generator, (0.05, 0.95), (2, 200), POINTS_A_TURN)
    pairs = [(seconds_of(neg_log2_cap, alpha, d), seconds_of(betainc, (d - 1) / 2, 0.5, alpha)) for _ in range(TURNS)]
    ratio, interval = quotient(*zip(*pairs, strict=True))
    yield {"what": "neg_log2_cap against betainc", "points": POINTS_A_TURN, "ratio": ratio, "interval": interval}


def speed():
    generator = np.random.default_rng(0)
    for name, shares, dimensions in (
        ("all", (1e-6, 1 - 1e-9), (1, 1e12)),
        ("small alpha", (1e-6, 0.02), (1, 1e12)),
        ("alpha below 1/2", (0.02, 0.5), (1, 1e12)),
        ("alpha above 1/2", (0.5, 1 - 1e-9), (1, 1e12)),
        ("low dimension", (1e-6, 1 - 1e-9), (1, 17)),
    ):
        alpha, d = random_points(generator, shares, dimensions)
        seconds = best_seconds(neg_log2_cap, alpha, d)
        yield {"what": "neg_log2_cap", "region": name, "points": POINTS, "points_per_s": round(POINTS / seconds)}
    yield from against_betainc(generator)
    alpha, d = random_points(generator, (1e-6, 1 - 1e-9), (2, 1e12))
    yield {"what": "sphere_rate", "points": POINTS, "points_per_s": round(POINTS / best_seconds(sphere_rate, alpha, d))}
    seconds = best_seconds(lambda: limits.worst_case_bits(alpha=alpha, d=d))
    yield {"what": "worst_case_bits", "points": POINTS, "points_per_s": round(POINTS / seconds)}


def enclosures():
    for name, function in (
        ("enclose_neg_log2_cap", enclose_neg_log2_cap),
        ("enclose_sphere_rate", enclose_sphere_rate),
    ):
        function("0.3", 7)  # import and first use
        times = [best_seconds(function, share, dimension) * 1e3 for share, dimension in GRID]
        widths = [function(share, dimension).relative_width for share, dimension in GRID]
        p95 = float(np.percentile(times, 95))
        yield {
            "what": name,
            "points": len(GRID),
            "p95_ms": round(p95, 3),
            "max_ms": round(max(times), 3),
            "widest": max(widths),
        }


def accuracy():
    shares = np.concatenate([np.geomspace(1e-6, 0.5, 25), 1 - np.geomspace(0.4, 1e-9, 25)])
    dimensions = np.unique(np.concatenate([np.arange(1, 21), np.round(np.geomspace(21, 1e12, 40))]))
    relative, absolute = [], []
    for share in shares:
        for dimension in dimensions:
            truth = enclose_neg_log2_cap(float(share), int(dimension)).midpoint
            excess = enclose_cap_excess(float(share), int(dimension)).midpoint
            lead, ours = cap_lead_and_excess(share, dimension)
            relative.append(abs(lead + ours - truth) / truth)
            absolute.append(abs(ours - excess))
    yield {
        "what": "error of neg_log2_cap",
        "points": len(relative),
        "max_relative": max(relative),
        "median_relative": float(np.median(relative)),
        "max_excess_bits": max(absolute),
    }
    errors = []
    for share in shares[::3]:
        for dimension in dimensions[1::6]:
            truth = enclose_sphere_rate(Fraction(float(share)), int(dimension)).midpoint
            errors.append(abs(sphere_rate(share, dimension) - truth) / truth)
    yield {"what": "error of sphere_rate", "points": len(errors), "max_relative": max(errors)}


def main() -> Iterator[dict[str, Any]]:
    yield environment()
    yield from speed()
    yield from enclosures()
    yield from accuracy()
