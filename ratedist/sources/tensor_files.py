"""Read the tensors of a file as one vector: .npy, .npz, .pt, .pth and .safetensors, without unpickling objects.

Whatever is wrong with a file ends in one sentence.  Declared sizes are compared with the size of the file before memory
is allocated.
"""

from __future__ import annotations

import io
import pickle
import re
import stat
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

MOST_EXPANDED = 1 << 30  # bytes that a small archive may expand to
MOST_RATIO = 20  # of a larger archive
MOST_PARTS = 10**6
MOST_REASON = 120
MOST_NAMED = 8
OF_OPTIMIZER = "state of an optimizer"
MOMENTS = frozenset(
    {"exp_avg", "exp_avg_sq", "exp_inf", "max_exp_avg_sq", "momentum_buffer", "square_avg", "acc_delta"}
)
_OPTIMIZER = re.compile(r"(.*_)?optim(izer)?s?(_states?)?(_dicts?)?", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class TensorFile:
    """The vector in a file.

    Parameters
    ----------
    vector : ndarray, shape (d,)
        All tensors that were read, in their order.
    read : tuple of str
        Their names.
    left_out : tuple of str
        Names of the others, each with its reason in parentheses.
    """

    vector: np.ndarray
    read: tuple[str, ...]
    left_out: tuple[str, ...]


class _Unreadable(ValueError):  # noqa: N818  what is wrong, in one sentence
    """A complete sentence about the file."""


def read(path: str) -> TensorFile:
    """Return the numbers of a .npy array, or of all float tensors in a .npz, .pt, .pth or .safetensors file.

    Integers, the state of optimizers and repeated tensors are left out.

    Raises
    ------
    ValueError
        For a file that is missing, damaged or of another kind, and for tensors that are not real, dense numbers.
    """
    file, name = Path(path), shown(path)
    readers: dict[str, Callable[[Path], Iterator[tuple[str, Any]]]] = {
        ".npy": _npy,
        ".npz": _npz,
        ".pt": _pt,
        ".pth": _pt,
        ".safetensors": _safetensors,
    }
    _require_file(file, name)
    if file.suffix not in readers:
        raise ValueError(
            f"file must end in .npy or .pt, .npz, .pth or .safetensors; got {name}: "
            "save a gradient with numpy.save or torch.save"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of layouts that are refused here anyway
            return _joined(readers[file.suffix](file), name)
    except _Unreadable as sentence:
        raise ValueError(str(sentence)) from None
    except ModuleNotFoundError:
        raise
    except Exception as failure:  # a damaged file can raise anything, MemoryError and RecursionError among them
        reason = " ".join(str(failure).split()).partition(". ")[0][:MOST_REASON]
        if not reason or not isinstance(failure, OSError | RuntimeError | ValueError | pickle.UnpicklingError):
            reason = f"{type(failure).__name__} {reason}".strip()
        raise ValueError(f"{name} must hold tensors only; {reason}: save tensors with torch.save") from None


def shown(path: str) -> str:
    """Return a path, or the name of a tensor, as one short line that can be printed.

    Parameters
    ----------
    path : str
        Any text.
    """
    line = path if path.isprintable() else repr(path)[1:-1]
    return line if len(line) <= MOST_REASON else f"{line[:MOST_REASON]}..."


def _require_file(file: Path, name: str) -> None:
    """Raise ValueError unless a path names a regular file that can be opened."""
    try:
        mode = file.stat().st_mode
    except (OSError, ValueError):
        raise ValueError(f"file must exist; got {name}: save a gradient with numpy.save or torch.save") from None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "no regular file"
        raise ValueError(f"file must be a regular file; got {name}, {kind}: give the file with the gradient")
    try:
        with file.open("rb") as opened:
            is_empty = not opened.read(1)
    except OSError as failure:
        raise ValueError(f"file must be readable; got {name} ({failure.strerror}): change its permissions") from None
    if is_empty:
        raise ValueError(f"{name} must hold tensors; got an empty file: save the gradient again")


def _joined(tensors: Iterator[tuple[str, Any]], name: str) -> TensorFile:
    """Return the float tensors one after the other, each once."""
    parts: list[np.ndarray] = []
    names, left_out = [], []
    places: dict[Any, str] = {}
    for place, tensor in tensors:
        if isinstance(tensor, str):
            left_out.append(f"{place} ({tensor})")
        elif MOMENTS & set(place.split(".")):
            left_out.append(f"{place} ({OF_OPTIMIZER})")
        elif _is_whole(tensor):
            left_out.append(f"{place} (no floats: {tensor.dtype})")
        elif (same := _memory(tensor)) is not None and same in places:
            left_out.append(f"{place} (the same tensor as {places[same]})")
        elif _size(tensor) == 0:
            left_out.append(f"{place} (empty)")
        else:
            parts.append(_flat(tensor, place, name))
            names.append(place)
            if same is not None:
                places[same] = place
    if not parts:
        listed = f": {_named(left_out)}" if left_out else ""
        raise _Unreadable(f"{name} must hold float tensors; got none{listed}; save the gradients with torch.save")
    return TensorFile(np.concatenate(parts), tuple(names), tuple(left_out))


def _named(names: list[str]) -> str:
    """Return the first names of a list, and how many follow."""
    first = ", ".join(shown(name) for name in names[:MOST_NAMED])
    return first if len(names) <= MOST_NAMED else f"{first} and {len(names) - MOST_NAMED} more"


def _is_whole(tensor: Any) -> bool:
    """Return whether entries are integers or truth values."""
    if isinstance(tensor, np.ndarray):
        return tensor.dtype.kind in "iub"
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized)


def _size(tensor: Any) -> int:
    return int(tensor.size) if isinstance(tensor, np.ndarray) else int(tensor.numel())


def _memory(tensor: Any) -> Any:
    """Return where the entries of a tensor lie, for tied ones; None where that is no question."""
    if isinstance(tensor, np.ndarray) or tensor.is_nested or str(tensor.layout) != "torch.strided" or tensor.is_meta:
        return None
    if tensor.numel() == 0:
        return None
    return tensor.data_ptr(), tensor.numel(), tensor.dtype, tuple(sorted(tensor.stride()))


def _flat(tensor: Any, place: str, name: str) -> np.ndarray:
    from operators.inputs import flat_tensor

    try:
        return flat_tensor(tensor).numpy()
    except (TypeError, ValueError) as failure:
        rule, _, remedy = str(failure).removeprefix("x ").partition("; ")
        raise _Unreadable(f"{shown(place)} of {name} {rule}; {remedy}") from None


def _npy(file: Path) -> Iterator[tuple[str, Any]]:
    with file.open("rb") as opened:
        yield "array", _array(opened, file.stat().st_size, shown(str(file)))


def _array(opened: BinaryIO, size: int, name: str) -> np.ndarray:
    """Return a .npy array, once its header fits the number of bytes."""
    version = np.lib.format.read_magic(opened)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(opened)
    if dtype.hasobject:
        raise _Unreadable(f"{name} must be a .npy array without objects; got {dtype}: save numbers with numpy.save")
    count = 1
    for n in shape:
        count *= n
    if count < 0 or count * dtype.itemsize != size - opened.tell():
        stated = f"shape {shape}"[:MOST_REASON]
        raise _Unreadable(
            f"{name} must be as long as it states; got {size - opened.tell()} bytes for {stated}: save it again"
        )
    opened.seek(0)
    return np.asarray(np.lib.format.read_array(opened, allow_pickle=False))


def _require_small(file: Path) -> None:
    """Raise an error for an archive that expands to far more than its size."""
    with zipfile.ZipFile(file) as archive:
        expanded = sum(member.file_size for member in archive.infolist())
        if expanded > max(MOST_EXPANDED, MOST_RATIO * file.stat().st_size):
            raise _Unreadable(
                f"an archive must expand to at most {MOST_RATIO} times its size; {shown(str(file))} states "
                f"{expanded} bytes: save it without compression"
            )


def _npz(file: Path) -> Iterator[tuple[str, Any]]:
    _require_small(file)
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if not member.filename.endswith(".npy"):
                yield member.filename, "no array"
                continue
            content = archive.read(member)  # at most the stated bytes, with their checksum
            place = f"{member.filename} of {shown(str(file))}"
            yield member.filename.removesuffix(".npy"), _array(io.BytesIO(content), len(content), place)


def _pt(file: Path) -> Iterator[tuple[str, Any]]:
    import torch

    if zipfile.is_zipfile(file):
        _require_small(file)
    yield from _walked(torch.load(file, weights_only=True, map_location="cpu"))


def _walked(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of nested containers in their order, with their places; each container once."""
    import torch

    waiting: list[tuple[str, str, Any]] = [("", "", content)]
    entered: set[int] = set()
    while waiting:
        place, key, value = waiting.pop()
        if isinstance(value, torch.Tensor):
            yield place or "tensor", value
        if not isinstance(value, Mapping | list | tuple) or id(value) in entered:
            continue
        entered.add(id(value))
        if len(entered) + len(waiting) > MOST_PARTS:
            raise _Unreadable(f"a file must have at most {MOST_PARTS} entries: save the tensors in one dictionary")
        is_state = isinstance(value, Mapping) and {"state", "param_groups"} <= set(value)
        if is_state or _OPTIMIZER.fullmatch(key):
            yield place or "state", OF_OPTIMIZER
            continue
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        inner = [(f"{place}.{name}" if place else str(name), str(name), part) for name, part in parts]
        waiting.extend(reversed(inner))


def _safetensors(file: Path) -> Iterator[tuple[str, Any]]:
    try:
        from safetensors import safe_open
    except ModuleNotFoundError:
        raise _Unreadable(
            f'{shown(str(file))} needs safetensors, which is not installed: pip install "ratedist[safetensors]"'
        ) from None

    with safe_open(file, framework="pt") as opened:
        for name in opened.keys():  # noqa: SIM118  it is no mapping
            yield name, opened.get_tensor(name)
