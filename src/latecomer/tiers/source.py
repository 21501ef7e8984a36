"""Flattened source, and what is known of the states that it is for."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Function = Callable[..., Any]
Shape = tuple[int, ...]

STATE = "state"
STATES = "states"
"""The name of a kernel's first parameter where that is the array of one state."""


@dataclass(frozen=True)
class StateKind:
    """Everything that all states of a kind share: the shapes of its arrays, some of its numbers, and its hooks."""

    shapes: Mapping[str, Shape]
    """By field: () for a number."""
    constants: Mapping[str, float]
    """Numbers that never change, by field."""
    hooks: Any = None
    """The algorithm: an object that has the functions behind hooks as attributes."""


@dataclass
class Source:
    """Flattened functions, callees first, and the names that they need."""

    functions: list[ast.FunctionDef] = field(default_factory=list)
    namespace: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The source text; the entry point is the last function."""
        return "\n\n".join(ast.unparse(ast.fix_missing_locations(function)) for function in self.functions) + "\n"


@cache
def parse(function: Function) -> ast.FunctionDef:
    """Return the syntax tree of a function."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(f"{function} is not a function that can be compiled")
    return tree
