"""Joins chains of reshapes and of transposes and drops those that change nothing."""

from __future__ import annotations

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Shape
from privet.compiler.passes.rewriter import Rewriter

Move = op.Reshape | op.Transpose


def merge_moves(graph: Graph, *, shared: bool = False) -> Graph:
    """The same function with at most one reshape and at most one transpose in a row.

    A transpose that moves axes of length one alone is a reshape. With `shared` there is one of
    each move for all readers of a value, which is then truncated, extended and opened once.
    """
    rewriter = Rewriter(graph)
    before: dict[int, tuple[int, Move]] = {}
    moves: dict[tuple[int, Move, int], int] = {}

    def rewrite(node: Node) -> int | None:
        move = node.operation
        if not isinstance(move, op.Reshape | op.Transpose):
            return None
        x = rewriter.new[node.inputs[0]]
        while x in before:
            source, first = before[x]
            joined = _joined(first, move, rewriter.builder.shape(source))
            if joined is None:
                break
            x, move = source, joined
        shape = rewriter.builder.shape(x)
        plain = _plain(move, shape)
        # Of the arguments of functions a reshape says how fine they are.
        fine = rewriter.old.values[node.output].fine
        if plain == op.Reshape(shape) and fine == rewriter.builder.value(x).fine:
            return x
        if shared and (x, plain, fine) in moves:
            return moves[x, plain, fine]
        result = rewriter.add(node, plain, x)
        before[result] = x, move
        moves[x, plain, fine] = result
        return result

    return rewriter.walk(rewrite)


def _plain(move: Move, shape: Shape) -> Move:
    """The same move of a value of this shape, as a reshape if elements keep their order."""
    if isinstance(move, op.Transpose):
        long = [axis for axis in move.perm if shape[axis] != 1]
        if long == sorted(long):
            return op.Reshape(tuple(shape[axis] for axis in move.perm))
    return move


def _joined(first: Move, second: Move, shape: Shape) -> Move | None:
    """One move that does both to a value of this shape, or None."""
    if isinstance(first, op.Transpose) and isinstance(second, op.Transpose):
        return op.Transpose(tuple(first.perm[axis] for axis in second.perm))
    first = _plain(first, shape)
    if not isinstance(first, op.Reshape):
        return None
    second = _plain(second, first.shape)
    return second if isinstance(second, op.Reshape) else None
