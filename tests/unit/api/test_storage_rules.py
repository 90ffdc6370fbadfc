"""What a cache claim's access modes allow."""

import pytest

from shipfitter.api.model_deployment import ModelDeployment
from shipfitter.api.storage_rules import binds_to_one_node, claim_problems
from unit.api.mistakes import changed, minimal

SURGE = {"spec.rollout.mode": "Surge"}
TWO = {"spec.replicas": 2}


@pytest.mark.parametrize(
    ("modes", "changes", "want_paths"),
    [
        (["ReadWriteMany"], {**SURGE, **TWO}, []),
        (["ReadWriteOnce", "ReadWriteMany"], SURGE, []),
        (["ReadWriteOnce"], TWO, []),
        (["ReadWriteOnce"], SURGE, ["spec.rollout.mode"]),
        (["ReadWriteOncePod"], {}, []),
        (["ReadWriteOncePod"], {**TWO, **SURGE}, ["spec.rollout.mode", "spec.replicas"]),
        (["ReadOnlyMany"], {}, ["spec.storage.cacheClaim"]),
        ([], {}, ["spec.storage.cacheClaim"]),
    ],
)
def test_claim_problems(modes, changes, want_paths):
    body = changed(minimal(), {"spec.storage.cacheClaim": "hf-cache", **changes})
    problems = claim_problems(ModelDeployment.parse(body), modes)
    assert [problem.split(":")[0] for problem in problems] == want_paths


@pytest.mark.parametrize(
    ("modes", "want"),
    [
        (["ReadWriteOnce"], True),
        (["ReadWriteOncePod"], True),
        (["ReadWriteMany", "ReadWriteOnce"], False),
        (["ReadOnlyMany"], False),
    ],
)
def test_binds_to_one_node(modes, want):
    assert binds_to_one_node(modes) is want
