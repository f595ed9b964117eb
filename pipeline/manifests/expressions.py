"""The grammar of derived axes: integers, axis names, ``+ - * // %`` and parentheses.

    sum     = product { ("+" | "-") product }
    product = factor { ("*" | "//" | "%") factor }
    factor  = INTEGER | NAME | "(" sum ")"

Text is parsed into a small tree and walked; nothing is ever evaluated as code. Division and remainder
are those of Python integers (rounding towards minus infinity), which is what upstream computes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline.manifests.scalars import SAFE_INTEGER

MAX_LENGTH = 1000
MAX_DEPTH = 50

_TOKEN = re.compile(r"[ \t]*(?:(?P<integer>[0-9]+)|(?P<name>[a-z_][a-z0-9_]*)|(?P<symbol>//|[-+*%()]))")
_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


class ExpressionError(ValueError):
    """The text is not of the grammar."""


class UnboundAxisError(Exception):
    """A name has no value, or a division by zero leaves the axis without one."""


@dataclass(frozen=True)
class _Constant:
    value: int

    def evaluate(self, axes: Mapping[str, int]) -> int:
        return self.value


@dataclass(frozen=True)
class _Axis:
    name: str

    def evaluate(self, axes: Mapping[str, int]) -> int:
        try:
            return axes[self.name]
        except KeyError:
            raise UnboundAxisError(f"axis {self.name} has no value") from None


@dataclass(frozen=True)
class _Binary:
    symbol: str
    left: Expression
    right: Expression

    def evaluate(self, axes: Mapping[str, int]) -> int:
        left, right = self.left.evaluate(axes), self.right.evaluate(axes)
        try:
            return _OPERATORS[self.symbol](left, right)
        except ZeroDivisionError:
            raise UnboundAxisError("a derived axis divides by zero") from None


Expression = _Constant | _Axis | _Binary


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._place = 0
        self._depth = 0

    def parse(self) -> Expression:
        tree = self._sum()
        if self._peek() is not None:
            raise ExpressionError(f"'{self._peek()}' does not belong there")
        return tree

    def _peek(self) -> str | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _next(self) -> str | None:
        token = self._peek()
        self._place += 1
        return token

    def _sum(self) -> Expression:
        return self._chain(("+", "-"), self._product)

    def _product(self) -> Expression:
        return self._chain(("*", "//", "%"), self._factor)

    def _chain(self, symbols: tuple[str, ...], operand: Callable[[], Expression]) -> Expression:
        tree = operand()
        while (symbol := self._peek()) in symbols:
            self._place += 1
            tree = _Binary(symbol, tree, operand())
        return tree

    def _factor(self) -> Expression:
        token = self._next()
        if token is None:
            raise ExpressionError("it ends too early")
        if token == "(":
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise ExpressionError(f"it is nested over {MAX_DEPTH} deep")
            tree = self._sum()
            if self._next() != ")":
                raise ExpressionError("a parenthesis is not closed")
            self._depth -= 1
            return tree
        if token[0].isdigit():
            if int(token) > SAFE_INTEGER:
                raise ExpressionError(f"{token} is over 2^53-1")
            return _Constant(int(token))
        if token[0].isalpha() or token[0] == "_":
            return _Axis(token)
        raise ExpressionError(f"'{token}' does not belong there")


def _tokens(text: str) -> list[str]:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"it is over {MAX_LENGTH} characters long")
    tokens, place, end = [], 0, len(text.rstrip(" \t"))
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise ExpressionError(f"'{text[place:].strip()[:20]}' is none of integer, axis name, + - * // % ( )")
        tokens.append(match.group(match.lastgroup or 0))
        place = match.end()
    return tokens


def parse_expression(text: str) -> Expression:
    """Parse a derived axis.

    Raises:
        ExpressionError: the text is not of the grammar (a ValueError, so models may use it).
    """
    try:
        return _Parser(text).parse()
    except ExpressionError as error:
        raise ExpressionError(f"'{text[:60]}' is no axis expression: {error}") from None


def evaluate(expression: Expression, axes: Mapping[str, int]) -> int:
    """Return the value of a derived axis.

    Raises:
        UnboundAxisError: a name has no value, or a division by zero.
    """
    return expression.evaluate(axes)
