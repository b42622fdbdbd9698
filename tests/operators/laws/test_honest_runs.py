"""The study of whole checks of honest compressors in small: its subjects keep their claims by a count of their own."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bounds.claims import StrictlyContractive, Unbiased
from operators import laws

from ... import scripts

DRAWS = 4000


@pytest.fixture(scope="module")
def study():
    return scripts.load("studies", "honest_runs")


def test_subjects_are_many_and_some_claims_are_tight(study):
    rules = study.RULES

    assert len(study.subjects()) == 2 * len(rules) >= 35
    assert sum(rule.ceiling is not None for rule in rules.values()) >= 15
    assert study.SEEDS * len(study.honest()) >= 1900


def test_rules_keep_their_claims_at_a_vector(study):
    """5 standard errors of the mean of n = 4000 draws."""
    rng = np.random.default_rng(7)
    x = np.array([1.0, -0.3, 0.2, 0.05, -2.0, 0.7, 0.0, -0.1, 0.6])
    norm2 = x @ x
    for name, rule in study.RULES.items():
        claim = rule.claim(x.size) if callable(rule.claim) else rule.claim
        errors = np.stack([rule.rule(x, rng.random((3, x.size))) for _ in range(DRAWS)]) - x
        squares = (errors**2).sum(axis=1) / norm2
        constant = claim.omega if isinstance(claim, Unbiased) else claim.alpha
        spread = 5 * squares.std() / DRAWS**0.5 + 1e-9
        assert squares.mean() <= constant + spread, name
        if claim.tight:
            assert squares.mean() >= constant - spread, name
        if rule.ceiling is not None and claim.tight:
            assert squares.max() <= max(rule.ceiling, constant) * (1 + 1e-9), name
        if isinstance(claim, StrictlyContractive):
            assert squares.max() <= constant + 1e-9, name
        if isinstance(claim, Unbiased):
            off = np.abs(errors.mean(axis=0)) - 5 * errors.std(axis=0) / DRAWS**0.5
            assert (off < 1e-9).all(), name


def test_summary_counts_what_was_accused(study):
    record = {
        "run": 0,
        "subject": "half kept, codec",
        "seed": 1,
        "failures": {},
        "seconds": 1.0,
        "kit": "k",
        "commit": "c",
    }
    accused = record | {"run": 1, "subject": "ternary, codec", "failures": {"zero": "text"}}

    totals = study.summary([record, accused])

    assert totals["runs"] == 2
    assert totals["runs_with_tight_claims_and_a_ceiling"] == 1
    assert [a["subject"] for a in totals["accused"]] == ["ternary, codec"]


def test_record_of_another_kit_is_refused(study, tmp_path):
    out = tmp_path / "runs.jsonl"
    study.refuse_another_kit(out)
    out.write_text(json.dumps({"run": 0, "kit": study.kit()}) + "\n")
    study.refuse_another_kit(out)
    out.write_text(json.dumps({"run": 0, "kit": "another"}) + "\n" + json.dumps({"run": 1}) + "\n")

    with pytest.raises(SystemExit, match="one state of the kit"):
        study.refuse_another_kit(out)


def test_digest_changes_with_any_file_of_the_kit(study, monkeypatch, tmp_path):
    copied = shutil.copytree(Path(laws.__file__).parent, tmp_path / "laws")
    with monkeypatch.context() as moved:
        moved.setattr(laws, "__file__", str(copied / "__init__.py"))
        same = study.kit.__wrapped__()
        (copied / "operator" / "lengths.py").write_text("changed")
        other = study.kit.__wrapped__()

    assert same == study.kit() != other
