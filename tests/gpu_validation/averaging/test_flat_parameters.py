"""Parameters that are copied into a vector and back, and stay where they are."""

import pytest
import torch

from gpu_validation.averaging.worker import FlatParameters


def parameters(*shapes, dtype=torch.float32):
    torch.manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in shapes]


def together(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def places(tensors):
    return [(t.untyped_storage().data_ptr(), t.storage_offset(), t.stride(), t.dtype) for t in tensors]


def transposed():
    first, second = parameters((2, 3), (4,))
    return [torch.nn.Parameter(first.data.t()), second]


def views():
    whole = torch.randn(3, 7)
    return [torch.nn.Parameter(whole[:, :4]), torch.nn.Parameter(whole[:, 4:])]


KINDS = {
    "contiguous": lambda: parameters((3, 4), (5,), ()),
    "transposed": transposed,
    "channels_last": lambda: [torch.nn.Conv2d(2, 3, 2).to(memory_format=torch.channels_last).weight],
    "views of one matrix": views,
    "two dtypes": lambda: [*parameters((2,)), *parameters((3, 2), dtype=torch.bfloat16)],
    "wider last": lambda: [*parameters((2,)), *parameters((3,), dtype=torch.float64)],
    "empty": lambda: parameters((0,), (2, 0), (3,)),
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def tensors(request):
    return request.param()


def test_a_vector_has_all_entries_and_loads_them_where_they_are(tensors):
    was, values = places(tensors), together(tensors)
    flat = FlatParameters(tensors)

    assert torch.equal(flat.vector(), values)
    assert flat.vector().dtype == values.dtype
    flat.load(2 * values)
    assert torch.equal(together(tensors), 2 * values)
    flat.vector().mul_(0.5)  # private memory: nothing is written to the parameters
    assert torch.equal(together(tensors), 2 * values)
    assert places(tensors) == was


@pytest.mark.parametrize("behind", [[], [5.0], [5.0, 6.0]])
def test_values_go_behind_the_parameters_into_the_same_memory(tensors, behind):
    flat, values = FlatParameters(tensors), together(tensors)
    memory = flat.vector(torch.zeros(2)).data_ptr()

    vector = flat.vector(torch.tensor(behind))

    assert torch.equal(vector, torch.cat([values, values.new_tensor(behind)]))
    assert vector.data_ptr() == memory
    vector[: len(values)] = 3
    flat.load(vector[: len(values)])
    assert set(together(tensors).tolist()) <= {3}


def test_every_part_is_read_and_written_as_that_of_the_vector(tensors):
    flat, expected, was = FlatParameters(tensors), together(tensors), places(tensors)
    d = len(expected)
    for start in range(d + 1):
        for stop in range(start, d + 1):
            assert torch.equal(flat.part(start, stop), expected[start:stop])
            written = torch.arange(start, stop).to(expected) + start * stop % 7
            flat.load_part(start, written)
            expected[start:stop] = written
            assert torch.equal(together(tensors), expected)
    assert places(tensors) == was


def test_a_parameter_in_the_list_may_be_replaced():
    tensors = parameters((2,), (3,))
    flat = FlatParameters(tensors)
    flat.vector()
    tensors[0] = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    tensors[1].data = torch.tensor([3.0, 4.0, 5.0])

    assert flat.vector().tolist() == [1, 2, 3, 4, 5]
    flat.load(torch.zeros(5))
    assert not together(tensors).any()


def test_memory_that_is_used_again_is_told_from_a_vector_that_may_be_kept():
    tensors = parameters((2,), (3,))
    flat = FlatParameters(tensors)
    assert not flat.load(torch.zeros(5))
    assert flat.load(flat.vector())
    assert flat.load(flat.vector(torch.zeros(2))[:5])
    assert not flat.load(flat.vector().clone())
