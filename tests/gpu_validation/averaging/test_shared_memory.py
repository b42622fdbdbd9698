"""Parameters in the same memory are found, whatever their strides; a part in common is refused by name."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.averaging.structure import without_aliases


def kept(**tensors):
    return list(without_aliases({name: torch.nn.Parameter(t) for name, t in tensors.items()}))


def test_parameters_apart_are_all_kept_in_their_order():
    whole = torch.randn(12)
    matrix = torch.randn(6, 4)
    assert kept(b=torch.randn(3), a=torch.randn(3)) == ["b", "a"]
    assert kept(b=whole[6:], a=whole[:6]) == ["b", "a"]
    assert kept(q=matrix[:, :2], k=matrix[:, 2:3], v=matrix[:, 3:]) == ["q", "k", "v"]
    assert kept(even=whole[::2], odd=whole[1::2]) == ["even", "odd"]
    assert kept(empty=whole[:0], scalar=whole[0], other=torch.randn(2, 0)) == ["empty", "scalar", "other"]


def test_of_parameters_in_the_same_memory_one_is_kept():
    w = torch.randn(3, 4)
    assert kept(encoder=w, decoder=w.t()) == ["encoder"]
    assert kept(first=w, second=w, third=w) == ["first"]
    assert kept(q=w[:1], kv=w[1:], fused=w) == ["fused"]
    assert kept(fused=w, row=w[1], entry=w[1, 2]) == ["fused"]
    assert kept(image=torch.randn(1, 2, 3, 3).to(memory_format=torch.channels_last)) == ["image"]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda w: {"left": w[:5], "right": w[3:8]}, "right shares 2 of 5 with left"),
        (lambda w: {"small": w[6:9], "large": w[:8]}, "small shares 2 of 3 with large"),
        (lambda w: {"wide": w.view(3, 4)[:, 1:3], "row": w[4:8]}, "row shares 2 of 4 with wide"),
        (lambda w: {"same": w[:1].expand(5)}, r"same of shape \(5,\) has strides \(0,\)"),
        (lambda w: {"good": w[5:], "rows": w[:4].expand(3, 4)}, r"rows of shape \(3, 4\) has strides \(0, 1\)"),
        (lambda w: {"windows": w[:6].unfold(0, 3, 1)}, r"windows of shape \(4, 3\) has strides \(1, 1\)"),
        (lambda w: {"a": w, "b": w.view(torch.int32)}, "a and b must not share memory, for their dtypes differ"),
    ],
)
def test_a_part_in_common_is_refused_by_name(make, named):
    tensors = {name: torch.nn.Parameter(t, requires_grad=False) for name, t in make(torch.randn(12)).items()}
    with pytest.raises(ValueError, match=named):
        without_aliases(tensors)


@given(st.data())
def test_the_entries_of_kept_parameters_are_those_of_all_and_each_is_there_once(data):
    """Against sets of addresses, over random strided views of one storage."""
    whole = torch.arange(24.0)
    tensors = {}
    for name in "abcd"[: data.draw(st.integers(1, 4))]:
        shape = data.draw(st.lists(st.integers(0, 3), max_size=2))
        strides = data.draw(st.lists(st.integers(0, 5), min_size=len(shape), max_size=len(shape)))
        tensors[name] = torch.nn.Parameter(whole.as_strided(shape, strides, data.draw(st.integers(0, 9))))
    entries = {name: [int(x) for x in p.detach().reshape(-1)] for name, p in tensors.items()}  # value = address
    try:
        found = without_aliases(tensors)
    except ValueError:
        pairs = [(a, b) for a in entries for b in entries if a < b]
        twice = any(len(set(own)) < len(own) for own in entries.values())
        assert twice or any(
            len(shared := set(entries[a]) & set(entries[b])) > 0 and len(shared) < max(len(entries[a]), len(entries[b]))
            for a, b in pairs
        )
    else:
        sent = [address for name in found for address in entries[name]]
        assert len(sent) == len(set(sent))
        assert set(sent) == {address for own in entries.values() for address in own}
