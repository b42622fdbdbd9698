"""Whatever happened to the file of a pilot, every command that reads it answers or ends in one sentence."""

import json
import math
import random
import re

import pytest

import ratedist as rd
from ratedist.interfaces.cli import main

WRONG = [
    None,
    "x",
    "",
    -1,
    0,
    1e308,
    1e-320,
    math.nan,
    math.inf,
    [],
    {},
    True,
    10**30,
    [[1]],
    [None],
    {"a": 1},
    -0.0,
    3,
]
COMMANDS = (
    "pilot {}",
    "predict {} --workers 8 --operator qsgd:16,bucket=512 --tau 4",
    "plan --pilot {} --workers 8 --operators qsgd:16,bucket=512 scaled_sign",
)


def small():
    """Return a pilot's record with few seconds, so that damage meets everything else too."""
    stated = json.loads(json.dumps(rd.Pilot.read("transformer").to_dict())) | {"recorded": ""}
    stated |= {name: [stated[name][0][:6]] for name in ("step_s", "backward_s")}
    return stated | {"losses": stated["losses"][:6]}


def places(value, place=()):
    yield place
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        yield from places(part, (*place, key))


def damaged(stated, draw):
    """Return a file's bytes with one or two values changed, deleted or repeated, or with wrong bytes."""
    everywhere = [place for place in places(stated) if place]
    for _ in range(draw.choice((1, 1, 2))):
        place = draw.choice([p for p in everywhere if len(p) <= 2] if draw.random() < 0.6 else everywhere)
        within = stated
        try:
            for key in place[:-1]:
                within = within[key]
            change = draw.random()
            if change < 0.15:
                del within[place[-1]]
            elif change < 0.25 and isinstance(within, list):
                within.append(within[place[-1]])
            else:
                within[place[-1]] = draw.choice(WRONG)
        except (KeyError, IndexError, TypeError):
            continue  # the first damage took the place of the second
    content = bytearray(json.dumps(stated).encode())
    if draw.random() < 0.1:
        for _ in range(3):
            content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content[: draw.randrange(len(content))] if draw.random() < 0.05 else content)


def check(number, path, capsys):
    whole = json.dumps(small())
    for seed in range(number):
        path.write_bytes(damaged(json.loads(whole), random.Random(seed)))
        for command in COMMANDS:
            status = main(command.format(path).split())
            printed = capsys.readouterr()
            assert status in (0, 1, 2), (seed, command, printed.err)
            assert "fault" not in printed.err, (seed, command, printed.err)
            assert "nan" not in printed.out.lower(), (seed, command, printed.out)
            if status == 2:
                assert printed.err.count("\n") == 1, (seed, command, printed.err)


def test_a_pilot_that_is_whole_is_answered(tmp_path, capsys):
    (tmp_path / "pilot.json").write_text(json.dumps(small()))
    for command in COMMANDS:
        assert main(command.format(tmp_path / "pilot.json").split()) == 0


def test_a_pilot_without_losses_is_refused_in_one_sentence(tmp_path, capsys):
    (tmp_path / "pilot.json").write_text(json.dumps(small() | {"losses": []}))
    for command in COMMANDS:
        assert main(command.format(tmp_path / "pilot.json").split()) == 2
        assert re.fullmatch(r".*losses.*at least one number.*\n", capsys.readouterr().err)


def test_a_damaged_pilot_ends_in_one_sentence_or_an_answer(tmp_path, capsys):
    check(25, tmp_path / "pilot.json", capsys)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_damaged_pilots_end_in_one_sentence_or_an_answer(tmp_path, capsys):
    check(10_000, tmp_path / "pilot.json", capsys)
