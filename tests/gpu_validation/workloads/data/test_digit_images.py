"""The digits as images are the table's rows, pixel by pixel."""

import pytest

from gpu_validation.workloads import DigitImages, ResNet20
from gpu_validation.workloads.digits import digits
from operators import Key


@pytest.mark.parametrize("side", [8, 16])
def test_every_pixel_is_a_square_of_the_digit_in_all_channels(side):
    images = DigitImages(side=side, held_out=0.0).read().train
    table, labels = digits()
    assert images.inputs.shape == (1797, 3, side, side)
    times = side // 8
    for n in (0, 17, 1796):
        for row in range(side):
            for column in range(side):
                value = round(255 * float(table[n, 8 * (row // times) + column // times]))
                assert images.inputs[n, :, row, column].tolist() == [value] * 3
        assert images.targets[n] == labels[n]


def test_a_part_is_held_out_and_other_sides_are_refused():
    data = DigitImages(held_out=0.65).read()
    assert len(data.train) + len(data.held_out) == 1797
    assert len(data.train) == 629
    with pytest.raises(ValueError, match="side must be a multiple of 8; got 12"):
        DigitImages(side=12)


def test_a_network_of_cifars_form_has_a_gradient_on_them():
    workload = ResNet20(source=DigitImages(), batch=2, augmentation="none")
    model = workload.model()
    workload.loss(model, key=Key(0, rank=0)).backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())
