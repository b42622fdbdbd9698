"""Plans and predictions of a pilot over HTTP: what Python says, or a sentence, whatever the file holds."""

import copy
import json
import random

import pytest

pytest.importorskip("fastapi")

import ratedist as rd
from ratedist.calls.pilot import PILOT_EXAMPLE
from ratedist.calls.shared import MOST_PILOT_BYTES
from ratedist.interfaces.http.worker import answer
from ratedist.pilots.pilot import MOST_OPERATORS, Pilot
from ratedist.records import to_json

LINK = {"workers": 8, "bandwidth_bit_per_s": 1e9, "latency_s": 0.001}
PILOT = Pilot.from_dict(PILOT_EXAMPLE)


def test_the_plan_is_that_of_python():
    by_record = answer("plan", {"pilot": PILOT_EXAMPLE, "cluster": LINK})
    assert by_record == to_json(rd.plan(pilot=PILOT, cluster=PILOT.cluster(**LINK)))
    nodes = {"workers": 8, "nodes": 2, "inside": "nvlink4,3e-6"}
    some = {"operators": ["qsgd:16"], "exchange": "node_two_shot"}
    on_nodes = answer("plan", {"pilot": PILOT_EXAMPLE, "cluster": nodes, **some})
    inside, between = rd.Link.read("inside", "nvlink4,3e-6"), rd.Link(1e10, 50e-6)
    cluster = PILOT.cluster(nodes=2, gpus_per_node=4, inside=inside, between=between)
    assert on_nodes["ranking"] == to_json(rd.plan(pilot=PILOT, cluster=cluster, **some))["ranking"]


def test_links_by_name_are_those_of_python():
    links = {"inside": "nvlink4,3e-6", "between": "infiniband_ndr,5e-6"}
    by_name = {name: rd.Link.read(name, text) for name, text in links.items()}
    cluster = PILOT.cluster(nodes=2, gpus_per_node=4, **by_name)
    assert cluster.bandwidth_bit_per_s == 4e11
    nodes = {"workers": 8, "nodes": 2, **links}
    assert answer("plan", {"pilot": PILOT_EXAMPLE, "cluster": nodes}) == to_json(rd.plan(pilot=PILOT, cluster=cluster))
    predicted = answer("predict", {"pilot": PILOT_EXAMPLE, "cluster": nodes, "tau": 2})
    assert predicted == to_json(rd.predict(PILOT, cluster, tau=2))
    with pytest.raises(ValueError, match="between stands for bandwidth_bit_per_s; got both"):
        answer("plan", {"pilot": PILOT_EXAMPLE, "cluster": nodes | {"bandwidth_bit_per_s": 1e9}})
    with pytest.raises(ValueError, match="between must begin with bit/s > 0 or a name; got 'string'"):
        answer("plan", {"pilot": PILOT_EXAMPLE, "cluster": nodes | {"between": "string,1e-6"}})
    with pytest.raises(ValueError, match="between goes with nodes"):
        answer("plan", {"pilot": PILOT_EXAMPLE, "cluster": {"workers": 8, "between": "infiniband_ndr,5e-6"}})


def test_a_prediction_has_the_level_and_the_steps_that_are_asked_for():
    asked, pilot = {"operator": "qsgd:16", "tau": 1}, PILOT_EXAMPLE
    usual, narrow = (answer("predict", {"pilot": pilot, "cluster": LINK, **asked, "level": p}) for p in (0.95, "0.5"))
    assert narrow["time_ratio"]["level"] == 0.5
    assert narrow == to_json(rd.predict(Pilot.from_dict(pilot), PILOT.cluster(**LINK), **asked, level=0.5))
    assert usual == answer("predict", {"pilot": pilot, "cluster": LINK, **asked})
    ends = [float(each["progress_per_step"]["interval"]["lo"]) for each in (usual, narrow)]
    assert ends[0] <= ends[1]
    for wrong in ({"level": 1}, {"level": 0}, {"steps": 0}, {"steps": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            answer("predict", {"pilot": pilot, "cluster": LINK, **asked, **wrong})


def test_error_feedback_without_trial_rounds_has_no_prediction():
    trial = {"operator": "scaled_sign", "residuals": [0.5, 0.7]}
    pilot = PILOT_EXAMPLE | {"operators": [PILOT_EXAMPLE["operators"][0] | trial]}
    predicted = answer("predict", {"pilot": pilot, "cluster": LINK, "operator": "scaled_sign", "tau": 1})
    assert predicted["progress_per_step"] is predicted["time_ratio"] is None


def test_a_prediction_is_that_of_python():
    asked = {"operator": "qsgd:16", "exchange": "two_shot", "tau": 2, "overlap": True}
    by_record = answer("predict", {"pilot": PILOT_EXAMPLE, "cluster": LINK, **asked})
    assert by_record == to_json(rd.predict(PILOT, PILOT.cluster(**LINK), **asked))


@pytest.mark.parametrize("asked", [{"tau": 2, "overlap": True, "parts": 2, "in_flight": 1}, {"tau": 1, "buckets": "4"}])
def test_fragments_and_buckets_are_those_of_python(asked):
    by_record = answer("predict", {"pilot": PILOT_EXAMPLE, "cluster": LINK, **asked})
    assert by_record == to_json(rd.predict(PILOT, PILOT.cluster(**LINK), **asked))
    for name, value in asked.items():
        assert by_record[name] == (value if isinstance(value, bool) else int(value))
    whole = {name: value for name, value in asked.items() if name in ("tau", "overlap")}
    assert (
        by_record["seconds_per_step"]
        != answer("predict", {"pilot": PILOT_EXAMPLE, "cluster": LINK, **whole})["seconds_per_step"]
    )
    with pytest.raises(ValueError, match=r"of averages in flight|leave one of them out"):
        answer(
            "predict", {"pilot": PILOT_EXAMPLE, "cluster": LINK, **asked, "overlap": not asked.get("overlap", False)}
        )


def test_sums_at_once_and_the_timed_backward_pass_count_in_buckets():
    timed = PILOT_EXAMPLE | {"backward_s": [[0.8 * second for second in row] for row in PILOT_EXAMPLE["step_s"]]}
    asked = {"pilot": PILOT_EXAMPLE, "cluster": LINK | {"latency_s": 0.05}, "buckets": 8}
    plain, faster, hidden = (
        answer("predict", asked | other)["seconds_per_step"]["value"]
        for other in ({}, {"cluster": asked["cluster"] | {"sums_at_once": 2}}, {"pilot": timed})
    )
    assert faster < plain
    assert hidden < plain


def test_the_server_answers_and_limits_the_size_of_these_requests_alone(server):
    padded = {"pilot": PILOT_EXAMPLE | {"device": "x" * 100_000}, "cluster": LINK}
    status, body, _ = server.post("/v1/plan", padded)
    assert status == 200
    assert json.loads(body)["explanation"].startswith("Try ")
    assert server.post("/v1/predict", padded)[0] == 200
    assert server.post("/v1/bits", padded)[0] == 413
    status, body, _ = server.post("/v1/plan", b" " * (MOST_PILOT_BYTES + 1))
    assert status == 413
    assert f"at most {MOST_PILOT_BYTES} bytes" in json.loads(body)["detail"][0]["msg"]


@pytest.mark.parametrize("more", [{"d": 10}, {"target": 0.1}, {"cluster": LINK | {"step_s": 1.0}}])
def test_what_the_pilot_has_measured_is_refused_beside_it(more):
    with pytest.raises(
        ValueError, match=r"goes with a plan by theorems|d beside a pilot of your own|comes from the pilot"
    ):
        answer("plan", {"pilot": PILOT_EXAMPLE, "cluster": LINK} | more)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"d": 0}, "d of a pilot must be an integer from 1"),
        ({"ranks": 2}, "step_s of a pilot must be a row for each of 2 ranks; got 1"),
        ({"taus": [1, 1]}, "taus of a pilot must be"),
        ({"taus": [1, 5000]}, "taus of a pilot must be"),
        ({"step_s": [[0.0, 0.0]]}, "seconds above 0"),
        ({"step_s": [["0.1"]]}, "0 or numbers from 1e-30 to 1e+30; got '0.1'"),
        ({"falls": [[0.1, 0.2]]}, "falls of a pilot must be a row for each of 2 moments; got 1"),
        ({"bends": [[0.1], [0.2]]}, "bends of a pilot must be 2 numbers in a row; got 1"),
        ({"survival": [[0.9, 0.8]]}, "2 to 4096 moments; got 1"),
        ({"small_norms2": [0.0, 1.0]}, "squares above 0"),
        ({"small_norms2": [float("nan"), 1.0]}, "small_norms2 of a pilot must be 0 or numbers"),
        ({"large_norms2": [1.0]}, "2 numbers in a row; got 1"),
        ({"secants": [[1e200, 1], [1, 1]]}, "1e-30 to 1e+30, or below 0 as far; got 1e+200"),
        ({"losses": [True]}, "losses of a pilot must be 0 or numbers"),
        ({"memory_bytes": -1}, "memory_bytes of a pilot must be bytes"),
        ({"sums_at_once": 0}, "sums_at_once of a pilot must be an integer from 1"),
        ({"backward_s": [[0.1], [0.1], [0.1]]}, "backward_s of a pilot must be"),
        ({"device": 3}, "device of a pilot must be a text"),
        ({"operators": PILOT_EXAMPLE["operators"] * (MOST_OPERATORS + 1)}, f"at most {MOST_OPERATORS} trials"),
        ({"links": [{"level": "all ranks", "ranks": 1, "payload_bytes": [], "seconds": []}]}, "two ranks or more"),
        ({"extra": 1}, "is no pilot"),
        ({"falls": [], "bends": []}, "a prediction needs what a path fell and bent"),
    ],
)
def test_numbers_that_no_pilot_measures_are_refused_in_one_sentence(change, words):
    with pytest.raises(ValueError, match="pilot") as refusal:
        answer("plan", {"pilot": PILOT_EXAMPLE | change, "cluster": LINK})
    assert words in str(refusal.value)
    assert len(str(refusal.value)) < 300


def test_names_of_operators_import_nothing():
    trial = PILOT_EXAMPLE["operators"][0] | {"operator": "json:dumps"}
    with pytest.raises(ValueError, match="unknown operator 'json'"):
        answer("plan", {"pilot": PILOT_EXAMPLE | {"operators": [trial]}, "cluster": LINK})


def test_what_a_pilot_has_written_is_taken():
    assert Pilot.from_dict(json.loads(json.dumps(PILOT.to_dict()))) == PILOT


VALUES = [None, -1, 0, 1, 2.5, 1e30, 1e-30, 1e300, 1e-300, "x", [], {}, [1], [[]], True, float("inf")]


def mutated(record, random_):
    """One value somewhere replaced, dropped, or doubled."""
    changed = copy.deepcopy(record)
    place = changed
    while True:
        name = random_.choice(list(place) if isinstance(place, dict) else range(len(place)))
        inside = place[name]
        if isinstance(inside, dict | list) and inside and random_.random() < 0.8:
            place = inside
            continue
        place[name] = random_.choice([*VALUES, inside, [inside, inside]])
        return changed


def refusal_of(record):
    """The sentence, or none where there is an answer."""
    try:
        answer("plan", {"pilot": record, "cluster": LINK})
    except ValueError as refused:
        return str(refused)
    return ""


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(6))
def test_a_changed_file_is_answered_or_refused_and_nothing_else(seed):
    random_ = random.Random(seed)
    sentences = [refusal_of(mutated(PILOT_EXAMPLE, random_)) for _ in range(20)]
    assert 3 < len([sentence for sentence in sentences if sentence]) < 20
    assert not [sentence for sentence in sentences if "\n" in sentence]
