import numpy as np
import pytest

from gpu_validation.workloads.data.bundled import CLASSES, Bundled
from gpu_validation.workloads.digits import digits

SHAPES = {"breast_cancer": (569, 30), "diabetes": (442, 10), "digits": (1797, 64), "iris": (150, 4), "wine": (178, 13)}


@pytest.mark.parametrize("name", SHAPES)
def test_bundled_data_are_the_real_ones(name):
    data = Bundled(name).read()

    assert tuple(data.train.inputs.shape) == SHAPES[name]
    assert not data.synthetic
    assert len(data.held_out) == 0
    assert len(set(data.train.targets.tolist())) == (CLASSES[name] or 214)  # distinct values of the regression
    if name != "digits":
        np.testing.assert_allclose(data.train.inputs.mean(dim=0), 0, atol=1e-12)
        np.testing.assert_allclose(data.train.inputs.square().mean(dim=0), 1, rtol=1e-12)


def test_digits_as_tensors():
    images, labels = digits()

    assert images.shape == (1797, 64)
    assert (float(images.min()), float(images.max())) == (0.0, 1.0)
    assert labels.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_a_part_can_be_held_out():
    data = Bundled("digits", held_out=0.2).read()

    assert (len(data.train), len(data.held_out)) == (1438, 359)
    assert data.held_out.targets.bincount().min() > 20


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="no bundled data set 'mnist'; choose one of breast_cancer"):
        Bundled("mnist")
