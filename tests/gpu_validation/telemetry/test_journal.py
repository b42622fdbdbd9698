"""A folder of telemetry as another process finds it: whole, cut short, stale, of another version, or not there."""

import json
import logging
import os
from dataclasses import replace

import pytest

from gpu_validation.records.compression import Declared, Sample
from gpu_validation.records.exit_status import UsageError
from gpu_validation.telemetry import journal as module
from gpu_validation.telemetry.account import Header, State
from gpu_validation.telemetry.journal import Journal, read_folder
from gpu_validation.telemetry.samples import KeptRound

HEADER = Header(
    run=5,
    rank=0,
    size=2,
    d=10,
    value_bytes=4,
    mean_bytes=4,
    operator="qsgd:levels=4",
    schedule="Fixed(tau=8)",
    mixing="Full()",
    optimizer="SGD",
    declared=Declared("Unbiased", 2.0, None, 30.5, float("inf")),
    projects=False,
    whole=False,
    common=True,
    members=2,
    buffers=0,
    tail=17,
    front=32,
    extra_bytes=0,
    plain_sgd=True,
    host="here",
    pid=1,
    started=100.0,
)
STATE = State(
    time=101.0,
    seconds=1.0,
    steps=16,
    rounds=2,
    tau=8,
    computing_s=0.5,
    averaging_s=0.25,
    telemetry_s=0.001,
    sent_bytes=10,
    received_bytes=12,
    expected_sent_bytes=10,
    expected_received_bytes=12,
    predicted=2,
    bits=Sample.of([30.0, 31.0]),
    ratio=Sample.of([1.0, 1.5]),
    coordinate=Sample.of([0.1]),
    along=None,
    oblique=float("nan"),
    decline=None,
    stride=1,
)
ROUNDS = [KeptRound(i, 8 * (i + 1), 8, 0.25, 0.125, 30, 1.0, checksum=i) for i in range(2)]


def written(folder, header=HEADER, state=STATE, rounds=ROUNDS):
    journal = Journal(folder, header.rank)
    journal.begin(header)
    journal.write(rounds, state)
    journal.close()
    return journal.path


def test_what_is_written_is_read_back(tmp_path):
    written(tmp_path)
    (account,) = read_folder(tmp_path)

    assert account.header == HEADER
    assert account.rounds == tuple(ROUNDS)
    assert replace(account.state, oblique=0.0) == replace(STATE, oblique=0.0)


def test_a_line_cut_short_anywhere_leaves_what_was_whole(tmp_path):
    path = written(tmp_path)
    whole = path.read_bytes()
    start = whole.index(b'{"kind": "state"')
    more = json.dumps(replace(STATE, steps=24).line()).encode()

    for cut in range(0, len(more), 37):
        path.write_bytes(whole + more[:cut])
        assert read_folder(tmp_path)[0].state.steps == 16
    path.write_bytes(whole + more)
    assert read_folder(tmp_path)[0].state.steps == 24
    path.write_bytes(whole[: start + 20])
    with pytest.raises(
        UsageError, match=r"no telemetry in .*: its files have no complete line yet; wait for the run .* was refused"
    ):
        read_folder(tmp_path)


def test_a_restarted_rank_goes_on_behind_a_line_cut_short_and_counts_anew(tmp_path):
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    written(tmp_path, replace(HEADER, run=6, started=200.0), replace(STATE, steps=3), rounds=ROUNDS[:1])
    (account,) = read_folder(tmp_path)

    assert (account.header.run, account.state.steps, len(account.rounds)) == (6, 3, 1)


def test_ranks_of_an_earlier_start_are_left_out(tmp_path):
    written(tmp_path)
    written(tmp_path, replace(HEADER, rank=1))
    assert [account.header.rank for account in read_folder(tmp_path)] == [0, 1]
    written(tmp_path, replace(HEADER, rank=1, run=7, started=300.0))
    assert [account.header.rank for account in read_folder(tmp_path)] == [1]


def test_a_long_file_begins_anew_and_says_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONG_BYTES", 20_000)
    journal = Journal(tmp_path, 0)
    journal.begin(HEADER)
    kept = []
    for i in range(100):
        kept.append(replace(ROUNDS[0], index=i))
        journal.write(kept[-1:], replace(STATE, steps=i))
        if journal.is_long:
            journal.begin_anew(kept, replace(STATE, steps=i))
    journal.close()
    (account,) = read_folder(tmp_path)

    assert journal.path.stat().st_size < 25_000
    assert account.state.steps == 99
    assert [one.index for one in account.rounds] == list(range(100))


def test_a_disk_that_is_full_ends_the_file_and_not_the_run(tmp_path, monkeypatch, caplog):
    journal = Journal(tmp_path, 0)
    journal.begin(HEADER)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with caplog.at_level(logging.WARNING):
        journal.write(ROUNDS, STATE)
        journal.write(ROUNDS, STATE)
        assert not journal.is_long
        journal.close()
    assert [record.message for record in caplog.records] == [
        f"telemetry is no longer written to {journal.path}: No space left on device; the run continues"
    ]


def test_what_cannot_be_read_is_one_sentence(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere is not a folder: pass the folder of PeriodicAveraging"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"it has no file rank-0.jsonl; wait for the run to start"):
        read_folder(tmp_path)
    path = written(tmp_path)
    text = path.read_text()
    path.write_text(text.replace('"version": 2', '"version": 1'))
    with pytest.raises(UsageError, match="was written by version 1 of the telemetry, and this program reads version 2"):
        read_folder(tmp_path)
    path.write_text(text.replace('"seconds"', '"minutes"'))
    with pytest.raises(UsageError, match=r"is not telemetry of this program \(.*'seconds'.*\): remove the file"):
        read_folder(tmp_path)
    with pytest.raises(ValueError, match=r"telemetry cannot be written to .*: pass a writable folder"):
        Journal(path, 0)
