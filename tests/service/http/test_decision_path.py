"""The way of a decision in docs/design.md: at most 25 functions, and each of them is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| (\d+) \| `([\w/]+\.py)` \| `([\w.]+)` \| .+ \|$", re.MULTILINE)
MAX_HOPS = 25


def functions_in(file: str) -> set[str]:
    """Every function and method of a file; a method with its class."""
    tree = ast.parse((ROOT / "src/latecomer" / file).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return functions | {f"{c.name}.{node.name}" for c in classes for node in c.body if isinstance(node, kinds)}


def test_the_way_of_a_decision_has_at_most_25_functions_and_all_exist() -> None:
    hops = ROW.findall((ROOT / "docs/design.md").read_text())
    assert [int(number) for number, _, _ in hops] == list(range(1, len(hops) + 1))
    assert 20 <= len(hops) <= MAX_HOPS
    missing = [(file, function) for _, file, function in hops if function not in functions_in(file)]
    assert not missing
