"""What all tests share: how thorough property tests are, and rewriting golden files."""

import os

from hypothesis import HealthCheck, settings

QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
# Same examples every time: a red run can be repeated. HYPOTHESIS_PROFILE=thorough looks further.
settings.register_profile(
    "fast", max_examples=25, deadline=None, derandomize=True, suppress_health_check=QUIET
)
settings.register_profile("thorough", max_examples=500, deadline=None, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")
