"""Wrong theory: bounds, exact laws and limits times a factor, or without one of their terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

from bounds import Bound, limits, theorems
from bounds.dynamics import additive
from bounds.symbols import m, omega
from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.grid import rows as grid_rows
from gpu_validation.studies.grid.theory import EXACT_LAWS, LOSS
from tests.gpu_validation.mutations import scaled
from tests.gpu_validation.mutations.bench import Bench
from tests.gpu_validation.mutations.mutation import Mutation

THEOREM, COMPRESSED = theorems.pasgd_iterations, theorems.pasgd_compressed
TERM = "it is one term of three in the bound, which is that loose here"
LOOSE = "so loose is the bound on this problem"
SHARP = "the interval of so many draws is wider than that"


def _times(module: Any, name: str, factor: float) -> Callable[[Bench], list[Comparison]]:
    def rows(bench: Bench) -> list[Comparison]:
        with scaled.patched(module, name, factor):
            return bench.judge(bench.records)

    return rows


def _bound(bound: Bound, factor: float, survives: str = "") -> Mutation:
    rows = _times(theorems, bound.name, factor)
    return Mutation(f"{bound.name} x {factor:g}", "theory", rows, factor, (bound.name,), survives=survives)


def _law(factor: float, survives: str = "") -> Mutation:
    rows = _times(additive, "mean_squared_gradient", factor)
    return Mutation(f"exact law of |grad F|^2 x {factor:g}", "theory", rows, factor, EXACT_LAWS, survives=survives)


def _with(bound: Bound, **values: float) -> Callable[[Bench], list[Comparison]]:
    """Return the rows when some symbols of a theorem's value are others, as if they were not in it."""
    numbers = {symbol: values[symbol.name] for symbol in bound.parameters if symbol.name in values}
    kept = sum(1e-30 * symbol for symbol in bound.parameters)  # or it would refuse what it no longer holds
    wrong = replace(bound, value=bound.value.subs(numbers) + kept, _cache={})

    def rows(bench: Bench) -> list[Comparison]:
        with mock.patch.object(theorems, bound.name, wrong):
            return bench.judge(bench.records)

    return rows


def _replaced(bound: Bound, **terms: Any) -> Callable[[Bench], list[Comparison]]:
    """Return the rows when some symbols of a theorem's value are replaced by terms of them."""
    symbols = {symbol: terms[symbol.name] for symbol in bound.parameters if symbol.name in terms}
    wrong = replace(bound, value=bound.value.subs(symbols), _cache={})

    def rows(bench: Bench) -> list[Comparison]:
        with mock.patch.object(theorems, bound.name, wrong):
            return bench.judge(bench.records)

    return rows


THEORIES = (
    _bound(THEOREM, 0.8, LOOSE),
    _bound(THEOREM, 0.5),
    _bound(THEOREM, 0.33),
    _bound(COMPRESSED, 0.8, LOOSE),
    _bound(COMPRESSED, 0.5),
    _bound(COMPRESSED, 0.33),
    Mutation("pasgd_iterations without its tau term", "theory", _with(THEOREM, tau=1), survives=TERM),
    Mutation("pasgd_iterations without noise", "theory", _with(THEOREM, sigma2=0)),
    Mutation("pasgd_compressed as if omega = 0", "theory", _with(COMPRESSED, omega=0)),
    Mutation("omega x .2 in pasgd_compressed", "theory", _replaced(COMPRESSED, omega=omega / 5)),
    Mutation("m + 1 in pasgd_compressed", "theory", _replaced(COMPRESSED, m=m + 1)),
    Mutation("m^2 in pasgd_compressed", "theory", _replaced(COMPRESSED, m=m**2)),
    *(_law(factor) for factor in (0.5, 0.8, 0.9, 1.1, 1.3, 1.7)),
    _law(1.03, SHARP),
    Mutation("exact law of the workers' spread x 2", "theory", _times(additive, "mean_gradient_discrepancy", 2)),
    Mutation(
        *("exact law of the workers' spread x 1.2", "theory", _times(additive, "mean_gradient_discrepancy", 1.2)),
        survives="it is a small part of the squared gradient norm at the workers",
    ),
    Mutation("exact law of the loss x 1.2", "theory", _times(additive, "suboptimality", 1.2), 1.2, (LOSS,)),
    Mutation("runtime model x 2", "theory", _times(grid_rows, "predicted_seconds", 2)),
    Mutation(
        *("runtime model x 1.1", "theory", _times(grid_rows, "predicted_seconds", 1.1)),
        survives="seconds accuse only beyond a factor of 1.5 on a quiet machine, and never decide",
    ),
    Mutation(
        *("limit of biased messages x 1.2", "theory", _times(limits, "gaussian_bits", 1.2), 1.2, ("gaussian_bits",)),
        survives="no operator of the run is so close to the limit",
    ),
    Mutation(
        *("limit of unbiased messages x 2", "theory", _times(limits, "gaussian_unbiased_bits", 2), 2),
        of=("gaussian_unbiased_bits",),
        survives="no operator of the run is so close to the limit",
    ),
    Mutation(
        *("limit of unbiased messages x 4", "theory", _times(limits, "gaussian_unbiased_bits", 4), 4),
        of=("gaussian_unbiased_bits",),
    ),
)
