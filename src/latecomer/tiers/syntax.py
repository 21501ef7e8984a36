"""Small questions about syntax trees, and small changes to them."""

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from latecomer.tiers.source import STATE


class ReturnsInsideLoopError(Exception):
    """The function cannot be a part of its caller."""


def known_name(argument: ast.expr | None) -> str | None:
    """Return the name of an argument that is the state, or an array of it."""
    if isinstance(argument, ast.Name) and (argument.id == STATE or argument.id.startswith("state__")):
        return argument.id
    return None


def assign(name: str, value: ast.expr) -> ast.Assign:
    """Make a statement that gives a value a name."""
    return ast.Assign([ast.Name(name)], value)


def is_lasting(value: ast.expr) -> bool:
    """Tell whether an expression means the same wherever it stands: a number, or an array of the state."""
    return isinstance(value, ast.Constant) or known_name(value) is not None


def to_bool(value: ast.expr) -> ast.expr:
    """Make a truth value of an expression."""
    return value if isinstance(value, ast.Compare | ast.BoolOp) else ast.Call(ast.Name("bool"), [value], [])


def fold(node: ast.expr) -> ast.expr:
    """Compute what has only numbers."""
    parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    if not all(isinstance(part, ast.Constant) for part in parts):
        return node
    value = eval(ast.unparse(node), {"__builtins__": {}})  # noqa: S307 - numbers and operators alone
    return ast.Constant(value) if value >= 0 or isinstance(value, bool) else node


def fold_call(node: ast.Call, target: Any) -> ast.expr:
    """Compute a call of a built-in function that has only numbers."""
    numbers = [part.value for part in node.args if isinstance(part, ast.Constant)]
    if target in (max, min, int, float, len) and node.args and len(numbers) == len(node.args):
        return ast.Constant(target(*numbers))
    return node


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements that do something."""
    return [node for node in body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]


def has_return(body: Sequence[ast.stmt]) -> bool:
    """Tell whether any statement returns."""
    return any(isinstance(node, ast.Return) for statement in body for node in ast.walk(statement))


def always_returns(body: Sequence[ast.stmt]) -> bool:
    """Tell whether every way through the body returns."""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, ast.Return) or (
        isinstance(last, ast.If) and always_returns(last.body) and always_returns(last.orelse)
    )


def check_returns(body: Sequence[ast.stmt]) -> None:
    """Raise where a loop returns."""
    for statement in body:
        for loop in _loops(statement):
            if has_return(loop.body):  # type: ignore[attr-defined]
                raise ReturnsInsideLoopError


def _loops(statement: ast.stmt) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(statement) if isinstance(node, ast.For | ast.While))
