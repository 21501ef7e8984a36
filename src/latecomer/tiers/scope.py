"""The names of one function while its body is flattened."""

import ast
import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from latecomer.tiers.source import Function


def write_number(value: float | None, namespace: dict[str, Any]) -> ast.expr:
    """Write a number; those that have no literal get a name in the namespace."""
    if isinstance(value, float) and not math.isfinite(value):
        name = "nan" if math.isnan(value) else "inf" if value > 0 else "minus_inf"
        namespace[name] = value
        return ast.Name(name)
    return ast.Constant(value)


class Scope:
    """The names of one function while its body is flattened."""

    def __init__(self, function: Function, tree: ast.FunctionDef, namespace: dict[str, Any], suffix: str) -> None:
        self.function, self.suffix, self._namespace = function, suffix, namespace
        self.names: dict[str, ast.expr] = {}
        self.state_array: str | None = None
        self._assigned: dict[str, int] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._assigned[node.id] = self._assigned.get(node.id, 0) + 1
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self._assigned[node.target.id] = self._assigned.get(node.target.id, 0) + 1

    def is_assigned(self, name: str) -> bool:
        """Tell whether the body assigns to a name."""
        return name in self._assigned

    def is_assigned_once(self, name: str) -> bool:
        """Tell whether a name stands for one value throughout."""
        return self._assigned.get(name) == 1 and name not in self.names

    def are_new(self, targets: Sequence[ast.expr]) -> bool:
        """Tell whether all targets are names that are assigned once: then one can be assigned after the other."""
        return all(isinstance(target, ast.Name) and self.is_assigned_once(target.id) for target in targets)

    def name(self, name: str) -> ast.expr:
        """Return what a name stands for: an argument, a local variable, or a constant of the module."""
        if name in self.names:
            return self.names[name]
        if name in self._assigned:
            return ast.Name(name + self.suffix)
        value = self._global(name)
        if isinstance(value, bool | int | float | np.integer) or value is None:
            return write_number(value.item() if isinstance(value, np.generic) else value, self._namespace)
        if isinstance(value, ModuleType):
            self._namespace[name] = value
        return ast.Name(name)

    def _global(self, name: str) -> Any:
        module = self.function.__globals__
        if name in module:
            return module[name]
        builtins = module["__builtins__"]
        return builtins[name] if isinstance(builtins, dict) else getattr(builtins, name)

    def function_of(self, node: ast.expr) -> Any:
        """Return the object that a call calls, where it is not a method."""
        if isinstance(node, ast.Name) and node.id not in self.names and node.id not in self._assigned:
            return self._global(node.id)
        return None
