"""A codec as hivemind has it: ``compress(tensor, info, allow_inplace=False)`` and ``extract(message)``."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .form import Form, required


class Info(NamedTuple):
    """What hivemind's codecs receive about a tensor beside its entries (``CompressionInfo``)."""

    key: Any
    descriptor: Any = None
    part_index: int = 0
    part_size: int | None = None


class Hivemind(Form):
    """extract(compress(x))."""

    def __init__(self, codec: Any) -> None:
        self.codec = codec
        self.__name__ = type(codec).__name__
        self._informed = len(required(codec.compress)) > 1

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Compress and extract."""
        return self.receive(self.send(x)).reshape(x.shape)

    def send(self, x: torch.Tensor) -> Any:
        """Return what compress returns."""
        given = self.given(x)
        return self.codec.compress(given, *((Info(key=0, descriptor=given),) if self._informed else ()))

    def receive(self, message: Any) -> torch.Tensor:
        """Return what extract makes of it."""
        return self.codec.extract(message)
