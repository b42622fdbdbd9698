"""The page of findings and the front page hold the numbers of the committed records."""

import re
from pathlib import Path

import pytest
import reproduced
import study_tables
from study_tables import speed_up_table

from gpu_validation.judging.verdict import Comparison

README = (Path(__file__).parents[2] / "README.md").read_text()
ERRATA = (Path(__file__).parents[2] / "docs" / "errata.md").read_text()
FINDINGS = (Path(__file__).parents[2] / "docs" / "results" / "findings.md").read_text()
METHODS = ("strongest fixed", "gamma")
CELLS = ("digits, m = 2", "digits, m = 4", "digits, m = 8")


def shown(heading: str) -> list[str]:
    """The decimal numbers of a finding's table, row by row."""
    (section,) = (part for part in FINDINGS.split("\n## ") if part.startswith(heading))
    table = [line for line in section.splitlines() if line.startswith("|")]
    return re.findall(r"\d+\.\d+", "\n".join(table))


def front_page(claim: str) -> str:
    """What the front page says was measured."""
    (cell,) = re.findall(rf"^\| {claim}[^|]*\|([^|]*)\|$", README, re.MULTILINE)
    return cell


def measured(script: str) -> dict[tuple[str, str, str], float]:
    """The measured number of every row of a figure's study: by operator, workload and quantity."""
    return {(row.operator, row.workload, row.quantity): row.measured for row in reproduced.script(script).check()}


def speed_ups(workload: str) -> dict[str, list[Comparison]]:
    """For every method of the tuned study its rows on a workload, from the transient's target to the last one."""
    found: dict[str, list[Comparison]] = {}
    for row in reproduced.script("speed-up").check():
        if row.workload == workload and row.facts.keys() == {"target_loss"}:
            found.setdefault(row.operator, []).append(row)
    return {method: rows[1:] for method, rows in found.items()}  # the first target is only just below the start


def adacomm() -> list[str]:
    found = [speed_ups(workload) for workload in CELLS]
    numbers = [rows[method][target].measured for target in (0, -1) for rows in found for method in METHODS]
    text, shards = speed_ups("text, m = 4"), speed_ups("shards, m = 4")
    for rows, target in ((text, 0), (text, -1), (shards, 0)):
        numbers += [rows[method][target].measured for method in METHODS]
    return [f"{value:.2f}" for value in numbers]


def bits() -> list[str]:
    rows = measured("compressors")
    whole, coded = "randomk:fraction=1.0", "randomised_sparse_dithering:omega=0.1"
    problems = ("ridge, diabetes", "logistic, breast cancer", "softmax, digits")
    spent = "bits of a worker"
    return [f"{rows[whole, problem, spent] / rows[coded, problem, spent]:.1f}" for problem in problems]


def limit() -> list[str]:
    rows = reproduced.script("rate_distortion").rows()
    gaps = {row["operator"]: row["gap"] for row in rows if (row["source"], row["rate"]) == ("gauss", 2.0)}
    return [f"{gaps[name]:.2f}" for name in ("tcdq, 64 states", "tcdq, 8 states", "eden", "qsgd_entropy")]


def feedback() -> list[str]:
    rows = measured("error-feedback")
    names = ("scaled_sign", "ef(scaled_sign)", "sgd")
    return [f"{rows[name, 'digits, batch 1, eta 0.05', 'held-out accuracy']:.2f}" for name in names]


def vote() -> list[str]:
    rows = measured("byzantine")
    cases = [(rule, "rescale") for rule in ("majority_vote", "coordinate_median", "mean")]
    cases += [(rule, "collude") for rule in ("majority_vote", "coordinate_median", "mean")]
    return [f"{rows[rule, f'digits, {attack}', 'held-out accuracy']:.2f}" for rule, attack in cases]


@pytest.mark.parametrize(
    ("claim", "numbers"),
    [
        ("AdaComm is", adacomm),
        ("Convergence needs", bits),
        ("Compressors come near", limit),
        ("Error feedback repairs", feedback),
        ("Majority vote survives", vote),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_findings_show_what_was_measured(claim, numbers):
    assert shown(claim) == numbers()


@pytest.mark.parametrize(
    ("claim", "numbers"),
    [("Convergence needs", bits), ("Error feedback repairs", feedback)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_front_page_shows_the_same(claim, numbers):
    assert re.findall(r"\d+\.\d+", front_page(claim)) == numbers()


def test_the_front_page_gives_the_range_of_speed_ups_in_the_transient():
    by_method = [[speed_ups(name)[method][0].measured for name in CELLS] for method in ("gamma", "strongest fixed")]
    ends = [f"{end(values):.1f}" for values in by_method for end in (min, max)]
    assert re.findall(r"\d+\.\d+", front_page("AdaComm is")) == ends


def test_the_front_page_gives_the_accuracies_under_collusion():
    found = vote()
    assert re.findall(r"\d+\.\d+", front_page("Majority vote")) == [found[3], found[5]]


def test_page_on_time_shows_two_targets_of_every_problem_and_real_seconds():
    page = (Path(__file__).parents[2] / "docs/results/time.md").read_text()
    lines = speed_up_table().splitlines()[2:]
    problems = [*CELLS, "text, m = 4", "decayed, m = 4", "shards, m = 4"]

    assert "{{ speed_up_table() }}" in page
    assert [line.split(" | ")[0].strip("| ") for line in lines] == [
        *(problem for problem in problems for _ in range(2)),
        "real seconds, m = 4, tau = 5",
    ]
    row = speed_ups("text, m = 4")["gamma"][-1]
    assert f"{row.measured:.2f} ({row.interval[0]:.2f} to {row.interval[1]:.2f})" in lines[7].split(" | ")[3]


def test_ratio_at_one_common_rate_exceeds_that_of_tuned_rates():
    rows = reproduced.script("speed-up").check()
    common = [row.measured for row in rows if "common_rate" in row.facts and row.operator == "gamma"
              and row.workload == "digits, m = 4"]  # fmt: skip
    (entry,) = [block for block in ERRATA.split("\n\n") if block.startswith("AdaComm reaches the loss")]

    least, tuned = max(common), speed_ups("digits, m = 4")["gamma"][0].measured
    assert least > tuned
    assert re.findall(r"\d+\.\d+", entry.split("\n: ")[1])[:2] == [f"{least:.2f}", f"{tuned:.2f}"]


def flight(operator: str, quantity: str, workload: str = "digits, D/Y = 10") -> Comparison:
    (row,) = (
        row
        for row in reproduced.script("overlap").check()
        if (row.operator, row.workload, row.quantity) == (operator, workload, quantity)
    )
    return row


def test_the_headline_of_averages_in_flight_is_that_of_the_record():
    page = (Path(__file__).parents[2] / "docs/results/time.md").read_text()
    lines = study_tables.headline_table().splitlines()[2:]
    goals = [1.4, 1.3, 1.4, 1.3]

    assert "{{ headline_table() }}" in page
    assert len(lines) == len(goals)
    assert all(float(re.search(r"\d\.\d\d", line)[0]) >= goal for line, goal in zip(lines, goals, strict=True))
    row = flight("corrected + outer", "times faster than the best fixed tau to 0.125 of the loss above the floor")
    assert f"({row.facts['predicted']:.2f} said, {row.measured:.2f} measured at D/Y = 10)" in page


def test_the_page_shows_every_problem_of_the_race_twice():
    for target in ("0.5", "0.125"):
        rows = study_tables.flight_table(target).splitlines()[2:]
        assert len(rows) == 12
        assert all(line.count(";") == len(study_tables.SHOWN) for line in rows)
        assert re.search(r"off by a factor of [\d.]+ in the median", study_tables.flight_agreement(target))


def test_real_processes_of_the_race_gave_their_simulations_losses():
    rows = [row for row in reproduced.script("overlap").check() if row.operator == "real processes"]
    assert len(rows) == 3
    assert all(row.measured == row.bound > 500 and row.verdict.value == "HOLDS" for row in rows)


def test_the_findings_and_the_front_page_show_the_race_as_recorded():
    quantity = "times faster than {} to 0.125 of the loss above the floor{}"
    said = []
    for clock in ("", ", in real seconds"):
        for than in ("the best fixed tau", "tuned AdaComm"):
            said.append(f"{flight('corrected + outer', quantity.format(than, clock)).measured:.2f}")
    different = quantity.format("the best fixed tau", "")
    said.append(f"{flight('corrected + outer', different, 'digits, different, D/Y = 10').measured:.2f}")
    assert shown("Averages in flight") == said
    assert re.findall(r"\d\.\d\d", front_page("Averages in flight")) == [said[0], said[2]]
    for target in ("0.5", "0.125"):
        counts = re.search(r"Of (\d+) .* foresees (\d+), of (\d+) .* (\d+)$", study_tables.flight_agreement(target))
        paying, seen, losing, right = map(int, counts.groups())
        assert f"in {seen + right} of {paying + losing}" in " ".join(FINDINGS.split())


def test_the_guide_to_tau_has_every_problem_of_the_race():
    lines = study_tables.tau_table().splitlines()[2:]
    assert len(lines) == 12
    assert all(len(re.findall(r"\d+; \d\.\d\d \(", line)) == 2 for line in lines)
