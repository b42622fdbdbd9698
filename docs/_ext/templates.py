"""Pages under FOLDERS are Jinja templates: they show what code and records make."""

from __future__ import annotations

from typing import Any

import api
import catalogue
import choices
import implementations
import kit_records
import pilot_skill
import races_in_flight
import records
import speed_ups
import speeds
from jinja2 import Environment, StrictUndefined
from sphinx.application import Sphinx

FOLDERS = (
    "concepts/",
    "reference/",
    "results/",
    "guides/choose_a_compressor",
    "guides/choose_tau",
    "guides/do_i_need_a_pilot",
)
FUNCTIONS = {
    name: getattr(module, name)
    for module, names in {
        catalogue: (
            "notation_table",
            "property_table",
            "conclusion_table",
            "bound_overview",
            "entry",
            "status_table",
            "coverage_table",
            "formula_of",
            "assumption_of",
            "bound_value",
            "tau_star_formula",
            "experiments",
            "operator_overview",
            "family_overview",
        ),
        records: (
            "peers_table",
            "codec_table",
            "trellis_table",
            "averaging_table",
            "loop_table",
            "http_table",
            "rate_table",
            "operators_table",
            "mutation_table",
            "mutation_score",
            "coverage_table",
            "exit_statuses_table",
        ),
        choices: ("compressor_choice",),
        speed_ups: ("speed_up_table",),
        pilot_skill: ("rule_by_network_table", "skill_by_problem_table"),
        speeds: (
            "first_message_table",
            "bookkeeping_table",
            "hook_table",
            "two_shots_table",
            "checks_table",
            "large_table",
            "theory_table",
            "runs_table",
        ),
        races_in_flight: ("flight_table", "flight_agreement", "headline_table", "tau_table"),
        implementations: ("published_table", "published_summary"),
        kit_records: (
            "kit_kinds_table",
            "kit_misses",
            "kit_wrong",
            "kit_honest",
            "kit_powers",
            "kit_seconds_table",
        ),
        api: ("module_section",),
    }.items()
    for name in names
}


def render(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill in one page."""
    if docname.startswith(FOLDERS):
        environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
        source[0] = environment.from_string(source[0]).render(FUNCTIONS)


def outdated(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """They depend on all of the code and the records, so they are read again at every build."""
    return [name for name in env.found_docs if name.startswith(FOLDERS)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the two handlers."""
    app.connect("env-get-outdated", outdated)
    app.connect("source-read", render)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
