"""Settings of studies in records: what may change in the code, and what makes a record one of another study."""

import json
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.records.settings import difference, settings
from gpu_validation.studies import all_presets
from gpu_validation.studies.record_file import StaleResultsError, described, require_same_study

DEFAULTS = Path(__file__).parent / "default_settings.json"


@dataclass(frozen=True)
class Problem:
    name: ClassVar[str] = "slope"
    eta: float = 0.1
    rates: tuple[float, ...] = (1.0, 2.0)


@dataclass(frozen=True)
class Renamed:
    """The same problem after the class was renamed and has gained a field."""

    name: ClassVar[str] = "slope"
    eta: float = 0.1
    rates: tuple[float, ...] = (1.0, 2.0)
    momentum: float = 0.0


@dataclass(frozen=True)
class Other:
    name: ClassVar[str] = "hill"
    eta: float = 0.1


@dataclass(frozen=True)
class Example:
    problems: dict[str, Any] = field(default_factory=lambda: {"a": Problem()})
    workers: int = 4
    words: str = field(default="not a setting", repr=False)


def recorded(value):
    return json.loads(json.dumps(settings(value)))


def test_only_what_differs_from_the_defaults_is_recorded():
    assert recorded(Example()) == {}
    changed = Example({"a": Problem(eta=0.2)}, words="others")
    assert recorded(changed) == {"problems": {"a": {"name": "slope", "eta": 0.2}}}


@pytest.mark.parametrize("eta", [0.1, 0.3])
def test_a_renamed_class_and_a_new_field_with_its_default_leave_a_record_valid(eta):
    before = recorded(Example({"b": Problem(eta=eta)}, workers=2))
    assert difference(before, Example({"b": Renamed(eta=eta)}, workers=2)) is None


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (Example({"b": Problem(eta=0.2)}), "problems['b'].eta was not set and is 0.2"),
        (Example({"b": Renamed(momentum=0.9)}), "problems['b'].momentum was not set and is 0.9"),
        (Example({"b": Problem(rates=(1.0,))}), "problems['b'].rates was not set and is [1.0]"),
        (Example({"b": Other()}), "problems['b'] was 'slope' and is 'hill'"),
        (Example({"c": Problem()}), "problems was {'b': {'name': 'slope'}} and is {'c': {'name': 'slope'}}"),
        (Example(), "problems was {'b': {'name': 'slope'}} and is {'a': {'name': 'slope'}}"),
        (Example({"b": Problem()}, workers=8), "workers was not set and is 8"),
    ],
)
def test_every_other_change_is_named(now, words):
    assert difference(recorded(Example({"b": Problem()})), now) == words


def test_a_field_that_was_removed_is_named_and_a_value_that_became_the_default_is_equal():
    before = recorded(Example({"b": Problem()}, workers=8))
    fewer = make_dataclass("Example", [("problems", dict), ("more", int, field(default=1))])
    assert difference(before, fewer({"b": Problem()})) == "workers was 8 and does not exist"
    same = make_dataclass("Example", [("problems", dict), ("workers", int, field(default=8))])
    assert difference(before, same({"b": Problem()})) is None


values = st.recursive(
    st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=3) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
)


@given(values, values)
def test_what_was_recorded_is_equal_to_itself_and_to_nothing_else(first, second):
    before = recorded(Example({"a": first}))
    assert difference(before, Example({"a": first})) is None
    other = difference(before, Example({"a": second}))
    assert (other is None) == (settings({"a": first}) == settings({"a": second}))


def test_a_setting_that_is_no_value_is_refused():
    with pytest.raises(TypeError, match=r"must be a dataclass, a container or a number; got .*: make it a frozen"):
        settings(Example({"a": object()}))


def test_another_version_of_a_study_and_the_old_format_are_refused(tmp_path):
    study = all_presets()["gtopk"]
    head = {"study": described(study)}
    require_same_study(tmp_path, head, study)
    later = type("Later", (type(study),), {"version": study.version + 1})()
    with pytest.raises(StaleResultsError, match="holds results of version 1 of gtopk, and this is version 2: choose"):
        require_same_study(tmp_path, head, later)
    with pytest.raises(StaleResultsError, match=r"has the format of ratedist 0\.1: choose another"):
        require_same_study(tmp_path, {"study": "GlobalTopKStudy(d=10000)"}, study)


def every_setting(value):
    """All settings of a value, defaults included."""
    if hasattr(value, "__dataclass_fields__"):
        fields = {f.name: every_setting(getattr(value, f.name)) for f in value.__dataclass_fields__.values() if f.repr}
        return settings(value) | fields
    if isinstance(value, dict):
        return {str(key): every_setting(part) for key, part in value.items()}
    return [every_setting(part) for part in value] if isinstance(value, list | tuple) else settings(value)


def changed(before, now):
    """Whether a setting that was noted has another value; one that was not noted may be new."""
    if isinstance(before, dict) and isinstance(now, dict):
        return any(name not in now or changed(part, now[name]) for name, part in before.items())
    if isinstance(before, list) and isinstance(now, list):
        return len(before) != len(now) or any(map(changed, before, now))
    return before != now


def noted():
    return {n: {"version": s.version, "settings": every_setting(s)} for n, s in all_presets().items()}


def test_no_default_changes_without_a_new_version():
    """After a new version, or a new study: ``python tests/gpu_validation/records/test_settings.py``."""
    before, now = json.loads(DEFAULTS.read_text()), json.loads(json.dumps(noted()))
    assert set(now) == set(before)
    silent = [n for n in now if now[n]["version"] == before[n]["version"] and changed(before[n], now[n])]
    assert not silent, f"raise version of {silent}, and measure their records again"


if __name__ == "__main__":
    DEFAULTS.write_text(json.dumps(noted(), indent=1) + "\n")
