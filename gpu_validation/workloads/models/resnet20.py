"""ResNet-20 for CIFAR: three stages of three basic blocks."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import pad, relu

STAGES = ((16, 1), (32, 2), (64, 2))  # channels, stride of the first block
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
    for channels, stride in STAGES:
        for block in range(BLOCKS):
            layers.append(BasicBlock(width, channels, stride if block == 0 else 1))
            width = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))
