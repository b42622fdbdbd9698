"""Settings as data: what follows from what, what is missing, which statements meet, and that every bound has one."""

import pytest

from bounds import Conclusion, Property, Setting, all_bounds
from bounds.properties import IMPLIED, NEVER_ABOVE
from bounds.setting import SAME_DATA, implied, never_above, properties

P, C = Property, Conclusion


def test_every_bound_says_where_it_holds():
    for name, bound in all_bounds().items():
        assert bound.setting.needs, name


def test_every_property_and_conclusion_is_used_or_leads_to_one_that_is():
    needed = frozenset().union(*(bound.setting.needs for bound in all_bounds().values()))
    assert {one for one in Property if not needed & implied(frozenset({one}))} == set()
    assert set(Conclusion) == {bound.setting.concludes for bound in all_bounds().values()}


def test_words_are_written_once_and_are_plain_clauses():
    words = [one.words for one in (*Property, *Conclusion)]
    assert len(set(words)) == len(words)
    assert not [text for text in words if text.endswith(".") or ";" in text]


def test_a_chain_of_implications_is_followed_and_joint_premises_are_needed_together():
    assert P.HESSIAN_ABOVE in implied(frozenset({P.EVERY_STRONGLY_CONVEX}))
    assert P.EVERY_CONVEX not in implied(frozenset({P.CONVEX}))
    assert P.EVERY_CONVEX in implied(frozenset({P.CONVEX, P.SAME_F}))
    assert P.BOUNDED_VARIANCE in implied(frozenset({P.FULL_GRADIENTS}))


def test_nothing_implies_what_is_stronger():
    for weak, strong in (
        (P.CONVEX, P.STRONGLY_CONVEX),
        (P.CONTRACTIVE, P.STRICTLY_CONTRACTIVE),
        (P.MEAN_ACCURACY, P.SURE_ACCURACY),
        (P.SMOOTH, P.EVERY_SMOOTH),
        (P.BOUNDED_VARIANCE, P.FULL_GRADIENTS),
        (P.CONTRACTIVE_ON_GAUSSIAN, P.CONTRACTIVE),
    ):
        assert strong in properties([strong.name.lower()])
        assert weak in implied(frozenset({strong}))
        assert strong not in implied(frozenset({weak}))


def test_each_rule_says_something_new():
    for premises, conclusions in IMPLIED:
        assert premises
        assert not premises & conclusions


def test_what_is_missing_is_named_in_the_order_of_definition():
    setting = Setting(SAME_DATA | {P.CONVEX, P.LOCAL_SGD}, C.GRADIENT)
    assert setting.missing(["strongly_convex", "smooth", "same_f", "full_gradients", "local_sgd"]) == ()
    assert setting.missing([P.SMOOTH, P.BOUNDED_BELOW, P.LOCAL_SGD, P.UNBIASED_GRADIENTS]) == (
        P.CONVEX,
        P.SAME_F,
        P.BOUNDED_VARIANCE,
        P.INDEPENDENT_NOISE,
    )


def test_an_unknown_property_gets_the_nearest_names():
    with pytest.raises(ValueError, match=r"'convx'.*try .*convex"):
        properties(["convx"])


def test_the_text_says_all_of_it():
    text = Setting(frozenset({P.CONVEX, P.SMOOTH}), C.GAP, known_up_to="a factor").text()
    assert text == f"{C.GAP.words}, known up to a factor; F is L-smooth; F is convex"


def test_statements_meet_where_each_kind_of_one_contains_that_of_the_other():
    bounds = all_bounds()

    def meet(one, other):
        found = bounds[one].setting.meets(bounds[other].setting)
        assert found == bounds[other].setting.meets(bounds[one].setting)
        return found

    assert meet("glasgow", "woodworth_upper")  # the worst convex F, local SGD with the tuned step
    assert meet("worst_case_bits", "sparse_dithering_bits")
    assert not meet("worst_case_bits", "sparse_dithering_random_bits")  # unbiased, not contractive surely
    assert not meet("laplace_rate", "gaussian_rate")
    assert not meet("lower_unbiased_iterations", "marina")  # marina needs independent messages and sends dense ones


def test_the_order_of_quantities_is_an_order():
    assert never_above(C.SPHERE_MEAN_DIRECTION, C.LONGEST_MESSAGE)
    assert not never_above(C.LONGEST_MESSAGE, C.GAUSSIAN_MEAN_MESSAGE)
    for small in Conclusion:
        for large in Conclusion:
            assert not (never_above(small, large) and never_above(large, small)) or small is large
    assert all(large for large in NEVER_ABOVE.values())


def test_the_hypotheses_found_missing_in_use_are_in_the_data():
    needs = {name: bound.setting for name, bound in all_bounds().items()}
    assert {P.FULL_GRADIENTS, P.EVERY_CONVEX, P.INDEPENDENT_MESSAGES} <= needs["diana"].needs
    assert needs["diana"].concludes is C.STEPS_TO_LYAPUNOV
    assert {P.FRESH_ROUND_TIMES, P.LAST_ROUND_FINISHED} <= needs["pasgd_runtime"].needs
    assert needs["pasgd_runtime"].concludes is not needs["pasgd_wall_clock"].concludes
    assert {P.TIMES_APART, P.ENDED_ROUNDS} <= needs["pasgd_wall_clock"].needs
    assert needs["unbiased_bits"].concludes is C.LONGEST_MESSAGE
    assert P.SURE_ACCURACY in needs["total_bits"].needs
    assert P.AGGREGATE_CONTRACTS in needs["gtopk_sgd"].needs
    assert P.SAME_F in needs["qsgd"].needs
