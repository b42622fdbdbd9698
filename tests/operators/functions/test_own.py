"""A compressor of one's own: its bits are those that it states, and what it cannot be is said in one sentence."""

import numpy as np
import pytest
import torch

import ratedist as rd
from bounds.claims import StrictlyContractive, Unbiased
from operators import QSGD, CorruptMessage, Key, Message, specification
from operators.laws import Budget, check
from ratedist.cluster.compressors import as_operator

X = np.array([3.0, -1.0, 0.5, 0.25], np.float32)


def sent(operator, x=X, key=Key(0)):  # noqa: B008
    """Return the bits that count of one message, and what it is decoded to."""
    message = operator.encode(x, key=key)
    decoded = operator.decode(message, d=x.size)
    return message.bits - operator.carried_bits(x.size), decoded.numpy()


def numpy_signs(x: np.ndarray):
    return np.sign(x) * np.abs(x).mean()


def with_payload(x):
    return np.packbits(x.numpy() > 0).tobytes() + bytes(4), torch.sign(x)


@pytest.mark.parametrize(
    ("function", "keywords", "bits"),
    [
        (numpy_signs, {"bits": 1}, 4),
        (numpy_signs, {"bits": lambda d: d + 32}, 36),
        (lambda x: x * 0, {"bits": 0}, 0),
        (with_payload, {}, 40),
        ((lambda x: x.half(), lambda sent: sent.float()), {"bits": 16}, 64),
    ],
)
def test_bits_are_those_that_are_stated(function, keywords, bits):
    assert sent(rd.own(function, **keywords))[0] == bits


def test_bits_and_claim_may_be_attributes_of_the_function():
    def halve(x):
        return x / 2

    halve.bits, halve.claim = 32, lambda d: Unbiased(float(d))
    assert sent(rd.own(halve)) == (128, pytest.approx(X / 2))
    assert rd.own(halve).claim(3) == Unbiased(3.0)
    assert rd.own(halve, claim=Unbiased(1.0)).claim(3) == Unbiased(1.0)


def test_a_wrong_function_is_measured_wrong():
    """Zeros lose everything; half of the vector loses a quarter; neither looks like the identity."""
    assert rd.measure(rd.own(torch.zeros_like, bits=1), X).nmse == 1.0
    assert rd.measure(rd.own(lambda x: x / 2, bits=1), X).nmse == 0.25
    assert rd.measure(rd.own(lambda x: x, bits=32), X).nmse == 0.0


def test_a_function_of_its_own_equals_the_operator_that_it_wraps():
    operator = QSGD(levels=4)

    def through(x):
        message = operator.encode(x, key=Key(0, step=0))
        return message.payload, operator.decode(message, d=x.numel())

    own, real = rd.measure(through, X, draws=1), rd.measure(operator, X, draws=1)
    assert own.nmse == real.nmse
    assert own.bits == 8 * -(-real.bits * 4 // 8) / 4


def test_random_functions_repeat_by_seed_and_leave_the_global_streams():
    noisy = rd.own(lambda x: x + torch.randn_like(x), bits=32)
    before = torch.get_rng_state()
    first, again = (sent(noisy, key=Key(5, step=1))[1] for _ in range(2))
    assert (first == again).all()
    assert (first != sent(noisy, key=Key(5, step=2))[1]).any()
    assert (first != sent(noisy, key=Key(5, step=1, rank=1))[1]).any()
    assert torch.equal(before, torch.get_rng_state())


def test_the_vector_of_the_caller_is_not_touched():
    x = X.copy()
    sent(rd.own(lambda x: x.zero_(), bits=1), x)
    assert (x == X).all()


def test_a_hook_of_torch_is_measured():
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    found = rd.measure(rd.own(fp16_compress_hook, bits=16), np.full(100, 1 / 3))
    assert 0 < found.nmse < 1e-6
    assert found.bits == 16


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        (lambda: rd.own(lambda x: x[1:], bits=1), "must return 4 finite numbers; got 3 numbers"),
        (lambda: rd.own(lambda x: x / 0, bits=1), "got an entry that is not finite"),
        (lambda: rd.own(numpy_signs), "numpy_signs does not say how many bits it sends"),
        (lambda: rd.own(numpy_signs, bits=-1), "must be finite and >= 0; got -4.0"),
        (lambda: rd.own(lambda x: ("text", x)), "a payload must be bytes, an array or a tensor; got 'text'"),
        (lambda: rd.own(3), "must be a function x -> x_hat or an Operator; got 3"),
        (lambda: as_operator(3.5), "got 3.5: give one"),
    ],
)
def test_what_cannot_be_measured_is_said(own, sentence):
    with pytest.raises(ValueError, match=sentence):
        sent(own())


def test_a_module_of_the_current_folder_is_named_by_its_function(tmp_path, monkeypatch):
    (tmp_path / "mine_of_this_test.py").write_text("def f(x):\n    return x / 2\n\n\nf.bits = 8\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert specification(as_operator("mine_of_this_test:f")) == "mine_of_this_test:f"
    assert rd.measure("mine_of_this_test:f", X).nmse == 0.25
    assert as_operator("qsgd:4") == QSGD(levels=4)


def test_a_name_that_comes_from_a_network_imports_nothing(tmp_path, monkeypatch):
    from operators.outside import without_imports

    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')\n")
    with without_imports(), pytest.raises(ValueError, match="unknown operator 'evil'"):
        as_operator("evil:f")


def test_a_message_that_no_function_made_is_refused():
    signs = rd.own(numpy_signs, bits=1)
    message = signs.encode(X, key=Key(0))
    longer = Message(torch.cat([message.payload, message.payload[-1:]]), message.bits + 8)
    spoiled = message.payload.clone()
    spoiled[:4] = 255  # not a number
    behind = message.payload.clone()
    behind[-1] = 128
    for damaged in (longer, Message(spoiled, message.bits), Message(behind, message.bits)):
        with pytest.raises(CorruptMessage, match="numpy_signs"):
            signs.decode(damaged, d=X.size)


def test_the_laws_judge_the_function_itself():
    """What a message carries beside it is not what they are about; a claim that is false is seen."""

    def halve(x):
        return b"", x / 2

    true, false = (rd.own(halve, bits=1, claim=StrictlyContractive(alpha)) for alpha in (0.25, 0.2))
    assert check(true, budget=Budget.quick(), seed=1).ok
    assert not check(false, budget=Budget.quick(), seed=1).ok
