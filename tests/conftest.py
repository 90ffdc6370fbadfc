"""What all tests share: how thorough property tests are, and rewriting golden files."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
# Same examples every time: a red run can be repeated. HYPOTHESIS_PROFILE=thorough looks further.
settings.register_profile(
    "fast", max_examples=25, deadline=None, derandomize=True, suppress_health_check=QUIET
)
settings.register_profile("thorough", max_examples=500, deadline=None, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


# Files that take more than some ten seconds: `make test` runs them, `make check` does not wait.
TESTS = Path(__file__).parent
THOROUGH = frozenset(
    TESTS / name
    for name in (
        "accuracy/test_accuracy.py",
        "property/test_cluster_laws.py",
        "property/test_inventory_laws.py",
        "property/test_spread_laws.py",
        "unit/agent/test_watch.py",
        "unit/cli/test_inspect_model.py",
        "unit/cluster/test_inspection.py",
        "unit/cluster/test_runtime.py",
        "unit/cluster/test_runtime_weather.py",
        "unit/core/test_inspected.py",
        "unit/core/test_oracle.py",
        "world/test_engine.py",
        "world/test_programs.py",
    )
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path in THOROUGH:
            item.add_marker(pytest.mark.thorough)


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")


def pytest_terminal_summary(terminalreporter):
    """Tables: the properties that tests recorded as mappings, a line each."""
    tables = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, row in report.user_properties:
                if isinstance(row, dict):
                    tables.setdefault(name, []).append(row)
    for name, rows in tables.items():
        terminalreporter.section(name)
        widths = {key: max(len(key), *(len(row[key]) for row in rows)) for key in rows[0]}
        for line in ({key: key for key in widths}, *rows):
            text = "  ".join(line[key].ljust(width) for key, width in widths.items())
            terminalreporter.write_line(text.rstrip())
