"""Claims that are wrong by a factor are VIOLATED, and true ones are not: rows judged again on runs of known law."""

from dataclasses import replace

import numpy as np
import pytest

from bounds import theorems
from bounds.dynamics import additive, multiplicative
from bounds.symbols import tau
from gpu_validation.records.compression import Compression, Declared, Sample
from gpu_validation.studies import tau_star
from gpu_validation.studies.grid import rows as grid_rows
from gpu_validation.studies.grid.records import Curve, Timing, Traffic, Training
from gpu_validation.studies.grid.rows import compare
from gpu_validation.studies.tau_star import best_rows, exact_value_at_workers
from gpu_validation.workloads import MultiplicativeQuadratic, Quadratic

M, N, BUDGET = 4, 64, 1e-4
PLAIN = Quadratic(d=80, smallest=1.0, noise=25.0)
GROWING = MultiplicativeQuadratic(d=80, smallest=1.0, eta=0.25)
LEVEL = BUDGET / 500  # of a row of ``quick``


def steps(workload):
    """As in ``quick``."""
    return 64 if workload == GROWING else 32


def paths(workload, period, K, rng):
    """(average |grad F|^2 at the mean, at the workers, F at the end) of N seeds: local steps in plain numpy."""
    lam, growth = workload.eigenvalues, getattr(workload, "noise_growth", 0.0)
    x = np.ones((N, M, workload.d))
    middle, local = np.zeros(N), np.zeros(N)
    for k in range(K):
        middle += np.square(lam * x.mean(axis=1)).sum(axis=-1) / K
        local += np.square(lam * x).sum(axis=-1).mean(axis=1) / K
        z, xi = rng.standard_normal((2, *x.shape))
        x = x - workload.eta * (lam * x * (1 + np.sqrt(growth) * z) + np.sqrt(workload.noise) * xi)
        if (k + 1) % period == 0:
            x = np.repeat(x.mean(axis=1, keepdims=True), M, axis=1)
    return middle, local, (0.5 * lam * x[:, 0] ** 2).sum(axis=-1)


def timing(round_s):
    """Rounds that scatter by a hundredth; Y = 2 ms, D = 8 ms."""
    return Timing((0.99 * round_s, 1.01 * round_s) * 4, (0.002,) * 64, Sample.of([0.008] * 8), wanted_step_s=0.002)


def cell(workload, period, seed=0, K=None, **change):
    """The record of a quiet run without compression; the same seed gives all tau the same noise."""
    K = K or steps(workload)
    middle, local, last = (tuple(column.tolist()) for column in paths(workload, period, K, np.random.default_rng(seed)))
    c, nothing = workload.constants(), Sample.of([0.0] * 8)
    declared = Declared("StrictlyContractive", 0.0, 2560, 2560.0, 2560)
    numbers = {name: float(getattr(workload, name)) for name in ("d", "smallest", "noise", "eta")}
    if workload is GROWING:
        numbers["noise_growth"] = workload.noise_growth
    record = Training(
        workload=workload.name,
        operator="identity",
        tau=period,
        processes=M,
        steps=K,
        seeds=tuple(range(N)),
        parameters={**numbers, "L": c.L, "sigma2": c.sigma2, "gap": c.gap},
        exact_constants=c.exact,
        inexact_reason=c.reason,
        gradient_norm2=middle,
        local_gradient_norm2=local,
        final_loss=last,
        compression=Compression(
            f"round deltas of {workload.name}", 80, declared, Sample.of([2560] * 8), *[nothing] * 2
        ),
        traffic=Traffic(2 * (K // period) * M * 2560, 1, 1, None, "by hand"),
        timing=timing(0.002 * period + 0.008),
        curve=Curve((1.0,), (1,), (c.gap,)),
        virtual=N - 2,
        apart=0.0,
        compared=100,
    )
    return replace(record, **change)


@pytest.fixture(scope="module")
def run():
    return [cell(workload, period) for workload in (PLAIN, GROWING) for period in (1, 4, 8)]


def judged(records):
    return compare(records, false_alarm=LEVEL * 30)


def violated(records):
    return [row for row in judged(records) if row.verdict == "VIOLATED"]


def about(rows, theorem):
    return {(row.workload, row.tau) for row in rows if row.theorem == theorem}


def halved(monkeypatch, name, factor):
    bound = getattr(theorems, name)
    monkeypatch.setattr(theorems, name, replace(bound, value=bound.value * factor, _cache={}))


def test_the_law_of_a_run_depends_on_tau_and_all_rows_hold(run):
    rows = judged(run)
    values = [row.bound for row in rows if row.theorem.startswith("exact dynamics with") and "workers" in row.quantity]

    assert {str(row.verdict) for row in rows} - {"OUT_OF_SCOPE", "INCONCLUSIVE"} == {"HOLDS"}
    assert len(set(values)) == len(values) == 4
    assert {row.verdict for row in rows if "paired difference" in row.quantity} == {"HOLDS"}


@pytest.mark.parametrize("factor", [0.5, 0.33])
def test_a_convergence_bound_that_is_half_is_violated_at_every_tau(run, monkeypatch, factor):
    halved(monkeypatch, "pasgd_iterations", factor)
    halved(monkeypatch, "pasgd_multiplicative", factor)
    rows = violated(run)

    assert about(rows, "pasgd_iterations") == {("quadratic", period) for period in (1, 4, 8)}
    assert about(rows, "pasgd_multiplicative") == {("multiplicative", 1)}  # the only tau that its condition admits


def test_theorem_1_at_tau_1_notices_eight_tenths(run, monkeypatch):
    halved(monkeypatch, "pasgd_iterations", 0.8)

    assert about(violated(run), "pasgd_iterations") == {("quadratic", 1)}


def test_theorem_1_without_its_tau_term_is_violated(run, monkeypatch):
    bound = theorems.pasgd_iterations
    monkeypatch.setattr(theorems, "pasgd_iterations", replace(bound, value=bound.value.subs(tau, 1), _cache={}))
    longer = cell(replace(PLAIN, noise=400.0), 8, K=192)  # little of the start is left in the average

    assert about(violated([longer]), "pasgd_iterations") == {("quadratic", 8)}


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 1.7])
def test_an_exact_law_that_is_wrong_is_violated_at_every_tau(run, monkeypatch, factor):
    for module in (additive, multiplicative):
        true = module.mean_squared_gradient
        monkeypatch.setattr(module, "mean_squared_gradient", lambda *a, true=true, **k: factor * true(*a, **k))
    rows = [row for row in violated(run) if row.quantity == "squared gradient norm, average over steps"]

    assert {(row.workload, row.tau) for row in rows} == {(r.workload, r.tau) for r in run}


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_gradient_norms_and_losses_that_are_wrong_are_violated(run, factor):
    for field in ("gradient_norm2", "local_gradient_norm2", "final_loss"):
        for record in run:
            wrong = replace(record, **{field: tuple(factor * value for value in getattr(record, field))})
            if record.tau > 1 or field != "local_gradient_norm2":  # at tau = 1 there is no row on the workers
                assert violated([wrong]), (field, record.workload, record.tau)


def test_local_steps_taken_for_single_ones_are_violated(run):
    """A run at tau = 8 that in truth averages after every step."""
    for once, eight in ((run[0], run[2]), (run[3], run[5])):
        fields = ("gradient_norm2", "local_gradient_norm2", "final_loss")
        assert violated([replace(eight, **{name: getattr(once, name) for name in fields})])


def test_a_runtime_model_that_doubles_is_violated_on_a_quiet_machine_and_decides_nothing(run, monkeypatch):
    assert {row.verdict for row in judged(run) if row.unit == "s"} == {"HOLDS"}
    true = grid_rows.predicted_seconds
    monkeypatch.setattr(grid_rows, "predicted_seconds", lambda *a: 2 * true(*a))
    rows = [row for row in judged(run) if row.unit == "s"]
    assert {(row.verdict, row.decides) for row in rows} == {("VIOLATED", False)}
    loud = [replace(r, timing=replace(r.timing, step_s=(0.002,) * 50 + (0.01,) * 14)) for r in run]
    assert {row.verdict for row in judged(loud) if row.unit == "s"} == {"INCONCLUSIVE"}


def test_the_gain_of_local_steps_is_judged_against_the_models(run):
    rows = [row for row in judged(run) if row.quantity == "times faster than tau = 1"]
    assert {(row.tau, row.verdict) for row in rows} == {(4, "HOLDS"), (8, "HOLDS")}
    assert rows[0].bound == pytest.approx(0.010 / 0.004)
    no_gain = [replace(r, timing=timing(0.010 * r.tau)) for r in run]
    rows = [row for row in judged(no_gain) if row.quantity == "times faster than tau = 1"]
    assert {row.verdict for row in rows} == {"VIOLATED"}


def learned(operator="qsgd", *, constant=0.5, kind="Unbiased", loss=0.90, accuracy=0.90):
    """A run on the digits."""
    declared = Declared(kind, constant, 2560, 2560.0, 2560)
    record = cell(PLAIN, 1)
    return replace(
        record,
        workload="network",
        operator=operator,
        seeds=(0,),
        virtual=0,
        apart=None,
        exact_constants=False,
        inexact_reason="estimated",
        gradient_norm2=(0.1,),
        local_gradient_norm2=(),
        final_loss=(loss,),
        accuracy=(accuracy,),
        data={"synthetic": False, "classes": 10},
        traffic=replace(record.traffic, codec_bits=record.traffic.codec_bits // 2),  # of one seed, not two
        compression=replace(record.compression, declared=declared),
        curve=Curve((1.0,), (1,), (2.3,)),
    )


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"loss": 0.93, "accuracy": 0.86}, 0),
        ({"loss": 1e9}, 1),
        ({"loss": 1.0}, 1),
        ({"accuracy": 0.0}, 1),
        ({"accuracy": 0.84}, 1),
        ({"constant": 0.9, "kind": "StrictlyContractive", "loss": 2.0, "accuracy": 0.3}, 0),
        ({"constant": 0.9, "kind": "StrictlyContractive", "loss": 1e9}, 1),
        ({"constant": 0.9, "kind": "StrictlyContractive", "accuracy": 0.0}, 1),
    ],
)
def test_loss_and_accuracy_are_judged_beside_the_uncompressed_run(change, wrong):
    base = learned("identity", constant=0.0, kind="StrictlyContractive")

    assert len(violated([base, learned(**change)])) == wrong


def test_an_uncompressed_run_that_does_not_learn_is_violated():
    at = {"constant": 0.0, "kind": "StrictlyContractive"}
    assert not violated([learned("identity", **at)])
    assert len(violated([learned("identity", **at, loss=1e9)])) == 1
    assert len(violated([learned("identity", **at, accuracy=0.0)])) == 1


def test_processes_that_differ_from_virtual_workers_are_violated(run):
    (row,) = violated([replace(run[1], apart=1e-16)])
    assert row.quantity.startswith("real processes against virtual workers")


def around(claimed, seed=0):
    """What 32 seeds scatter around the exact law of the problem where tau* is the best tau."""
    rng = np.random.default_rng(seed)
    exact = {period: exact_value_at_workers(period) for period in tau_star.AROUND}
    values = {str(period): (mean + 0.4 * rng.standard_normal(32)).tolist() for period, mean in exact.items()}
    return [{"claimed": claimed, "values": values, "variances": dict.fromkeys(values, 0.16)}]


def test_tau_star_is_the_best_whole_number_of_the_exact_law():
    values = {period: exact_value_at_workers(period) for period in range(1, 17)}
    assert min(values, key=values.get) == tau_star.claimed() == 4


def test_a_tau_star_that_is_double_or_half_is_violated():
    right = best_rows(around(4), LEVEL)
    assert [(row.tau, row.verdict, row.evidence) for row in right] == [
        *((2, "HOLDS", "evidence"), (8, "HOLDS", "evidence"))
    ]
    assert [(row.tau, row.verdict) for row in best_rows(around(8), LEVEL)] == [(4, "VIOLATED"), (16, "HOLDS")]
    assert [(row.tau, row.verdict) for row in best_rows(around(2), LEVEL)] == [(1, "HOLDS"), (4, "VIOLATED")]


@pytest.mark.slow
def test_true_claims_are_not_violated_over_many_seeds():
    """100 runs of 4 cells at a budget of .05 a run: five accusations are allowed."""
    accused = 0
    for seed in range(100):
        records = [cell(workload, period, seed=seed) for workload in (PLAIN, GROWING) for period in (1, 8)]
        accused += any(row.verdict == "VIOLATED" for row in compare(records, false_alarm=0.05))
    assert accused <= 5
