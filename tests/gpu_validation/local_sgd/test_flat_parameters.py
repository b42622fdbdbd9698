import pytest
import torch

from gpu_validation.local_sgd.flat_parameters import FlatParameters


def parameters(*shapes, dtype=torch.float32):
    torch.manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in shapes]


def together(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def lie_in_one_vector(tensors):
    return len({t.untyped_storage().data_ptr() for t in tensors}) == 1


def test_parameters_keep_their_values_and_become_views_of_the_vector():
    tensors = parameters((3, 4), (5,), ())
    values, before = together(tensors), list(tensors)

    vector = FlatParameters(tensors, spare=2).vector(torch.tensor([7.0, 8.0]))

    assert torch.equal(vector, torch.cat([values, torch.tensor([7.0, 8.0])]))
    assert all(a is b for a, b in zip(tensors, before, strict=True))
    vector[12:17] = 9
    assert tensors[1].tolist() == [9] * 5


def test_a_vector_is_loaded_and_an_optimizer_steps_as_before():
    tensors = parameters((2, 2), (3,))
    joined = FlatParameters(tensors, spare=0)
    joined.vector()
    joined.load(torch.arange(7.0))
    for p in tensors:
        p.grad = torch.ones_like(p)

    torch.optim.SGD(tensors, lr=0.5).step()

    assert joined.vector().tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5]


def test_data_that_somebody_replaces_is_joined_again():
    tensors = parameters((2,), (3,))
    joined = FlatParameters(tensors, spare=1)
    joined.vector()
    tensors[0].data = torch.tensor([1.0, 2.0])

    copied = joined.vector(torch.tensor([3.0]))

    assert copied[:2].tolist() == [1, 2]
    joined.load(torch.zeros(5))
    assert not together(tensors).any()


def tied():
    first, second = parameters((4,), (4,))
    second.data = first.data
    return [first, second]


def transposed():
    first, second = parameters((2, 3), (4,))
    first.data = first.data.t()
    return [first, second]


def mixed():
    return [*parameters((2,)), *parameters((3,), dtype=torch.float64)]


def views():
    first, second = parameters((2,), (3,))
    first.data, second.data = torch.randn(5).split([2, 3])
    return [first, second]


@pytest.mark.parametrize("make", [tied, transposed, mixed, views])
def test_what_cannot_be_joined_is_copied_and_loaded_all_the_same(make):
    tensors = make()
    was, values = [p.data_ptr() for p in tensors], together(tensors)
    joined = FlatParameters(tensors, spare=1)

    vector = joined.vector(torch.tensor([5.0]))

    assert torch.equal(vector, torch.cat([values, values.new_tensor([5.0])]))
    joined.load(torch.full_like(values, 2))
    assert [p.data_ptr() for p in tensors] == was
    assert set(together(tensors).tolist()) == {2}


@pytest.mark.parametrize("make", [tied, transposed, mixed, views])
def test_a_copy_serves_vectors_with_and_without_values_behind_them(make):
    tensors = make()
    joined, values = FlatParameters(tensors, spare=2), together(tensors)
    memory = joined.vector(torch.tensor([5.0, 6.0])).data_ptr()

    for behind in ([], [1.0, 2.0], [3.0]):  # a warning is an error here: torch's, of an output of another size
        vector = joined.vector(torch.tensor(behind))
        assert torch.equal(vector, torch.cat([values, values.new_tensor(behind)]))
        assert vector.data_ptr() == memory


def test_memory_that_is_used_again_is_told_from_a_vector_that_may_be_kept():
    for tensors in (parameters((2,), (3,)), tied()):
        joined = FlatParameters(tensors, spare=0)
        assert joined.holds(joined.vector())
        assert joined.holds(joined.vector()[:2])
        assert not joined.holds(joined.vector().clone())


def test_two_averagings_may_have_one_model():
    tensors = parameters((2,), (3,))
    first, second = FlatParameters(tensors, spare=1), FlatParameters(tensors, spare=1)
    first.vector()
    second.vector()

    second.load(torch.ones(5))

    assert lie_in_one_vector(tensors)
    assert first.vector().tolist() == [1] * 5
