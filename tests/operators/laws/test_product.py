"""The record of wrong compressors in every form: none was called ok."""

import json
from pathlib import Path

from . import product

RECORD = Path(__file__).parents[3] / "docs" / "data" / "wrong_compressors.jsonl"


def test_no_recorded_wrong_compressor_was_called_ok_and_each_is_still_among_the_cases():
    records = [json.loads(line) for line in RECORD.read_text().splitlines()]
    cases = {(case.what, case.form) for case in product.cases()}

    assert len(records) >= 300
    assert not [record for record in records if record["ok"]]
    assert {(record["what"], record["form"]) for record in records} <= cases
