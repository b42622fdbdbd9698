"""Anybody's compressor in one line: functions, hooks, pairs, codecs, 16-bit types and declared domains."""

import sys
import types
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import (
    allreduce_hook,
    bf16_compress_hook,
    fp16_compress_hook,
)

from bounds.claims import StrictlyContractive, Unbiased
from operators import QSGD, TopK
from operators.laws import Budget, Domain, Outcome, adapt, check, parametrize_with_checks, vectors
from operators.laws.kit.examples import Example

from . import forms

QUICK = Budget.quick().untimed()
ONE_SIZE = replace(QUICK, sizes=(9,), drawn=1, shrinking=0)
CLAIM = Unbiased(omega=1.0)
HALF = StrictlyContractive(2.0**-22)  # of round-to-nearest with 11 significant bits


def keep_half(x):
    return 2 * x * (torch.rand(x.shape) < 0.5)


def keep_half_of_an_array(x):
    return 2 * x * (np.random.default_rng().random(x.size) < 0.5)


class Grace:
    """As in GRACE: tensors and what is needed to undo it."""

    def compress(self, tensor, name):
        assert isinstance(name, str)
        kept = torch.rand(tensor.shape) < 0.5
        return (tensor[kept], kept), tensor.shape

    def decompress(self, tensors, ctx):
        values, kept = tensors
        out = torch.zeros(ctx)
        out[kept] = 2 * values
        return out


class UsesUp(Grace):
    """A decoder that scales the values of its message in place: the second decode is another vector."""

    def decompress(self, tensors, ctx):
        tensors[0].mul_(2)
        return super().decompress(tensors, ctx)


class Hivemind:
    """As in hivemind: compress(tensor, info, allow_inplace) and extract(serialized)."""

    def compress(self, tensor, info, allow_inplace=False):
        assert info.descriptor is tensor
        return keep_half(tensor).to(torch.float32).numpy().tobytes()

    def extract(self, serialized_tensor):
        return torch.frombuffer(bytearray(serialized_tensor), dtype=torch.float32)


class SendsItsInput(UsesUp):
    """The same, with the gradient itself as the message."""

    def compress(self, tensor, name):
        return (tensor, torch.ones(tensor.shape, dtype=torch.bool)), tensor.shape


def hook(state, bucket):
    assert bucket.is_last()
    assert bucket.index() == 0
    assert bucket.gradients()[0].shape == bucket.parameters()[0].shape
    bucket.set_buffer(keep_half(bucket.buffer()))
    m = dist.get_world_size()
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0] / m)


ONE_LINE = {
    "function": lambda: adapt(keep_half, claim=CLAIM),
    "numpy": lambda: adapt(keep_half_of_an_array, library="numpy", claim=CLAIM),
    "hook": lambda: adapt(hook, claim=CLAIM),
    "pair of functions": lambda: adapt((keep_half, lambda x: x), claim=CLAIM),
    "GRACE": lambda: adapt(Grace(), claim=CLAIM),
    "hivemind": lambda: adapt(Hivemind(), claim=CLAIM),
    "float16": lambda: adapt(keep_half, dtype=torch.float16, claim=CLAIM),
    "bfloat16": lambda: adapt(keep_half, dtype=torch.bfloat16, claim=CLAIM),
}  # fmt: skip


@pytest.mark.every(3)
@pytest.mark.parametrize("name", ONE_LINE)
def test_honest_compressor_of_any_form_is_judged_exactly_and_not_accused(name):
    report = check(
        ONE_LINE[name](), budget=QUICK, seed=1, laws=["output-form", "zero", "no-mutation", "exact-marginals"]
    )

    assert not report.failures, str(report)
    assert report["exact-marginals"].outcome is Outcome.PASS
    assert not dist.is_initialized()


def shrunk(form):
    """The same times .95."""
    subject = ONE_LINE[form]()
    honest = subject.target
    return adapt(lambda x: 0.95 * honest(x), library="numpy" if form == "numpy" else "torch", claim=CLAIM)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", ["function", "numpy", "hook", "GRACE", "hivemind"])
def test_same_times_95_percent_is_accused_exactly(name):
    report = check(shrunk(name), budget=ONE_SIZE, seed=2, laws=["exact-marginals"])

    assert report["exact-marginals"].outcome is Outcome.FAIL, str(report)
    assert "exactly" in report["exact-marginals"].text


@pytest.mark.every(2)
@pytest.mark.parametrize("hook", [fp16_compress_hook, bf16_compress_hook, allreduce_hook], ids=lambda h: h.__name__)
def test_torchs_own_hooks_are_not_accused_within_their_range(hook):
    claim = {fp16_compress_hook: HALF, bf16_compress_hook: StrictlyContractive(2.0**-16)}.get(
        hook, StrictlyContractive(0.0)
    )
    report = check(adapt(hook, claim=claim, domain=Domain(2.0**-8, 2.0**15)), budget=QUICK, seed=3)

    assert not report.failures, str(report)


def test_torchs_fp16_hook_is_accused_beyond_its_range():
    report = check(adapt(fp16_compress_hook, claim=HALF), budget=QUICK, seed=3, laws=["sure-contraction"])

    assert not report.ok
    assert report["sure-contraction"].x.max() > 65504


@pytest.mark.every(3)
@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("operator", [QSGD(levels=4), TopK(fraction=0.3)], ids=["QSGD", "TopK"])
def test_forms_of_the_tests_are_faithful_to_an_honest_operator(operator, form):
    laws = ["output-form", "zero", "no-mutation", "sure-contraction", "exact-marginals"]
    report = check(forms.FORMS[form](operator), budget=ONE_SIZE, seed=4, laws=laws)

    assert not report.failures, str(report)
    assert report["exact-marginals"].outcome is Outcome.PASS, str(report)


@pytest.mark.every(4)
@parametrize_with_checks(
    [adapt(keep_half, claim=CLAIM), adapt(Grace(), claim=CLAIM), adapt(hook, claim=CLAIM)], budget=QUICK, seed=5
)
def test_decorated_test_takes_adapted_compressors(operator, law):
    if law.law.name in ("output-form", "zero", "enumeration"):
        law(operator)


def divided(x):
    """Wrong where an entry is zero, or the length no multiple of four."""
    x = x.reshape(-1, 4)
    return (x * (x / x)).reshape(-1)


def test_declared_domain_keeps_vectors_out_that_a_compressor_is_not_meant_for():
    claim = StrictlyContractive(1e-12)
    laws = ["output-form", "zero", "sure-contraction"]
    assert not check(adapt(divided, claim=claim), budget=QUICK, seed=6, laws=laws).ok

    domain = Domain(zero=False, zeros=False, multiple_of=4)
    report = check(adapt(divided, claim=claim, domain=domain), budget=QUICK, seed=6, laws=laws)

    assert not report.failures, str(report)
    assert report["sure-contraction"].outcome is Outcome.PASS


def without_levels(x):
    """As an adaptive quantiser that has no level left for a small range: 0/0."""
    levels = torch.floor(1000 * x.abs().max())
    return torch.round(x * levels) / levels


def test_output_at_the_ends_of_a_declared_domain_is_finite():
    laws = ["output-form"]
    within = check(adapt(without_levels, domain=Domain(1.0, 2.0**10, zero=False)), budget=QUICK, seed=6, laws=laws)
    assert within["output-form"].outcome is Outcome.PASS

    report = check(adapt(without_levels, domain=Domain(2.0**-20, 2.0**10, zero=False)), budget=QUICK, seed=6, laws=laws)

    assert "not finite" in report["output-form"].text
    assert np.abs(report["output-form"].x).max() < 1e-3


def test_failure_is_shrunk_within_the_domain_and_replayed():
    domain = Domain(multiple_of=4, zero=False)
    report = check(
        adapt(lambda x: 0.5 * keep_half(x), claim=CLAIM, domain=domain), budget=QUICK, seed=7, laws=["exact-marginals"]
    )

    verdict = report["exact-marginals"]
    assert verdict.x.size == 4
    assert "x = [" in str(verdict)
    assert "seed=7" in report.reproduce


DOMAIN = Domain(2.0**-8, 2.0**8, zero=False, zeros=False, multiple_of=3, shortest=6, dtype=torch.float16)


@given(vectors(DOMAIN))
@settings(max_examples=60, deadline=None)
def test_vectors_of_a_domain_belong_to_it(x):
    assert DOMAIN.contains(x)
    assert x.dtype == np.float32
    assert x.size % 3 == 0
    assert x.size >= 6
    assert 2.0**-8 <= np.abs(x).max() <= 2.0**8
    assert (x != 0).all()
    assert np.array_equal(x, x.astype(np.float16).astype(np.float32))


@given(vectors())
@settings(max_examples=60, deadline=None)
def test_vectors_are_those_that_claims_are_about(x):
    assert x.dtype == np.float32
    assert not x.any() or 2.0**-126 <= np.abs(x).max() <= 2.0**100


def test_domain_gives_each_vector_once():
    examples = [Example("a", np.ones(d, np.float32)) for d in (1, 2, 3, 4, 5)]
    assert [e.d for e in Domain(multiple_of=4).of(examples)] == [4, 8]


@pytest.mark.parametrize("arguments", [{"smallest": 2.0}, {"smallest": -1.0}, {"multiple_of": 0}, {"longest": 0}])
def test_senseless_domain_is_refused(arguments):
    with pytest.raises(ValueError, match=r"range|lengths"):
        Domain(**{"largest": 1.0, **arguments})


@pytest.mark.parametrize(
    ("target", "arguments", "error", "message"),
    [
        (3, {}, TypeError, "expected a function, a hook"),
        (Grace, {}, TypeError, "got the class Grace"),
        (keep_half, {"library": "tensorflow"}, ValueError, 'library must be "torch", "numpy" or "jax"'),
        (keep_half, {"library": "numpy", "dtype": torch.bfloat16}, ValueError, "bfloat16 needs"),
    ],
)
def test_what_cannot_be_adapted_is_refused(target, arguments, error, message):
    with pytest.raises(error, match=message):
        adapt(target, **arguments)


@pytest.fixture
def jax(monkeypatch):
    """A stand-in with the four names that the adapter uses."""
    module = types.ModuleType("jax")
    module.random = types.SimpleNamespace(PRNGKey=lambda seed: np.array([0, seed], np.uint32))
    module.numpy = types.SimpleNamespace(asarray=np.asarray)
    monkeypatch.setitem(sys.modules, "jax", module)


def quantised(x, key):
    return 2 * x * (np.random.RandomState(key[1]).rand(x.size) < 0.5)


@pytest.mark.parametrize(
    "function",
    [
        quantised,
        lambda x, rng: quantised(x, rng),
        lambda x, seed_of_mine: quantised(x, seed_of_mine),
        lambda x, levels=3, rng=None: quantised(x, rng),
    ],
    ids=["key", "rng", "second", "rng, optional"],
)
def test_function_of_jax_may_call_its_key_as_it_likes(jax, function):
    subject = adapt(function, library="jax", claim=CLAIM)

    outputs = {subject.target(np.ones(64, np.float32)).tobytes() for _ in range(4)}

    assert len(outputs) == 4


def test_function_of_jax_receives_a_fresh_key_and_is_left_to_statistics(jax):
    keys = set()

    def keyed(x, key):
        keys.add(int(key[1]))
        return 2 * x * (np.random.RandomState(key[1]).rand(x.size) < 0.5)

    report = check(
        adapt(keyed, library="jax", claim=CLAIM), budget=QUICK, seed=8, laws=["output-form", "exact-marginals"]
    )

    assert len(keys) > 10
    assert not report.failures, str(report)


@pytest.mark.parametrize(("codec", "fails"), [(UsesUp, False), (SendsItsInput, True)])
def test_a_decoder_that_uses_up_its_message_does_not_make_it_a_view_of_the_input(codec, fails):
    report = check(adapt(codec(), claim=CLAIM), budget=QUICK, seed=9, laws=["own-message"])

    assert bool(report.failures) is fails
