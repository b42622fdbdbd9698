"""Many seeds stepped together are the runs of their workers one by one, and those of real processes."""

import math

import pytest
import torch

from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.processes.tensors import flat
from gpu_validation.studies import Cells, Preset
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.studies.grid.study import typed
from gpu_validation.studies.quick import DIFFERENT, PRESET
from gpu_validation.studies.runs.ensemble import Rows, run_seeds
from gpu_validation.workloads import Kink, MultiplicativeQuadratic, Quadratic, SmallNetwork
from operators import QSGD, Identity, Key

pytestmark = pytest.mark.timeout(120)
M, STEPS, TAU = 4, 8, 4


def one_by_one(workload, operator, seed):
    """Points before every step, shape (STEPS, M, d), and the last model: a loop of autograd and torch.optim.SGD."""
    models = [workload.model() for _ in range(M)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=workload.eta) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=TAU, operator=operator, key=Key(seed).fold_in(1))
    points = []
    for k in range(STEPS):
        points.append(torch.stack([flat(list(model.parameters())) for model in models]))
        for rank, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            optimizer.zero_grad()
            workload.loss(model, key=Key(seed, step=k, rank=rank).fold_in(0)).backward()
            optimizer.step()
        workers.step()
    return torch.stack(points), flat(list(models[0].parameters()))


@pytest.mark.parametrize("operator", [Identity(), QSGD(levels=16)], ids=["identity", "qsgd"])
@pytest.mark.parametrize(
    "workload",
    [Quadratic(d=13, smallest=0.3), MultiplicativeQuadratic(d=11, eta=0.25), Kink(d=3), DIFFERENT],
    ids=lambda workload: workload.name,
)
def test_seeds_together_are_the_seeds_one_by_one_bit_for_bit(workload, operator):
    together = run_seeds(workload, operator, tau=TAU, steps=STEPS, seeds=(3, 8), m=M)

    assert together.points.shape == (2, STEPS, M, sum(p.numel() for p in workload.model().parameters()))
    for i, seed in enumerate((3, 8)):
        points, last = one_by_one(workload, operator, seed)
        assert torch.equal(together.points[i], points)
        assert torch.equal(together.last[i], last)


@pytest.mark.parametrize("workload", [Quadratic(), DIFFERENT, SmallNetwork()], ids=lambda workload: workload.name)
def test_rows_are_evaluated_as_models_are(workload):
    model = workload.model()
    start = flat(list(model.parameters()))
    rows = torch.stack([start, 0.5 * start + 0.1])
    values, squares = Rows(workload).evaluate(rows)

    value, square = workload.evaluate(model)
    assert float(values[0]) == pytest.approx(value, rel=1e-6)
    assert float(squares[0]) == pytest.approx(square, rel=1e-5)
    assert squares.dtype == torch.float64


def small(**change):
    cells = Cells(Quadratic(d=12), taus=(4,), steps=STEPS, seeds=(0, 5), step_s=0.0, virtual=5, **change)
    operators = (Identity(), QSGD(levels=16))
    return Preset("small", "for tests", operators, (cells,), processes=2, probe_d=16, probe_messages=4)


@pytest.mark.thorough
def test_real_processes_repeat_the_virtual_seeds_and_all_are_judged(tmp_path):
    outcome = carry_out(small(), tmp_path)
    runs = [record for record in typed(outcome.records) if record.kind == "training"]

    assert outcome.exit_code == 0, outcome.message
    for run in runs:
        assert (run.seeds, run.virtual, run.apart) == ((0, 5, 1, 2, 3, 4, 6), 5, 0.0)
        assert run.compared == 2 * (STEPS * 2 * 12 + 12)
        for numbers in (run.gradient_norm2, run.local_gradient_norm2, run.final_loss):
            assert len(set(numbers)) == 7
            assert all(map(math.isfinite, numbers))
        assert run.accuracy == (None, None)
    twins = [row for row in outcome.comparisons if row.quantity.startswith("real processes against virtual")]
    assert [row.verdict for row in twins] == ["HOLDS"] * 2
    again = run_seeds(Quadratic(d=12), Identity(), tau=4, steps=STEPS, seeds=(5, 3), m=2)
    _, squares = Rows(Quadratic(d=12)).evaluate(again.points.mean(dim=2).reshape(-1, 12))
    averages = squares.reshape(2, -1).mean(dim=1).tolist()
    assert [runs[0].gradient_norm2[1], runs[0].gradient_norm2[4]] == pytest.approx(averages, rel=1e-12)


def test_quick_runs_enough_virtual_seeds_where_theorems_judge():
    for cells in PRESET.cells[:2]:
        assert len(cells.seeds) + cells.virtual == 64
        assert set(cells.seeds).isdisjoint(cells.virtual_seeds)
