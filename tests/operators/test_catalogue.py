"""Operators by name, and the parser of specifications."""

import pytest

from operators import (
    QSGD,
    Composition,
    Identity,
    Induced,
    NaturalCompression,
    Operator,
    TernGrad,
    TopK,
    all_aggregates,
    all_feedbacks,
    all_operators,
    all_summed,
    parse,
    parse_summed,
    specification,
)
from operators.summed import SharedScale, SignVote, SummedPowerSGD


def test_names_are_unique_sorted_and_belong_to_their_class():
    for found in (all_operators(), all_feedbacks(), all_aggregates(), all_summed()):
        assert list(found) == sorted(found)
        assert all(cls.name == name for name, cls in found.items())
    assert issubclass(all_operators()["identity"], Operator)


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("identity", Identity()),
        ("qsgd:4", QSGD(levels=4)),
        ("qsgd:levels=4,norm=max,bucket=512,code=dense", QSGD(4, "max", 512, "dense")),
        ("qsgd:4,bucket=none", QSGD(levels=4)),
        ("topk:0.01", TopK(fraction=0.01)),
        (" topk:k=3 ", TopK(k=3)),
        ("induced:(topk:k=2),unbiased=(qsgd:4,norm=max)", Induced(TopK(k=2), QSGD(4, "max"))),
        ("composition:inner=(composition:inner=(terngrad))", Composition(inner=Composition(inner=TernGrad()))),
    ],
)
def test_specification_gives_the_operator(text, operator):
    assert parse(text) == operator


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qsdg:4", "unknown operator 'qsdg'; known: .*identity"),
        ("qsgd:level=4", "no field 'level'; fields: levels, norm"),
        ("qsgd:4,max", "must be written field=value"),
        ("identity:3", "must be written field=value"),
        ("qsgd:0", "levels must satisfy"),
        ("induced:(topk:k=2", "parentheses of .* do not match"),
        ("induced:topk:k=2)", "parentheses of .* do not match"),
        ("induced:(" * 1000 + "qsgd" + ")" * 1000, "nested 8 deep"),
        ("induced:(nothing)", "unknown operator 'nothing'"),
    ],
)
def test_wrong_specification_says_what_is_known(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


@pytest.mark.parametrize("operator", [*Induced.examples(), *Composition.examples(), QSGD(), TopK(k=3)], ids=repr)
def test_specification_is_parsed_back(operator):
    assert parse(specification(operator)) == operator


def test_specification_of_nested_operators_reads_naturally():
    text = "induced:biased=(topk:k=2),unbiased=(natural:rounding=stochastic)"
    assert specification(Induced(TopK(k=2), NaturalCompression())) == text


@pytest.mark.parametrize("method", [e for cls in all_summed().values() for e in cls.examples()], ids=repr)
def test_what_is_summed_is_parsed_back_and_is_no_operator(method):
    text = specification(method)
    assert parse_summed(text) == method
    with pytest.raises(ValueError, match="unknown operator"):
        parse(text)


def test_every_method_of_the_folder_is_named():
    assert set(all_summed().values()) == {SharedScale, SignVote, SummedPowerSGD}
    assert not set(all_summed()) & {*all_operators(), *all_feedbacks(), *all_aggregates()}
    assert parse_summed(" shared_scale:12,block=256") == SharedScale(12, block=256)
    with pytest.raises(ValueError, match="nothing called 'qsgd' is summed on the way; known: shared_scale, sign_vote"):
        parse_summed("qsgd:4")


def test_a_file_with_the_name_of_an_operator_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"got 'f': give one$"):
        parse("topk:f")
    (tmp_path / "topk.py").write_text("def f(x):\n    return x\n")
    with pytest.raises(ValueError, match=r"topk\.py here has an operator's name: rename the file to use it"):
        parse("topk:f")
    assert parse("topk:0.5") == TopK(fraction=0.5)
