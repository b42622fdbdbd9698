"""Hypothesis profiles: derandomised by default, deeper by hand with ``--hypothesis-profile=deep``."""

from hypothesis import HealthCheck, settings

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

settings.register_profile("ci", derandomize=True, database=None, max_examples=150, **COMMON)
settings.register_profile("deep", max_examples=20_000, **COMMON)
if settings.get_current_profile_name() == "default":
    settings.load_profile("ci")
