"""Every operator refuses what is no vector of numbers in one sentence, and reads what is one in disguise."""

import numpy as np
import pytest
import torch

from operators import Key, all_operators

X = torch.linspace(-1, 1, 64)
KEY = Key(seed=0)
UNSUITED = {
    "sparse": (
        lambda: X.reshape(8, 8).to_sparse(),
        "must be a dense tensor; got layout torch.sparse_coo: pass x.to_dense()",
    ),
    "csr": (
        lambda: X.reshape(8, 8).to_sparse_csr(),
        "must be a dense tensor; got layout torch.sparse_csr: pass x.to_dense()",
    ),
    "complex": (lambda: X * 1j, "must be a float tensor; got torch.complex64: pass torch.view_as_real(x)"),
    "integer": (lambda: torch.arange(9), "must be a float tensor; got torch.int64: convert it by x.float()"),
    "truth": (lambda: X > 0, "must be a float tensor; got torch.bool: convert it by x.float()"),
    "quantised": (
        lambda: torch.quantize_per_tensor(X, 0.1, 0, torch.qint8),
        "quantised one (torch.qint8): pass x.dequantize()",
    ),
    "meta": (lambda: X.to("meta"), "must have data; got a tensor on the device meta: materialise it first"),
    "nested": (
        lambda: torch.nested.nested_tensor([X[:3], X[:5]], layout=torch.jagged),
        "must be one tensor; got a nested one: pass",
    ),
    "empty": (lambda: torch.zeros(0), "must have at least one entry; got an empty vector: leave it out"),
    "nan": (lambda: X / 0 * 0, "must be finite in binary32; got nan at index 0: correct or clip"),
    "array of integers": (
        lambda: np.arange(9),
        "must be a float array; got int64: convert it by x.astype(numpy.float32)",
    ),
    "array of complex": (lambda: np.ones(9) * 1j, "must be a float array; got complex128: convert it"),
    "array of objects": (lambda: np.array([None]), "must be a float array; got object: convert it"),
}
SUITED = {
    "learnt": lambda: X.clone().requires_grad_(),
    "strided": lambda: torch.stack([X, X], 1)[:, 0],
    "matrix": lambda: X.reshape(8, 8),
    "double": lambda: X.double(),
    "parameter": lambda: torch.nn.Parameter(X),
}


@pytest.mark.filterwarnings("ignore")  # torch warns that some of these layouts are young or old
@pytest.mark.parametrize("name", all_operators())
def test_what_is_no_vector_of_numbers_is_refused_in_one_sentence(name):
    operator = all_operators()[name].examples()[0]
    for kind, (make, words) in UNSUITED.items():
        with pytest.raises((TypeError, ValueError)) as caught:
            operator.encode(make(), key=KEY)
        assert words in str(caught.value), kind
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", all_operators())
def test_a_vector_in_any_form_gives_the_same_message(name):
    operator = all_operators()[name].examples()[0]
    plain = operator.encode(X, key=KEY)
    for kind, make in SUITED.items():
        message = operator.encode(make(), key=KEY)
        assert message.bits == plain.bits, kind
        assert torch.equal(message.payload, plain.payload), kind
