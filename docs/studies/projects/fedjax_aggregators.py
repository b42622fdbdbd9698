"""Compression aggregators of fedjax (``fedjax.aggregators.compression``)."""

from __future__ import annotations

import importlib
from itertools import product
from typing import Any

import numpy as np

from bounds.claims import Unbiased
from operators.laws import Domain, Subject, adapt

from .published import Computed, Published, attribute, mean_of

MODULE = "fedjax.aggregators.compression"
COMMON = {"package": "fedjax", "license": "Apache-2.0"}
LEVELS = 4


def keyed(quantise: Any) -> Any:
    """The function, compiled, with its key under the name that ``adapt`` looks for."""
    compiled = importlib.import_module("jax").jit(quantise)

    def function(x: Any, key: Any) -> Any:
        return compiled(x, key)

    function.__name__ = getattr(quantise, "__name__", "function")
    return function


def one_client(quantizer: Any) -> Any:
    """The mean over a single client."""

    def function(x: Any, key: Any) -> Any:
        aggregator = quantizer(key)
        mean, _ = aggregator.apply([(b"0", {"w": x}, 1.0)], aggregator.init())
        return mean["w"]

    return function


def _uniform(quantise: Any) -> Subject:
    function = keyed(lambda x, key: quantise(x, LEVELS, key))
    claim = lambda d: Unbiased(d / (2 * (LEVELS - 1) ** 2))  # noqa: E731
    return adapt(function, library="jax", claim=claim, domain=Domain(2.0**-60, 2.0**60))


def _tern(quantise: Any) -> Subject:
    claim = lambda d: Unbiased(max(d**0.5 - 1, 0.0))  # noqa: E731
    return adapt(keyed(quantise), library="jax", claim=claim, domain=Domain(2.0**-60, 2.0**60))


def _drive(quantizer: Any) -> Subject:
    domain = Domain(2.0**-20, 2.0**20, shortest=2, longest=2)  # not compiled, a call takes milliseconds
    return adapt(one_client(quantizer), library="jax", claim=Unbiased(2.0), domain=domain)


def drawn(function: Any, x: list[float], seed: int) -> np.ndarray:
    """One output."""
    jax = importlib.import_module("jax")
    return np.asarray(function(jax.numpy.asarray(x), jax.random.PRNGKey(seed)))


def _mean(function: Any, x: list[float], n: int, at: int = 0) -> Computed:
    seeds = iter(range(n))
    shown = ", ".join(f"{v:g}" for v in x[:4]) + (", ..." if len(x) > 4 else "")
    return mean_of(lambda: float(drawn(function, x, next(seeds))[at]), n, f"E C(x)[{at}] at x = ({shown})", x[at])


def _enumerated_drive() -> Computed:
    """E C(x)[1] at (1, 1/2): both pairs of signs, one Hadamard transform, sign, scale |x|^2/|z|_1."""
    x, hadamard = np.array([1.0, 0.5]), np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    outputs = []
    for signs in product((-1, 1), repeat=2):
        z = hadamard @ (signs * x)
        outputs.append(signs * (hadamard @ np.sign(z)) * (x @ x) / np.abs(z).sum())
    mean = float(np.mean(outputs, axis=0)[1])
    return Computed("E C(x)[1] at x = (1, 1/2) over all signs", mean, 0.5, "enumeration", 4)


PUBLISHED = (
    Published(
        name="uniform_stochastic_quantize",
        source=attribute(MODULE, "uniform_stochastic_quantize"),
        says="stochastic k-level quantisation (Suresh et al. 2017): unbiased",
        judged="unbiased, omega = d/(2 (k-1)^2), k = 4, 2^-60 <= max|x| <= 2^60",
        subject=_uniform,
        computed=lambda q: (_mean(lambda x, key: q(x, LEVELS, key), [1.0, 0.5, -0.3, 0.0], 400, 1),),
        **COMMON,
    ),
    Published(
        name="terngrad_quantize",
        source=attribute(MODULE, "terngrad_quantize"),
        says="TernGrad (Wen et al. 2017), whose theorem needs an unbiased gradient; the paper clips as well",
        judged="unbiased, omega = sqrt(d) - 1, 2^-60 <= max|x| <= 2^60",
        subject=_tern,
        computed=lambda q: (
            _mean(q, [1.0] + 63 * [0.0], 100),
            Computed("C(1, 1, 1, 1), largest entry", float(drawn(q, 4 * [1.0], 0).max()), 1.0, "one call"),
        ),
        finding="clipping at 2.5 standard deviations is always on: entries beyond are shrunk, and a leaf whose entries "
        "are all equal (any of one entry) becomes zero",
        **COMMON,
    ),
    Published(
        name="structured_drive_quantizer",
        source=attribute(MODULE, "structured_drive_quantizer"),
        says='"the unbiased scale from section 4.2 in DRIVE\'s paper", which is unbiased for uniform rotations',
        judged="unbiased, omega = 2, 2^-20 <= max|x| <= 2^20, d = 2",
        subject=_drive,
        computed=lambda q: (
            _enumerated_drive(),
            _mean(one_client(q), [1.0, 0.5], 200, 1),
            Computed(
                "finite entries of C(0, 0, 0, 0)",
                float(np.isfinite(drawn(one_client(q), 4 * [0.0], 0)).sum()),
                4.0,
                "one call",
            ),
        ),
        finding="one Hadamard transform with random signs is no uniform rotation, and the mean is off; a zero leaf "
        "becomes NaN (0/0)",
        **COMMON,
    ),
)
