"""The operator reads no Secrets: there is no kind for them, and no path to them in its code."""

import re
from pathlib import Path

import shipfitter
from shipfitter.cluster.kinds import KINDS

PACKAGE = Path(shipfitter.__file__).parent
CHART = Path(__file__).parents[3] / "charts" / "shipfitter"


def test_secrets_are_no_kind_we_can_ask_for():
    assert not {kind for _, kind in KINDS if "secret" in kind.lower()}
    assert not {row.plural for row in KINDS.values() if "secret" in row.plural}


def test_no_code_names_the_collection_or_the_clients_calls():
    asks = re.compile(r"/secrets\b|['\"]secrets['\"]|namespaced_secret|V1Secret\b")
    found = [
        path.name
        for path in sorted(PACKAGE.rglob("*.py"))
        if asks.search(path.read_text().replace("/var/run/secrets/kubernetes.io", ""))
    ]
    assert found == []


def test_no_role_of_the_chart_names_them():
    rules = "\n".join(path.read_text() for path in CHART.glob("templates/**/*.*"))
    granted = re.findall(r"^\s*resources:.*$", rules, flags=re.MULTILINE)
    assert len(granted) > 10
    assert not [line for line in granted if "secret" in line or "*" in line.partition("#")[0]]
