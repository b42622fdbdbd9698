"""Images made by formula: what CIFAR looks like to a program, and neither trivial nor hopeless."""

import numpy as np
import pytest
import torch
from torch import nn

from gpu_validation.workloads.data import SyntheticImages, synthetic_images
from gpu_validation.workloads.models import initialised
from operators import Key
from operators.random import uniform

SMALL = SyntheticImages(samples=60, held_out=30)


def test_they_have_cifars_form_and_say_that_they_are_synthetic():
    data = SyntheticImages(samples=1000, held_out=100).read()

    assert data.train.inputs.shape == (1000, 3, 32, 32)
    assert data.train.inputs.dtype == torch.uint8
    assert data.train.targets.bincount().tolist() == [100] * 10
    assert data.held_out.targets.bincount().tolist() == [10] * 10
    assert data.synthetic
    assert data.description().synthetic
    pixels = data.train.inputs.float()
    assert 120 < float(pixels.mean()) < 135
    assert 50 < float(pixels.std()) < 75
    assert float(((pixels == 0) | (pixels == 255)).float().mean()) < 0.06


def test_they_depend_on_the_seed_alone():
    one, again, other = SMALL.read(), SMALL.read(), SyntheticImages(seed=1, samples=60, held_out=30).read()

    assert one.sha256 == again.sha256 != other.sha256


def test_an_image_does_not_depend_on_how_many_there_are():
    more = SyntheticImages(samples=700, held_out=40).read()

    assert torch.equal(more.train.inputs[:60], SMALL.read().train.inputs)
    assert torch.equal(more.held_out.inputs[:30], SMALL.read().held_out.inputs)


def test_images_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    together = SMALL.read()
    monkeypatch.setattr(synthetic_images, "CHUNK", 16)

    assert SMALL.read().sha256 == together.sha256


def test_training_and_held_out_images_differ():
    data = SMALL.read()

    assert (data.train.inputs[:30] != data.held_out.inputs).any(dim=3).any(dim=2).any(dim=1).all()


@pytest.mark.thorough
def test_a_linear_classifier_hardly_beats_guessing_and_a_small_convolutional_one_learns():
    data = SyntheticImages(samples=1000, held_out=400).read()
    train, held = ((p.inputs.reshape(len(p), -1).double().numpy() - 127.5) / 64 for p in (data.train, data.held_out))
    labels = data.held_out.targets
    # ridge regression in the dual; the decay was the best of three
    weights = np.linalg.solve(train @ train.T + 3e4 * np.eye(1000), np.eye(10)[data.train.targets.numpy()])
    assert 0.1 < ((held @ train.T @ weights).argmax(axis=1) == labels.numpy()).mean() < 0.3

    model = initialised(
        lambda: nn.Sequential(
            *(nn.Conv2d(3, 16, 5, stride=2, padding=2), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.Conv2d(16, 32, 5, stride=2, padding=2), nn.BatchNorm2d(32), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)),
        ),
        Key(0),
    )
    images, aside = ((p.inputs.float() - 127.5) / 64 for p in (data.train, data.held_out))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for k in range(120):
        chosen = torch.from_numpy((uniform(Key(0, step=k), 32) * 1000).astype(int))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[chosen]), data.train.targets[chosen]).backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model.eval()(aside).argmax(dim=1) == labels).double().mean()
    assert 0.45 < float(accuracy) < 0.97


def test_images_are_the_waves_of_their_class_by_plain_loops():
    source = SyntheticImages(samples=20, held_out=0)
    periods, colours = source.waves()
    phases = np.array([[0.3, 1.0, 2.0]])
    field = source._fields(np.array([7]), phases)[0]

    for c, x, y in [(0, 0, 0), (1, 5, 30), (2, 31, 17)]:
        turns = [(p[0] * x + p[1] * y) / 32 for p in periods[7]]
        by_hand = sum(colours[7, w, c] * np.cos(2 * np.pi * turns[w] + phases[0, w]) for w in range(3))
        assert field[c, x, y] == pytest.approx(by_hand, abs=1e-5)
    assert np.square(field).mean() == pytest.approx(1, rel=1e-4)
    assert len({tuple(p) for p in periods[7]}) == 3


@pytest.mark.parametrize("wrong", [{"classes": 1}, {"samples": 5}, {"held_out": -1}])
def test_values_outside_the_range_are_refused(wrong):
    with pytest.raises(ValueError, match="need classes >= 2"):
        SyntheticImages(**wrong)
