"""One place reads vectors: every form of the same numbers gives the same message, and what is none is refused there."""

import numpy as np
import pytest
import torch

from operators import Key, all_aggregates, all_feedbacks, all_operators, for_bits
from operators.exchange.in_process import mean_of_ranks
from operators.exchange.two_shot import TwoShot
from operators.inputs import canonical_tensor, outside_claims, plain_tensor, rows_of
from operators.pieces import InPieces
from operators.summed.in_process import sum_of_ranks
from operators.summed.shared_scale import SharedScale

D = 48
X = torch.linspace(-1, 1, D).sin()
KEY = Key(seed=3, rank=1)


class Labelled(torch.Tensor):
    """A subclass that changes nothing."""


class Wrapping(torch.Tensor):
    """A subclass that holds other tensors."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("nothing may be computed with it")


def negative_view():
    return torch.complex(torch.zeros(D), -X).conj().imag


def big_endian():
    return X.numpy().astype(">f4")


def fortran():
    return np.asfortranarray(X.numpy().reshape(6, 8))


def misaligned():
    buffer = np.zeros(4 * D + 1, np.uint8)
    view = buffer[1:].view(np.float32)
    view[:] = X.numpy()
    return view


def of_records():
    records = np.zeros(D, dtype=[("tag", "u1"), ("value", "f4")])
    records["value"] = X.numpy()
    return records["value"]


def read_only():
    array = X.numpy().copy()
    array.setflags(write=False)
    return array


SAME = {
    "negative view": negative_view,
    "negative view of a part": lambda: torch.complex(X, -X).conj().imag.reshape(6, 8),
    "real part of a conjugate": lambda: torch.complex(X, X).conj().real,
    "list": lambda: X.tolist(),
    "nested lists": lambda: X.reshape(4, 12).tolist(),
    "tuple": lambda: tuple(X.tolist()),
    "list of arrays": lambda: list(X.reshape(4, 12).numpy()),
    "reversed array": lambda: X.numpy()[::-1].copy()[::-1],
    "reversed tensor": lambda: X.flip(0).flip(0),
    "big endian": big_endian,
    "big endian double": lambda: X.numpy().astype(">f8"),
    "fortran order": fortran,
    "misaligned": misaligned,
    "field of records": of_records,
    "read only": read_only,
    "long double": lambda: X.numpy().astype(np.longdouble),
    "requires grad": lambda: X.clone().requires_grad_(),
    "result of autograd": lambda: X.clone().requires_grad_() * 1.0,
    "parameter": lambda: torch.nn.Parameter(X),
    "subclass": lambda: X.as_subclass(Labelled),
    "memory view": lambda: memoryview(X.numpy()),
}


def vmapped():
    kept = []
    torch.vmap(lambda row: kept.append(row) or row)(X.reshape(2, -1))
    return kept[0]


def fake():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.zeros(D)


def freed():
    x = X.clone()
    x.untyped_storage().resize_(0)
    return x


def self_containing():
    x = [1.0]
    x.append(x)
    return x


REFUSED = {
    "masked array": (lambda: np.ma.masked_array(X.numpy(), X.numpy() > 0), "got a masked array: pass x.filled"),
    "unmasked masked array": (lambda: np.ma.masked_array(X.numpy()), "got a masked array"),
    "masked tensor": (lambda: torch.masked.masked_tensor(X, X > 0), "MaskedTensor"),
    "conjugate": (lambda: torch.complex(X, X).conj(), "torch.view_as_real"),
    "unequal lists": (lambda: [[1.0, 2.0], [3.0]], "of unequal parts"),
    "list that holds itself": (self_containing, "of unequal parts"),
    "list of words": (lambda: ["1.0", "2.0"], "must be a float array; got <U3"),
    "list with none": (lambda: [1.0, None], "must be a float array; got object"),
    "list of truths": (lambda: [True, False], "must be a float array; got bool"),
    "list of tensors": (lambda: [X[:3], X[:3]], "torch.cat"),
    "records": (lambda: np.zeros(3, dtype=[("a", "f4")]), "must be a float array"),
    "bytes": (lambda: b"12345678", "must be a float array"),
    "dates": (lambda: np.array(["2020-01-01"], "M8[D]"), "must be a float array"),
    "none": (lambda: None, "must be a float array; got object"),
    "fake": (fake, "must have data"),
    "freed": (freed, "storage was freed"),
    "inside vmap": (vmapped, "inside vmap"),
    "wrapper": (lambda: X.as_subclass(Wrapping), "got Wrapping: pass the tensor inside"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", SAME)
def test_a_form_of_the_same_numbers_gives_the_same_message_of_every_operator(kind):
    for cls in all_operators().values():
        operator = cls.examples()[0]
        plain, other = operator.encode(X, key=KEY), operator.encode(SAME[kind](), key=KEY)
        assert (plain.bits, plain.payload.tolist()) == (other.bits, other.payload.tolist()), operator


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_vector_is_refused_in_one_sentence_by_every_operator(kind):
    make, words = REFUSED[kind]
    for cls in all_operators().values():
        operator = cls.examples()[0]
        for use in (operator.encode, operator.__call__):
            with pytest.raises((TypeError, ValueError)) as caught:
                use(make(), key=KEY)
            assert words in str(caught.value), (operator, str(caught.value))
            assert "\n" not in str(caught.value)


def entries():
    """Yield (name, function of a vector) of everything else that reads one."""
    for name, cls in all_feedbacks().items():
        method = cls.examples()[0]
        yield name, lambda x, m=method: m.encode(m.init(D), x, key=KEY)[1].payload
    for name, cls in all_aggregates().items():
        merger = cls.examples()[0]
        n = getattr(merger, "workers", 3)
        keys = KEY.of_ranks(range(n), step=0)
        yield name, lambda x, a=merger, k=keys: a.round([x] * len(k), keys=k)
    voting, gathering = all_aggregates()["election_coding"].examples()[0], all_aggregates()["global_topk"].examples()[0]
    keys = KEY.of_ranks(range(3), step=0)
    yield "elect", lambda x: voting.elect([x] * 3, keys=keys)
    yield "exchange", lambda x: gathering.exchange([torch.zeros(D)] * 3, [x] * 3, keys=keys)[1]
    operator = all_operators()["qsgd"]()
    for exchange in ("gather", "two_shot"):
        yield exchange, lambda x, e=exchange: mean_of_ranks([x] * 3, operator, exchange=e, key=KEY).mean
    yield "end", lambda x: TwoShot(operator, operator, KEY, rank=0, m=3, d=D).encode(x, 0)[1].payload
    yield "sum", lambda x: sum_of_ranks([x] * 3, SharedScale(), key=KEY).mean
    yield "for_bits", lambda x: torch.tensor(for_bits("topk", 8.0, like=x).fraction)
    for name, cls in all_operators().items():
        if isinstance(pieces := cls.examples()[0], InPieces):
            yield name, lambda x, p=pieces: p.encode_pieces(lambda: [x], d=D, key=KEY).payload


ENTRIES = dict(entries())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ENTRIES)
def test_every_other_entry_reads_and_refuses_the_same(name):
    use = ENTRIES[name]
    plain = use(X)
    for kind, make in SAME.items():
        assert torch.equal(use(make()), plain), kind
    for kind, (make, words) in REFUSED.items():
        if name == "for_bits" and kind == "none":  # there it means "no vector"
            continue
        with pytest.raises((TypeError, ValueError)) as caught:
            use(make())
        assert words in str(caught.value), (kind, str(caught.value))


@pytest.mark.parametrize(
    ("x", "kind", "shape"),
    [
        (X.reshape(4, 12).tolist(), np.float64, (4, 12)),
        ([1, 2, -3], np.float64, (3,)),
        (np.float32(0.5), np.float32, ()),
        (X.numpy().astype(">f8"), np.dtype(">f8"), (D,)),
        (X.numpy().astype(np.longdouble), np.longdouble, (D,)),
        (X.numpy().astype(np.float16)[::-1], np.float16, (D,)),
    ],
)
def test_the_round_trip_of_an_array_has_its_shape_and_dtype(x, kind, shape):
    y = all_operators()["identity"]()(x, key=KEY)
    assert (y.dtype, y.shape) == (np.dtype(kind), shape)
    assert np.array_equal(np.asarray(y, np.float32), np.asarray(x, np.float32))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn])
def test_every_float_dtype_of_torch_is_read_as_its_numbers(dtype):
    x = X.to(dtype)
    assert torch.equal(canonical_tensor(x), x.float())
    assert all_operators()["identity"]()(x, key=KEY).dtype == dtype


def test_the_input_stays_as_it_was():
    x = negative_view()
    all_operators()["qsgd"]()(x, key=KEY)
    assert x.is_neg()
    assert plain_tensor(read_only()).data_ptr() != read_only().ctypes.data


def test_rows_are_at_least_one_and_equally_long():
    assert [row.tolist() for row in rows_of([[1, 2], np.ones(2)])] == [[1, 2], [1, 1]]
    for wrong in ([], [[1.0], [1.0, 2.0]]):
        with pytest.raises(ValueError, match="equally long; got the lengths"):
            rows_of(wrong)


@pytest.mark.parametrize(("scale", "words"), [(1e-40, "may be sent as zero"), (2.0**101, "2\\^100"), (1.0, "")])
def test_claims_hold_in_a_range_of_magnitudes(scale, words):
    import re

    assert re.search(words, outside_claims(np.float32([scale, 0])))
    assert bool(outside_claims(np.float32([scale, 0]))) == bool(words)
