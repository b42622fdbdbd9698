"""A small LeNet: two convolutions with pooling, one hidden layer."""

from __future__ import annotations

from torch import nn


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
