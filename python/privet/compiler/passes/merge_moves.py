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
    move_sources: dict[int, tuple[int, Move]] = {}
    shared_moves: dict[tuple[int, Move, int], int] = {}

    def rewrite(node: Node) -> int | None:
        move = node.operation
        if not isinstance(move, op.Reshape | op.Transpose):
            return None
        x = rewriter.new[node.inputs[0]]
        while x in move_sources:
            source, first = move_sources[x]
            composition = _compose(first, move, rewriter.builder.shape(source))
            if composition is None:
                break
            x, move = source, composition
        shape = rewriter.builder.shape(x)
        canonical_move = _canonical(move, shape)
        # Of the arguments of functions a reshape says how fine they are.
        fine = rewriter.old.values[node.output].fine
        if canonical_move == op.Reshape(shape) and fine == rewriter.builder.value(x).fine:
            return x
        if shared and (x, canonical_move, fine) in shared_moves:
            return shared_moves[x, canonical_move, fine]
        result = rewriter.add(node, canonical_move, x)
        move_sources[result] = x, move
        shared_moves[x, canonical_move, fine] = result
        return result

    return rewriter.walk(rewrite)


def _canonical(move: Move, shape: Shape) -> Move:
    """The same move of a value of this shape, as a reshape if elements keep their order."""
    if isinstance(move, op.Transpose):
        long_axes = [axis for axis in move.perm if shape[axis] != 1]
        if long_axes == sorted(long_axes):
            return op.Reshape(tuple(shape[axis] for axis in move.perm))
    return move


def _compose(first: Move, second: Move, shape: Shape) -> Move | None:
    """One move that does both to a value of this shape, or None."""
    if isinstance(first, op.Transpose) and isinstance(second, op.Transpose):
        return op.Transpose(tuple(first.perm[axis] for axis in second.perm))
    first = _canonical(first, shape)
    if not isinstance(first, op.Reshape):
        return None
    second = _canonical(second, first.shape)
    return second if isinstance(second, op.Reshape) else None
