"""The standard archives in small, and everything that can be wrong with one."""

import io
import os
import pickle
import tarfile
from dataclasses import replace

import numpy as np
import pytest
import torch

from gpu_validation.workloads.data import Cifar
from gpu_validation.workloads.data.cifar import LAYOUTS, PIXELS, read_archive

TEN = tuple(replace(layout, train_images=20, test_images=10) for layout in LAYOUTS[10])
HUNDRED = tuple(replace(layout, train_images=200, test_images=100) for layout in LAYOUTS[100])


def images(n, seed):
    return np.random.default_rng(seed).integers(0, 256, (n, PIXELS), dtype=np.uint8)


def contents(layout):
    """File name -> bytes of a right archive of a layout."""
    found = {}
    for seed, name in enumerate((*layout.train, *layout.test)):
        n = layout.test_images if name in layout.test else layout.train_images
        pixels, labels = images(n, seed), np.arange(n, dtype=np.uint8) % layout.labels
        if layout.label_bytes:
            front = [np.full(n, 99, np.uint8)] * (layout.label_bytes - 1)
            found[name] = np.c_[(*front, labels, pixels)].tobytes()
        else:
            found[name] = pickle.dumps({"data": pixels, layout.label_key: labels.tolist()}, 2)
    return found


def archive(path, layout, files, extra=()):
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{layout.folder}/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for member, data in extra:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return str(path)


@pytest.mark.parametrize(
    ("layouts", "which", "labels"),
    [(TEN, 0, 10), (TEN, 1, 10), (HUNDRED, 0, 100), (HUNDRED, 1, 100)],
    ids=["10 binary", "10 python", "100 binary", "100 python"],
)
def test_both_forms_of_both_archives_are_read(tmp_path, layouts, which, labels):
    layout = layouts[which]
    path = archive(tmp_path / "a.tar.gz", layout, contents(layout))
    data = read_archive(path, "cifar", layouts)

    n = layout.train_images * len(layout.train)
    assert data.train.inputs.shape == (n, 3, 32, 32)
    assert data.held_out.inputs.shape == (layout.test_images, 3, 32, 32)
    assert (data.classes, data.synthetic) == (labels, False)
    np.testing.assert_array_equal(
        data.train.inputs[: layout.train_images].reshape(-1, PIXELS), images(layout.train_images, 0)
    )
    assert torch.equal(data.train.targets[:labels], torch.arange(labels)[: layout.train_images].repeat(5)[:labels])


def test_both_forms_give_the_same_data(tmp_path):
    sums = [
        read_archive(archive(tmp_path / f"{i}.tar.gz", layout, contents(layout)), "cifar", TEN).sha256
        for i, layout in enumerate(TEN)
    ]

    assert sums[0] == sums[1]


def test_paths_that_leave_the_archive_lead_nowhere(tmp_path):
    layout = TEN[0]
    (tmp_path / "inner").mkdir()
    link = tarfile.TarInfo(f"{layout.folder}/../../link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    extra = [
        (tarfile.TarInfo("../escaped"), b"x"),
        (tarfile.TarInfo(str(tmp_path / "absolute")), b"x"),
        (tarfile.TarInfo(f"{layout.folder}/../escaped"), b"x"),
        (link, b""),
    ]
    path = archive(tmp_path / "inner" / "a.tar.gz", layout, contents(layout), extra)
    read_archive(path, "cifar", TEN)

    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.tar.gz", "inner"]


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path):
    layout = TEN[0]
    files = contents(layout)
    del files["test_batch.bin"]
    link = tarfile.TarInfo(f"{layout.folder}/test_batch.bin")
    link.type, link.linkname = tarfile.SYMTYPE, "data_batch_1.bin"

    with pytest.raises(ValueError, match=r"test_batch\.bin is missing"):
        read_archive(archive(tmp_path / "a.tar.gz", layout, files, [(link, b"")]), "cifar", TEN)


class Exploit:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def test_a_malicious_pickle_in_the_archive_is_refused(tmp_path):
    layout = TEN[1]
    files = contents(layout) | {"data_batch_3": pickle.dumps({"data": Exploit(f"touch {tmp_path}/marker")})}
    path = archive(tmp_path / "a.tar.gz", layout, files)

    with pytest.raises(ValueError, match=r"data_batch_3 is refused: the pickle asks for posix\.system"):
        read_archive(path, "cifar", TEN)
    assert not (tmp_path / "marker").exists()


def pickled(pixels, labels, key="labels"):
    return pickle.dumps({"data": pixels, key: labels}, 2)


@pytest.mark.parametrize(
    ("which", "name", "data", "message"),
    [
        (0, "data_batch_2.bin", b"x" * 100, "must have 20 records of 3073 bytes; it has 100 bytes"),
        (
            0,
            "data_batch_2.bin",
            np.full((20, 3073), 77, np.uint8).tobytes(),
            "each of the 10 labels must occur equally",
        ),
        (0, "test_batch.bin", np.zeros((10, 3073), np.uint8).tobytes(), "each of the 10 labels must occur equally"),
        (1, "test_batch", pickled(images(9, 0), [0] * 9), r"shape \(10, 3072\); got \(9, 3072\)"),
        (1, "test_batch", pickled(images(10, 0), [0] * 9), "must hold 10 labels from 0 on under 'labels'"),
        (1, "test_batch", pickled(images(10, 0), [*range(9), -1]), "must hold 10 labels from 0 on"),
        (1, "test_batch", pickled(images(10, 0), [*range(9), 10]), "holds label 10; the largest is 9"),
        (1, "test_batch", pickled(images(10, 0), list(range(10)), "fine"), "must hold 10 labels from 0 on"),
        (1, "test_batch", pickle.dumps({}), r"must hold 'data' of shape \(10, 3072\)"),
        (1, "test_batch", b"junk", "is refused: not a pickled dictionary"),
    ],
)
def test_wrong_contents_are_refused(tmp_path, which, name, data, message):
    layout = TEN[which]
    path = archive(tmp_path / "a.tar.gz", layout, contents(layout) | {name: data})

    with pytest.raises(ValueError, match=message) as error:
        read_archive(path, "cifar", TEN)
    assert path in str(error.value)


def test_an_incomplete_or_foreign_archive_is_refused(tmp_path):
    layout = TEN[0]
    files = contents(layout)
    del files["data_batch_4.bin"]

    with pytest.raises(ValueError, match="is not the cifar10 archive: it must hold all files of cifar-10-batches-bin/"):
        read_archive(archive(tmp_path / "a.tar.gz", layout, files), "cifar10", TEN)
    with pytest.raises(ValueError, match="is not the cifar100 archive"):
        read_archive(archive(tmp_path / "b.tar.gz", layout, contents(layout)), "cifar100", HUNDRED)


def test_a_member_that_occurs_twice_is_refused(tmp_path):
    layout = TEN[0]
    extra = [(tarfile.TarInfo(f"{layout.folder}/test_batch.bin"), b"other")]

    with pytest.raises(ValueError, match=r"holds cifar-10-batches-bin/test_batch\.bin twice"):
        read_archive(archive(tmp_path / "a.tar.gz", layout, contents(layout), extra), "cifar", TEN)


def test_an_archive_that_unpacks_to_too_much_is_refused_in_time(tmp_path, monkeypatch):
    bomb = tarfile.TarInfo("bomb")
    bomb.pax_headers = {"comment": "0" * 5_000_000}
    monkeypatch.setattr("gpu_validation.workloads.data.cifar.LARGEST", 1_000_000)
    layout = TEN[0]
    for name, extra in (("long", [(tarfile.TarInfo("zeros"), bytes(5_000_000))]), ("headers", [(bomb, b"")])):
        path = archive(tmp_path / name, layout, {}, [*extra, (tarfile.TarInfo("last"), b"")])
        assert (tmp_path / name).stat().st_size < 50_000

        with pytest.raises(ValueError, match="unpacks to more than 1000000 bytes"):
            read_archive(path, "cifar", TEN)


def test_broken_archives_are_refused(tmp_path):
    whole = archive(tmp_path / "a.tar.gz", TEN[0], contents(TEN[0]))
    with open(whole, "rb") as file:
        data = file.read()
    for name, part in (("cut", data[: len(data) // 2]), ("text", b"hello"), ("empty", b"")):
        (tmp_path / name).write_bytes(part)
        with pytest.raises(ValueError, match=f"{name} is not a complete tar.gz archive"):
            read_archive(str(tmp_path / name), "cifar", TEN)


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        Cifar(str(tmp_path / "none.tar.gz")).read()


def test_only_two_cifars_exist():
    with pytest.raises(ValueError, match="got classes = 20"):
        Cifar("x", classes=20)


@pytest.mark.slow
def test_an_archive_of_the_standard_size(tmp_path):
    layout = LAYOUTS[10][0]
    n = layout.train_images
    record = np.zeros((n, 1 + PIXELS), np.uint8)
    record[:, 0] = np.arange(n) % 10
    files = dict.fromkeys((*layout.train, *layout.test), record.tobytes())
    data = Cifar(archive(tmp_path / "cifar-10-binary.tar.gz", layout, files)).read()

    assert (len(data.train), len(data.held_out), data.name) == (50_000, 10_000, "cifar10")
