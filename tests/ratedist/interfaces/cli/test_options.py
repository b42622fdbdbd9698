"""Every option of every program has words for what it does and reads numbers as people write them."""

import argparse

import pytest

from bounds.spelling import real_number, whole_number
from gpu_validation.cli import _parser as validation
from ratedist.interfaces.parser import build


def parsers(parser):
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers(below)


def actions():
    for whole in (build(), validation()):
        for parser in parsers(whole):
            for action in parser._actions:
                if not isinstance(action, argparse._SubParsersAction):
                    yield parser.prog, action


def test_every_option_says_what_it_does():
    silent = [(prog, action.dest) for prog, action in actions() if not (action.help or "").strip()]
    assert not silent


def test_no_option_reads_numbers_in_a_way_of_its_own():
    assert not [(prog, action.dest) for prog, action in actions() if action.type in (int, float)]
    assert sum(action.type in (whole_number, real_number) for _, action in actions()) > 10


@pytest.mark.parametrize(
    ("text", "number"), [("1000", 1000), ("1e3", 1000), ("1_000", 1000), ("1k", 1000), ("1.3B", 1_300_000_000)]
)
def test_whole_numbers_are_read_as_written(text, number):
    assert whole_number(text) == real_number(text) == number


@pytest.mark.parametrize(("text", "number"), [("0.5", 0.5), ("1/2", 0.5), (" 5e-3 ", 0.005), ("-2", -2.0)])
def test_real_numbers_are_read_as_written(text, number):
    assert real_number(text) == number


@pytest.mark.parametrize("text", ["", "one", "1,5", "0x10", "nan", "inf", "1e999", "1.5.2", "1B3"])
def test_what_is_no_number_is_refused_in_one_sentence(text):
    for read in (whole_number, real_number):
        with pytest.raises(argparse.ArgumentTypeError, match="is needed; got") as refusal:
            read(text)
        assert "\n" not in str(refusal.value)
    with pytest.raises(argparse.ArgumentTypeError, match="a whole number"):
        whole_number("0.5")


def test_a_wrong_number_of_an_option_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as ended:
        validation().parse_args(["run", "quick", "--minutes", "nine"])
    assert ended.value.code == 2
    assert "such as 0.5" in capsys.readouterr().err
