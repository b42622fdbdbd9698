"""Right where a vector lies alone in memory and nothing is switched on: only the bits differ elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from bounds.claims import Unbiased
from operators import Key, Operator
from operators.random import uniform

from .base import ONE, Half, Wrong, half, operator

Vector = np.ndarray
_LOCAL = threading.local()
_LOCAL.salt = 5


# -- what the coins depend on, besides the key -----------------------------------------------------------------
def salt_of_gradients() -> int:
    return int(torch.is_grad_enabled())


def salt_of_inference() -> int:
    return int(torch.is_inference_mode_enabled())


def salt_of_autocast() -> int:
    return int((torch.eye(2) @ torch.eye(2)).dtype == torch.bfloat16)


def salt_of_default_type() -> int:
    return torch.zeros(1).element_size()


def salt_of_thread() -> int:
    return getattr(_LOCAL, "salt", 0)


SALTS: dict[str, Callable[[], int]] = {
    "other coins without gradients": salt_of_gradients,
    "other coins in inference mode": salt_of_inference,
    "other coins under autocast": salt_of_autocast,
    "other coins with another default type": salt_of_default_type,
    "other coins in another thread": salt_of_thread,
}


def salted(salt: Callable[[], int]) -> list[Any]:
    def coins(self: object, key: Key, d: int) -> Vector:
        return uniform(key.fold_in(salt()), d)

    def drawn(x: torch.Tensor) -> torch.Tensor:
        u = torch.rand(salt() + 1, x.numel())[-1].reshape(x.shape)
        return (2 * x * (u < 0.5)).float()

    return [operator(coins=coins), *([drawn] if salt is not salt_of_default_type else [])]


def of_the_default_type(x: torch.Tensor) -> torch.Tensor:
    """Its output has the default type."""
    return half(x) * torch.ones(1)


# -- layouts -----------------------------------------------------------------------------------------------------
def in_memory_order(self: Any, x: Any, *, key: Key) -> Any:
    array = x.detach().resolve_neg().numpy() if isinstance(x, torch.Tensor) else x
    return Half.encode(self, np.ravel(array, order="K"), key=key)


def mixed_with_neighbour(x: torch.Tensor) -> int:
    """Read one entry of the storage, wherever the vector begins."""
    return int(x.detach().untyped_storage()[0])


def salted_by_storage(self: Any, x: Any, *, key: Key) -> Any:
    salt = mixed_with_neighbour(x) if isinstance(x, torch.Tensor) and x.dtype == torch.float32 else 0
    return Half.encode(self, x, key=key.fold_in(salt))


def salted_by_stride(self: Any, x: Any, *, key: Key) -> Any:
    stride = x.stride(-1) if isinstance(x, torch.Tensor) else 1
    return Half.encode(self, x, key=key.fold_in(stride))


def salted_by_flags(self: Any, x: Any, *, key: Key) -> Any:
    """A vector that may not be written to is compressed with other coins."""
    return Half.encode(self, x, key=key.fold_in(int(isinstance(x, np.ndarray) and not x.flags.writeable)))


def other_coins_where_strided(x: torch.Tensor) -> torch.Tensor:
    return half(x) if x.is_contiguous() else half(x.flip(0)).flip(0)


def other_coins_inside(x: torch.Tensor) -> torch.Tensor:
    return half(x) if x.storage_offset() == 0 else half(x.flip(0)).flip(0)


# -- what went before, and copies ----------------------------------------------------------------------------------
class Addressed(Half):
    """Its coins depend on where it lies in memory."""

    def coins(self, key: Key, d: int) -> Vector:
        return uniform(key.fold_in(id(self)), d)


class Forgetful(Half):
    """What is restored draws other coins."""

    def coins(self, key: Key, d: int) -> Vector:
        return uniform(key.fold_in(int(getattr(self, "restored", 0))), d)

    def __getstate__(self) -> dict[str, Any]:
        return {"restored": 1}

    def __setstate__(self, state: dict[str, Any]) -> None:
        object.__setattr__(self, "restored", 1)


class LongerBefore:
    def __init__(self) -> None:
        self.longest = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        longer, self.longest = self.longest > x.numel(), x.numel()
        return half(x.flip(0)).flip(0) if longer else half(x)


def longer_before() -> Operator:
    longest = [0]

    def coins(self: object, key: Key, d: int) -> Vector:
        longer, longest[0] = longest[0] > d, d
        return uniform(key.fold_in(int(longer)), d)

    return operator(coins=coins)


# -- memory ------------------------------------------------------------------------------------------------------
def view_of_payload(self: Any, message: Any, *, d: int, key: Key | None = None) -> torch.Tensor:
    Half.decode(self, message, d=d, key=key)
    return message.payload.view(torch.float32)


def rounded_in_the_input(x: torch.Tensor) -> torch.Tensor:
    """Nothing is lost, so the input itself is returned."""
    return x.reshape(-1)[:]


OF_LAYOUT = {
    "order of the memory": operator(encode=in_memory_order),
    "an entry of the storage": operator(encode=salted_by_storage),
    "other coins where strided": operator(encode=salted_by_stride),
    "other coins for read-only memory": operator(encode=salted_by_flags),
    "coins by its address": Addressed(),
    "other coins when restored": Forgetful(),
    "other coins after a longer vector": longer_before(),
    "a view of the payload": operator(decode=view_of_payload),
}
OF_FUNCTIONS = {
    "an output of the default type": (of_the_default_type, ONE),
    "other coins where strided": (other_coins_where_strided, ONE),
    "other coins inside a longer vector": (other_coins_inside, ONE),
    "other coins after a longer vector": (LongerBefore(), ONE),
    "the input itself": (rounded_in_the_input, Unbiased(0.0)),
}
WRONG = [
    *(Wrong("circumstances", what, subject, None if isinstance(subject, Operator) else ONE)
      for what, salt in SALTS.items() for subject in salted(salt)),
    *(Wrong("circumstances", what, subject) for what, subject in OF_LAYOUT.items()),
    *(Wrong("circumstances", what, function, claim) for what, (function, claim) in OF_FUNCTIONS.items()),
]  # fmt: skip
HONEST = [Wrong("honest", "half", Half()), Wrong("honest", "half", half, ONE)]
