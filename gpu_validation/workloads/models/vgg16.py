"""VGG-16 with BatchNorm for images of 32 x 32 pixels: thirteen convolutions and one linear layer."""

from __future__ import annotations

from torch import nn

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
