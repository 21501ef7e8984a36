"""The registry demands what belongs to a policy, and takes policies from outside the package."""

import ast
import re
from pathlib import Path

import pytest
from policy_cases import EVERY_POLICY

import latecomer as lc
from latecomer.errors import InputError
from latecomer.experiments.arena import arena
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.registry import POLICIES, policy_class, policy_names, register

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", POLICIES)
def test_a_registered_policy_is_exported_under_its_name(name: str) -> None:
    assert getattr(lc, name) is policy_class(name)
    assert policy_class(name).__name__ == policy_class(name).algorithm.name == name
    assert name in lc.__all__


@pytest.mark.parametrize("name", POLICIES)
def test_a_registered_policy_has_a_test_case(name: str) -> None:
    cases = {case["policy"] for case in EVERY_POLICY.values()}
    assert name in cases, "add it to EVERY_POLICY in tests/support/policy_cases.py"


@pytest.mark.parametrize("name", POLICIES)
def test_a_registered_policy_is_documented(name: str) -> None:
    page = (ROOT / "docs/reference/policies.md").read_text(encoding="utf-8")
    assert re.search(rf"^\|.*`{name}[`(]", page, re.MULTILINE), "give it its rows in docs/reference/policies.md"


@pytest.mark.parametrize("name", POLICIES)
def test_a_registered_policy_plays_in_the_arena(name: str) -> None:
    classes = {getattr(maker, "func", maker) for maker in arena.POLICIES.values()}
    assert policy_class(name) in classes


def test_type_checkers_see_every_registered_policy() -> None:
    tree = ast.parse((ROOT / "src" / "latecomer" / "__init__.py").read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(POLICIES) <= imported


def test_register_takes_policies_with_an_algorithm_and_a_new_name() -> None:
    class WithoutAlgorithm(LinearPolicy):
        pass

    for no_policy in (int, WithoutAlgorithm, "OTFLinUCB"):
        with pytest.raises(InputError, match="register takes a subclass of LinearPolicy that has an algorithm; got"):
            register(no_policy)  # type: ignore[type-var]
    taken = type("Greedy", (lc.Greedy,), {})
    with pytest.raises(InputError, match="the name of a policy must be new; got Greedy, which latecomer has"):
        register(taken)
    assert policy_names() == tuple(POLICIES)
