"""Pickles of byte arrays are read; whatever else a pickle can do is refused before anything happens."""

import os
import pickle
import struct

import numpy as np
import pytest

from gpu_validation.workloads.data.array_pickle import UnsafePickle, read_arrays

ARRAY = np.arange(24, dtype=np.uint8).reshape(4, 6)
# as Python 2 wrote them: cnumpy.core.multiarray _reconstruct, text of one byte a letter
OLD = (
    b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85q\x05"
    b"U\x01bq\x06\x87q\x07Rq\x08(K\x01K\x02K\x03\x86q\x09cnumpy\ndtype\nq\x0aU\x02u1q\x0bK\x00K\x01\x87q\x0cRq\x0d"
    b"(K\x03U\x01|q\x0eNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x0fb\x89U\x06\x00\x01\x02\xfd\xfe\xffq\x10tq\x11b"
    b"U\x06labelsq\x12]q\x13(K\x07K\x09eu."
)


class Exploit:
    """Pickles as a call of any function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_dictionaries_of_byte_arrays_are_read(protocol):
    found = read_arrays(pickle.dumps({"data": ARRAY, "labels": [3, 1], "name": "x"}, protocol=protocol))

    np.testing.assert_array_equal(found["data"], ARRAY)
    assert (found["labels"], found["name"]) == ([3, 1], "x")


def test_pickles_of_python_2_are_read():
    found = read_arrays(OLD)

    np.testing.assert_array_equal(found["data"], [[0, 1, 2], [253, 254, 255]])
    assert found["labels"] == [7, 9]


def test_column_order_is_kept():
    np.testing.assert_array_equal(read_arrays(pickle.dumps({"data": np.asfortranarray(ARRAY)}, 2))["data"], ARRAY)


@pytest.mark.parametrize(
    "payload",
    [
        Exploit(os.system, "touch {marker}"),
        Exploit(eval, "open('{marker}', 'w')"),
        Exploit(np.save, "{marker}", 1),
        Exploit(getattr, "x", "y"),
        Exploit(pickle.loads, b"N."),
    ],
    ids=["system", "eval", "numpy.save", "getattr", "loads"],
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_malicious_pickle_is_refused_and_nothing_runs(payload, protocol, tmp_path):
    marker = tmp_path / "marker"
    function, arguments = payload.call
    arguments = tuple(a.format(marker=marker) if isinstance(a, str) else a for a in arguments)
    data = pickle.dumps({"data": Exploit(function, *arguments)}, protocol=protocol)

    with pytest.raises(UnsafePickle, match=r"the pickle asks for .*, which is refused"):
        read_arrays(data)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pickle.dumps([1, 2]), "must hold a dictionary; got list"),
        (pickle.dumps({"data": np.zeros(3)}, 2), "unsigned bytes; got type 'f8'"),
        (pickle.dumps({"data": np.array(["a", None], object)}, 2), "unsigned bytes; got type 'O8'"),
        (OLD.replace(b"K\x02K\x03\x86", b"K\x02K\x04\x86"), r"shape \(2, 4\) needs 8 bytes; got 6"),
        (OLD[:40], "not a pickled dictionary"),
        (b"", "not a pickled dictionary"),
        (b"c_codecs\nencode\n(S'x'\nS'zip'\ntR.", "text in latin1; got 'zip'"),
        (b"\x80\x02N" + b"r" + struct.pack("<I", 2**31 - 1) + b".", "memo index 2147483647 after 2 operations"),
        (b"cos\nsystem\n.", "asks for os.system"),
        (b"cposix\nsystem\n(S'id'\ntR.", "asks for posix.system"),
        (b"\x80\x04\x8c\x05numpy\x8c\x0btesting.run\x93.", "asks for numpy.testing.run"),
        (b"cnumpy.core.multiarray\n_reconstruct\n.", "must hold a dictionary"),
    ],
)
def test_anything_else_is_refused(data, message):
    with pytest.raises(UnsafePickle, match=message):
        read_arrays(data)


def test_flipped_bytes_never_do_more_than_raise():
    for i in range(len(OLD)):
        for value in (0, 0x52, 0x62, 0x81, 0x93, 0xFF):
            try:
                read_arrays(OLD[:i] + bytes([value]) + OLD[i + 1 :])
            except UnsafePickle:
                continue
