"""CIFAR-10 and CIFAR-100 from the standard archives, which the user provides.

The tar.gz file has the binary or the Python form (Krizhevsky 2009, www.cs.toronto.edu/~kriz/cifar.html).  It is read
without unpacking: only members with the expected names are read and nothing is written, so that malicious paths have no
effect.  Pickles are read by ``array_pickle``, which runs no code.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch

from .array_pickle import read_arrays
from .dataset import Dataset, Samples, Source

PIXELS = 3 * 32 * 32
LARGEST = 2**28  # largest unpacked size in bytes; the standard archives have 1.9e8


@dataclass(frozen=True)
class Layout:
    """Content of one archive.

    Parameters
    ----------
    folder : str
        Folder of the members in the archive.
    train : tuple of str
        Names of the files of training images.
    test : tuple of str
        Names of the files of held-out images.
    labels : int
        Number of distinct labels.
    train_images : int
        Images per file of training images.
    test_images : int
        Images per file of held-out images.
    label_bytes : int, bytes, optional
        Bytes before the pixels of a record in the binary form; the last of them is the label.  0 for the Python form.
    label_key : str, optional
        Key of the list of labels in the Python form.
    """

    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    labels: int
    train_images: int
    test_images: int
    label_bytes: int = 0
    label_key: str = ""


_TEN = Layout(
    folder="cifar-10-batches-bin",
    train=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    test=("test_batch.bin",),
    labels=10,
    train_images=10_000,
    test_images=10_000,
    label_bytes=1,
)
_HUNDRED = Layout(
    folder="cifar-100-binary",
    train=("train.bin",),
    test=("test.bin",),
    labels=100,
    train_images=50_000,
    test_images=10_000,
    label_bytes=2,
)
LAYOUTS: dict[int, tuple[Layout, ...]] = {
    10: (
        _TEN,
        replace(
            _TEN,
            folder="cifar-10-batches-py",
            train=tuple(f"data_batch_{i}" for i in range(1, 6)),
            test=("test_batch",),
            label_bytes=0,
            label_key="labels",
        ),
    ),
    100: (
        _HUNDRED,
        replace(
            _HUNDRED,
            folder="cifar-100-python",
            train=("train",),
            test=("test",),
            label_bytes=0,
            label_key="fine_labels",
        ),
    ),
}


@dataclass(frozen=True)
class Cifar(Source):
    """CIFAR-10 or CIFAR-100: 50000 training and 10000 held-out images, uint8 of shape (3, 32, 32).

    Parameters
    ----------
    path : str
        Path of the tar.gz archive, in binary or Python form.
    classes : int, optional
        10 or 100 (the fine labels).

    Raises
    ------
    ValueError
        If it is not that archive, complete and with equally many images of every label.
    OSError
        If it cannot be read.
    """

    path: str
    classes: int = 10

    def __post_init__(self) -> None:
        if self.classes not in LAYOUTS:
            raise ValueError(f"there is a CIFAR-10 and a CIFAR-100; got classes = {self.classes}")

    def read(self) -> Dataset:
        """Read the archive."""
        return read_archive(self.path, f"cifar{self.classes}", LAYOUTS[self.classes])


def read_archive(path: str, name: str, layouts: Iterable[Layout]) -> Dataset:
    """Return the data set in an archive of one of the given layouts; raise as ``Cifar`` does."""
    layouts = tuple(layouts)
    layout_of = {f"{layout.folder}/{file}": layout for layout in layouts for file in (*layout.train, *layout.test)}
    contents = _members(path, layout_of)
    missing = {
        layout: [n for n, other in layout_of.items() if other is layout and n not in contents] for layout in layouts
    }
    nearest = min(layouts, key=lambda layout: len(missing[layout]))
    if missing[nearest]:
        expected = " or ".join(f"{layout.folder}/" for layout in layouts)
        raise ValueError(
            f"{path} is not the {name} archive: it must hold all files of {expected}; {missing[nearest][0]} is missing"
        )
    return _dataset(path, name, nearest, contents)


def _members(path: str, wanted: dict[str, Layout]) -> dict[str, bytes]:
    """Return the contents of the wanted regular files, in one pass through the archive.

    Raises
    ------
    ValueError
        For a broken archive, one that unpacks to more than LARGEST bytes, and a repeated member.
    """
    contents: dict[str, bytes] = {}
    try:
        with gzip.open(path) as packed, tarfile.open(fileobj=_Bounded(packed, path), mode="r|") as archive:
            for member in archive:
                if member.name not in wanted or not member.isreg():
                    continue
                if member.name in contents:
                    raise ValueError(f"{path} holds {member.name} twice")
                file = archive.extractfile(member)
                assert file is not None  # a regular file
                contents[member.name] = file.read()
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{path} is not a complete tar.gz archive: {error}") from error
    return contents


class _Bounded(io.RawIOBase):
    """A stream that raises ValueError after LARGEST bytes."""

    def __init__(self, stream: gzip.GzipFile, path: str) -> None:
        super().__init__()
        self.stream, self.path, self.total = stream, path, 0

    def read(self, size: int = -1, /) -> bytes:
        data = self.stream.read(size)
        self.total += len(data)
        if self.total > LARGEST:
            raise ValueError(f"{self.path} unpacks to more than {LARGEST} bytes, which no CIFAR archive does")
        return data


def _dataset(path: str, name: str, layout: Layout, contents: dict[str, bytes]) -> Dataset:
    def part(files: tuple[str, ...], images: int) -> Samples:
        read = [_file(f"{path}: {f}", contents[f"{layout.folder}/{f}"], layout, images) for f in files]
        labels = np.concatenate([labels for labels, _ in read])
        counts = np.bincount(labels, minlength=layout.labels)
        if len(counts) != layout.labels or len(set(counts)) != 1:
            raise ValueError(f"{path}: each of the {layout.labels} labels must occur equally often; got {counts}")
        pixels = np.concatenate([pixels for _, pixels in read]).reshape(-1, 3, 32, 32)
        return Samples(torch.from_numpy(pixels), torch.from_numpy(labels.astype(np.int64)))

    train, test = part(layout.train, layout.train_images), part(layout.test, layout.test_images)
    return Dataset(name, train, test, layout.labels, synthetic=False)


def _file(where: str, content: bytes, layout: Layout, images: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels, shape (images,), and pixels, shape (images, PIXELS), of one file."""
    if layout.label_bytes:
        record = layout.label_bytes + PIXELS
        if len(content) != images * record:
            raise ValueError(f"{where} must have {images} records of {record} bytes; it has {len(content)} bytes")
        table = np.frombuffer(content, np.uint8).reshape(images, record)
        return table[:, layout.label_bytes - 1], table[:, layout.label_bytes :]
    try:
        arrays = read_arrays(content)
    except ValueError as error:
        raise ValueError(f"{where} is refused: {error}") from error
    pixels, labels = arrays.get("data"), arrays.get(layout.label_key)
    if not isinstance(pixels, np.ndarray) or pixels.shape != (images, PIXELS):
        raise ValueError(f"{where} must hold 'data' of shape ({images}, {PIXELS}); got {np.shape(pixels)}")  # type: ignore[arg-type]
    if not isinstance(labels, list) or len(labels) != images or not all(type(x) is int and x >= 0 for x in labels):
        raise ValueError(f"{where} must hold {images} labels from 0 on under {layout.label_key!r}")
    if max(labels) >= layout.labels:
        raise ValueError(f"{where} holds label {max(labels)}; the largest is {layout.labels - 1}")
    return np.array(labels), pixels
