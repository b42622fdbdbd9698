"""The line that replays a report gives the same report, for every kind of subject and settings of its own."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import operators
from bounds.claims import StrictlyContractive, Unbiased, UnbiasedMean
from operators import QSGD, QUICFL, TCDQ, ErrorFeedback, Identity, Key, Mean, RandomK, TopK, TurboQuant
from operators.laws import Budget, adapt, check, check_inner_product, check_mean
from operators.laws.kit.verdict import Outcome
from operators.random import uniform

BUDGET = Budget.quick().untimed()
LAWS = ["distortion", "zero", "output-form", "sure-contraction"]


def halves(x):
    return 1.9 * x * (torch.rand(x.shape) < 0.5)


def numpy_halves(x):
    return (1.9 * x * (np.random.random(x.size) < 0.5)).astype(x.dtype)  # noqa: NPY002  the stream that a seed replays


def of_size(d):
    return Unbiased(0.6)


def pack(x):
    return x.half()


def unpack(message):
    return message.float() * 0.5


def mean_of_halves(vectors):
    return sum(x * (torch.rand(x.shape) < 0.5) * 1.9 for x in vectors) / len(vectors)


def shrunk(x):
    return 0.5 * x


def same(report):
    again = eval(report.reproduce, {**globals(), "operators": operators})
    assert [str(v) for v in again.verdicts] == [str(v) for v in report.verdicts], report.reproduce
    return report


def numpy_own_generator(x):
    return (1.9 * x * (np.random.default_rng().random(x.size) < 0.5)).astype(x.dtype)


class State:
    """What a hook keeps; its repr is no Python."""

    factor = 1.9


def hook(state, bucket):
    x = bucket.buffer()
    future = torch.futures.Future()
    future.set_result(getattr(state, "factor", 1.9) * x * (torch.rand(x.shape) < 0.5))
    return future


@dataclass(frozen=True)
class TooGood(Mean):
    """An aggregate whose claim is ten times too small."""

    def claim_mean(self, d, n):
        return Unbiased(0.001)


state = State()
SUBJECTS = {
    "own numpy generator": (adapt(numpy_own_generator, library="numpy", claim=Unbiased(0.7)), None),
    "hook": (adapt(hook, claim=Unbiased(0.7)), None),
    "hook with state": (adapt(hook, claim=Unbiased(0.7), state=state), None),
    "aggregate": (TooGood(QSGD(levels=4)), None),
    "operator": (RandomK(k=1), Unbiased(0.5)),
    "feedback": (ErrorFeedback(TopK(k=1)), None),
    "function": (halves, Unbiased(0.7)),
    "claim of d": (halves, of_size),
    "adapted": (adapt(halves, claim=Unbiased(0.7), dtype=torch.bfloat16), None),
    "adapted numpy": (adapt(numpy_halves, library="numpy", claim=Unbiased(0.7)), None),
    "adapted pair": (adapt((pack, unpack), claim=StrictlyContractive(0.2)), None),
}


@pytest.mark.parametrize("kind", SUBJECTS)
def test_the_replay_of_a_check_is_the_check(kind):
    subject, claim = SUBJECTS[kind]
    laws = {"feedback": None, "aggregate": ["aggregate-claim"]}.get(kind, LAWS)
    report = check(subject, claim=claim, budget=BUDGET, seed=5, laws=laws)
    assert kind == "feedback" or report.failures
    same(report)


def test_a_function_of_jax_replays():
    jax = pytest.importorskip("jax")

    def jax_halves(x, key):
        return 1.9 * x * (jax.random.uniform(key, x.shape) < 0.5)

    report = check(adapt(jax_halves, library="jax", claim=Unbiased(0.7)), budget=BUDGET, seed=5, laws=LAWS)
    assert report.failures
    again = eval(report.reproduce, {**globals(), "operators": operators, "jax_halves": jax_halves})
    assert [str(v) for v in again.verdicts] == [str(v) for v in report.verdicts]


def test_the_replay_of_an_exchange_has_its_sizes_budget_and_ceiling():
    report = check_mean(
        mean_of_halves, m=3, claim=UnbiasedMean(1 / 6, tight=True), sizes=(5,), alone=False, budget=BUDGET, seed=5,
        ceiling=40.0,
    )  # fmt: skip
    assert report.failures
    same(report)


def test_the_replay_of_inner_products_has_its_budget():
    same(check_inner_product(shrunk, 16, 4, omega_ip=1 / 3, budget=BUDGET, seed=5))


# -- tight claims ------------------------------------------------------------------------------------------
def rare(x):
    return x.double().mul(1 + (1 / 0.002**0.5 if float(torch.rand(())) < 0.002 else 0) - 0.002**0.5).to(x.dtype)


def lazy(x):
    return x * float(np.float32(1 / 0.998)) * float(float(torch.rand((), dtype=torch.float64)) < 0.998)


@pytest.mark.parametrize(("function", "omega"), [(rare, 1 - 0.002), (lazy, 1 / 0.998 - 1)])
def test_an_honest_tight_claim_with_rare_large_errors_is_not_refuted(function, omega):
    for seed in range(2):
        report = check(
            function, claim=Unbiased(omega, tight=True), budget=Budget.quick(), seed=seed, laws=["constant-reached"]
        )
        assert not report.failures
        assert "ceiling=" in report["constant-reached"].text


def test_a_tight_claim_twice_the_truth_is_refuted_with_a_ceiling_and_by_exact_moments():
    def honest(x):
        return 2 * x * (torch.rand(x.shape) < 0.5)

    twice = Unbiased(2.0, tight=True)
    alone = {"budget": BUDGET, "seed": 3}
    assert check(honest, claim=twice, laws=["constant-reached"], ceiling=1.0, **alone).failures
    assert check(honest, claim=twice, laws=["exact-marginals"], **alone).failures
    exact = check(honest, claim=Unbiased(1.0, tight=True), laws=["exact-marginals", "constant-reached"], **alone)
    assert exact["constant-reached"].outcome is Outcome.NOT_APPLICABLE


class Lazy:
    """All of x/p with probability p, as an object with encode and decode."""

    def __init__(self, p, omega):
        self.p, self.omega = p, omega

    def claim(self, d):
        return Unbiased(self.omega, tight=True)

    def encode(self, x, key):
        return (x, uniform(key, 1)[0] < self.p)

    def decode(self, message):
        x, sent = message
        return x / self.p if sent else 0 * x


class LazyOperator(Identity):
    """The same as an Operator of Identity's messages; the seed's low bits are the coin."""

    randomness = "private"
    p = 0.999

    def claim(self, d):
        return Unbiased(1 / self.p - 1, tight=True)

    def _encode(self, x, key):
        return super()._encode((x * (float(uniform(key, 1)[0]) < self.p) / self.p).astype(np.float32), key)


ALONE = ["constant-reached"]


@pytest.mark.parametrize("p", [0.999, 0.99])
@pytest.mark.parametrize("form", ["operator", "codec"])
def test_an_honest_tight_operator_with_rare_large_errors_is_not_refuted(form, p):
    subject = Lazy(p, 1 / p - 1)
    if form == "operator":
        subject = LazyOperator()
        object.__setattr__(subject, "p", p)
    report = check(subject, budget=Budget.quick(), seed=1, laws=ALONE)
    assert not report.failures
    assert "ceiling(d)" in report["constant-reached"].text


def test_an_operator_that_declares_its_ceiling_is_refuted_and_exact_marginals_stand_in_for_one():
    loose = type("Loose", (Lazy,), {"ceiling": lambda self, d: 4.0})(0.5, 2.0)  # it reaches 1
    assert check(loose, budget=BUDGET, seed=2, laws=ALONE).failures
    report = check(RandomK(fraction=0.5), budget=BUDGET, seed=2, laws=["exact-marginals", "constant-reached"])
    assert report["constant-reached"].outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize("operator", [TCDQ(omega=0.5), QUICFL(2), TurboQuant(1)], ids=repr)
def test_no_error_exceeds_the_declared_ceiling(operator):
    """And the ceiling is no empty one: at most a few hundred times d."""
    rng = np.random.default_rng(3)
    for d in (1, 2, 9, 60):
        ceiling = operator.ceiling(d)
        for t in range(20):
            x = (rng.standard_normal(d) if t % 2 else np.eye(1, d, t % d)[0]).astype(np.float32)
            error = operator(x, key=Key(t)).astype(float) - x
            assert error @ error <= ceiling * (x.astype(float) @ x)
        assert ceiling <= 1000 * d


# -- what an exchange is accused of ------------------------------------------------------------------------
def test_an_unbiased_exchange_with_too_small_a_constant_fails_by_its_error_alone():
    def kept(vectors):
        return sum(2 * x * (torch.rand(x.shape) < 0.5) for x in vectors) / len(vectors)

    report = check_mean(kept, m=2, claim=UnbiasedMean(0.05), sizes=(4, 9), alone=False, budget=BUDGET, seed=2)
    assert [v.law for v in report.failures] == ["error"]


def test_a_biased_exchange_is_not_said_to_have_correlated_steps():
    def biased(vectors):
        return sum(1.5 * x * (torch.rand(x.shape) < 0.5) for x in vectors) / len(vectors)

    report = check_mean(biased, m=2, claim=UnbiasedMean(1.0), sizes=(4, 9), alone=False, budget=BUDGET, seed=2)
    assert "unbiasedness" in [v.law for v in report.failures]
    assert "steps" not in [v.law for v in report.failures]
