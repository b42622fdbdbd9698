"""Keys: value semantics, folds, the shared stream, and their range."""

import pytest

from operators import Key


def test_equal_fields_make_equal_keys():
    assert Key(1, 2, 3, 4).fold_in(5) == Key(1, 2, 3, 4, path=(5,))
    assert hash(Key(1)) == hash(Key(1))


def test_fold_extends_the_path_and_keeps_the_rest():
    key = Key(1, step=2, rank=3, layer=4)
    assert key.fold_in(5).fold_in(6).path == (5, 6)
    assert key.path == ()
    assert key.fold_in(5) != key.fold_in(6) != key


def test_shared_drops_the_rank_only():
    assert Key(1, 2, 3, 4).shared() == Key(1, 2, 9, 4).shared() != Key(1, 2, 0, 4)


@pytest.mark.parametrize("field", ["seed", "step", "rank", "layer"])
@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_fields_out_of_range_are_refused(field, value):
    with pytest.raises(ValueError, match=rf"{field} must satisfy 0 <= {field} < 2\^64; got {value}"):
        Key(**{"seed": 0, field: value})
