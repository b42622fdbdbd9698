"""Pad, crop and flip against plain loops."""

import numpy as np
import torch

from gpu_validation.workloads.data.augment import PADDING, crop_and_flip, crops_and_flips
from operators import Key


def by_loops(image, down, right, flip):
    channels, height, width = image.shape
    out = np.zeros_like(image)
    for c in range(channels):
        for y in range(height):
            for x in range(width):
                from_y = y + down - PADDING
                from_x = (width - 1 - x if flip else x) + right - PADDING
                if 0 <= from_y < height and 0 <= from_x < width:
                    out[c, y, x] = image[c, from_y, from_x]
    return out


def test_images_move_and_mirror_as_asked():
    images = torch.arange(1, 1 + 12 * 3 * 6 * 5).remainder(251).to(torch.uint8).reshape(12, 3, 6, 5)
    choices = crops_and_flips(Key(0), 12)
    choices[0] = torch.tensor([4, 4, 0])
    found = crop_and_flip(images, choices)

    assert found.dtype == torch.uint8
    assert torch.equal(found[0], images[0])
    for image, choice, moved in zip(images.numpy(), choices.tolist(), found.numpy(), strict=True):
        np.testing.assert_array_equal(moved, by_loops(image, *choice))


def test_choices_are_uniform_and_depend_on_the_key_alone():
    choices = crops_and_flips(Key(1), 9000).numpy()

    np.testing.assert_array_equal(choices, crops_and_flips(Key(1), 9000).numpy())
    for column, count in zip(choices.T, (9, 9, 2), strict=True):
        seen = np.bincount(column, minlength=count)
        assert len(seen) == count
        # n = 9000: chi-square with at most 8 degrees of freedom exceeds 48 with probability 1e-7
        assert ((seen - 9000 / count) ** 2 / (9000 / count)).sum() < 48
