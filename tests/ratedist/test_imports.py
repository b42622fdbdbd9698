"""What a user pays for importing the package, and for the first call of each kind."""

import subprocess
import sys

HEAVY = ("torch", "numba", "scipy", "sympy", "flint", "numpy", "matplotlib", "fastapi", "pydantic", "rich")
SLOW = ("scipy.stats", "scipy.optimize", "bounds.plan", "torch", "numba", "matplotlib", "fastapi", "pydantic", "rich")


def loaded(code, modules=HEAVY):
    line = f"{code}\nimport sys; print(*(m for m in {modules!r} if m in sys.modules))"
    result = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, timeout=120, check=True)
    return set(result.stdout.split())


def test_import_loads_nothing():
    assert loaded("import ratedist as rd; rd.__all__, dir(rd)") == set()


def test_bits_and_tau_load_neither_a_planner_nor_statistics():
    """Each of these modules costs a tenth of a second or more, as much as the rest of the call."""
    code = (
        "import ratedist as rd\nrd.bits_lower_bound(d=1e9, omega=1.0)\nc = rd.Cluster(workers=4)\n"
        "problem = dict(L=1, sigma2=1, eta=.01, gap=1, time_s=60, bits=0, cluster=c)\n"
        "rd.runtime(c, tau=8, bits=0)\nrd.error_bound(tau=8, **problem)\nrd.tau_star(**problem)"
    )
    assert loaded(code, SLOW) == set()


def test_public_names_exist():
    import ratedist

    for name in ratedist.__all__:
        assert getattr(ratedist, name) is not None


def test_help_loads_nothing():
    code = (
        "from ratedist.interfaces.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "import sys; sys.stdout.write(chr(10) + 'loaded: ')"
    )
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert result.stdout.rpartition("loaded:")[2].split() == []


def test_help_lists_every_command_in_the_words_of_its_call():
    from ratedist.calls import all_calls, outlines

    calls = [call for call in all_calls().values() if call.command is not None]

    assert [(o.name, o.summary, o.place) for o in outlines()] == [(c.name, c.summary, c.place) for c in calls]


def test_a_call_that_python_makes_first_is_a_command_too():
    code = (
        "import ratedist as rd\nfrom ratedist.interfaces.cli import main\n"
        "rd.runtime(rd.Cluster(workers=2), tau=2, bits=0)\n"
        "main(['runtime', '--workers', '2', '--tau', '2', '--bits', '0', '--json'])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert '"runtime_model"' in result.stdout
