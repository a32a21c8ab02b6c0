# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Prints the mutations that are possible in source files, without running any of their code.

Reads {"files": {"package/x.py": {"text": "...", "built": [lines], "trained": [lines]}}} on stdin:
what ran while the model was built, and what ran in the forwards and training steps. Prints
{"mutations": [...], "unreached": N}: {"file", "line", "function", "operator", "trained", "start",
"end", "replacement"}, where the bytes from start to end are replaced. `unreached` counts mutations
of what never ran. A mutation changes one place of one statement. What only prints, raises or
annotates is left out, because nobody observes it.
"""

import ast
import json
import re
import resource
import sys
from collections.abc import Iterator
from typing import Any

SECONDS = 300
MIB = 4096
LONGEST = 8  # lines that a mutation may replace
TRAINED, BUILT, NEVER = "trained", "built", "never"

ARITHMETIC: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.MatMult: ("@", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)  # operands matter
COMPARISONS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: (r"<", "<="),
    ast.LtE: (r"<=", "<"),
    ast.Gt: (r">", ">="),
    ast.GtE: (r">=", ">"),
    ast.Eq: (r"==", "!="),
    ast.NotEq: (r"!=", "=="),
    ast.Is: (r"is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: (r"in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
# Calls whose plain integers are dimensions.
AXIS_CALLS = frozenset(
    "all amax amin any argmax argmin argsort cat chunk concat cumprod cumsum flatten flip gather "
    "index_select log_softmax logsumexp max mean min movedim narrow norm permute prod "
    "repeat_interleave roll scatter select size softmax split squeeze stack std sum swapaxes topk "
    "transpose unbind unflatten unsqueeze var".split()
)
AXIS_NAMES = frozenset("dim dims axis axes dim0 dim1 start_dim end_dim".split())
CONVERSIONS = frozenset("bfloat16 clone contiguous detach float half long to type_as".split())
SILENT_CALLS = frozenset(  # they only tell people something, or ask what a thing is
    "critical debug error exception fatal getLogger info log_once print info_once warn warning "
    "warning_once warn_once".split()
)
UNORDERED_CALLS = frozenset("isinstance issubclass hasattr getattr setattr delattr super".split())
SHOWING = frozenset(("__repr__", "__str__", "__del__", "extra_repr"))
CONSTRUCTORS = frozenset(("__init__", "__post_init__"))
SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Constant, ast.Subscript, ast.List, ast.Tuple)
# A replacement in one of these needs parentheses.
BINDING = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Attribute, ast.Subscript, ast.Call)

Mutations = Iterator[dict[str, object]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(function: ast.expr) -> str:
    """The last name of a called function."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def is_silent(node: ast.AST) -> bool:
    """Whether a statement only speaks or raises."""
    if isinstance(node, (ast.Raise, ast.Pass, ast.Assert)):
        return True
    if not isinstance(node, ast.Expr):
        return False
    value = node.value
    return isinstance(value, ast.Constant) or (
        isinstance(value, ast.Call) and name_of(value.func) in SILENT_CALLS
    )


class Source:
    """One file: its syntax tree, its bytes, and which of its lines ran."""

    def __init__(self, text: bytes, built: set[int], trained: set[int]) -> None:
        self.text = text
        self._built = built
        self._trained = trained
        self.tree = ast.parse(text)
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    def start(self, node: ast.AST) -> int:
        return self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        return self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def slice(self, start: int, end: int) -> str:
        return self.text[start:end].decode()

    def code(self, node: ast.AST) -> str:
        return self.slice(self.start(node), self.end(node))

    def phase(self, first: int, last: int) -> str:
        """When one of the lines ran: in training, only before it, or never."""
        lines = range(first, last + 1)
        if any(line in self._trained for line in lines):
            return TRAINED
        return BUILT if any(line in self._built for line in lines) else NEVER


class Mutator:
    """Yields the mutations of one file."""

    def __init__(self, source: Source, file: str) -> None:
        self.source = source
        self._file = file
        self._function = ""
        self._phase = NEVER  # when the code of the next mutations ran
        self.unreached = 0

    def all(self) -> Mutations:
        yield from self._body(self.source.tree)

    def _body(self, scope: ast.AST) -> Mutations:
        for node in ast.iter_child_nodes(scope):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from self._function_of(node)
            elif isinstance(node, ast.ClassDef):
                yield from self._fields(node)
                yield from self._body(node)
            elif isinstance(node, (ast.If, ast.Try, ast.With)):
                yield from self._body(node)

    def _fields(self, scope: ast.ClassDef) -> Mutations:
        """The defaults of a class's fields."""
        self._function, self._phase = scope.name, BUILT
        for node in scope.body:
            is_field = isinstance(node, (ast.Assign, ast.AnnAssign))
            if is_field and isinstance(node.value, ast.Constant):
                yield from self._constant(node.value, "change-default")

    def _function_of(self, function: Function) -> Mutations:
        if function.name in SHOWING:
            return
        outer, self._function = self._function, function.name
        first = function.body[0].lineno
        self._phase = self.source.phase(first, function.end_lineno or first)
        for default in (*function.args.defaults, *function.args.kw_defaults):
            if isinstance(default, ast.Constant):
                yield from self._constant(default, "change-default")
        for statement in function.body:
            yield from self._statement(statement)
        self._function = outer

    def _statement(self, node: ast.stmt) -> Mutations:
        if is_silent(node):
            return
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from self._function_of(node)
            return
        if isinstance(node, (ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)):
            return
        blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(node, "handlers", [])]
        # The head of a compound statement ends where its first block begins.
        inner = [statement.lineno for block in blocks for statement in block]
        last = min(inner, default=(node.end_lineno or node.lineno) + 1) - 1
        self._phase = self.source.phase(node.lineno, max(last, node.lineno))
        yield from self._whole_statement(node)
        for field, value in ast.iter_fields(node):
            if field in ("body", "orelse", "finalbody", "handlers", "annotation"):
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.withitem):
                    part = part.context_expr
                if isinstance(part, ast.expr):
                    yield from self._expression(part)
        for block in blocks:
            for statement in block:
                if isinstance(statement, ast.stmt):
                    yield from self._statement(statement)

    def _whole_statement(self, node: ast.stmt) -> Mutations:
        code = self.source.code
        if isinstance(node, ast.If) and not all(map(is_silent, node.body)):
            yield from self._condition(node.test)
        is_plain = isinstance(node, ast.Assign) and len(node.targets) == 1
        target = node.targets[0] if is_plain else None
        is_store = isinstance(target, (ast.Attribute, ast.Subscript))
        in_body = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if in_body or is_store or isinstance(node, ast.AugAssign):
            yield from self._replace(node, "remove-statement", "pass")
        if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
            old, new = ARITHMETIC[type(node.op)]
            old, new = re.escape(old) + "=", new + "="
            yield from self._between(node.target, node.value, old, new, "swap-arithmetic")
        if isinstance(node, ast.Return) and isinstance(node.value, ast.BinOp):
            is_scaled = isinstance(node.value.op, (ast.Mult, ast.Div))
            if is_scaled and (parts := self._operands(node.value)):
                yield from self._replace(node.value, "unscaled-return", parts[0])
        value = getattr(node, "value", None)
        if target is None or not isinstance(value, (ast.Call, ast.BinOp)):
            return
        if isinstance(target, ast.Name):
            kept = f'globals().setdefault("_stale_{node.lineno}", {code(value)})'
            yield from self._replace(value, "stale-value", kept)
        elif isinstance(target, ast.Attribute) and self._function not in CONSTRUCTORS:
            old = f'getattr({code(target.value)}, "{target.attr}", None)'
            kept = f"{old} if {old} is not None else {code(value)}"
            yield from self._replace(value, "stale-attribute", kept)

    def _condition(self, test: ast.expr) -> Mutations:
        yield from self._replace(test, "negate-condition", f"(not ({self.source.code(test)}))")
        yield from self._replace(test, "skip-branch", "False")

    def _expression(self, node: ast.expr) -> Mutations:
        """The mutations of an expression and of all its parts."""
        if isinstance(node, (ast.JoinedStr, ast.Lambda)):
            return
        if isinstance(node, ast.Call) and name_of(node.func) in SILENT_CALLS:
            return
        if isinstance(node, ast.BinOp):
            yield from self._arithmetic(node)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            old, new = COMPARISONS[type(node.ops[0])]
            yield from self._between(node.left, node.comparators[0], old, new, "flip-comparison")
        elif isinstance(node, ast.BoolOp) and len(node.values) == 2:
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield from self._between(*node.values, old, new, "swap-logical")
        elif isinstance(node, ast.IfExp):
            yield from self._condition(node.test)
        elif isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, ast.Subscript):
            yield from self._subscript(node)
        elif isinstance(node, ast.Constant):
            yield from self._constant(node, "change-constant")
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.keyword):
                child = child.value
            if isinstance(child, ast.comprehension):
                child = child.iter
            if isinstance(child, ast.expr) and not self._is_place(node, child):
                yield from self._expression(child)

    @staticmethod
    def _is_place(parent: ast.expr, child: ast.expr) -> bool:
        """Whether a constant is an index or a dimension, which other operators change."""
        plain = child.operand if isinstance(child, ast.UnaryOp) else child
        if not isinstance(plain, ast.Constant) or type(plain.value) is not int:
            return False
        if isinstance(parent, ast.Subscript):
            return child is parent.slice
        return isinstance(parent, ast.Call) and name_of(parent.func) in AXIS_CALLS

    def _arithmetic(self, node: ast.BinOp) -> Mutations:
        if type(node.op) not in ARITHMETIC or self._is_text(node.left) or self._is_text(node.right):
            return
        parts = self._operands(node)
        if parts is None:
            return
        left, right = parts
        old, new = ARITHMETIC[type(node.op)]
        if isinstance(node.op, ORDERED):
            swapped = f"{self._closed(node.right, right)} {old} {self._closed(node.left, left)}"
            yield from self._replace(node, "swap-operands", self._bound(node, swapped))
        changed = f"{self._closed(node.left, left)} {new} {self._closed(node.right, right)}"
        yield from self._replace(node, "swap-arithmetic", self._bound(node, changed))
        is_returned = isinstance(self.source.parents.get(node), ast.Return)
        if isinstance(node.op, (ast.Mult, ast.Div)) and not is_returned:
            yield from self._replace(node, "drop-factor", left)
            if isinstance(node.op, ast.Mult):
                yield from self._replace(node, "drop-factor", right)
        elif isinstance(node.op, (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr)):
            yield from self._replace(node, "drop-term", left)

    def _call(self, node: ast.Call) -> Mutations:
        name, source = name_of(node.func), self.source
        for keyword in node.keywords:
            if keyword.arg is None:
                continue
            yield from self._drop_keyword(keyword)
            if keyword.arg in AXIS_NAMES:
                yield from self._axis(keyword.value)
        if name not in UNORDERED_CALLS:
            for first, second in zip(node.args, node.args[1:], strict=False):
                yield from self._swap(first, second)
        if name in AXIS_CALLS:
            for argument in node.args:
                yield from self._axis(argument)
        if name in ("range", "arange"):
            for argument in node.args:
                yield from self._off_by_one(argument)
        if isinstance(node.func, ast.Attribute) and name in CONVERSIONS:
            receiver = source.slice(source.start(node), source.end(node.func) - len(name))
            yield from self._replace(node, "drop-conversion", receiver.rstrip(". \n"))

    def _swap(self, first: ast.expr, second: ast.expr) -> Mutations:
        source = self.source
        between = source.slice(source.end(first), source.start(second))
        is_starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
        if is_starred or not set(between) <= set(", \n"):
            return
        swapped = source.code(second) + between + source.code(first)
        start, end = source.start(first), source.end(second)
        yield from self._change(first.lineno, start, end, "swap-arguments", swapped)

    def _drop_keyword(self, keyword: ast.keyword) -> Mutations:
        text = self.source.text
        start, end = self.source.start(keyword), self.source.end(keyword)
        if after := re.match(rb"\s*,[ ]*", text[end:]):
            end += after.end() if b"\n" not in after.group() else after.group().index(b",") + 1
        elif before := re.search(rb",\s*$", text[:start]):
            start = before.start()
        yield from self._change(keyword.lineno, start, end, "drop-keyword", "")

    def _subscript(self, node: ast.Subscript) -> Mutations:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        value = node.value
        is_shape = isinstance(value, ast.Attribute) and value.attr == "shape"
        for part in parts:
            if isinstance(part, ast.Slice):
                for bound in (part.lower, part.upper):
                    if bound is not None:
                        yield from self._off_by_one(bound)
            elif is_shape:
                yield from self._axis(part)
            elif self._whole_number(part) is not None:
                yield from self._off_by_one(part)

    def _axis(self, node: ast.expr) -> Mutations:
        number = self._whole_number(node)
        if number is not None:
            nearer = number - 1 if number > 0 else number + 1
            other = {-1: -2, 0: 1}.get(number, nearer)
            yield from self._replace(node, "wrong-axis", str(other))

    def _off_by_one(self, node: ast.expr) -> Mutations:
        number = self._whole_number(node)
        for step in (1, -1):
            if number is not None:
                yield from self._replace(node, "off-by-one", str(number + step))
            else:
                closed = self._closed(node, self.source.code(node))
                sign = "+" if step > 0 else "-"
                yield from self._replace(node, "off-by-one", f"{closed} {sign} 1")

    def _constant(self, node: ast.Constant, operator: str) -> Mutations:
        value = node.value
        if isinstance(value, bool):
            yield from self._replace(node, operator, str(not value))
        elif isinstance(value, int):
            yield from self._replace(node, operator, str(value + 1))
        elif isinstance(value, float):
            yield from self._replace(node, operator, repr(value * 2 if value else 1.0))

    @staticmethod
    def _whole_number(node: ast.expr) -> int | None:
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            sign, node = -1, node.operand
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return sign * node.value
        return None

    @staticmethod
    def _is_text(node: ast.expr) -> bool:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
        return is_text or isinstance(node, ast.JoinedStr)

    def _operands(self, node: ast.BinOp) -> tuple[str, str] | None:
        """Both operands as written, with their parentheses."""
        found = self._operator(node.left, node.right, re.escape(ARITHMETIC[type(node.op)][0]))
        if found is None:
            return None
        left = self.source.slice(self.source.start(node), found[0]).strip()
        return left, self.source.slice(found[1], self.source.end(node)).strip()

    def _operator(self, left: ast.expr, right: ast.expr, pattern: str) -> tuple[int, int] | None:
        """The place of the operator between two operands; None if a comment may hide it."""
        start = self.source.end(left)
        gap = self.source.slice(start, self.source.start(right))
        found = re.fullmatch(r"[\s)\\]*(" + pattern + r")[\s(\\]*", gap)
        return (start + found.start(1), start + found.end(1)) if found else None

    def _between(
        self, left: ast.expr, right: ast.expr, pattern: str, new: str, operator: str
    ) -> Mutations:
        if found := self._operator(left, right, pattern):
            line = self.source.text.count(b"\n", 0, found[0]) + 1
            yield from self._change(line, *found, operator, new)

    def _closed(self, node: ast.expr, code: str) -> str:
        """The operand's code in parentheses, unless it has some already or needs none."""
        is_closed = isinstance(node, SIMPLE) or code != self.source.code(node)
        return code if is_closed else f"({code})"

    def _bound(self, node: ast.expr, code: str) -> str:
        return f"({code})" if isinstance(self.source.parents.get(node), BINDING) else code

    def _replace(self, node: ast.AST, operator: str, new: str) -> Mutations:
        line: int = node.lineno  # type: ignore[attr-defined]
        yield from self._change(line, self.source.start(node), self.source.end(node), operator, new)

    def _change(self, line: int, start: int, end: int, operator: str, new: str) -> Mutations:
        old = self.source.slice(start, end)
        if old == new or old.count("\n") >= LONGEST:
            return
        if self._phase == NEVER:
            self.unreached += 1
        else:
            yield {
                "file": self._file,
                "line": line,
                "function": self._function,
                "operator": operator,
                "trained": self._phase == TRAINED,
                "start": start,
                "end": end,
                "replacement": new,
            }


def mutations(file: str, facts: dict[str, Any]) -> tuple[list[dict[str, object]], int]:
    """The mutations of one file, and how many more there are in lines that never ran."""
    try:
        source = Source(facts["text"].encode(), set(facts["built"]), set(facts["trained"]))
    except (SyntaxError, ValueError):
        return [], 0
    mutator = Mutator(source, file)
    return list(mutator.all()), mutator.unreached


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MIB << 20, MIB << 20))
    found: list[dict[str, object]] = []
    unreached = 0
    for file, facts in sorted(json.load(sys.stdin)["files"].items()):
        possible, more = mutations(file, facts)
        found += possible
        unreached += more
    json.dump({"mutations": found, "unreached": unreached}, sys.stdout)


if __name__ == "__main__":
    main()
