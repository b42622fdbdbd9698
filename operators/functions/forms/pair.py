"""Two functions: compress and decompress, as in GRACE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .form import Form, name_of, required

TENSOR_NAME = "gradient"


class Pair(Form):
    """decompress(compress(x)).

    compress may demand a second argument, the tensor's name; if it returns a tuple of as many parts as decompress
    demands, decompress is given the parts.
    """

    def __init__(
        self, compress: Callable[..., Any], decompress: Callable[..., Any], library: str, name: str | None = None
    ) -> None:
        self.compress, self.decompress, self.library = compress, decompress, library
        self.__name__ = name or f"{name_of(compress)}+{name_of(decompress)}"
        self._named = len(required(compress)) > 1
        self._parts = len(required(decompress))

    def __call__(self, x: Any) -> Any:
        """Compress and decompress."""
        return self.receive(self.send(x))

    def send(self, x: Any) -> Any:
        """Return what compress returns."""
        return self.compress(self.given(x), *((TENSOR_NAME,) if self._named else ()))

    def receive(self, message: Any) -> Any:
        """Return what decompress makes of it."""
        split = isinstance(message, tuple) and self._parts > 1 and len(message) == self._parts
        return self.decompress(*message) if split else self.decompress(message)
