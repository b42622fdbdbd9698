"""Networks: initial parameters, sizes, precision, estimates."""

import math

import numpy as np
import pytest
import torch

from gpu_validation.workloads import LeNet, ResNet20, ResNet50, SmallNetwork, SyntheticImages, Vgg16
from gpu_validation.workloads.models import initialised, lenet, resnet20, resnet50, vgg16
from gpu_validation.workloads.network import top_curvature
from operators import Key

IMAGES = SyntheticImages(samples=20, held_out=10)


def on_meta(build):
    with torch.device("meta"):
        return build()


def weights_of_resnet20():
    """Convolutions 3 x 3 and two BatchNorm numbers a channel, counted by hand."""
    stem = 3 * 16 * 9 + 2 * 16
    first = 6 * (16 * 16 * 9 + 2 * 16)
    second = 16 * 32 * 9 + 5 * 32 * 32 * 9 + 6 * 2 * 32
    third = 32 * 64 * 9 + 5 * 64 * 64 * 9 + 6 * 2 * 64
    return stem + first + second + third + 64 * 10 + 10


SIZES = {
    "lenet": (lambda: lenet(side=8, channels=1, classes=10), 156 + 2416 + 65 * 84 + 850),
    "resnet20": (lambda: resnet20(10), weights_of_resnet20()),
    "vgg16": (lambda: vgg16(10), 14_724_042),
    "resnet50": (lambda: resnet50(10), 23_520_842),
}


@pytest.mark.parametrize(("build", "parameters"), SIZES.values(), ids=SIZES)
def test_parameter_counts(build, parameters):
    assert sum(p.numel() for p in on_meta(build).parameters()) == parameters


def test_published_sizes_in_millions():
    millions = [round(sum(p.numel() for p in on_meta(b).parameters()) / 1e6, 2) for b, _ in SIZES.values()]

    assert millions[1:] == [0.27, 14.72, 23.52]


@pytest.mark.parametrize(
    "workload",
    [
        ResNet20(source=IMAGES, batch=2),
        Vgg16(source=IMAGES, batch=2),
        pytest.param(ResNet50(source=IMAGES, batch=2), marks=pytest.mark.slow),
    ],
    ids=lambda w: w.name,
)
def test_one_step_of_a_deep_network_reaches_every_parameter(workload):
    model = workload.model()
    loss = workload.loss(model, key=Key(0))
    loss.backward()

    assert math.isfinite(float(loss.detach()))
    for name, p in model.named_parameters():
        assert p.grad.isfinite().all(), name
        assert p.grad.any(), name
    assert workload.outputs(model.eval(), torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_resnet20_halves_the_image_twice_and_doubles_the_channels():
    shapes, x = [], torch.zeros(2, 3, 32, 32)
    with torch.no_grad():
        for layer in initialised(lambda: resnet20(10), Key(0)):
            x = layer(x)
            shapes.append(tuple(x.shape[1:]))

    assert shapes[2] == shapes[5] == (16, 32, 32)
    assert shapes[8] == (32, 16, 16)
    assert shapes[11] == (64, 8, 8)


def test_initial_parameters_have_the_stated_laws():
    model = initialised(lambda: torch.nn.Sequential(torch.nn.Conv2d(64, 128, 3), torch.nn.Linear(400, 300)), Key(3))
    convolution, linear = model.requires_grad_(False)

    n = convolution.weight.numel()
    # variance 2/(128 * 9), relative standard error sqrt(2/n); six of them
    assert float(convolution.weight.var()) == pytest.approx(2 / (128 * 9), rel=6 * math.sqrt(2 / n))
    assert not convolution.bias.any()
    assert float(linear.weight.abs().max()) <= 1 / 20
    assert float(linear.weight.var()) == pytest.approx(1 / (3 * 400), rel=6 * math.sqrt(0.8 / linear.weight.numel()))


def test_another_start_is_another_network():
    one, two = SmallNetwork().model(), SmallNetwork(start=1).model()

    assert not any(torch.equal(p, q) for p, q in zip(one.parameters(), two.parameters(), strict=True))


def test_a_layer_without_a_rule_is_refused():
    with pytest.raises(TypeError, match="initial parameters of a PReLU"):
        initialised(torch.nn.PReLU, Key(0))


def test_precision_and_layout_change_rounding_only():
    plain = ResNet20(source=IMAGES, batch=4)
    quick = ResNet20(source=IMAGES, batch=4, precision="bfloat16", layout="channels_last")
    models = [w.model() for w in (plain, quick)]
    losses = [float(w.loss(m, key=Key(0)).detach()) for w, m in zip((plain, quick), models, strict=True)]

    convolution = next(m for m in models[1].modules() if isinstance(m, torch.nn.Conv2d))
    assert convolution.weight.is_contiguous(memory_format=torch.channels_last)
    assert convolution.weight.dtype == torch.float32
    assert losses[1] != losses[0]
    assert losses[1] == pytest.approx(losses[0], rel=0.1)  # bfloat16 keeps eight binary digits a layer


def test_the_order_in_memory_does_not_change_the_parameters():
    models = [ResNet20(source=IMAGES, layout=layout).model() for layout in ("contiguous", "channels_last")]

    for p, q in zip(*(m.parameters() for m in models), strict=True):
        assert torch.equal(p, q)


def test_power_iteration_is_the_top_eigenvalue_of_the_mini_batch():
    workload = SmallNetwork(hidden=2)
    model = workload.model()
    found = top_curvature(workload, model, steps=30)
    parameters = list(model.parameters())
    value = workload.loss(model, key=Key(0, rank=0).fold_in(0x6D656173))
    slopes = torch.autograd.grad(value, parameters, create_graph=True)
    slope = torch.cat([g.reshape(-1) for g in slopes])
    rows = [torch.autograd.grad(entry, parameters, retain_graph=True) for entry in slope]
    exact = np.abs(np.linalg.eigvalsh([torch.cat([g.reshape(-1) for g in row]).numpy() for row in rows])).max()

    assert 0.9 * exact < found.value <= exact * (1 + 1e-5)
    assert found.interval.hi >= exact * (1 - 1e-5)


@pytest.mark.parametrize(("workload", "steps", "least"), [(SmallNetwork(), 200, 0.9), (LeNet(), 300, 0.75)])
def test_training_on_the_digits_reaches_a_sensible_accuracy(workload, steps, least):
    model = workload.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
    for k in range(steps):
        optimizer.zero_grad()
        workload.loss(model, key=Key(0, step=k)).backward()
        optimizer.step()

    assert workload.accuracy(model) > least
