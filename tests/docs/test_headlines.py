"""The front page's table of results holds the numbers of the committed records."""

import re
from pathlib import Path

import pytest
import reproduced

README = (Path(__file__).parents[2] / "README.md").read_text()
SPEED_UP = "time to the synchronous run's last loss, times sooner"
FIXED = ("tau = 5", "tau = 20", "tau = 100")


def measured(script: str) -> dict[tuple[str, str, str], float]:
    """The measured number of every row of a figure's study: by operator, workload and quantity."""
    return {(row.operator, row.workload, row.quantity): row.measured for row in reproduced.script(script).check()}


def adacomm() -> list[str]:
    rows = measured("error_against_time")
    rules = {"network, constant": "gamma", "network, decayed": "derived", "lenet, constant": "gamma"}
    rules["lenet, decayed"] = "derived"
    ours = [rows[rule, f"{name} rate, m = 4", SPEED_UP] for name, rule in rules.items()]
    best = [max(rows[tau, f"{name} rate, m = 4", SPEED_UP] for tau in FIXED) for name in rules]
    crowd = [rows["gamma", f"crowd, constant rate, m = {m}", SPEED_UP] for m in (2, 4, 8)]
    fixed = [rows["tau = 20", f"crowd, constant rate, m = {m}", SPEED_UP] for m in (2, 4, 8)]
    return [f"{value:.2f}" for value in (*ours, *best, *crowd, *fixed)]


def bits() -> list[str]:
    rows = measured("loss_against_bits")
    whole, coded = "randomk:fraction=1.0", "randomised_sparse_dithering:omega=0.1"
    problems = ("ridge, diabetes", "logistic, breast cancer", "softmax, digits")
    spent = "bits of a worker"
    return [f"{rows[whole, problem, spent] / rows[coded, problem, spent]:.1f}" for problem in problems]


def limit() -> list[str]:
    rows = reproduced.script("rate_distortion").rows()
    gaps = {row["operator"]: row["gap"] for row in rows if (row["source"], row["rate"]) == ("gauss", 2.0)}
    return [f"{gaps[name]:.2f}" for name in ("tcdq, 64 states", "tcdq, 8 states", "eden", "qsgd_entropy")]


def feedback() -> list[str]:
    rows = measured("error_feedback")
    names = ("scaled_sign", "ef(scaled_sign)", "sgd")
    return [f"{rows[name, 'digits, batch 1, eta 0.05', 'held-out accuracy']:.2f}" for name in names]


def vote() -> list[str]:
    rows = measured("majority_vote")
    cases = (("majority_vote", "rescale"), ("mean", "rescale"), ("majority_vote", "collude"))
    return [f"{rows[rule, f'digits, {attack}', 'held-out accuracy']:.2f}" for rule, attack in cases]


@pytest.mark.parametrize(
    ("claim", "numbers"),
    [
        ("AdaComm reaches", adacomm),
        ("Convergence needs", bits),
        ("Compressors come near", limit),
        ("Error feedback repairs", feedback),
        ("Majority vote survives", vote),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_front_page_shows_what_was_measured(claim, numbers):
    (cell,) = re.findall(rf"^\| {claim}[^|]*\|([^|]*)\|$", README, re.MULTILINE)

    assert re.findall(r"\d+\.\d+", cell) == numbers()
