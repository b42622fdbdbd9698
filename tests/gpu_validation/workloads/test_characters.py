"""The language model: what it may look at, where it starts, and that it comes down to the known floor."""

from dataclasses import replace

import pytest
import torch

from bounds.runtime import Constant, RuntimeModel
from gpu_validation.studies.runs.batched_simulation import simulate_together
from gpu_validation.studies.runs.simulation import simulate
from gpu_validation.studies.runs.spec import TrainingRun
from gpu_validation.workloads import Characters

WORKLOAD = Characters()
RUNTIME = RuntimeModel(step=Constant(1.0), delay_s=4.0, m=2)


def test_a_prediction_depends_on_no_later_letter():
    model, letters = WORKLOAD.model(), WORKLOAD.data().train.inputs[:1].float()
    changed = letters.clone()
    changed[0, 5:] = (changed[0, 5:] + 1) % 6
    with torch.no_grad():
        before, after = WORKLOAD.outputs(model, letters), WORKLOAD.outputs(model, changed)

    assert before.shape == (1, 6, 8)
    torch.testing.assert_close(before[:, :, :5], after[:, :, :5])
    assert not torch.equal(before[:, :, 5], after[:, :, 5])


@pytest.mark.slow
def test_it_learns_down_to_the_entropy_of_its_source():
    race = TrainingRun(replace(WORKLOAD, eta=0.33), 8, Constant(1.0), 0, steps=1600, points=4)
    (record,) = simulate_together([race], RUNTIME)

    floor = WORKLOAD.source.floor()
    assert record["losses"][0] > 1.7
    assert floor < record["losses"][-1] < floor + 0.15
    assert record["accuracies"][-1] > 0.5 > record["accuracies"][0]


def test_workers_together_and_alone_agree_bit_for_bit():
    race = TrainingRun(WORKLOAD, 3, Constant(1.0), 0, steps=9, optimizer="momentum")
    (record,) = simulate_together([race], RUNTIME)

    assert record["losses"] == simulate(race, RUNTIME)["losses"]


@pytest.mark.parametrize("window", [1, 8])
def test_accuracy_is_a_share_of_letters(window):
    workload = replace(WORKLOAD, source=replace(WORKLOAD.source, window=window))
    data, model = workload.data().held_out, workload.model()
    with torch.no_grad():
        right = (workload.outputs(model, data.inputs.float()).argmax(dim=1) == data.targets).double().mean()

    assert workload.accuracy(model) == pytest.approx(float(right))
