"""Digests of settings, to report in which setting two ranks or a saved state differ.

Equal settings have equal digests in all processes.  A value is compared by its content: numbers by value, dataclasses
field by field, an optimizer by its type and hyperparameters, other objects by class and attributes.  Functions are
compared by module, name, code, default arguments, enclosed values and the plain global values that they read.  Objects
without attributes, such as generators, count as their class.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import torch

Fingerprint = dict[str, int]
DEEPEST = 40  # depth of nested values; deeper ones are not compared


def fingerprint(settings: Mapping[str, object]) -> Fingerprint:
    """Return a 63-bit digest of every setting, by name.

    Parameters
    ----------
    settings : mapping of str to object
        Settings that must be equal.
    """
    return {name: _digest(value) for name, value in settings.items()}


def combined(prints: Mapping[str, int]) -> int:
    """Return one 63-bit digest of all settings.

    Parameters
    ----------
    prints : mapping of str to int
        Digests of ``fingerprint``.
    """
    return _digest(dict(prints))


def differing(one: Mapping[str, int], other: Mapping[str, int]) -> list[str]:
    """Return the names of settings that differ or exist on one side only.

    Parameters
    ----------
    one, other : mapping of str to int
        Digests of ``fingerprint``.
    """
    return [name for name in dict.fromkeys([*one, *other]) if one.get(name) != other.get(name)]


def require_accepted(refusals: Sequence[str | None]) -> None:
    """Raise ValueError if any rank refused its arguments.

    Parameters
    ----------
    refusals : sequence of str or None
        The reason of every rank, in rank order; None where the arguments are accepted.

    Raises
    ------
    ValueError
        With the first such rank and its reason.
    """
    for rank, reason in enumerate(refusals):
        if reason is not None:
            raise ValueError(f"the arguments of rank {rank} are refused: {reason}")


def require_equal_ranks(prints: Sequence[Mapping[str, int]]) -> None:
    """Raise ValueError if two ranks have different settings.

    Parameters
    ----------
    prints : sequence of mapping
        The fingerprint of every rank, in rank order.

    Raises
    ------
    ValueError
        With the settings in which a rank differs from rank 0.
    """
    for rank, other in enumerate(prints):
        if names := differing(prints[0], other):
            raise ValueError(
                f"all ranks need equal settings; ranks 0 and {rank} differ in {_listed(names)}: give all ranks the "
                f"same {_listed(names)}"
            )


def require_own_state(state: object, prints: Mapping[str, int], *, of: str) -> Mapping[str, Any]:
    """Return a saved state if it was saved with these settings.

    Parameters
    ----------
    state : object
        Saved state of ``state_dict``.
    prints : mapping of str to int
        Fingerprint of the loading object; the state has its own as "fingerprint".
    of : str
        Name of the owner, for the sentence.

    Raises
    ------
    ValueError
        For an empty state, a state of an older version, or other settings, which it names.
    """
    if not isinstance(state, Mapping) or not state:
        raise ValueError(f"a state must be what state_dict() of {of} returned; got {_short(state)}: pass that, or none")
    saved = state.get("fingerprint")
    if not isinstance(saved, Mapping):
        raise ValueError(
            f"the state has no fingerprint of its settings: it is not of {of}, or an older version saved it; start "
            "without a state"
        )
    if names := differing(saved, prints):
        raise ValueError(
            f"a state must be loaded with the settings that it was saved with; {of} differs in {_listed(names)}: give "
            f"the same {_listed(names)}, or start without a state"
        )
    return state


def require_like(saved: Any, own: Any, name: str) -> None:
    """Raise ValueError unless the tensors of a saved state are finite and match those that they replace.

    Parameters
    ----------
    saved : object
        Tensors in mappings and sequences.
    own : object
        Present tensors, in the same structure.
    name : str
        Name of the state, for the sentence.

    Raises
    ------
    ValueError
        For a missing or unknown entry, another shape or dtype, and NaN or infinity, with the name of the entry.
    """
    if isinstance(own, Mapping):
        if not isinstance(saved, Mapping) or set(saved) != set(own):
            got = sorted(map(str, saved)) if isinstance(saved, Mapping) else _short(saved)
            raise ValueError(f"the saved state of {name} must have the entries {sorted(map(str, own))}; got {got}")
        for key in own:
            require_like(saved[key], own[key], f"{name}, {key}")
    elif isinstance(own, list | tuple):
        if not isinstance(saved, list | tuple) or len(saved) != len(own):
            raise ValueError(f"the saved state of {name} must have {len(own)} parts; got {_short(saved)}")
        for number, (part, own_part) in enumerate(zip(saved, own, strict=True)):
            require_like(part, own_part, f"{name}, {number}")
    elif isinstance(own, torch.Tensor):
        if not isinstance(saved, torch.Tensor) or saved.shape != own.shape or saved.dtype != own.dtype:
            got = _kind(saved) if isinstance(saved, torch.Tensor) else _short(saved)
            raise ValueError(f"the saved state of {name} must have the shape and dtype {_kind(own)}; got {got}")
        require_finite(saved, name)


def require_finite(saved: Any, name: str) -> None:
    """Raise ValueError if a tensor of a saved state is not finite.

    Parameters
    ----------
    saved : object
        Tensors in mappings and sequences.
    name : str
        Name of the state, for the sentence.

    Raises
    ------
    ValueError
        For NaN or infinity, with the name of the entry.
    """
    if isinstance(saved, Mapping):
        for key, part in saved.items():
            require_finite(part, f"{name}, {key}")
    elif isinstance(saved, list | tuple):
        for number, part in enumerate(saved):
            require_finite(part, f"{name}, {number}")
    elif isinstance(saved, torch.Tensor) and saved.dtype.is_floating_point and not torch.isfinite(saved).all():
        raise ValueError(f"a saved state must be finite; {name} has NaN or infinity: start without a state")


def made_optimizer(factory: Callable[[list[torch.Tensor]], object] | None) -> object:
    """Return the optimizer that a factory makes, for comparison, or a description of its error.

    Parameters
    ----------
    factory : callable or None
        From a list of one tensor to an optimizer.
    """
    if factory is None:
        return None
    try:
        return factory([torch.zeros(2, requires_grad=True)])
    except Exception as error:  # raised again where the factory is used, after all ranks know whether they agree
        return f"{type(error).__name__}: {error}"


# -- canonical form --------------------------------------------------------------------------------------
def _digest(value: object) -> int:
    text = "".join(_written(value, (), 0))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def _written(value: Any, above: tuple[int, ...], depth: int) -> Iterable[str]:
    """Return the pieces of a text that is equal for equal values only."""
    if (plain := _plain(value)) is not None:
        return [plain]
    if id(value) in above:
        return [f"<{len(above) - above.index(id(value))} above>"]
    if depth > DEEPEST:
        return [f"<{_name(type(value))}>"]
    parts = _parts(value)
    below = *above, id(value)
    return [f"{parts[0]}("] + [p for part in parts[1:] for p in (*_written(part, below, depth + 1), ",")] + [")"]


def _plain(value: Any) -> str | None:
    """Return the text of a value without parts, or None."""
    if isinstance(value, enum.Enum):
        return f"{_name(type(value))}.{value.name}"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, torch.Tensor) and value.ndim == 0 and value.device.type != "meta":
        value = value.detach().item()
    if value is None or isinstance(value, bool | str | bytes | complex | types.EllipsisType):
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, int):
        return f"number:{value}"
    if isinstance(value, float):
        return f"number:{int(value)}" if math.isfinite(value) and value == int(value) else f"number:{value.hex()}"
    if isinstance(value, torch.dtype | torch.device | torch.layout):
        return str(value)
    if isinstance(value, types.ModuleType):
        return f"module:{value.__name__}"
    if isinstance(value, type | types.BuiltinFunctionType | np.ufunc):
        return f"named:{_name(value)}"
    return None


def _parts(value: Any) -> list[Any]:
    """Return a name for the kind of a value, and its parts."""
    kind = _name(type(value))
    if isinstance(value, torch.optim.Optimizer):
        groups = [{k: v for k, v in group.items() if k != "params"} for group in value.param_groups]
        return [kind, value.defaults, groups]
    if isinstance(value, torch.Tensor):
        data = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return ["tensor", str(value.dtype), tuple(value.shape), hashlib.blake2b(data).hexdigest()]
    if isinstance(value, np.ndarray):
        return ["array", str(value.dtype), value.shape, hashlib.blake2b(value.tobytes()).hexdigest()]
    if isinstance(value, Mapping):
        return ["mapping", *sorted(((_digest(k), v) for k, v in value.items()), key=lambda pair: pair[0])]
    if isinstance(value, Set):
        return ["set", *sorted(map(_digest, value))]
    if isinstance(value, list | tuple):
        return ["sequence", *value]
    if isinstance(value, functools.partial):
        return ["partial", value.func, value.args, value.keywords]
    if isinstance(value, types.MethodType):
        return ["method", value.__func__, value.__self__]
    if isinstance(value, types.FunctionType):
        return ["function", _name(value), *_function(value)]
    if isinstance(value, types.CodeType):
        return ["code", value.co_code, value.co_consts, value.co_names]
    if dataclasses.is_dataclass(value):
        return [kind, {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value) if f.compare}]
    return [kind, getattr(value, "__dict__", {})]


def _function(value: types.FunctionType) -> list[Any]:
    code = value.__code__
    enclosed = [cell.cell_contents if _filled(cell) else None for cell in value.__closure__ or ()]
    read = {name: value.__globals__.get(name) for name in code.co_names if name in value.__globals__}
    constants = {name: v for name, v in read.items() if isinstance(v, int | float | str | np.generic)}
    return [code, value.__defaults__, value.__kwdefaults__, enclosed, constants, value.__dict__]


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  raises for an empty one
    except ValueError:
        return False
    return True


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _kind(tensor: torch.Tensor) -> str:
    return f"{tuple(tensor.shape)}, {str(tensor.dtype).removeprefix('torch.')}"


def _short(value: object) -> str:
    return "an empty one" if isinstance(value, Mapping | Sequence) and not value else f"a {type(value).__name__}"
