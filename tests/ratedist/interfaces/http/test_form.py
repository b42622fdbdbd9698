"""The page's form says what the calls say: their arguments, their examples, the signatures behind them."""

import dataclasses
from html.parser import HTMLParser

import pytest

pytest.importorskip("fastapi")

import ratedist as rd
from ratedist.calls import all_calls
from ratedist.calls.arguments import REQUIRED, STEP_TIMES, Argument, Control, Text, coding_seconds, workers
from ratedist.cluster.cluster import RANDOM_SHARE
from ratedist.interfaces.http import app as form
from ratedist.numbers import text_of


class Fields(HTMLParser):
    """What every field of a page holds at first, and what may be chosen."""

    def __init__(self, text):
        super().__init__()
        self.start, self.choices, self.area = {}, {}, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "input" and "value" in attributes:  # a file has none
            self.start[attributes["id"]] = attributes["value"]
        elif tag in ("select", "textarea"):
            self.area = attributes["id"]
            self.choices[self.area] = []
        elif tag == "option":
            self.choices[self.area].append(attributes["value"])
            if "selected" in attributes:
                self.start[self.area] = attributes["value"]

    def handle_data(self, data):
        if self.area is not None and not self.choices[self.area]:
            self.start[self.area] = data

    def handle_endtag(self, tag):
        if tag in ("select", "textarea"):
            self.area = None


# of a cluster in parts the workers are always given, and with them gpus_per_node says nothing new; only a pilot knows
# the backward pass; a codec that is given has no table of lengths
LEFT_OUT = {"gpus_per_node", "backward_share", "of_lengths"}


@pytest.mark.parametrize(("parts", "record"), [(workers().parts, rd.Cluster), (coding_seconds().parts, rd.Codec)])
def test_parts_have_the_names_and_defaults_of_their_record(parts, record):
    fields = [f for f in dataclasses.fields(record) if f.name not in {"source"} | LEFT_OUT]
    stated = {f.name: REQUIRED if f.name == "workers" else f.default for f in fields}
    assert {part.name: part.default for part in parts} == {
        name: REQUIRED if default is dataclasses.MISSING else default for name, default in stated.items()
    }


def test_fields_begin_with_the_examples_of_the_calls():
    fields, calls = Fields(form.page()), all_calls()
    for name in ("d", "target"):
        assert float(fields.start[name]) == calls["plan"].route.example[name]
    for name in ("eta", "time_s"):
        assert float(fields.start[name]) == calls["tau"].route.example[name]
    for name, value in calls["plan"].route.example["cluster"].items():
        assert float(fields.start[name]) == value
    assert fields.choices["compute"] == [value for value, _ in STEP_TIMES]
    assert {value for value, _ in STEP_TIMES} == set(RANDOM_SHARE)
    assert fields.start["compute"] == "exponential"
    assert [fields.start[name] for name in ("L", "sigma2", "gap")] == [""] * 3


@pytest.mark.parametrize("change", [("{{ eta }}", ""), ("{{ eta }}", "{{ eta }} {{ beta }}")])
def test_a_slot_without_a_field_and_a_field_without_a_slot_are_refused(tmp_path, monkeypatch, change):
    template = (form.PAGE / "index.html").read_text(encoding="utf-8").replace(*change)
    (tmp_path / "index.html").write_text(template, encoding="utf-8")
    monkeypatch.setattr(form, "PAGE", tmp_path)
    with pytest.raises(ValueError, match=r"every slot of page/index.html needs a Control .* (eta|beta): add the other"):
        form.page()


@pytest.mark.parametrize("value", [1e10, 5e-5, 0.08, 16, 25600000, 8.5e-9, -0.01, 1.23456789, 1 / 3])
def test_numbers_are_written_as_one_types_them_and_read_back(value):
    assert float(text_of(value)) == value
    assert "+" not in text_of(value)


def test_what_is_shown_cannot_leave_its_place():
    control = Control('a"><script>', start='"><script>')
    assert "<script>" not in form._labelled("x", Argument("x", Text(), control=control), "", '"><script>')
