"""The small changes of a source that its tests should notice; pure.

There are seven kinds, those of common mutation tools. Code that only makes words (messages, names, logs) is not
changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

NEIGHBOURS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
NodePlace = tuple[str, ast.expr | ast.stmt, str, ast.AST]
"""The path of a function, a node in it, the kind of the change, and the node that replaces it."""
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class LineChange:
    """One change: `function` is the path of the function, `before` and `after` are the text of what changes."""

    function: str
    line: int
    kind: str
    before: str
    after: str
    place: int
    """The position of the changed node in the order of `ast.walk`."""
    node: ast.AST
    """The node that replaces it."""

    @property
    def name(self) -> str:
        """A name that identifies the change within its file, whatever its line."""
        return f"{self.function}: {self.kind}: {self.before} -> {self.after}"


def changes(source: str) -> list[LineChange]:
    """Every change of a source, in the order of its lines."""
    tree = ast.parse(source)
    place_by_node = {node: place for place, node in enumerate(ast.walk(tree))}
    return [
        LineChange(function, node.lineno, kind, _one_line(node), _one_line(after), place_by_node[node], after)
        for function, node, kind, after in _places(tree)
    ]


def changed(source: str, change: LineChange) -> str:
    """The source after one of its changes."""
    tree = ast.parse(source)
    target = next(node for place, node in enumerate(ast.walk(tree)) if place == change.place)
    return ast.unparse(ast.fix_missing_locations(_Replaced(target, change.node).visit(tree)))


class _Replaced(ast.NodeTransformer):
    def __init__(self, target: ast.AST, after: ast.AST) -> None:
        self._target, self._after = target, after

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._target:
            return self._after
        return super().visit(node)


def _one_line(node: ast.AST) -> str:
    text = ast.unparse(node).splitlines()
    return text[0] if len(text) == 1 else f"{text[0]} ..."


def _places(tree: ast.Module) -> Iterator[NodePlace]:
    def walk(node: ast.AST, path: tuple[str, ...]) -> Iterator[NodePlace]:
        if isinstance(node, Scope):
            path = (*path, node.name)
        elif path and isinstance(node, ast.expr | ast.stmt) and not _is_words(node):
            yield from ((".".join(path), node, kind, after) for kind, after in _of(node))
        if not _is_words(node):
            for child in ast.iter_child_nodes(node):
                yield from walk(child, path)

    return walk(tree, ())


def _of(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yields the changes of one node: their kinds, and the nodes that replace it."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in NEIGHBOURS:
            yield "compare", ast.Compare(left, [NEIGHBOURS[type(op)]()], [right])
            if isinstance(op, ORDERS) and not isinstance(right, ast.Constant):
                step = ast.Add() if isinstance(op, ast.Gt | ast.LtE) else ast.Sub()
                yield "shift", ast.Compare(left, [op], [ast.BinOp(right, step, ast.Constant(1))])
        case ast.BoolOp(op=op, values=values):
            yield "join", ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values)
            for at in range(len(values)):
                rest = [value for other, value in enumerate(values) if other != at]
                yield "part", rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", operand
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
            yield "one", left
        case ast.Expr(value=ast.Call()):
            yield "call", ast.Pass()
        case ast.If(test=test, body=[ast.Raise()], orelse=[]):
            yield "guard", ast.If(ast.BoolOp(ast.And(), [ast.Constant(False), test]), node.body, [])
        case _:
            pass


def _is_words(node: ast.AST) -> bool:
    """Whether the node only makes words, so that it is not changed: what is logged, raised, asserted or
    annotated."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        return isinstance(called, ast.Attribute) and ast.unparse(called.value) == "log"
    return False
