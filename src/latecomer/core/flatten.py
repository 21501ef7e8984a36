"""Flattening: one function of a kernel and of all that it calls, for one kind of state.

Numba takes some 50 ms a function and little for a statement, so that a policy of seventy small kernels takes ten
seconds to compile, and two as one function. Flattening works on syntax trees, before any compiler: calls of kernels are
replaced by their bodies, fields that are the same for every state of a kind (dimensions, flags) by numbers, and branches
that such numbers decide are left out. The result is plain Python source. It does what the kernel does, operation by
operation, and its text is the key by which machine code is cached: a changed kernel has another text.

Kernels that return from inside a loop, or are declared so, stay functions of their own in the same source.
"""

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from latecomer.core.jit import Declaration, ExternalFunction, HookDeclaration, find_declaration

Function = Callable[..., Any]
Shape = tuple[int, ...]

STATE = "state"


class _ReturnsInsideLoop(Exception):
    """The function cannot be a part of its caller."""


@dataclass(frozen=True)
class StateKind:
    """What is the same for every state of a kind: the shapes of its arrays, some of its numbers, and its hooks."""

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
def _parse(function: Function) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(f"{function} is not a function that can be compiled")
    return tree


def flatten(entry: Function, kind: StateKind | None) -> Source:
    """Flatten an entry point, whose first argument is the array of one state where there is a kind."""
    source = Source()
    _Functions(source, kind).add(entry, [], name=entry.__name__)
    return source


class _Functions:
    """The functions of one flattened source, each made once for each kind of arguments."""

    def __init__(self, source: Source, kind: StateKind | None) -> None:
        self.source, self.kind = source, kind
        self._names: dict[Any, str] = {}

    def add(self, function: Function, arguments: Sequence[ast.expr | None], name: str | None = None) -> str:
        """Add a function for arguments of which some are state or arrays of it; return its name."""
        declaration = find_declaration(function)
        function = declaration.source if isinstance(declaration, Declaration) else function
        known = [_known_name(argument) for argument in arguments]
        key = (function, *known)
        if key not in self._names:
            self._names[key] = name = name or f"{function.__name__.lstrip('_')}_{len(self._names)}"
            self.source.functions.append(_Flattener(self, function).function(name, known))
        return self._names[key]


def _known_name(argument: ast.expr | None) -> str | None:
    """Return the name of an argument that is the state, or an array of it."""
    if isinstance(argument, ast.Name) and (argument.id == STATE or argument.id.startswith("state__")):
        return argument.id
    return None


class _Flattener:
    """Flatten one function. Statements go to `out`; expressions are returned, after the statements they need."""

    def __init__(self, functions: _Functions, function: Function) -> None:
        self.functions, self.kind, self._entry = functions, functions.kind, function
        self.out: list[ast.stmt] = []
        self._arrays: set[str] = set()
        self._count = 0

    def function(self, name: str, known: Sequence[str | None]) -> ast.FunctionDef:
        """Flatten the whole function under a name of its own."""
        tree = _parse(self._entry)
        scope = _Scope(self._entry, tree, self, suffix="")
        parameters = [argument.arg for argument in tree.args.args]
        for parameter, argument in zip(parameters, known or [None] * len(parameters), strict=True):
            scope.names[parameter] = ast.Name(argument or parameter)
        if parameters and parameters[0] == "cell":
            self.out.append(_assign(STATE, ast.Subscript(ast.Name("cell"), ast.Constant(0))))
            scope.state_array = "cell"
        body = self._block(tree.body, scope)
        begin = [_assign(f"state__{name}", ast.Attribute(ast.Name(STATE), name)) for name in sorted(self._arrays)]
        passed = [argument for argument in known if argument]
        bound = [statement for statement in begin if statement.targets[0].id not in passed]  # type: ignore[attr-defined]
        arguments = [ast.arg(argument or parameter) for parameter, argument in
                     zip(parameters, known or [None] * len(parameters), strict=True)]  # fmt: skip
        statements = [*self.out, *bound, *body] or [ast.Pass()]
        if bound and STATE not in [argument.arg for argument in arguments] and scope.state_array is None:
            raise TypeError(f"{self._entry.__name__} uses a state that it is not given")
        return ast.FunctionDef(
            name, ast.arguments([], arguments, None, [], [], None, []), statements, decorator_list=[], type_params=[]
        )

    # ---- statements ----

    def _block(self, statements: Sequence[ast.stmt], scope: "_Scope") -> list[ast.stmt]:
        """Flatten statements into a list of their own."""
        before, self.out = self.out, []
        for statement in statements:
            self._statement(statement, scope)
            if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                break
        found, self.out = self.out, before
        return found

    def _statement(self, node: ast.stmt, scope: "_Scope") -> None:
        match node:
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(ast.Call() as call):
                found = self._call(call, scope, wanted=False)
                if found is not None:
                    self.out.append(ast.Expr(found))
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if scope.are_new(targets):
                for target, value in zip(targets, values, strict=True):
                    self._assign(target, value, scope)
            case ast.Assign(targets=targets, value=value) if len(targets) == 1:
                self._assign(targets[0], value, scope)
            case ast.Assign(targets=targets, value=value):
                found = self._spill(self._expr(value, scope))
                self.out.append(ast.Assign([self._expr(target, scope) for target in targets], found))
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._assign(target, value, scope)
            case ast.AugAssign(target=target, op=op, value=value):
                found = self._expr(value, scope)
                self.out.append(ast.AugAssign(self._expr(target, scope), op, found))  # type: ignore[arg-type]
            case ast.If(test=test, body=body, orelse=orelse):
                self._if(self._expr(test, scope), lambda: self._block(body, scope), lambda: self._block(orelse, scope))
            case ast.While(test=test, body=body):
                self._while(test, body, scope)
            case ast.For(target=target, iter=iterable, body=body):
                found = self._expr(iterable, scope)
                self.out.append(ast.For(self._expr(target, scope), found, self._block(body, scope), []))
            case ast.Return(value=value):
                self.out.append(ast.Return(None if value is None else self._expr(value, scope)))
            case ast.Break() | ast.Continue():
                self.out.append(node)
            case _:
                raise TypeError(f"{ast.unparse(node)} cannot be compiled, in {scope.function.__name__}")

    def _assign(self, target: ast.expr, value: ast.expr, scope: "_Scope") -> None:
        found = self._expr(value, scope)
        if isinstance(target, ast.Name) and scope.is_assigned_once(target.id) and _is_lasting(found):
            scope.names[target.id] = found
        else:
            self.out.append(ast.Assign([self._expr(target, scope)], found))

    def _if(self, test: ast.expr, body: Callable[[], list[ast.stmt]], orelse: Callable[[], list[ast.stmt]]) -> None:
        if isinstance(test, ast.Constant):
            self.out.extend(body() if test.value else orelse())
            return
        then, other = body(), orelse()
        if then or other:
            self.out.append(ast.If(test, then or [ast.Pass()], other))

    def _while(self, test: ast.expr, body: list[ast.stmt], scope: "_Scope") -> None:
        before, self.out = self.out, []
        found = self._expr(test, scope)
        needed, self.out = self.out, before
        inner = self._block(body, scope)
        if needed:
            stop = ast.If(ast.UnaryOp(ast.Not(), found), [ast.Break()], [])
            self.out.append(ast.While(ast.Constant(True), [*needed, stop, *inner], []))
        else:
            self.out.append(ast.While(found, inner or [ast.Pass()], []))

    # ---- expressions ----

    def _expr(self, node: ast.expr, scope: "_Scope") -> ast.expr:
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
                return ast.Slice(low, high)  # type: ignore[return-value]
            case ast.Tuple(elts=values):
                return ast.Tuple(self._exprs(values, scope))
            case ast.BinOp(left=left, op=op, right=right):
                return _fold(ast.BinOp(*_between(self._exprs([left, right], scope), op)))
            case ast.UnaryOp(op=op, operand=operand):
                return _fold(ast.UnaryOp(op, self._expr(operand, scope)))
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

    def _exprs(self, nodes: Sequence[ast.expr], scope: "_Scope") -> list[ast.expr]:
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
        if _is_lasting(value) or isinstance(value, ast.Slice) or (isinstance(value, ast.Name) and value.id == STATE):
            return value
        name = self._new_name("t")
        self.out.append(_assign(name, value))
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
        module = self.functions.source.namespace.get(value.id) if isinstance(value, ast.Name) else None
        if isinstance(module, ModuleType) and isinstance(getattr(module, attribute), float):
            return self.constant(getattr(module, attribute))
        return ast.Attribute(value, attribute)

    def _subscript(self, array: ast.expr, place: ast.expr) -> ast.expr:
        """Index an array; the shape of an array of the state is known."""
        if isinstance(array, ast.Attribute) and array.attr == "shape" and isinstance(place, ast.Constant):
            name = _known_name(array.value)
            if name is not None and name != STATE and self.kind is not None:
                return ast.Constant(self.kind.shapes[name.removeprefix("state__")][place.value])  # type: ignore[index]
        return ast.Subscript(array, place)

    def _compare(self, first: ast.expr, ops: list[ast.cmpop], rest: list[ast.expr]) -> ast.expr:
        none = [isinstance(value, ast.Constant) and value.value is None for value in (first, *rest)]
        if len(rest) == 1 and any(none) and all(isinstance(value, ast.Constant) for value in (first, *rest)):
            return ast.Constant(all(none) == isinstance(ops[0], ast.Is))
        return _fold(ast.Compare(first, ops, rest))

    def _bool_op(self, op: ast.boolop, values: Sequence[ast.expr], scope: "_Scope") -> ast.expr:
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
        self.out.append(_assign(name, _to_bool(first)))
        test: ast.expr = ast.Name(name) if is_and else ast.UnaryOp(ast.Not(), ast.Name(name))
        self.out.append(ast.If(test, [*needed, _assign(name, _to_bool(rest))], []))
        return ast.Name(name)

    def _if_expression(self, test: ast.expr, body: ast.expr, orelse: ast.expr, scope: "_Scope") -> ast.expr:
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
        self.out.append(ast.If(decided, [*then_needs, _assign(name, then)], [*other_needs, _assign(name, other)]))
        return ast.Name(name)

    def constant(self, value: float) -> ast.expr:
        """Write a number; those that have no literal get a name."""
        if isinstance(value, float) and not math.isfinite(value):
            name = "nan" if math.isnan(value) else "inf" if value > 0 else "minus_inf"
            self.functions.source.namespace[name] = value
            return ast.Name(name)
        return ast.Constant(value)

    # ---- calls ----

    def _call(self, node: ast.Call, scope: "_Scope", *, wanted: bool) -> ast.expr | None:
        """Flatten a call: None where the body has taken its place and it has no value."""
        if node.keywords:
            raise TypeError(f"{ast.unparse(node)} has keywords, which kernels do without")
        target = scope.function_of(node.func)
        if isinstance(target, FunctionType):
            return self._kernel_call(target, node, scope, wanted=wanted)
        if isinstance(target, ExternalFunction):
            self.functions.source.namespace[target.symbol] = target
            return ast.Call(ast.Name(target.symbol), self._exprs(node.args, scope), [])
        if isinstance(node.func, ast.Attribute):  # a method or a function of a module
            function, *arguments = self._exprs([node.func, *node.args], scope)
        else:
            function, arguments = self._expr(node.func, scope), self._exprs(node.args, scope)
        return _fold_call(ast.Call(function, arguments, []), target)

    def _kernel_call(self, target: FunctionType, node: ast.Call, scope: "_Scope", *, wanted: bool) -> ast.expr | None:
        declaration = find_declaration(target)
        if isinstance(declaration, HookDeclaration):
            target = declaration.find(None if self.kind is None else self.kind.hooks)
            declaration = find_declaration(target)
        arguments = self._exprs(node.args, scope)
        inline = not (isinstance(declaration, Declaration) and declaration.is_separate)
        if inline:
            function = declaration.source if isinstance(declaration, Declaration) else target
            try:
                return self._inline(function, arguments, wanted=wanted)
            except _ReturnsInsideLoop:
                pass
        name = self.functions.add(target, arguments)
        return ast.Call(ast.Name(name), arguments, [])

    def _inline(self, function: Function, arguments: list[ast.expr], *, wanted: bool) -> ast.expr | None:
        tree = _parse(function)
        body = _without_docstring(tree.body)
        _check_returns(body)
        self._count += 1
        inner = _Scope(function, tree, self, suffix=f"_{self._count}")
        for parameter, argument in zip(tree.args.args, arguments, strict=True):
            if isinstance(argument, ast.Name) and argument.id == "cell":
                inner.state_array = parameter.arg
                continue
            is_kept = isinstance(argument, ast.Constant | ast.Name) and not inner.is_assigned(parameter.arg)
            if is_kept:
                inner.names[parameter.arg] = argument
            else:
                renamed = ast.Name(parameter.arg + inner.suffix)
                self.out.append(ast.Assign([renamed], argument))
                inner.names[parameter.arg] = renamed
        returned = ast.Name(self._new_name("r")) if wanted else None
        if len(body) >= 1 and isinstance(body[-1], ast.Return) and not _has_return(body[:-1]):
            for statement in body[:-1]:
                self._statement(statement, inner)
            value = body[-1].value
            if value is None:
                return None
            found = self._expr(value, inner)
            return found if wanted else self._discard(found)
        self.out.extend(self._returning(body, inner, returned))
        return returned

    def _discard(self, value: ast.expr) -> None:
        if any(isinstance(part, ast.Call) for part in ast.walk(value)):
            self.out.append(ast.Expr(value))

    def _returning(self, body: Sequence[ast.stmt], scope: "_Scope", returned: ast.Name | None) -> list[ast.stmt]:
        """Flatten a body whose returns are outside of loops: each becomes an assignment, and the rest an else."""
        before, self.out = self.out, []
        for i, statement in enumerate(body):
            if isinstance(statement, ast.Return):
                if statement.value is not None:
                    found = self._expr(statement.value, scope)
                    if returned is not None:
                        self.out.append(ast.Assign([returned], found))
                    else:
                        self._discard(found)
                break
            if isinstance(statement, ast.If) and _has_return([statement]):
                rest = body[i + 1 :]
                then = statement.body if _ends(statement.body) else [*statement.body, *rest]
                other = statement.orelse if _ends(statement.orelse) else [*statement.orelse, *rest]
                self._if(
                    self._expr(statement.test, scope),
                    lambda then=then: self._returning(then, scope, returned),  # type: ignore[misc]
                    lambda other=other: self._returning(other, scope, returned),  # type: ignore[misc]
                )
                break
            self._statement(statement, scope)
        found_statements, self.out = self.out, before
        return found_statements


class _Scope:
    """The names of one function while its body is flattened."""

    def __init__(self, function: Function, tree: ast.FunctionDef, flattener: _Flattener, suffix: str) -> None:
        self.function, self.suffix, self._flattener = function, suffix, flattener
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
            return self._flattener.constant(value.item() if isinstance(value, np.generic) else value)  # type: ignore[arg-type]
        if isinstance(value, ModuleType):
            self._flattener.functions.source.namespace[name] = value
        return ast.Name(name)

    def _global(self, name: str) -> Any:
        module = self.function.__globals__  # type: ignore[attr-defined]
        if name in module:
            return module[name]
        builtins = module["__builtins__"]
        return builtins[name] if isinstance(builtins, dict) else getattr(builtins, name)

    def function_of(self, node: ast.expr) -> Any:
        """Return the object that a call calls, where it is not a method."""
        if isinstance(node, ast.Name) and node.id not in self.names and node.id not in self._assigned:
            return self._global(node.id)
        return None


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name)], value)


def _between(pair: list[ast.expr], op: ast.operator) -> tuple[ast.expr, ast.operator, ast.expr]:
    return pair[0], op, pair[1]


def _is_lasting(value: ast.expr) -> bool:
    """Tell whether an expression means the same wherever it stands: a number, or an array of the state."""
    return isinstance(value, ast.Constant) or _known_name(value) is not None


def _to_bool(value: ast.expr) -> ast.expr:
    return value if isinstance(value, ast.Compare | ast.BoolOp) else ast.Call(ast.Name("bool"), [value], [])


def _fold(node: ast.expr) -> ast.expr:
    """Compute what has only numbers."""
    parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    if not all(isinstance(part, ast.Constant) for part in parts):
        return node
    value = eval(ast.unparse(node), {"__builtins__": {}})  # noqa: S307 - numbers and operators alone
    return ast.Constant(value) if value >= 0 or isinstance(value, bool) else node


def _fold_call(node: ast.Call, target: Any) -> ast.expr:
    numbers = [part.value for part in node.args if isinstance(part, ast.Constant)]
    if target in (max, min, int, float, len) and node.args and len(numbers) == len(node.args):
        return ast.Constant(target(*numbers))
    return node


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    return [node for node in body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]


def _has_return(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Return) for statement in body for node in ast.walk(statement))


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Tell whether every way through the body returns."""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, ast.Return) or (isinstance(last, ast.If) and _ends(last.body) and _ends(last.orelse))


def _check_returns(body: Sequence[ast.stmt]) -> None:
    for statement in body:
        for loop in _loops(statement):
            if _has_return(loop.body):  # type: ignore[attr-defined]
                raise _ReturnsInsideLoop


def _loops(statement: ast.stmt) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(statement) if isinstance(node, ast.For | ast.While))
