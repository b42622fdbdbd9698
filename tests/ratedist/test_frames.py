"""Records as tables of pandas: every cell is the record's, and without pandas one sentence says what to install."""

import sys

import numpy as np
import pytest

import ratedist as rd
from bounds.extras import MissingExtra
from bounds.frame import frame
from ratedist.pilots.pilot import Pilot
from ratedist.pilots.timings import OperatorTrial


@pytest.fixture(scope="module")
def vector():
    return np.random.default_rng(0).standard_normal(500).astype(np.float32)


def test_a_comparison_keeps_what_could_not_be_measured(vector):
    compared = rd.compare(["qsgd", "scaled_sign", "topk"], vector, bits=(0.01, 2))
    table = compared.to_frame()
    assert len(table) == len(compared.rows)
    for (_, shown), row in zip(table.iterrows(), compared.rows, strict=True):
        if row.measured is None:
            assert shown["remark"] == row.remark
            assert np.isnan(shown["nmse"])
        else:
            assert (shown["bits"], shown["nmse"]) == (row.measured.bits, row.measured.nmse)


def test_a_ranking_has_its_choices_best_first():
    cluster = rd.Cluster(workers=4, bandwidth_bit_per_s=1e9)
    found = rd.plan(d=10**6, cluster=cluster, codec="free", operators=["qsgd:4", "identity", "scaled_sign"], target=0.1)
    table = found.to_frame()
    assert table["operator"].tolist() == [choice.operator for choice in found.ranking]
    assert table["seconds"].tolist() == [choice.seconds for choice in found.ranking]
    assert "limits" not in table


def test_outer_steps_and_trainings():
    advice = rd.outer(eta=1, tau=10, L=1, mu=0.001)
    assert advice.to_frame()["lr"].tolist() == [advice.best["lr"], *(row["lr"] for row in advice.rows)]
    training = {"parameters": 1e9, "tokens": 1e10, "batch_tokens": 1e6, "flop_per_s": 1e15}
    found = rd.pretrain(rd.Cluster(workers=8, compute="constant"), **training, utilisations=(0.5, 0.9))
    table = found.to_frame()
    assert table["bit_per_s at 0.9"].tolist() == [row["bit_per_s"][1] for row in found.rows]
    assert table["seconds"].tolist() == [row["seconds"] for row in found.rows]


def test_a_pilot_has_a_row_an_operator_and_moment():
    trial = OperatorTrial("qsgd:levels=4", (2.0, 3.0), (0.5, 0.25), (), rd.Codec(1e-9, 1e-9))
    pilot = Pilot(1, 1, "cpu", 1, ((0.1,),), (1.0,), (1.0,), (1.0,), (1,), ((1.0,),), ((1.0,),), (trial,), (), 1)
    assert pilot.to_frame().to_dict("list") == {
        "operator": ["qsgd:levels=4"] * 2,
        "moment": [0, 1],
        "bits": [2.0, 3.0],
        "nmse": [0.5, 0.25],
    }


def test_without_pandas_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        MissingExtra, match=r'^to_frame needs pandas, which is not installed: pip install "ratedist\[frame\]"$'
    ):
        frame([{"a": 1}])
