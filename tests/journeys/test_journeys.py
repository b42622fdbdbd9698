"""A newcomer, a student and an engineer, from a built wheel in a clean environment to what each came for."""

import dataclasses
from pathlib import Path

import pytest

from . import journeys

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return journeys.built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One environment for the three, so that torch is installed once; the newcomer's begins without it."""
    return tmp_path_factory.mktemp("journeys")


@pytest.mark.thorough
@pytest.mark.parametrize("name", journeys.JOURNEYS)
def test_it_arrives(name, wheel, folder):
    steps = list(journeys.travel(journeys.JOURNEYS[name], wheel, folder))

    assert len(steps) == len(journeys.JOURNEYS[name].steps)


def test_a_step_that_does_not_do_its_part_is_noticed(tmp_path):
    wheel = Path("not needed")
    wrong = journeys.Journey((journeys.Step("python -c 'print(1)'", "2"),))
    with pytest.raises(AssertionError, match="did not say '2'"):
        list(journeys.travel(wrong, wheel, tmp_path))
    failing = dataclasses.replace(wrong, steps=(journeys.Step("python -c 'raise SystemExit(3)'"),))
    with pytest.raises(AssertionError, match="ended with status 3"):
        list(journeys.travel(failing, wheel, tmp_path))
