"""A call is one file: its record alone makes the command, the route, the description and the Python name."""

import asyncio
import json
import shlex
from pathlib import Path

import pytest

import ratedist
from ratedist import calls
from ratedist.calls import all_calls, call_of
from ratedist.calls.arguments import workers
from ratedist.interfaces.cli import main
from ratedist.interfaces.http.app import create_app
from ratedist.interfaces.http.worker import Pool

DOUBLE = '''
from __future__ import annotations

from ratedist.calls.call import Call, Command, Route
from ratedist.numbers import Number


def double(*, d: Number, times: Number = 2):
    """Return a number several times.

    Parameters
    ----------
    d : array_like
        The number.  Nothing of this sentence is in the help.
    times : array_like, optional
        How often.
    """
    return {"product": float(d) * float(times)}


CALL = Call(
    name="double",
    summary="a number several times",
    function=double,
    command=Command(examples=("--d 3",), show=lambda result: f"product {result['product']:g}"),
    route=Route(about="A number.", example={"d": 3}, stated=False, is_closed_form=lambda request: True),
)
'''


class NoWorkers(Pool):
    """A pool without processes: the server itself computes a closed form."""

    def __init__(self):
        self._workers = []


def ask(app, method, path, body=None):
    """(status, JSON) of one request, without a socket."""
    sent = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    received = []

    async def receive():
        return sent.pop() if sent else {"type": "http.disconnect"}

    async def send(message):
        received.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "http_version": "1.1", "method": method, "path": path, "query_string": b""}
    asyncio.run(app({**scope, "headers": headers, "scheme": "http", "asgi": {"version": "3.0"}}, receive, send))
    return received[0]["status"], json.loads(b"".join(message.get("body", b"") for message in received))


@pytest.fixture
def with_double(tmp_path, monkeypatch):
    """The folder of calls with one more file in it."""
    (tmp_path / "double.py").write_text(DOUBLE)
    monkeypatch.setattr(calls, "__path__", [*calls.__path__, str(tmp_path)])
    clear()
    yield
    clear()


def clear():
    call_of.cache_clear()
    all_calls.cache_clear()


@pytest.mark.usefixtures("with_double")
def test_one_file_adds_a_command(capsys):
    assert main(["double", "--d", "3", "--times", "4"]) == 0
    assert capsys.readouterr().out == "product 12\n"
    assert main(["double", "--d", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"product": 6.0}
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "a number several times" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["double", "--help"])
    assert "how often (default: 2)" in (said := capsys.readouterr().out)
    assert "Nothing" not in said
    with pytest.raises(SystemExit) as done:
        main(["double"])
    assert done.value.code == 2


@pytest.mark.usefixtures("with_double")
def test_one_file_adds_a_route():
    app = create_app(pool=NoWorkers())
    assert ask(app, "POST", "/v1/double", {"d": 3}) == (200, {"product": 6.0})
    assert ask(app, "POST", "/v1/double", {"times": 3})[0] == 422
    described = ask(app, "GET", "/openapi.json")[1]
    assert described["paths"]["/v1/double"]["post"]["summary"] == "A number several times"
    schema = described["components"]["schemas"]["Double"]
    assert schema["required"] == ["d"]
    assert schema["properties"]["times"]["description"] == "how often"


@pytest.mark.usefixtures("with_double")
def test_one_file_adds_a_python_name():
    assert ratedist.double(d=5)["product"] == 10.0


def test_without_the_file_there_is_no_such_call(capsys):
    assert "double" not in all_calls()
    with pytest.raises(SystemExit):
        main(["double", "--d", "3"])
    assert "invalid choice: 'double'" in capsys.readouterr().err
    with pytest.raises(AttributeError):
        ratedist.double  # noqa: B018


@pytest.mark.parametrize("name", all_calls())
def test_a_call_has_the_name_of_its_file_and_a_way_to_be_called(name):
    call = all_calls()[name]
    assert call is call_of(name)
    assert call.command is not None or call.route is not None
    stub = Path(ratedist.__file__).with_suffix(".pyi").read_text()
    function = None if call.function is None else call.function.__name__
    assert function is None or f"import {function} as {function}\n" in stub


@pytest.mark.parametrize("name", [name for name, call in all_calls().items() if call.command is not None])
def test_arguments_of_a_command_are_those_of_its_examples(name):
    """Every option that an example uses is one of the record's, or a symbol of a theorem."""
    command = all_calls()[name].command
    names = {argument.name for argument in command.arguments}
    cluster = {part.name for part in workers().parts} if "cluster" in names else set()
    for example in command.examples:
        options = {word[2:].replace("-", "_") for word in shlex.split(example) if word.startswith("--")} - {"json"}
        assert command.takes_symbols or options <= names | cluster
