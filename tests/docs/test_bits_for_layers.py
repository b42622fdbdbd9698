"""The page about bits for parameters states the record."""

import json
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import reproduced

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "results/bits.md").read_text()


@pytest.fixture(scope="module")
def figure():
    return reproduced.script("bits_for_layers")


def test_gains_are_those_of_the_record(figure):
    for name, group in groupby(figure.errors(), key=lambda row: row["gradient"]):
        rows = list(group)
        gains, laws = (", ".join(f"{row[field]:.2f}" for row in rows) for field in ("gain", "law"))
        shown = name.removesuffix(", all").replace("mlp", "MLP").replace("cnn", "CNN").replace("resnet20", "ResNet-20")
        assert f"| {shown} | {gains} | {laws} |" in PAGE


def test_the_gradient_at_which_the_goal_is_missed_is_named(figure):
    missed = {row["gradient"] for row in figure.errors() if row["gain"] < figure.TARGET}
    assert missed == {"transformer, step 200"}
    assert "missed by the transformer after 200 steps" in PAGE


def test_losses_are_those_of_the_record(figure):
    rows = [json.loads(line) for line in (DOCS / "data/bits_for_layers.jsonl").read_text().splitlines()]
    for training in figure.trainings():
        filled, one = (np.array(figure.differences(training, rule)) for rule in ("filled", "one"))
        losses = [row["mean_loss"] for row in rows if row.get("training") == training and row["rule"] == "none"]
        difference, half = np.mean(filled - one), figure.half_width(filled - one)
        name = training.upper() if len(training) == 3 else training.replace("resnet20", "ResNet-20")
        digits = 4 if half < 0.01 else 3
        stated = f"{difference:.{digits}f} ± {half:.{digits}f}"
        assert f"| {name} | {len(one)} | {np.mean(losses):.3f} | {stated} |" in PAGE


def test_the_losses_named_in_the_text_are_those_of_resnet20():
    rows = [json.loads(line) for line in (DOCS / "data/bits_for_layers.jsonl").read_text().splitlines()]
    rows = [row for row in rows if row.get("training") == "resnet20"]
    means = {
        rule: np.mean([row["mean_loss"] for row in rows if row["rule"] == rule]) for rule in ("one", "filled", "none")
    }
    text = " ".join(PAGE.split())
    assert (
        "With one omega the mean loss over the training is {one:.2f}, with water-filling {filled:.2f}, and without "
        "compression {none:.2f}."
    ).format(**means) in text


AGAIN = """
import json, sys
sys.path.append("docs/benchmarks")  # last: a benchmark is called http
import bits_for_layers as benchmark
name = sys.argv[1]
(x,) = (x for found, x in benchmark.gradients() if found == name)
print(json.dumps(benchmark.error_record(name, x, benchmark.sizes_of(benchmark.network(name[:3])), 2.0)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["mlp early, all", "cnn late, all"])
def test_a_gradient_gives_its_record_again(figure, gradient):
    """At 2 bits: both messages, decoded.  In a process of its own, for a figure has the name of a benchmark."""
    (recorded,) = (row for row in figure.errors() if row["gradient"] == gradient and round(row["bits"]) == 2)
    command = [sys.executable, "-c", AGAIN, gradient]
    printed = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=True).stdout
    found = json.loads(printed)
    assert found["gain"] > figure.TARGET
    for field in ("bits", "bits_one", "gain", "law"):
        assert found[field] == pytest.approx(recorded[field], rel=1e-6)
