"""ResNet-50 for images of 32 x 32 pixels: four stages of bottleneck blocks after a 3 x 3 stem."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import relu

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # inner channels, blocks, stride of the first block
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
    for inner, blocks, stride in STAGES:
        for block in range(blocks):
            layers.append(Bottleneck(width, inner, stride if block == 0 else 1))
            width = EXPANSION * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))
