"""The hypothesis profile of the whole suite: derandomised, no deadline (a shared machine has no stable clock)."""

from hypothesis import HealthCheck, settings

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

settings.register_profile("ci", derandomize=True, database=None, max_examples=150, **COMMON)
if settings.get_current_profile_name() == "default":
    settings.load_profile("ci")
