"""What is sent stays what it was, byte for byte: see ``golden_payloads.py``."""

import json

import pytest

from . import golden_payloads as golden

RECORDED = json.loads(golden.FILE.read_text())
CASES = list(golden.cases())


def test_every_example_is_recorded():
    assert [text for text, _, _ in CASES] == list(RECORDED)


@pytest.mark.parametrize(("text", "subject", "make"), CASES, ids=[text for text, _, _ in CASES])
def test_payload_bytes_are_those_recorded(text, subject, make):
    assert {str(d): golden.digest(make(subject, d)) for d in golden.dimensions(subject)} == RECORDED[text]
