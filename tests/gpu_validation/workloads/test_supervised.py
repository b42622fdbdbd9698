"""Mini-batches, shards and full passes."""

import numpy as np
import pytest
import torch

from gpu_validation.workloads import (
    Bundled,
    Dirichlet,
    Iid,
    LogisticRegression,
    ResNet20,
    SmallNetwork,
    SyntheticImages,
)
from operators import Key

WINE = Bundled("wine", held_out=0.25)


def test_a_resumed_run_and_a_virtual_worker_draw_what_the_first_one_drew():
    workload = SmallNetwork(split=Dirichlet(4))
    whole = {(rank, k): workload.draw(key=Key(9, step=k, rank=rank))[0] for k in range(6) for rank in range(4)}

    for rank, k in [(2, 5), (0, 3), (3, 5), (2, 4)]:  # in any order, without the ones before
        assert torch.equal(SmallNetwork(split=Dirichlet(4)).draw(key=Key(9, step=k, rank=rank))[0], whole[rank, k])


def test_a_worker_draws_from_its_own_samples_uniformly():
    workload = LogisticRegression(source=WINE, split=Iid(3), batch=4000)
    held = workload.shard(1)
    drawn = workload.draw(key=Key(0, rank=1))[0].numpy()

    assert set(drawn) == set(held)
    counts = np.bincount(drawn, minlength=len(workload.data().train))[held]
    # chi-square with 43 degrees of freedom, n = 4000: above 107 with probability 3e-7
    assert ((counts - 4000 / len(held)) ** 2 / (4000 / len(held))).sum() < 107


@pytest.mark.parametrize("split", [Iid(5), Dirichlet(5, alpha=0.3)], ids=["iid", "dirichlet"])
def test_the_mean_over_workers_is_the_whole_objective_whatever_the_sizes(split, gradient):
    workload = LogisticRegression(source=WINE, split=split, batch=None, decay=0.1)
    model = workload.model()
    for p in model.parameters():
        p.data.fill_(0.3)
    model.weight.data[0] = -0.2

    steps = [workload.loss(model, key=Key(0, rank=rank)) for rank in range(5)]
    parts = [gradient(model, step) for step in steps]
    np.testing.assert_allclose(np.mean(parts, axis=0), gradient(model, workload.objective(model)), rtol=1e-10)
    assert np.mean([float(s.detach()) for s in steps]) == pytest.approx(workload.evaluate(model)[0], rel=1e-12)


def test_sizes_are_reported():
    workload = LogisticRegression(source=WINE, split=Dirichlet(5, alpha=0.3))
    sizes = workload.description().sizes

    assert sum(sizes) == workload.description().samples == len(workload.data().train)
    assert [len(workload.shard(rank)) for rank in range(5)] == list(sizes)
    assert len(set(sizes)) > 1
    assert LogisticRegression(source=WINE).description().sizes == ()


def test_chunks_add_up_to_one_pass(monkeypatch, gradient):
    workload = SmallNetwork(decay=0.01)
    model = workload.model()
    whole = workload.evaluate(model)
    monkeypatch.setattr("gpu_validation.workloads.supervised.CHUNK", 100_000)

    assert workload.evaluate(model) == pytest.approx(whole, rel=1e-5)
    by_hand = torch.nn.functional.cross_entropy(
        model(workload.data().train.inputs.float()), workload.data().train.targets
    )
    norm2 = sum(float(p.detach().square().sum()) for p in model.parameters())
    assert whole[0] == pytest.approx(float(by_hand.detach()) + 0.005 * norm2, rel=1e-5)


def test_accuracy_counts_the_held_out_labels_by_hand():
    workload = SmallNetwork()
    model, held = workload.model(), workload.data().held_out
    right = 0
    for image, label in zip(held.inputs.float(), held.targets, strict=True):
        right += int(model(image[None]).argmax()) == int(label)

    assert workload.accuracy(model) == right / len(held)
    assert LogisticRegression().accuracy(LogisticRegression().model()) is None


def test_evaluation_uses_the_statistics_of_training_and_no_augmentation():
    workload = ResNet20(source=SyntheticImages(samples=30, held_out=10), batch=8)
    model = workload.model()
    before = workload.evaluate(model)
    assert workload.evaluate(model) == before
    workload.loss(model, key=Key(0))  # a step in training mode moves the running statistics

    assert workload.evaluate(model) != before
    assert workload.accuracy(model) == workload.accuracy(model)


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"decay": -1.0}])
def test_values_outside_the_range_are_refused(wrong):
    with pytest.raises(ValueError, match="need batch >= 1 or None, and decay >= 0"):
        SmallNetwork(**wrong)
