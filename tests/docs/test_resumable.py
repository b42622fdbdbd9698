"""A study that was interrupted goes on where it stopped."""

import json

import pytest

from .. import scripts


@pytest.fixture
def squares():
    """Records of the squares below n, made by a maker that fails at one of them."""
    measure = scripts.load("", "measure")

    def carry_out(out, n, failing=None):
        def make(missing):
            for case in missing:
                if case == failing:
                    raise KeyboardInterrupt
                yield {"case": case, "square": case**2}

        return measure.resume(out, range(n), lambda record: record["case"], make)

    return carry_out


def test_cases_with_a_record_are_not_made_again(squares, tmp_path):
    out = tmp_path / "squares.jsonl"
    out.write_text('{"case": 1, "square": "as recorded"}\n')

    records = squares(out, 3)

    assert [(r["case"], r["square"]) for r in records] == [(1, "as recorded"), (0, 0), (2, 4)]
    assert [json.loads(line) for line in out.read_text().splitlines()] == records


def test_what_was_made_before_an_interruption_is_kept(squares, tmp_path):
    out = tmp_path / "squares.jsonl"

    with pytest.raises(KeyboardInterrupt):
        squares(out, 4, failing=2)
    kept = len(out.read_text().splitlines())

    assert kept == 2
    assert [record["square"] for record in squares(out, 4)] == [0, 1, 4, 9]


def test_a_line_cut_short_by_a_crash_is_made_again(squares, tmp_path):
    out = tmp_path / "squares.jsonl"
    out.write_text('{"case": 0, "square": 0}\n{"case": 1, "squ')

    squares(out, 2)

    assert [json.loads(line)["square"] for line in out.read_text().splitlines()] == [0, 1]
