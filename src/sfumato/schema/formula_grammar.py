"""The grammar of formulas: a text becomes terms of columns, numbers, labels and a closed list of functions.

A formula is data: nothing of it runs, and no name reaches beyond the table's columns and `FUNCTIONS`. Terms are counted
before they are expanded.

    y ~ x + log(`a b`) + C(z, contr.treatment("u")) * I(w == 'yes') - 1

Between terms `+ - * : / %in% ** ^` and parentheses are those of R; within calls and braces they are arithmetic, with
comparisons and `& | !`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NoReturn

from sfumato.columns.facts import shown
from sfumato.errors import ConfigError
from sfumato.schema.formula_expressions import (
    CODING,
    CODINGS,
    COMPARISONS,
    FUNCTIONS,
    Coding,
    Constant,
    Expression,
    FormulaTerms,
    Setting,
    Terms,
    column,
    fits,
    function_named,
    operation,
    term_key,
)

MOST_TERMS = 1000
"""Most terms of a side of a formula, and most columns that they become."""
_LONGEST, _DEEPEST, _LARGEST_POWER, _MOST_FACTORS = 10_000, 50, 8, 6
_MOST_PRODUCTS = 20 * MOST_TERMS  # that are looked at to expand one power

_TOKENS = re.compile(
    r"""\s*(?:(?P<label>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")
    | `(?P<ticked>[^`]+)`
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>[^\W\d][\w.]*)
    | (?P<sign>\*\*|==|!=|<=|>=|//|%in%|%%|%/%|[-+*/:^%<>()\[\]{},=~|&!]))""",
    re.VERBOSE | re.DOTALL,
)
_SPELLED = {"^": "**", "%%": "%", "%/%": "//", "!": "~"}
# how tightly signs bind, as in R
_BINDS = {"|": 0, "&": 1, **dict.fromkeys(COMPARISONS, 3), "+": 4, "-": 4, "*": 5, "/": 5, "//": 5, "%": 5, "**": 7}
_NOT, _POWER = 2, 7
_FLAGS = {"True": True, "TRUE": True, "False": False, "FALSE": False}


@lru_cache(maxsize=256)
def formula_terms(text: str) -> FormulaTerms:
    """Read a formula.

    Raises:
        ConfigError: it is none of the grammar, or too long, too deep, or of too many terms.

    Example:
        >>> len(formula_terms("y ~ (a + b)**2").right)  # 1, a, b and a:b
        4
    """
    return _Reader(text).formula()


class _Reader:
    """Reads a text from left to right, by what comes next."""

    def __init__(self, text: str) -> None:
        self._text, self._place, self._depth = text, 0, 0
        if len(text) > _LONGEST:
            self._refuse(f"formulas have at most {_LONGEST:,} characters, and it has {len(text):,}")
        self._tokens: list[tuple[str, str]] = []
        start, end = 0, len(text.rstrip())
        while start < end:
            token = _TOKENS.match(text, start, end)
            if token is None:
                self._refuse(f"{shown(text[start:end].strip()[:1])} begins nothing that a formula may hold")
            assert token.lastgroup is not None
            self._tokens.append((token.lastgroup, token[token.lastgroup]))
            start = token.end()

    def formula(self) -> FormulaTerms:
        """Return the terms of both sides."""
        if ("sign", "~") not in self._tokens:
            raise ConfigError(f"Expected a formula with both sides, such as 'y ~ x + C(z)', got {shown(self._text)}.")
        left = self._sum({})
        self._require("~")
        right = self._sum({frozenset(): ()})
        if self._next in (("sign", "|"), ("sign", "~")):
            raise ConfigError(
                f"Expected a formula with one left and one right side, got several in {shown(self._text)}."
            )
        if self._next[0]:
            self._wrong("a sign between terms")
        named: dict[str, Expression] = {}
        for factor in (factor for term in (*left.values(), *right.values()) for factor in term):
            if named.setdefault(factor.factor, factor) != factor:
                self._refuse(f"a column is called {shown(factor.factor)} as another term is. Give it another name")
        return FormulaTerms(self._text, tuple(left.values()), tuple(right.values()))

    @property
    def _next(self) -> tuple[str, str]:
        return self._tokens[self._place] if self._place < len(self._tokens) else ("", "")

    def _is(self, *signs: str) -> bool:
        kind, value = self._next
        return kind == "sign" and value in signs

    def _take(self) -> tuple[str, str]:
        token = self._next
        self._place += 1
        return token

    def _takes(self, *signs: str) -> bool:
        here = self._is(*signs)
        self._place += here
        return here

    def _require(self, sign: str) -> None:
        if not self._takes(sign):
            self._wrong(repr(sign))

    def _deeper(self, by: int) -> None:
        self._depth += by
        if self._depth > _DEEPEST:
            self._refuse(f"parentheses and signs before values go at most {_DEEPEST} deep")

    def _wrong(self, expected: str) -> NoReturn:
        kind, value = self._next
        self._refuse(f"it has {shown(value) if kind else 'its end'} where {expected} was expected")

    def _refuse(self, problem: str) -> NoReturn:
        raise ConfigError(f"Expected a formula such as 'y ~ x + C(z)', got {shown(self._text)}: {problem}.")

    # terms

    def _sum(self, terms: Terms) -> Terms:
        self._deeper(1)
        first = True
        while first or self._is("+", "-"):
            minus, first = False, False
            while self._is("+", "-"):
                minus ^= self._take()[1] == "-"
            if self._next == ("number", "0"):
                self._take()
                minus, part = not minus, {frozenset(): ()}
            else:
                part = self._product()
            for key, term in part.items():
                if minus:
                    terms.pop(key, None)
                else:
                    terms.setdefault(key, term)
            self._require_few(len(terms))
        self._deeper(-1)
        return terms

    def _product(self) -> Terms:
        terms = self._interaction()
        while self._is("*", "/", "%in%"):
            sign, other = self._take()[1], self._interaction()
            if sign == "*":
                terms = terms | {key: other[key] for key in other if key not in terms} | self._products(terms, other)
            else:
                above, below = (terms, other) if sign == "/" else (other, terms)
                together = tuple(dict.fromkeys(factor for term in above.values() for factor in term))
                terms = above | self._products({term_key(together): together}, below)
            self._require_few(len(terms))
        return terms

    def _interaction(self) -> Terms:
        terms = self._power()
        while self._takes(":"):
            terms = self._products(terms, self._power())
        return terms

    def _power(self) -> Terms:
        terms = self._terms()
        if not self._takes("**", "^"):
            return terms
        kind, value = self._take()
        if kind != "number" or not value.isdecimal() or not 1 <= int(value[:9]) <= _LARGEST_POWER:
            self._refuse(f"powers of terms are whole numbers of 1 to {_LARGEST_POWER}, and one is {shown(value)}")
        if self._is("**", "^"):
            self._wrong("a sign between terms")
        power = terms
        for _ in range(int(value) - 1):
            power = self._products(power, terms)
        return power

    def _products(self, some: Terms, others: Terms) -> Terms:
        """Every term of some with every one of others."""
        if len(some) * len(others) > _MOST_PRODUCTS:
            self._require_few(len(some) * len(others))
        products: Terms = {}
        for one in some.values():
            for other in others.values():
                term = tuple(dict.fromkeys((*one, *other)))
                if len(term) > _MOST_FACTORS:
                    self._refuse(f"terms have at most {_MOST_FACTORS} factors, and one has more")
                products.setdefault(term_key(term), term)
        self._require_few(len(products))
        return products

    def _require_few(self, terms: int) -> None:
        if terms > MOST_TERMS:
            self._refuse(f"formulas have at most {MOST_TERMS:,} terms, and it has more")

    def _terms(self) -> Terms:
        """A sum in parentheses, the intercept, or a term of one factor."""
        if self._takes("("):
            terms = self._sum({})
            self._require(")")
            return terms
        kind, value = self._next
        if kind == "number":
            if value != "1":
                self._refuse(f"0 and 1 alone are numbers among terms, and one is {value}. Write I({value} * x)")
            self._take()
            return {frozenset(): ()}
        if self._takes("{"):
            factor = self._value()
            self._require("}")
        else:
            factor = self._atom("a column or a function")
            if self._is(*COMPARISONS):
                factor = self._operation(self._take()[1], factor, self._atom("a label or a number", signed=True))
        return {frozenset({factor.text}): (factor,)}

    # values

    def _value(self, least: int = 0) -> Expression:
        """An expression whose signs bind at least so tightly."""
        self._deeper(1)
        if self._takes("!", "~"):
            value = self._operation("~", self._value(_NOT))
        elif self._is("+", "-"):
            value = self._operation(self._take()[1], self._value(_POWER))
        else:
            value = self._atom("a value")
        while self._next[0] == "sign":
            sign = _SPELLED.get(self._next[1], self._next[1])
            binds = _BINDS.get(sign, -1)
            if binds < least:
                break
            self._take()
            value = self._operation(sign, value, self._value(binds + (sign != "**")))
            if sign in COMPARISONS and self._is(*COMPARISONS):
                self._refuse("a comparison has two sides, and one has three. Join two by &")
        self._deeper(-1)
        return value

    def _atom(self, expected: str, *, signed: bool = False) -> Expression:
        """A column, a call, a number, a label, or a value in parentheses."""
        if signed and self._is("+", "-"):
            return self._operation(self._take()[1], self._atom(expected))
        if expected == "a value" and self._takes("("):
            value = self._value()
            self._require(")")
            return value
        kind, value = self._next
        if kind not in ("name", "ticked", "number", "label") or (kind in ("number", "label") and "column" in expected):
            self._wrong(expected)
        self._take()
        if kind == "name":
            return self._call(value) if self._takes("(") else column(value)
        if kind == "ticked":
            return column(value)
        return Expression("number", value, value) if kind == "number" else self._label(value)

    def _label(self, quoted: str) -> Expression:
        label = re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), quoted[1:-1], flags=re.S)
        return Expression("label", label, repr(label))

    def _operation(self, sign: str, *parts: Expression) -> Expression:
        whole = operation(sign, *parts)
        if whole.height > _DEEPEST:
            self._refuse(f"operations go at most {_DEEPEST} deep")
        return whole

    # calls

    def _call(self, written: str) -> Expression:
        """A call whose name and opening parenthesis are read."""
        if written == "Q":
            kind, value = self._take()
            if kind != "label" or not self._takes(")"):
                self._refuse("Q has the name of a column in quotes alone")
            return column(self._label(value).name)
        name = function_named(written)
        if name == "lag":
            self._refuse("rows have no order, so that there is none before another")
        if name not in FUNCTIONS:
            self._refuse(f"{shown(written)} is none of its functions {', '.join(FUNCTIONS)}")
        function = FUNCTIONS[name]
        parts, texts = [], []
        for number in range(function.values):
            if number:
                self._require(",")
            parts.append(self._value())
            texts.append(parts[-1].text)
        settings, more = self._settings(written, function.settings, first=False)
        text = f"{written}({', '.join([*texts, *more])})"
        return Expression("call", name, text, tuple(parts), settings, height=1 + max(part.height for part in parts))

    def _settings(
        self, of: str, known: dict[str, Setting], *, first: bool
    ) -> tuple[tuple[tuple[str, Constant | Coding], ...], list[str]]:
        """What follows in a call up to its end, and as it is written."""
        settings: dict[str, Constant | Coding] = {}
        texts = []
        while not self._takes(")"):
            if not first:
                self._require(",")
            first = False
            name, named = list(known)[len(settings)] if len(settings) < len(known) else "", ""
            if self._next[0] == "name" and self._tokens[self._place + 1 : self._place + 2] == [("sign", "=")]:
                name = self._take()[1]
                named = f"{name}="
                self._take()
            if name not in known or name in settings:
                have = f"has {', '.join(known)}, each once" if known else "has none"
                self._refuse(f"of settings {of} {have}, and more are given")
            setting = known[name]
            value, text = self._coding() if setting == CODING else self._constant()
            if not fits(setting, value):
                self._refuse(f"{name} of {of} is {setting}, and it is given as {shown(text)}")
            settings[name] = value
            texts.append(named + text)
        return tuple(settings.items()), texts

    def _coding(self) -> tuple[Coding, str]:
        """How labels are told apart."""
        kind, written = self._take()
        if kind != "name" or written not in CODINGS:
            self._refuse(f"labels are coded by {', '.join(CODINGS)}, and {shown(written)} is none of them")
        name, known = CODINGS[written]
        if not self._takes("("):
            return Coding(name, ()), written
        settings, texts = self._settings(written, known, first=True)
        return Coding(name, settings), f"{written}({', '.join(texts)})"  # type: ignore[arg-type]

    def _constant(self) -> tuple[Constant, str]:
        """A number, a label, a truth, or a list of some."""
        if self._next == ("name", "c"):
            self._take()
            self._require("(")
            return self._listed(")")
        if self._takes("["):
            return self._listed("]")
        minus = self._takes("-")
        kind, value = self._take()
        if kind == "number":
            return (-float(value) if minus else float(value)), f"{'-' if minus else ''}{value}"
        if kind == "label" and not minus:
            label = self._label(value)
            return label.name, label.text
        if value in _FLAGS and not minus:
            return _FLAGS[value], str(_FLAGS[value])
        return self._refuse(f"settings are numbers, labels in quotes, True, False, or lists, and one is {shown(value)}")

    def _listed(self, end: str) -> tuple[Constant, str]:
        self._deeper(1)
        values, texts = [], []
        while not self._takes(end):
            if values:
                self._require(",")
            value, text = self._constant()
            values.append(value)
            texts.append(text)
        self._deeper(-1)
        return tuple(values), f"[{', '.join(texts)}]"
