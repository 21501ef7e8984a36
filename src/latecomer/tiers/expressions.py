"""Flattening of expressions: statements that an expression needs come before it, in the order of evaluation."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from latecomer.tiers.scope import Scope, write_number
from latecomer.tiers.source import STATE, StateKind
from latecomer.tiers.syntax import assign, fold, is_lasting, known_name, to_bool


class ExpressionFlattener(ABC):
    """Flatten expressions. Statements go to `out`; expressions are returned, after the statements they need."""

    def __init__(self, kind: StateKind | None, namespace: dict[str, Any]) -> None:
        self.kind, self._namespace = kind, namespace
        self.out: list[ast.stmt] = []
        self._arrays: set[str] = set()
        self._parameters: set[str] = set()
        """The parameters of the function that are never assigned."""
        self._lengths: set[tuple[str, int]] = set()
        """The lengths of such parameters, by axis, that the function uses: each is looked up once."""
        self._count = 0

    @abstractmethod
    def _call(self, node: ast.Call, scope: Scope, *, wanted: bool) -> ast.expr | None:
        """Flatten a call: None where the body has taken its place and it has no value."""

    def _expr(self, node: ast.expr, scope: Scope) -> ast.expr:
        match node:
            case ast.Constant():
                return node
            case ast.Name(id=name):
                return scope.name(name)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=0)) if name == scope.state_array:
                return ast.Name(STATE)
            case ast.Attribute(value=value, attr=attribute):
                return self._attribute(self._expr(value, scope), attribute)
            case ast.Subscript(value=value, slice=index):
                array, place = self._exprs([value, index], scope)
                return self._subscript(array, place)
            case ast.Slice(lower=lower, upper=upper):
                low, high = (None if end is None else self._expr(end, scope) for end in (lower, upper))
                return ast.Slice(low, high)
            case ast.Tuple(elts=values):
                return ast.Tuple(self._exprs(values, scope))
            case ast.BinOp(left=left, op=op, right=right):
                first, second = self._exprs([left, right], scope)
                return fold(ast.BinOp(first, op, second))
            case ast.UnaryOp(op=op, operand=operand):
                return fold(ast.UnaryOp(op, self._expr(operand, scope)))
            case ast.Compare(left=left, ops=ops, comparators=others):
                first, *rest = self._exprs([left, *others], scope)
                return self._compare(first, ops, rest)
            case ast.BoolOp(op=op, values=values):
                return self._bool_op(op, values, scope)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._if_expression(test, body, orelse, scope)
            case ast.Call():
                found = self._call(node, scope, wanted=True)
                if found is None:
                    raise TypeError(f"{ast.unparse(node)} has no value, in {scope.function.__name__}")
                return found
        raise TypeError(f"{ast.unparse(node)} cannot be compiled, in {scope.function.__name__}")

    def _exprs(self, nodes: Sequence[ast.expr], scope: Scope) -> list[ast.expr]:
        """Flatten expressions in their order: one that must be known before another's statements gets a name."""
        found: list[ast.expr] = []
        for node in nodes:
            begin = len(self.out)
            latest = self._expr(node, scope)
            needed = self.out[begin:]
            if needed:
                del self.out[begin:]
                found = [self._spill(earlier) for earlier in found]
                self.out.extend(needed)
            found.append(latest)
        return found

    def _spill(self, value: ast.expr) -> ast.expr:
        """Give a value a name, unless it cannot change."""
        if is_lasting(value) or isinstance(value, ast.Slice):
            return value
        if isinstance(value, ast.Name) and (value.id == STATE or value.id in self._parameters):
            return value  # another name for an array would be counted as a reference, at every turn of a loop
        name = self._new_name("t")
        self.out.append(assign(name, value))
        return ast.Name(name)

    def _new_name(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def _attribute(self, value: ast.expr, attribute: str) -> ast.expr:
        if isinstance(value, ast.Name) and value.id == STATE and self.kind is not None:
            if attribute in self.kind.constants:
                return ast.Constant(self.kind.constants[attribute])
            if self.kind.shapes[attribute]:
                self._arrays.add(attribute)
                return ast.Name(f"state__{attribute}")
        module = self._namespace.get(value.id) if isinstance(value, ast.Name) else None
        if isinstance(module, ModuleType) and isinstance(getattr(module, attribute), float):
            return write_number(getattr(module, attribute), self._namespace)
        return ast.Attribute(value, attribute)

    def _subscript(self, array: ast.expr, place: ast.expr) -> ast.expr:
        """Index an array; the shape of an array of the state is known."""
        if isinstance(array, ast.Attribute) and array.attr == "shape" and isinstance(place, ast.Constant):
            name = known_name(array.value)
            if name is not None and name != STATE and self.kind is not None:
                return ast.Constant(self.kind.shapes[name.removeprefix("state__")][place.value])  # type: ignore[index]
            if isinstance(array.value, ast.Name) and array.value.id in self._parameters:
                self._lengths.add((array.value.id, place.value))  # type: ignore[arg-type]
                return ast.Name(f"{array.value.id}__length_{place.value!r}")
        return ast.Subscript(array, place)

    def _compare(self, first: ast.expr, ops: list[ast.cmpop], rest: list[ast.expr]) -> ast.expr:
        none = [isinstance(value, ast.Constant) and value.value is None for value in (first, *rest)]
        if len(rest) == 1 and any(none) and all(isinstance(value, ast.Constant) for value in (first, *rest)):
            return ast.Constant(all(none) == isinstance(ops[0], ast.Is))
        return fold(ast.Compare(first, ops, rest))

    def _bool_op(self, op: ast.boolop, values: Sequence[ast.expr], scope: Scope) -> ast.expr:
        """Flatten `and` and `or`: what decides alone ends them, and statements of a later value come under an if."""
        is_and = isinstance(op, ast.And)
        first = self._expr(values[0], scope)
        if isinstance(first, ast.Constant):
            if bool(first.value) != is_and or len(values) == 1:
                return first
            return self._bool_op(op, values[1:], scope)
        if len(values) == 1:
            return first
        before, self.out = self.out, []
        rest = self._bool_op(op, values[1:], scope)
        needed, self.out = self.out, before
        if isinstance(rest, ast.Constant) and not needed:
            return first if bool(rest.value) == is_and else ast.BoolOp(op, [first, rest])
        if not needed:
            return ast.BoolOp(op, [first, rest])
        name = self._new_name("t")
        self.out.append(assign(name, to_bool(first)))
        test: ast.expr = ast.Name(name) if is_and else ast.UnaryOp(ast.Not(), ast.Name(name))
        self.out.append(ast.If(test, [*needed, assign(name, to_bool(rest))], []))
        return ast.Name(name)

    def _if_expression(self, test: ast.expr, body: ast.expr, orelse: ast.expr, scope: Scope) -> ast.expr:
        decided = self._expr(test, scope)
        if isinstance(decided, ast.Constant):
            return self._expr(body if decided.value else orelse, scope)
        before = self.out
        parts = []
        for value in (body, orelse):
            self.out = []
            parts.append((self._expr(value, scope), self.out))
        self.out = before
        (then, then_needs), (other, other_needs) = parts
        if not then_needs and not other_needs:
            return ast.IfExp(decided, then, other)
        name = self._new_name("t")
        self.out.append(ast.If(decided, [*then_needs, assign(name, then)], [*other_needs, assign(name, other)]))
        return ast.Name(name)
