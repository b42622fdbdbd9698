"""Files in LIBSVM format, right and wrong."""

import gzip

import numpy as np
import pytest
import torch

from gpu_validation.workloads import LogisticRegression, Ridge
from gpu_validation.workloads.data import Libsvm

GOOD = """+1 1:0.5 3:-2 # a comment
-1 2:1e-1

+1 3:4
-1 1:1 2:2 3:3
"""
TABLE = [[0.5, 0, -2], [0, 0.1, 0], [0, 0, 4], [1, 2, 3]]


@pytest.fixture
def file(tmp_path):
    def write(text, name="some.svm"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def test_a_file_becomes_a_table_and_numbered_labels(file):
    data = Libsvm(file(GOOD)).read()

    np.testing.assert_array_equal(data.train.inputs, TABLE)
    assert data.train.targets.tolist() == [1, 0, 1, 0]
    assert (data.name, data.classes, data.synthetic) == ("some.svm", 2, False)


def test_a_compressed_file_is_the_same(file):
    packed = Libsvm(file(gzip.compress(GOOD.encode()), "some.svm.gz")).read()

    assert torch.equal(packed.train.inputs, Libsvm(file(GOOD)).read().train.inputs)


def test_labels_can_be_numbers_and_columns_standardised(file):
    data = Libsvm(file("1.5 1:1\n-2 1:3\n"), task="regression", scaling="standard").read()

    assert data.train.targets.tolist() == [1.5, -2.0]
    assert data.train.inputs.tolist() == [[-1.0], [1.0]]
    assert data.classes == 0


def test_both_regressions_run_on_it(file):
    path = file(GOOD)

    assert LogisticRegression(source=Libsvm(path), decay=0.1).optimum().error < 1e-12
    assert Ridge(source=Libsvm(path), decay=0.1).optimum().error < 1e-12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello world\n", "is not in LIBSVM format"),
        ("1 1:2 1:3\n", "is not in LIBSVM format"),
        ("1 2:1 1:3\n", "is not in LIBSVM format"),
        ("1 1:two\n", "is not in LIBSVM format"),
        ("1 -1:2\n", "is not in LIBSVM format"),
        (b"1 1:2\n\xff\xfe\x00", "is not in LIBSVM format"),
        ("", "needs at least one of each"),
        ("# nothing\n", "needs at least one of each"),
        ("1 1:2\n1 1:3\n", "has the single label 1; a classification needs two"),
        ("1 1:nan\n2 1:3\n", "holds a number that is not finite"),
        ("inf 1:1\n2 1:3\n", "holds a number that is not finite"),
        ("1 200000000:1\n2 1:3\n", "would need 2 x 200000000 numbers in dense form"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(file, text, message):
    path = file(text)

    with pytest.raises(ValueError, match=message) as error:
        Libsvm(path).read()
    assert path in str(error.value)


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        Libsvm(str(tmp_path / "none.svm")).read()
