"""HTTP: the same answers as Python, refusals in words, limits, no state, nothing but catalogue names."""

import http.client
import json
import math
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

import ratedist as rd
from ratedist.calls import all_calls
from ratedist.interfaces.http.app import MOST_BYTES, MOST_ELEMENTS
from ratedist.records import to_json

ROUTES = {name: call.route for name, call in all_calls().items() if call.route is not None}
POSTS = {name: route for name, route in ROUTES.items() if route.example}

CLUSTER = {"workers": 16, "step_s": 0.08}
PLAN = {"d": 10, "cluster": CLUSTER, "operators": ["identity"], "target": 0.1}
PROBLEM = {"L": 1, "sigma2": 1, "eta": 0.01, "gap": 1, "time_s": 600, "bits": 0}


def test_bits_are_those_of_python(server):
    status, body, _ = server.post("/v1/bits", {"d": 1e9, "omega": 1.0})
    assert status == 200
    assert json.loads(body) == to_json(rd.bits_lower_bound(d=1e9, omega=1.0))


def test_null_is_what_is_sought(server):
    for given in ({"d": 1e6, "bits": 2e6, "omega": None}, {"d": 1e6, "bits": 2e6}, {"bits": 2e6, "alpha": "0.1"}):
        status, body, _ = server.post("/v1/solve", given)
        assert status == 200
        assert json.loads(body) == to_json(rd.solve(**given))


def test_arrays_come_with_their_intervals(server):
    status, body, _ = server.post("/v1/bits", {"d": 1000, "omega": [1, 0.1, "3"]})
    found, here = json.loads(body), rd.bits_lower_bound(d=1000, omega=[1, 0.1, 3])
    assert status == 200
    assert found["value"] == here.values.tolist()
    assert found["lo"] == here.lo.tolist()
    assert found["certified"] is True


def test_everything_else_is_that_of_python_too(server):
    cluster = rd.Cluster(**CLUSTER)
    pairs = {
        "runtime": (
            {"cluster": CLUSTER, "tau": [1, 8], "bits": 1e9},
            lambda: rd.runtime(cluster, tau=[1, 8], bits=1e9),
        ),
        "error": (
            {"cluster": CLUSTER, "tau": 8} | PROBLEM,
            lambda: rd.error_bound(tau=8, cluster=cluster, **PROBLEM),
        ),
        "tau": ({"cluster": CLUSTER} | PROBLEM, lambda: rd.tau_star(cluster=cluster, **PROBLEM)),
        "certify": (
            {"theorem": "worst_case_bits", "at": {"d": 10**12, "alpha": "0.3"}},
            lambda: rd.certify("worst_case_bits", d=10**12, alpha="0.3"),
        ),
        "plan": (
            {"d": 1e6, "cluster": CLUSTER, "operators": ["identity", "topk:0.01"], "target": 0.1},
            lambda: rd.plan(d=1e6, cluster=cluster, operators=["identity", "topk:0.01"], target=0.1),
        ),
        "gap": ({"op": "topk:0.5", "x": [3.0, -4.0]}, lambda: rd.gap("topk:0.5", [3.0, -4.0])),
    }
    for name, (given, call) in pairs.items():
        status, body, _ = server.post(f"/v1/{name}", given)
        assert status == 200, body
        assert json.loads(body)["explanation"] == call().explain()
        if name != "plan":
            assert json.loads(body)["value"] == to_json(call())["value"]


@pytest.mark.parametrize("name", POSTS)
def test_the_example_of_every_route_works(server, name):
    status, body, _ = server.post(f"/v1/{name}", POSTS[name].example)
    assert status == 200, body
    assert "NaN" not in body


def test_infinities_are_kept(server):
    status, body, _ = server.get("/v1/operators?d=1000")
    found = {entry["operator"]: entry for entry in json.loads(body)["operators"]}
    assert status == 200
    assert float(found["identity"]["limit"]) == math.inf


def test_a_setting_gates_a_theorem(server):
    given = {"theorem": "worst_case_bits", "at": {"d": 10, "alpha": "0.3"}, "setting": ["contractive"]}
    status, body, _ = server.post("/v1/certify", given)
    assert status == 422
    assert "not covered: worst_case_bits needs: " in json.loads(body)["detail"][0]["msg"]
    given["setting"] = ["strictly_contractive", "self_delimiting"]
    status, body, _ = server.post("/v1/certify", given)
    assert status == 200
    assert len(json.loads(body)["needs"]) == 2
    status, body, _ = server.post("/v1/solve", {"d": 10, "bits": 20, "setting": []})
    assert status == 422


def test_theorems_are_listed(server):
    status, body, _ = server.get("/v1/theorems")
    assert status == 200
    assert all(row["needs"] and row["about"] for row in json.loads(body)["theorems"])
    found = {row["theorem"]: row["symbols"] for row in json.loads(body)["theorems"]}
    assert found["unbiased_bits"] == ["d", "omega"]


@pytest.mark.parametrize(
    ("path", "given", "words"),
    [
        ("bits", {"d": -1, "omega": 1}, "d must satisfy 1 <= d, an integer; got d = -1: give"),
        ("bits", b'{"d": 10, "omega": NaN}', "omega must satisfy 0 < omega, finite; got omega = nan: give"),
        ("bits", b'{"d": 10, "omega": 1e999}', "omega must satisfy 0 < omega, finite; got omega = inf: give"),
        ("bits", {"d": 10, "alpha": 1.5}, "alpha must satisfy 0 < alpha < 1; got alpha = 1.5: give"),
        ("bits", {"d": 10**400, "alpha": 0.5}, "d must satisfy"),
        ("bits", {"d": "1e99999", "alpha": 0.5}, "d must satisfy"),
        ("bits", {"d": [1] * (MOST_ELEMENTS + 1), "alpha": 0.5}, f"at most {MOST_ELEMENTS} items"),
        ("bits", {"d": True, "alpha": 0.5}, "d is not taken: it must be a number"),
        ("bits", {"d": 10, "alfa": 0.5}, "alfa is not taken: extra inputs are not permitted; got 0.5"),
        ("bits", {"omega": 1}, "d must be given"),
        ("bits", b"[1", "the body must be JSON"),
        ("bits", [1], "the body is not taken"),
        (
            "plan",
            {"d": 10, "cluster": CLUSTER, "operators": ["os:getcwd"], "target": 0.1},
            "unknown operator 'os'; it must be",
        ),
        (
            "plan",
            {"d": 10, "cluster": CLUSTER, "operators": ["identity"], "target": 0.1, "codec": "fast"},
            "codec is not taken",
        ),
        (
            "plan",
            {"d": 10, "cluster": {"workers": 0}, "operators": ["identity"], "target": 0.1},
            "workers must satisfy",
        ),
        (
            "plan",
            {"d": 10, "cluster": {"workers": []}, "operators": ["identity"], "target": 0.1},
            "cluster.workers is not",
        ),
        ("check", {"op": "json:dumps"}, "unknown operator 'json'"),
        ("gap", {"op": "qsgd:4", "x": [0.0]}, "zeros only"),
        ("certify", {"theorem": "worst_case", "at": {}}, "try worst_case_bits"),
    ],
)
def test_bad_input_is_422_in_one_sentence(server, path, given, words):
    status, body, _ = server.post(f"/v1/{path}", given)
    assert status == 422
    assert words in json.loads(body)["detail"][0]["msg"]


def test_other_refusals_have_the_same_form(server):
    for status, answer in (
        (400, server.post("/v1/bits", b"[" * 60_000)),
        (404, server.get("/v1/nothing")),
        (405, server.get("/v1/bits")),
        (413, server.post("/v1/bits", b" " * (MOST_BYTES + 1))),
        (422, server.post("/v1/bits", b"d=1", kind="application/x-www-form-urlencoded")),
    ):
        assert answer[0] == status, answer
        assert json.loads(answer[1])["detail"][0]["msg"]


def test_an_endless_body_is_cut_off(server):
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    connection.putrequest("POST", "/v1/bits")
    connection.putheader("content-type", "application/json")
    connection.putheader("transfer-encoding", "chunked")
    connection.endheaders()
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    try:
        for _ in range(1000):
            connection.send(chunk)
    except OSError:
        pass  # the server hung up, as it should
    else:
        assert connection.getresponse().status == 413
    connection.close()
    assert server.get("/healthz")[0] == 200


def test_files_outside_the_page_are_not_served(server):
    for path in ("/page/../tables.py", "/page/%2e%2e/tables.py", "/page/..%2ftables.py", "/page//etc/passwd"):
        assert server.get(path)[0] in (404, 405), path


def test_answers_forbid_what_a_page_does_not_need(server):
    _, _, headers = server.get("/")
    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_openapi_describes_every_route(server):
    status, body, _ = server.get("/openapi.json")
    paths = json.loads(body)["paths"]
    assert status == 200
    assert set(paths) == {f"/v1/{name}" for name in ROUTES} | {"/healthz"}
    assert all("422" in paths[f"/v1/{name}"]["post"]["responses"] for name in POSTS)


def test_a_taken_port_is_a_usage_error_in_one_line(server):
    port = str(urlsplit(server.url).port)
    command = [sys.executable, "-m", "ratedist", "serve", "--port", port]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith(f"ratedist serve: 127.0.0.1:{port} cannot be listened on (Address already in use)")
    assert len(result.stderr.splitlines()) == 1


def test_a_plan_takes_given_codecs_and_a_sign_of_a_huge_model(server):
    codec = {"encode_s_per_coordinate": "8.5e-9", "decode_s_per_coordinate": 4.3e-9}
    asked = {"d": 25600000, "cluster": CLUSTER, "operators": ["tcdq:omega=0.1", "identity"], "target": 0.1}
    asked["exchange"] = "gather"
    for given in (codec, {"tcdq:omega=0.1": codec}):
        status, body, _ = server.post("/v1/plan", asked | {"codec": given})
        assert status == 200, body
        first, second = json.loads(body)["ranking"]
        assert first["operator"] == "identity"
        assert second["decode_s"] == pytest.approx(CLUSTER["workers"] * 25.6e6 * 4.3e-9)
    sign = {"d": 10**9, "cluster": {"workers": 64}, "operators": ["scaled_sign"], "target": 0.1, "codec": "free"}
    status, body, _ = server.post("/v1/plan", sign | {"L": 1, "sigma2": 1, "gap": 1, "G": 10})
    assert status == 200, body
    assert json.loads(body)["ranking"][0]["feasible"]


def test_a_plan_ends_at_10_to_the_12_parameters():
    plan = all_calls()["plan"].route
    asked = {"cluster": {"workers": 2}, "operators": ["identity"], "target": 0.1, "codec": "free"}
    assert plan.answer(asked | {"d": 10**12}).ranking[0].feasible
    with pytest.raises(ValueError, match="over HTTP"):
        plan.answer(asked | {"d": 10**12 + 1})


def test_what_is_summed_on_the_way_is_planned_and_priced_by_name(server):
    name = "shared_scale:word_bits=12,block=256"
    asked = {"d": 10**6, "operators": [name, "identity", "sign_vote"], "target": 0.1, "codec": "free"}
    status, body, _ = server.post("/v1/plan", asked | {"cluster": CLUSTER})
    first, second, last = json.loads(body)["ranking"]
    assert status == 200
    assert (first["operator"], first["exchange"], second["operator"]) == (name, "sum", "identity")
    assert (last["operator"], last["feasible"]) == ("sign_vote", False)

    asked = {"d": 10**6, "m": 16, "operator": name}
    status, body, _ = server.post("/v1/allreduce", asked)
    assert status == 200
    assert json.loads(body) == to_json(rd.allreduce(**asked))

    for wrong, words in (({"operator": "shared_scale:5"}, "2^(word_bits - 1) > m"), ({"exchange": "gather"}, "summed")):
        status, body, _ = server.post("/v1/allreduce", asked | wrong)
        assert status == 422
        assert words in json.loads(body)["detail"][0]["msg"]
