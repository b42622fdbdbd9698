"""``check``: what a user sees."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bounds.claims import Contractive, StrictlyContractive, Unbiased
from operators import QSGD, Identity, Key, TopK
from operators.laws import Budget, Outcome, Report, Verdict, check
from tests.operators.laws import outside
from tests.operators.laws.honest import HONEST, JUDGED_BY_ALL_LAWS, Dithering, MeanSign
from tests.operators.laws.honest_selection import Largest
from tests.operators.laws.mutants import MUTANTS

QUICK = Budget.quick().untimed()
DRAWING = Budget(draws=800, lengths=(65,), sizes=(1, 9, 65), drawn_sizes=(1, 8, 64), bias=0.3, large=300).untimed()
SMALL = replace(
    Budget(draws=60, evaluations=64, sizes=(1, 9), drawn_sizes=(2,), lengths=(65,), drawn=1, search=5, large=300),
    bias=0.3,
).untimed()
QUICKLY_JUDGED = (Largest, MeanSign, Dithering(s=1))  # strictly contractive, biased by design, unbiased
SHRINKING = next(m.wrong for m in MUTANTS if m.what == "2 % shrink")


def half_or_nothing(x):
    """Unbiased with omega = 1 exactly: 2 x or 0, each coordinate by its own fair coin."""
    return 2 * x * (torch.rand(x.shape, generator=outside.GENERATOR) < 0.5)


@pytest.mark.parametrize(
    "op",
    [
        pytest.param(op, id=repr(op), marks=[] if {op, type(op)} & {*QUICKLY_JUDGED} else [pytest.mark.thorough])
        for op in JUDGED_BY_ALL_LAWS
    ],
)
def test_honest_reference_operator_is_not_accused(op):
    report = check(op, budget=SMALL, seed=21)
    assert report.ok, str(report)


@pytest.mark.parametrize(
    ("budget", "spelled"),
    [
        (Budget(), ""),
        (Budget().untimed(), "budget=Budget().untimed(), "),
        (Budget.quick().untimed(), "budget=Budget.quick().untimed(), "),
        (Budget.deep(), "budget=Budget.deep(), "),
    ],
)
def test_line_that_repeats_a_check_calls_a_known_budget_by_its_name(budget, spelled):
    report = check(half_or_nothing, claim=Unbiased(omega=1.0), budget=budget, seed=3, laws=["no-mutation"])

    assert f"seed=3, {spelled}claim=" in report.reproduce


def of_long_words(x):
    raise RuntimeError("the callback failed\n\nAt:\n  somewhere.py(187): hook")


def test_message_of_a_subject_is_quoted_by_its_first_line():
    report = check(of_long_words, claim=Unbiased(omega=1.0), budget=SMALL, seed=21)

    assert {verdict.text for verdict in report.failures} == {"raised RuntimeError: the callback failed"}


@pytest.mark.slow
@pytest.mark.parametrize("op", HONEST, ids=repr)
def test_honest_reference_operator_is_not_accused_with_the_standard_budget(op):
    report = check(op, budget=Budget(), seed=22)
    assert report.ok, str(report)


def test_plain_function_is_judged_by_its_claim_alone():
    report = check(half_or_nothing, claim=Unbiased(omega=1.0), budget=QUICK, seed=1)

    assert report.ok, str(report)
    judged = {v.law for v in report.verdicts if v.outcome in (Outcome.PASS, Outcome.NOTE)}
    by_statistics = {"distortion", "unbiasedness", "every-coordinate"}
    exactly = {"exact-marginals", "enumeration"}
    assert (
        judged - {"constant-reached"}
        == {"output-form", "zero", "no-mutation", "kept-output", "lengths", "independent-streams"}
        | by_statistics
        | exactly
    )
    assert "no codec, no key" in report["corruption"].text
    assert "no codec, no key" in report["random-state"].text


@pytest.mark.thorough
def test_looser_claim_is_a_note_and_a_tight_one_a_failure():
    loose = check(half_or_nothing, claim=Unbiased(omega=3.0), budget=DRAWING, seed=2)
    tight = check(half_or_nothing, claim=Unbiased(omega=3.0, tight=True), budget=DRAWING, seed=2, ceiling=1.0)

    assert loose.ok
    assert loose["constant-reached"].outcome is Outcome.NOTE
    assert "0.3" in loose["constant-reached"].text
    assert not tight.ok
    assert tight["constant-reached"].outcome is Outcome.FAIL


def test_stricter_claim_than_the_truth_fails_by_distortion_and_not_by_bias():
    report = check(half_or_nothing, claim=Unbiased(omega=0.5), budget=DRAWING, seed=3)

    assert report["distortion"].outcome is Outcome.FAIL
    assert report["unbiasedness"].outcome is not Outcome.FAIL


def test_claim_may_depend_on_d():
    report = check(half_or_nothing, claim=lambda d: Unbiased(1.0 + 0 * d), budget=QUICK, seed=4)
    assert report.ok


def test_function_may_work_on_numpy_arrays():
    def halve(x: np.ndarray) -> np.ndarray:
        assert type(x) is np.ndarray
        assert x.dtype == np.float32
        return x / 2

    report = check(halve, claim=StrictlyContractive(0.25, tight=True), array="numpy", budget=QUICK, seed=5)
    assert report.ok, str(report)


@pytest.mark.parametrize(
    ("function", "law"),
    [
        (lambda x: x[:-1], "output-form"),
        (lambda x: x.int(), "output-form"),
        (lambda x: x.numpy(), "output-form"),
        (lambda x: x / x.abs().max(), "zero"),
        (lambda x: x.mul_(1.0).zero_(), "no-mutation"),
        (lambda x: x + 1, "zero"),
    ],
    ids=["shape", "dtype", "library", "NaN at zero", "mutation", "constant"],
)
def test_plain_function_that_breaks_the_form_is_convicted(function, law):
    report = check(function, claim=Contractive(0.99), budget=QUICK, seed=6)
    assert report[law].outcome is Outcome.FAIL


def test_constant_function_is_not_unbiased():
    """The unbiasedness tests of other projects pass for it."""
    report = check(lambda x: torch.zeros_like(x), claim=Unbiased(omega=1.0), budget=QUICK, seed=7)
    assert report["unbiasedness"].outcome is Outcome.FAIL


def test_object_with_encode_and_decode_of_its_own_kind_is_judged_by_what_it_has():
    class Halver:
        def encode(self, x):
            return x / 2

        def decode(self, message):
            return message

    report = check(Halver(), claim=StrictlyContractive(0.25), budget=QUICK, seed=8)

    assert report.ok, str(report)
    assert report["sure-contraction"].outcome is Outcome.PASS
    assert report["determinism"].text == "encode takes no key"
    assert "no Message" in report["corruption"].text


def test_failing_input_is_shrunk_and_the_line_reproduces_it():
    laws = ("exact-marginals", "unbiasedness", "zero")
    report = check(SHRINKING, budget=QUICK, seed=9, laws=laws)
    verdict = report["exact-marginals"]

    assert not report.ok
    assert verdict.x.size == 1
    again = check(SHRINKING, budget=QUICK, seed=report.seed, laws=laws)
    assert [str(v) for v in again.verdicts] == [str(v) for v in report.verdicts]
    assert f"seed={report.seed}" in report.reproduce
    assert "reproduce: operators.laws.check(" in str(report)


def test_line_that_reproduces_is_python_for_an_operator():
    import operators
    from operators import laws

    report = check(QSGD(levels=4), claim=Unbiased(0.001), budget=QUICK, seed=13, laws=["exact-marginals"])
    names = {"operators": operators, "QSGD": QSGD, "Unbiased": Unbiased, "Budget": Budget}
    assert laws.check is check

    again = eval(report.reproduce, names)

    assert not report.ok
    assert str(again) == str(report)


def test_every_check_draws_afresh_unless_told_a_seed():
    first, second = (check(Identity(), budget=QUICK, laws=["zero"]) for _ in range(2))
    assert first.seed != second.seed


def test_wrong_override_of_an_operators_claim_is_refuted():
    assert check(TopK(k=1), budget=QUICK, seed=10).ok
    report = check(TopK(k=1), claim=StrictlyContractive(0.01), budget=QUICK, seed=10)
    assert report["sure-contraction"].outcome is Outcome.FAIL
    assert "claim=StrictlyContractive" in report.reproduce


def test_unbiased_claim_for_a_biased_operator_is_refuted():
    report = check(
        Largest(), claim=lambda d: Unbiased(math.sqrt(d)), budget=QUICK, seed=11, laws=["zero", "exact-marginals"]
    )
    assert report["exact-marginals"].outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3,), TypeError, "an operator, an object with encode and decode, or a function"),
        ((QSGD,), TypeError, "got the class QSGD"),
    ],
)
def test_what_is_no_compressor_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        check(*arguments)


def test_unknown_law_and_array_are_refused():
    with pytest.raises(ValueError, match="unknown law 'fairness'"):
        check(Identity(), laws=["fairness"])
    with pytest.raises(ValueError, match="array must be"):
        check(half_or_nothing, array="jax")


def test_negative_seed_is_refused():
    with pytest.raises(ValueError, match="seed must satisfy seed >= 0; got seed = -1"):
        check(Identity(), seed=-1)


def test_report_names_a_law_that_was_not_run():
    report = Report("x", 1, (Verdict("zero", Outcome.PASS),), "")
    assert report["zero"].outcome is Outcome.PASS
    with pytest.raises(KeyError, match="no verdict of 'scale'"):
        report["scale"]


@pytest.mark.parametrize("change", [{"false_alarm": 0.0}, {"false_alarm": 1.0}, {"draws": 0}, {"sizes": (0,)}])
def test_senseless_budget_is_refused(change):
    with pytest.raises(ValueError, match=r"false_alarm|at least 1"):
        Budget(**change)


def test_sizes_include_one_a_large_one_and_no_power_of_two():
    for budget in (Budget(), Budget.quick(), Budget.deep()):
        assert 1 in budget.sizes
        assert any(d > 64 and d & (d - 1) for d in budget.sizes)
    assert 1 in Budget().drawn_sizes
    assert max(Budget().drawn_sizes) > 64


@pytest.mark.thorough
def test_check_leaves_the_callers_random_state_alone():
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    expected = torch.rand(3), np.random.random(3)  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002

    check(QSGD(levels=4), budget=QUICK, seed=12, laws=["random-state", "determinism", "exact-marginals"])

    assert torch.equal(torch.rand(3), expected[0])
    assert np.array_equal(np.random.random(3), expected[1])  # noqa: NPY002
    assert Key(1) == Key(1)


def test_check_of_a_function_with_its_own_randomness_is_repeated_draw_by_draw():
    def keep_half(x):
        seen.append(2 * x * (torch.rand(x.shape) < 0.5) * (np.random.random() < 2))  # noqa: NPY002
        return seen[-1]

    runs = []
    for state in (1, 2):
        torch.manual_seed(state)
        seen, before = [], torch.get_rng_state()
        check(keep_half, claim=Unbiased(omega=1.0), budget=QUICK.untimed(), seed=12, laws=["unbiasedness"])
        assert torch.equal(torch.get_rng_state(), before)
        runs.append(seen)

    assert len(runs[0]) == len(runs[1]) > 10
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_output_that_is_seldom_not_finite_is_accused_by_every_law_that_draws(value):
    def keep_half(x):
        y = 2 * x * (torch.rand(x.shape) < 0.5)
        return y + value if torch.rand(()) < 0.004 else y

    laws = ("distortion", "unbiasedness", "every-coordinate")
    report = check(keep_half, claim=Unbiased(omega=1.0), budget=Budget().untimed(), seed=4, laws=laws)

    assert [v.law for v in report.failures] == list(laws)
    assert "not finite" in report["distortion"].text
