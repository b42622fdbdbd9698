"""Code of a level of x86-64 runs where every feature of the level is there, and is taken after the processor's own."""

import pytest

from operators.compilation.processors import LEVELS, features_of, processors

LINUX = "x86_64-unknown-linux-gnu"
V3, V4 = features_of("x86-64-v3"), features_of("x86-64-v4")


@pytest.mark.parametrize(
    ("features", "levels"),
    [
        (V4, ("x86-64-v4", "x86-64-v3")),
        (V3, ("x86-64-v3",)),
        (V4.replace("+avx512dq", "-avx512dq"), ("x86-64-v3",)),
        (V4.replace("+movbe", "-movbe"), ()),
        ("", ()),
    ],
)
def test_a_processor_takes_the_levels_that_it_has_after_its_own(features, levels):
    first, *rest = processors(LINUX, "znver5", features)

    assert first.startswith("znver5-")
    assert tuple(rest) == levels


def test_processors_of_a_name_with_other_features_or_systems_share_nothing():
    names = {
        processors(triple, "znver5", features)[0] for triple in (LINUX, "x86_64-pc-windows") for features in (V3, V4)
    }

    assert len(names) == 4


def test_other_machines_have_no_level():
    assert len(processors("aarch64-unknown-linux-gnu", "neoverse-n1", V4)) == 1


def test_code_for_a_level_is_kept_under_its_name():
    for level in LEVELS:
        assert processors(LINUX, level, features_of(level)) == (level,)
