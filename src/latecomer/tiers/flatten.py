"""Flattening: one function of a kernel and of all that it calls, for one kind of state.

Numba takes some 50 ms a function and little for a statement, so that a policy of seventy small kernels takes ten
seconds to compile, and two as one function. Flattening works on syntax trees, before any compiler: calls of kernels
are replaced by their bodies, fields that are the same for every state of a kind (dimensions, flags) by numbers, and
branches that such numbers decide are left out. The result is plain Python source. It does what the kernel does,
operation by operation, and its text is the key by which machine code is cached: a changed kernel has another text.

Kernels that return from inside a loop, or are declared so, stay functions of their own in the same source.
"""

import ast
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from latecomer.core.jit import Declaration, ExternalFunction, HookDeclaration, find_declaration
from latecomer.tiers.expressions import ExpressionFlattener
from latecomer.tiers.scope import Scope
from latecomer.tiers.source import STATE, STATES, Function, Source, StateKind, parse
from latecomer.tiers.syntax import (
    ReturnsInsideLoopError,
    always_returns,
    assign,
    check_returns,
    fold_call,
    has_return,
    is_lasting,
    known_name,
    without_docstring,
)

_TYPE_PARAMETERS: dict[str, Any] = {"type_params": []} if sys.version_info >= (3, 12) else {}


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
        known = [known_name(argument) for argument in arguments]
        key = (function, *known)
        if key not in self._names:
            self._names[key] = name = name or f"{function.__name__.lstrip('_')}_{len(self._names)}"
            self.source.functions.append(_Flattener(self, function).function(name, known))
        return self._names[key]


class _Flattener(ExpressionFlattener):
    """Flatten one function."""

    def __init__(self, functions: _Functions, function: Function) -> None:
        super().__init__(functions.kind, functions.source.namespace)
        self.functions, self._entry = functions, function

    def function(self, name: str, known: Sequence[str | None]) -> ast.FunctionDef:
        """Flatten the whole function under a name of its own."""
        tree = parse(self._entry)
        scope = Scope(self._entry, tree, self._namespace, suffix="")
        parameters = [argument.arg for argument in tree.args.args]
        for parameter, argument in zip(parameters, known or [None] * len(parameters), strict=True):
            scope.names[parameter] = ast.Name(argument or parameter)
        self._parameters = {parameter for parameter in parameters if not scope.is_assigned(parameter)}
        if parameters and parameters[0] == STATES:
            self.out.append(assign(STATE, ast.Subscript(ast.Name(STATES), ast.Constant(0))))
            scope.state_array = STATES
        body = self._block(tree.body, scope)
        begin = [assign(f"state__{name}", ast.Attribute(ast.Name(STATE), name)) for name in sorted(self._arrays)]
        passed = [argument for argument in known if argument]
        bound = [statement for statement in begin if statement.targets[0].id not in passed]  # type: ignore[attr-defined]
        arguments = [ast.arg(argument or parameter) for parameter, argument in
                     zip(parameters, known or [None] * len(parameters), strict=True)]  # fmt: skip
        lengths = [
            assign(f"{name}__length_{axis}", ast.Subscript(ast.Attribute(ast.Name(name), "shape"), ast.Constant(axis)))
            for name, axis in sorted(self._lengths)
        ]
        statements = [*self.out, *bound, *lengths, *body] or [ast.Pass()]
        if bound and STATE not in [argument.arg for argument in arguments] and scope.state_array is None:
            raise TypeError(f"{self._entry.__name__} uses a state that it is not given")
        signature = ast.arguments([], arguments, None, [], [], None, [])
        return ast.FunctionDef(name, signature, statements, decorator_list=[], **_TYPE_PARAMETERS)

    # ---- statements ----

    def _block(self, statements: Sequence[ast.stmt], scope: Scope) -> list[ast.stmt]:
        """Flatten statements into a list of their own."""
        before, self.out = self.out, []
        for statement in statements:
            self._statement(statement, scope)
            if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                break
        found, self.out = self.out, before
        return found

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
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

    def _assign(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        found = self._expr(value, scope)
        if isinstance(target, ast.Name) and scope.is_assigned_once(target.id) and is_lasting(found):
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

    def _while(self, test: ast.expr, body: list[ast.stmt], scope: Scope) -> None:
        before, self.out = self.out, []
        found = self._expr(test, scope)
        needed, self.out = self.out, before
        inner = self._block(body, scope)
        if needed:
            stop = ast.If(ast.UnaryOp(ast.Not(), found), [ast.Break()], [])
            self.out.append(ast.While(ast.Constant(True), [*needed, stop, *inner], []))
        else:
            self.out.append(ast.While(found, inner or [ast.Pass()], []))

    # ---- calls ----

    def _call(self, node: ast.Call, scope: Scope, *, wanted: bool) -> ast.expr | None:
        """Flatten a call: None where the body has taken its place and it has no value."""
        if node.keywords:
            raise TypeError(f"{ast.unparse(node)} has keywords, which kernels do without")
        target = scope.function_of(node.func)
        if isinstance(target, FunctionType):
            return self._kernel_call(target, node, scope, wanted=wanted)
        if isinstance(target, ExternalFunction):
            self._namespace[target.symbol] = target
            return ast.Call(ast.Name(target.symbol), self._exprs(node.args, scope), [])
        if isinstance(node.func, ast.Attribute):  # a method or a function of a module
            function, *arguments = self._exprs([node.func, *node.args], scope)
        else:
            function, arguments = self._expr(node.func, scope), self._exprs(node.args, scope)
        return fold_call(ast.Call(function, arguments, []), target)

    def _kernel_call(self, target: FunctionType, node: ast.Call, scope: Scope, *, wanted: bool) -> ast.expr | None:
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
            except ReturnsInsideLoopError:
                pass
        name = self.functions.add(target, arguments)
        return ast.Call(ast.Name(name), arguments, [])

    def _inline(self, function: Function, arguments: list[ast.expr], *, wanted: bool) -> ast.expr | None:
        tree = parse(function)
        body = without_docstring(tree.body)
        check_returns(body)
        self._count += 1
        inner = Scope(function, tree, self._namespace, suffix=f"_{self._count}")
        for parameter, argument in zip(tree.args.args, arguments, strict=True):
            if isinstance(argument, ast.Name) and argument.id == STATES:
                inner.state_array, inner.names[parameter.arg] = parameter.arg, argument
                continue
            is_kept = isinstance(argument, ast.Constant | ast.Name) and not inner.is_assigned(parameter.arg)
            if is_kept:
                inner.names[parameter.arg] = argument
            else:
                renamed = ast.Name(parameter.arg + inner.suffix)
                self.out.append(ast.Assign([renamed], argument))
                inner.names[parameter.arg] = renamed
        returned = ast.Name(self._new_name("r")) if wanted else None
        if len(body) >= 1 and isinstance(body[-1], ast.Return) and not has_return(body[:-1]):
            for statement in body[:-1]:
                self._statement(statement, inner)
            value = body[-1].value
            if value is None:
                return None
            found = self._expr(value, inner)
            if not wanted:
                self._discard(found)
            return found if wanted else None
        self.out.extend(self._returning(body, inner, returned))
        return returned

    def _discard(self, value: ast.expr) -> None:
        if any(isinstance(part, ast.Call) for part in ast.walk(value)):
            self.out.append(ast.Expr(value))

    def _returning(self, body: Sequence[ast.stmt], scope: Scope, returned: ast.Name | None) -> list[ast.stmt]:
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
            if isinstance(statement, ast.If) and has_return([statement]):
                rest = body[i + 1 :]
                then = statement.body if always_returns(statement.body) else [*statement.body, *rest]
                other = statement.orelse if always_returns(statement.orelse) else [*statement.orelse, *rest]
                self._if(
                    self._expr(statement.test, scope),
                    lambda then=then: self._returning(then, scope, returned),  # type: ignore[misc]
                    lambda other=other: self._returning(other, scope, returned),  # type: ignore[misc]
                )
                break
            self._statement(statement, scope)
        found_statements, self.out = self.out, before
        return found_statements
