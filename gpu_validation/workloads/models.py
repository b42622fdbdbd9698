"""Networks in plain torch, and their initial parameters from the project's own generator."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import layer_norm, pad, relu

from operators import Key
from operators.random import normal, uniform


def initialised(build: Callable[[], torch.nn.Module], key: Key) -> torch.nn.Module:
    """Build a network on the meta device and initialise its parameters.

    Convolutions: normal with variance 2/(fan out) (He et al. 2015, arXiv:1502.01852).  Linear layers: uniform within
    1/sqrt(fan in), also the bias.  BatchNorm: weight 1, bias 0, fresh statistics.  Layer i uses ``key.fold_in(i)``.

    Raises
    ------
    TypeError
        For a layer with parameters of another kind.
    """
    with torch.device("meta"):
        network = build()
    network.to_empty(device="cpu")
    with torch.no_grad():
        for index, layer in enumerate(network.modules()):
            _fill(layer, key.fold_in(index))
    return network


def _fill(layer: torch.nn.Module, key: Key) -> None:
    if isinstance(layer, torch.nn.Conv2d):
        fan_out = layer.out_channels * math.prod(layer.kernel_size) // layer.groups
        _copy(layer.weight, math.sqrt(2 / fan_out) * normal(key, layer.weight.numel()))
        if layer.bias is not None:
            layer.bias.zero_()
    elif isinstance(layer, torch.nn.Linear):
        for part, p in enumerate(layer.parameters()):
            _copy(p, (2 * uniform(key.fold_in(part), p.numel()) - 1) / math.sqrt(layer.in_features))
    elif isinstance(layer, torch.nn.BatchNorm2d):
        layer.weight.fill_(1.0)
        layer.bias.zero_()
        layer.reset_running_stats()
    elif [*layer.parameters(recurse=False), *layer.buffers(recurse=False)]:
        raise TypeError(f"no rule for the initial parameters of a {type(layer).__name__}: add one here")


def _copy(parameter: torch.Tensor, values: object) -> None:
    parameter.copy_(torch.as_tensor(values).view_as(parameter))


def lenet(*, side: int, channels: int, classes: int) -> nn.Sequential:
    """Return the network for square images, after LeCun et al. (1998).

    It has 5 x 5 convolutions to 6 and 16 channels, tanh, 2 x 2 average pooling and 84 hidden units.  Padding allows
    images of 4 pixels and more.

    Raises
    ------
    ValueError
        Unless the side is a multiple of 4.
    """
    if side < 4 or side % 4:
        raise ValueError(f"the side of an image must be a multiple of 4; got {side}")
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(side * side, 84),  # 16 channels of (side/4)^2
        nn.Tanh(),
        nn.Linear(84, classes),
    )


STAGES_20 = ((16, 1), (32, 2), (64, 2))  # channels, stride of the first block
BLOCKS = 3


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions with a parameter-free shortcut: strided, with zeros for missing channels (option A)."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.stride, self.missing = stride, channels - channels_in

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output, shape (n, channels, h/stride, w/stride)."""
        inner = self.norm2(self.conv2(relu(self.norm1(self.conv1(x)))))
        short = x[:, :, :: self.stride, :: self.stride]
        if self.missing:
            short = pad(short, (0, 0, 0, 0, self.missing // 2, self.missing - self.missing // 2))
        return relu(inner + short)


def resnet20(classes: int) -> nn.Sequential:
    """Return the network of He et al. (2016, arXiv:1512.03385), section 4.2, n = 3.

    It has 0.27 million parameters for ten classes.
    """
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    width = 16
    for channels, stride in STAGES_20:
        for block in range(BLOCKS):
            layers.append(BasicBlock(width, channels, stride if block == 0 else 1))
            width = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


STAGES_50 = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # inner channels, blocks, stride of the first block
EXPANSION = 4


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions with a shortcut, which is a 1 x 1 convolution where shapes change."""

    def __init__(self, channels_in: int, inner: int, stride: int) -> None:
        super().__init__()
        channels = EXPANSION * inner
        self.conv1 = nn.Conv2d(channels_in, inner, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, channels, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(channels)
        self.short: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels:
            convolution = nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False)
            self.short = nn.Sequential(convolution, nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output, shape (n, 4 inner, h/stride, w/stride)."""
        inner = relu(self.norm2(self.conv2(relu(self.norm1(self.conv1(x))))))
        return relu(self.norm3(self.conv3(inner)) + self.short(x))


def resnet50(classes: int) -> nn.Sequential:
    """Return the network of He et al. (2016, arXiv:1512.03385), table 1, with a 3 x 3 stem and no first pooling.

    It has 23.5 million parameters.
    """
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    width = 64
    for inner, blocks, stride in STAGES_50:
        for block in range(blocks):
            layers.append(Bottleneck(width, inner, stride if block == 0 else 1))
            width = EXPANSION * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


class Transformer(nn.Module):
    """Map letters (n, window) to logits (n, letters, window) of the next letter at every place.

    It has one attention head, a tanh layer of twice the width, and layer norms without parameters.

    Parameters
    ----------
    width : int
        Width of the hidden vectors.
    """

    def __init__(self, *, letters: int, window: int, width: int) -> None:
        super().__init__()
        self.letters, self.width = letters, width
        self.letter = nn.Linear(letters, width, bias=False)
        self.place = nn.Linear(window, width, bias=False)
        self.attend = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.wide = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.logits = nn.Linear(width, letters)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next letter at every place."""
        weight, window = self.letter.weight, letters.shape[-1]
        one_hot = (letters.unsqueeze(-1) == torch.arange(self.letters, device=weight.device)).to(weight.dtype)
        x = self.letter(one_hot) + self.place.weight.T
        query, key, value = self.attend(layer_norm(x, (self.width,))).split(self.width, dim=-1)
        later = torch.ones(window, window, dtype=torch.bool, device=weight.device).triu(1)
        scores = (query @ key.transpose(-2, -1) / math.sqrt(self.width)).masked_fill(later, -math.inf)
        x = x + self.mix(scores.softmax(dim=-1) @ value)
        x = x + self.narrow(torch.tanh(self.wide(layer_norm(x, (self.width,)))))
        result: torch.Tensor = self.logits(x).transpose(-2, -1)
        return result


CHANNELS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))  # pooled after each group


def vgg16(classes: int) -> nn.Sequential:
    """Return configuration D of Simonyan and Zisserman (2015, arXiv:1409.1556) for CIFAR (14.7 million parameters)."""
    layers: list[nn.Module] = []
    width = 3
    for group in CHANNELS:
        for channels in group:
            convolution = nn.Conv2d(width, channels, 3, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(channels), nn.ReLU()]
            width = channels
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, classes))
