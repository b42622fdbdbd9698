"""A study can stop anywhere and go on: nothing is measured twice, nothing is lost, other settings are refused."""

import json
from dataclasses import dataclass, field, replace

import pytest

from gpu_validation.judging.plotting import canvas
from gpu_validation.judging.verdict import Comparison, Verdict
from gpu_validation.processes.launch import RunFailed
from gpu_validation.records.exit_status import COMPARISONS, MEASUREMENTS, REPORT
from gpu_validation.records.storage import read_lines
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.studies.record_file import StaleResultsError
from gpu_validation.studies.study import Figure, Study
from ratedist.interfaces.exit_status import FAILED, INTERRUPTED, OK, UNFINISHED, VIOLATED


@dataclass(frozen=True)
class Squares(Study):
    """Squares of numbers, each judged against a limit."""

    numbers: tuple[int, ...] = (1, 2, 3)
    limit: int = 100
    calls: list = field(default_factory=list, repr=False, compare=False)
    failing: dict = field(default_factory=dict, repr=False, compare=False)

    name = "squares"
    description = "squares <of> numbers"
    minutes = 0.01

    def units(self):
        return [str(n) for n in self.numbers]

    def measure(self, unit):
        self.calls.append(unit)
        if unit in self.failing:
            raise self.failing[unit]
        return {"square": int(unit) ** 2}

    def judge(self, records):
        return [
            Comparison(
                operator=r["unit"],
                quantity="square",
                measured=r["square"],
                interval=(r["square"], r["square"]),
                bound=self.limit,
                side="upper",
                verdict=Verdict.HOLDS if r["square"] <= self.limit else Verdict.VIOLATED,
            )
            for r in records
        ]

    def figures(self, records):
        def draw():
            figure, axes = canvas(1, 1, height=2)
            axes[0, 0].plot([r["square"] for r in records])
            return figure

        return [Figure(draw, "measured squares")]


def test_whole_study_is_recorded_judged_and_drawn(tmp_path):
    seen = []
    outcome = carry_out(Squares(), tmp_path, progress=seen.append)
    assert outcome.exit_code == OK
    assert seen == ["1", "2", "3"]
    folder = tmp_path / "squares"
    lines = list(read_lines(folder / MEASUREMENTS))
    assert [r["square"] for r in lines if "unit" in r] == [1, 4, 9]
    assert lines[0]["commit"]
    assert sum(1 for _ in read_lines(folder / COMPARISONS)) == 3
    page = (folder / REPORT).read_text()
    assert "squares &lt;of&gt; numbers" in page
    assert "<svg" in page


def test_time_is_up_after_a_unit_and_the_next_run_goes_on(tmp_path):
    first, second = Squares(), Squares()
    assert carry_out(first, tmp_path, seconds=0).exit_code == UNFINISHED
    assert first.calls == ["1"]
    carry_out(Squares(failing={"2": KeyboardInterrupt()}), tmp_path)
    assert carry_out(second, tmp_path).exit_code == OK
    assert second.calls == ["2", "3"]
    third = Squares()
    assert carry_out(third, tmp_path).exit_code == OK
    assert third.calls == []


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), INTERRUPTED), (RunFailed("rank 1 died"), FAILED)])
def test_what_was_measured_before_a_failure_is_kept_and_judged(tmp_path, error, code):
    outcome = carry_out(Squares(failing={"3": error}), tmp_path)
    assert outcome.exit_code == code
    assert len(outcome.comparisons) == 2
    assert "2 of 3 units" in outcome.message
    assert "2 of 3 units" in (tmp_path / "squares" / REPORT).read_text()


def test_later_units_are_informed_by_earlier_ones_also_by_those_of_an_earlier_piece(tmp_path):
    seen = []

    @dataclass(frozen=True)
    class Summing(Squares):
        """Adds the square so far to every number's own."""

        before: int = field(default=0, repr=False)

        def with_records(self, records, folder):
            seen.append(folder)
            return replace(self, before=sum(r["square"] for r in records))

        def measure(self, unit):
            return {"square": self.before + int(unit)}

    carry_out(Summing(), tmp_path, seconds=0)
    outcome = carry_out(Summing(), tmp_path)
    assert [r["square"] for r in outcome.records] == [1, 3, 7]
    assert set(seen) == {tmp_path / "squares"}


def test_line_cut_short_is_measured_again(tmp_path):
    carry_out(Squares(), tmp_path)
    path = tmp_path / "squares" / MEASUREMENTS
    path.write_text(path.read_text()[:-5])
    again = Squares()
    assert carry_out(again, tmp_path).exit_code == OK
    assert again.calls == ["3"]
    assert [json.loads(line).get("unit") for line in path.read_text().splitlines()] == [None, "1", "2", None, "3"]


def test_results_of_other_settings_are_refused(tmp_path):
    carry_out(Squares(), tmp_path)
    with pytest.raises(StaleResultsError, match="choose another --out"):
        carry_out(Squares(numbers=(4,)), tmp_path)


def test_violated_row_decides_the_exit_code_and_is_named(tmp_path):
    outcome = carry_out(Squares(limit=5), tmp_path)
    assert outcome.exit_code == VIOLATED
    assert "square measured 9 [9, 9], bound 5" in outcome.message
    assert outcome.counts == {"HOLDS": 2, "VIOLATED": 1, "INCONCLUSIVE": 0, "OUT_OF_SCOPE": 0}


def test_comparisons_are_a_table_too(tmp_path):
    outcome = carry_out(Squares(), tmp_path)
    table = outcome.to_frame()
    assert len(table) == len(outcome.comparisons) > 0
    assert table["measured"].tolist() == [comparison.measured for comparison in outcome.comparisons]
