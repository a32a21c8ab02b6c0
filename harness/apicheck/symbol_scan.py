# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Turns Python files into symbol tables, running none of their code.

stdin is what `git cat-file --batch` prints. For each file one line goes to stdout: its id, a tab, the
table as JSON, a tab, the functions' bodies as JSON. symbol_table.h says what the arrays mean.
"""

import ast
import io
import json
import sys
from typing import Any

Tree = Any  # nested lists, strings, numbers and None

_MAX_TEXT = 200  # longer strings name no module


class Scan:
    """One file. Expressions without names are None; a name is a string; the rest are tagged lists."""

    def __init__(self, tree: ast.Module) -> None:
        self.bodies: list[Tree] = []
        self.patches: list[Tree] = []  # attributes given to what other files define
        self.dynamic = False  # it writes its own names in ways that cannot be read
        self.imports: set[str] = set()  # packages that it imports from, anywhere
        self._line = 0
        self._functions: list[dict[str, Any]] = []
        self.statements = self.block(tree.body)

    # ---- expressions
    def expression(self, node: ast.AST | None) -> Tree:
        match node:
            case None:
                return None
            case ast.Name(id=name):
                self._look(name)
                return name
            case ast.Constant(value=str() as text):
                if text[:1].isalpha() and "." in text:  # perhaps for importlib
                    self.imports.add(text.split(".")[0])
                return ["s", text] if len(text) <= _MAX_TEXT else None
            case ast.Constant():
                return None
            case ast.Attribute(value=value, attr=attr):
                inner = self.expression(value)
                if inner == "sys" and attr == "modules":
                    self.dynamic = True
                return ["a", inner, attr, *self._at(node.end_lineno)]
            case ast.Call():
                return self._call(node)
            case ast.JoinedStr(values=values):
                return ["f", [self.expression(value) for value in values]]
            case ast.FormattedValue(value=value):
                return ["e", [self.expression(value)]]
            case ast.BoolOp(values=[first, *rest]):
                return ["o", self.expression(first), [self.expression(value) for value in rest]]
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return [
                    "o",
                    self.expression(test),
                    [self.expression(body), self.expression(orelse)],
                ]
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                return ["w", name, self.expression(value)]
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return ["t", [self.expression(item) for item in items]]
            case ast.Lambda(args=arguments, body=body):
                parameters = [a.arg for a in ast.walk(arguments) if isinstance(a, ast.arg)]
                defaults = [*arguments.defaults, *(d for d in arguments.kw_defaults if d)]
                inner = ["l", parameters, [self.expression(body)]]
                return ["e", [*(self.expression(d) for d in defaults), inner]]
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case ast.Yield() | ast.YieldFrom():
                if self._functions:
                    self._functions[-1]["generator"] = True
        return self._parts(node)

    def _parts(self, node: ast.AST) -> Tree:
        parts = [self.expression(child) for child in ast.iter_child_nodes(node)]
        parts = [part for part in parts if part is not None]
        return ["e", parts] if parts else None

    def _call(self, node: ast.Call) -> Tree:
        function = self.expression(node.func)
        plain = [a for a in node.args if not isinstance(a, ast.Starred)]
        starred = [a.value for a in node.args if isinstance(a, ast.Starred)]
        named = [[k.arg, self.expression(k.value)] for k in node.keywords if k.arg]
        spread = [k.value for k in node.keywords if not k.arg]
        if function == "setattr" and len(node.args) >= 2:
            name = node.args[1]
            constant = isinstance(name, ast.Constant) and isinstance(name.value, str)
            self._patch(node.args[0], name.value if constant else "*")
        return [
            "c",
            function,
            [self.expression(a) for a in plain],
            named,
            [self.expression(a) for a in starred],
            [self.expression(a) for a in spread],
            *self._at(node.func.end_lineno),
        ]

    def _comprehension(self, node: Any) -> Tree:
        first = self.expression(node.generators[0].iter)
        names = [
            n.id
            for generator in node.generators
            for n in ast.walk(generator.target)
            if isinstance(n, ast.Name)
        ]
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inner = [i for g in node.generators for i in g.ifs]
        inner += [g.iter for g in node.generators[1:]]
        rest = [self.expression(e) for e in [*results, *inner]]
        return ["e", [first, ["l", names, rest]]]

    def _at(self, line: int | None) -> list[int]:
        return [line] if line and line != self._line else []

    def _look(self, name: str) -> None:
        if name in ("globals", "exec", "vars", "locals") and not self._functions:
            self.dynamic = True
        if name in ("globals", "exec"):
            self.dynamic = True

    def _patch(self, owner: ast.expr, name: str) -> None:
        root = owner
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return
        if root.id in ("self", "cls") and name != "*":
            if self._functions:
                self._functions[-1]["stores"].add(name)
            return
        if root.id in ("self", "cls"):
            if self._functions:
                self._functions[-1]["stores"].add("*")
            return
        self.patches.append([self.expression(owner), name])

    # ---- statements
    def block(self, statements: list[ast.stmt]) -> list[Tree]:
        result = []
        for statement in statements:
            self._line = statement.lineno
            made = self.statement(statement)
            if made is not None:
                result.append(made)
        return result

    def statement(self, node: ast.stmt) -> Tree:
        line = node.lineno
        match node:
            case ast.Import(names=names):
                self.imports.update(n.name.split(".")[0] for n in names)
                return ["I", line, [[n.name, n.asname] for n in names]]
            case ast.ImportFrom(module=module, names=names, level=level):
                if module and not level:
                    self.imports.add(module.split(".")[0])
                return ["F", line, module or "", level, [[n.name, n.asname] for n in names]]
            case ast.Assign(targets=targets, value=value):
                return ["A", line, [self._target(t) for t in targets], self.expression(value)]
            case ast.AugAssign(target=target, value=value):
                return ["A", line, [self._target(target)], ["e", [self.expression(value)]]]
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                kind = self._annotation(annotation)
                return [
                    "N",
                    line,
                    self._target(target),
                    kind,
                    value is not None,
                    self.expression(value),
                ]
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return None
            case ast.Expr(value=value):
                return ["X", line, self.expression(value)]
            case ast.Return(value=value):
                return ["R", line, self.expression(value)]
            case ast.Raise(exc=error):
                return ["Z", line, self.expression(error)]
            case ast.Assert(test=test):
                return ["X", line, self.expression(test)]
            case ast.If(test=test, body=body, orelse=orelse):
                return ["?", line, self.expression(test), self.block(body), self.block(orelse)]
            case ast.For() | ast.AsyncFor():
                inside = self.block([*node.body, *node.orelse])
                self._line = line
                return ["L", line, self._target(node.target), self.expression(node.iter), inside]
            case ast.While(test=test, body=body, orelse=orelse):
                return ["L", line, None, self.expression(test), self.block([*body, *orelse])]
            case ast.With() | ast.AsyncWith():
                items = [
                    [
                        self.expression(i.context_expr),
                        i.optional_vars and self._target(i.optional_vars),
                    ]
                    for i in node.items
                ]
                return ["W", line, items, self.block(node.body)]
            case ast.Try() | ast.TryStar():
                handlers = [[h.name, self.block(h.body)] for h in node.handlers]
                body, orelse = self.block(node.body), self.block(node.orelse)
                return ["Y", line, body, handlers, orelse, self.block(node.finalbody)]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self._function(node)
            case ast.ClassDef():
                return self._class(node)
            case ast.Delete(targets=targets):
                return ["-", line, [self._target(t) for t in targets]]
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                if self._functions:
                    self._functions[-1]["globals"].update(names)
                return None
            case ast.Break() | ast.Continue():
                return ["B", line]
            case ast.Match(subject=subject, cases=cases):
                names = [
                    name
                    for case in cases
                    for part in ast.walk(case.pattern)
                    if (name := getattr(part, "name", None) or getattr(part, "rest", None))
                ]
                bodies = [self.block(case.body) for case in cases]
                self._line = line
                return ["H", line, self.expression(subject), names, bodies]
        return ["X", line, self._parts(node)]

    def _target(self, node: ast.AST) -> Tree:
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return ["t", [self._target(item) for item in items]]
            case ast.Starred(value=value):
                return self._target(value)
            case ast.Attribute(value=value, attr=attr):
                self._patch(value, attr)
        return self.expression(node)

    def _annotation(self, node: ast.expr | None) -> Tree:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return None
        match node:
            case ast.Subscript(value=value, slice=inside):
                return ["[", self.expression(value), self._annotation(inside)]
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return ["|", self._annotation(left), self._annotation(right)]
            case ast.Constant(value=None):
                return "None"
        return self.expression(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Tree:
        decorators = [self.expression(d) for d in node.decorator_list]
        arguments = node.args
        defaults = [*arguments.defaults, *(d for d in arguments.kw_defaults if d)]
        evaluated = [e for d in defaults if (e := self.expression(d)) is not None]
        returns = self._annotation(node.returns)
        frame: dict[str, Any] = {"stores": set(), "globals": set(), "generator": False}
        self._functions.append(frame)
        index = len(self.bodies)
        self.bodies.append(None)
        self.bodies[index] = self.block(node.body)
        self._functions.pop()
        if self._functions:  # what an inner function stores in self is the outer one's self
            self._functions[-1]["stores"] |= frame["stores"]
        lazy = frame["generator"] or isinstance(node, ast.AsyncFunctionDef)
        return [
            "D",
            node.lineno,
            node.name,
            _parameters(arguments),
            decorators,
            evaluated,
            returns,
            index,
            sorted(frame["stores"]),
            sorted(frame["globals"]),
            lazy,
        ]

    def _class(self, node: ast.ClassDef) -> Tree:
        bases = [
            self.expression(b.value if isinstance(b, ast.Subscript) else b) for b in node.bases
        ]
        keywords = [k.arg or "*" for k in node.keywords]
        decorators = [self.expression(d) for d in node.decorator_list]
        flags = [_dataclass_flags(d) for d in node.decorator_list]
        body = []
        for statement in node.body:
            self._line = statement.lineno
            if isinstance(statement, ast.AnnAssign):
                body.append([*self.statement(statement), _field(statement)])
            elif (made := self.statement(statement)) is not None:
                body.append(made)
        slots = [_texts(s.value) for s in node.body if _assigns_slots(s)]
        declared = slots[0] if slots else None
        return ["C", node.lineno, node.name, bases, keywords, decorators, flags, body, declared]


def _parameters(arguments: ast.arguments) -> list[Tree]:
    """[name, kind, has a default]; kind: 0 by position, 1 either way, 2 *rest, 3 by name, 4 **rest."""
    positional = [(a, 0) for a in arguments.posonlyargs] + [(a, 1) for a in arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    result = [[a.arg, kind, i >= first_default] for i, (a, kind) in enumerate(positional)]
    if arguments.vararg:
        result.append([arguments.vararg.arg, 2, True])
    for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        result.append([a.arg, 3, default is not None])
    if arguments.kwarg:
        result.append([arguments.kwarg.arg, 4, True])
    return result


def _dataclass_flags(decorator: ast.expr) -> Tree:
    """{name: value} of a decorator's keywords that are true or false; None for a computed one."""
    if not isinstance(decorator, ast.Call):
        return {}
    return {k.arg or "*": k.value.value if _is_flag(k.value) else None for k in decorator.keywords}


def _is_flag(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _field(statement: ast.AnnAssign) -> Tree:
    """Of `x: T = field(...)` its keywords, with the values of those that are true or false."""
    return _dataclass_flags(statement.value) if isinstance(statement.value, ast.Call) else None


def _assigns_slots(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id="__slots__")]):
            return True
    return False


def _texts(node: ast.expr) -> list[str]:
    """The strings of a literal; ["*"] for anything computed."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ["*"]
    return [value] if isinstance(value, str) else [str(v) for v in value]


def exports(tree: ast.Module) -> Tree:
    """What a literal __all__ names; None where there is none; "*" where it is computed."""
    found: Tree = None
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value) if node in tree.body:
                try:
                    found = list(ast.literal_eval(value))
                except ValueError:
                    return "*"
            case ast.Name(id="__all__", ctx=ast.Load()):
                return "*"
            case ast.AugAssign(target=ast.Name(id="__all__")):
                return "*"
    return found


def table(source: bytes) -> tuple[Tree, Tree]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 0
        return {"error": f"{getattr(error, 'msg', error)}", "line": line}, []
    scan = Scan(tree)
    made = {"body": scan.statements, "imports": sorted(n for n in scan.imports if n.isidentifier())}
    if (names := exports(tree)) is not None:
        made["all"] = names
    if scan.dynamic:
        made["dynamic"] = True
    if scan.patches:
        made["patches"] = scan.patches
    return made, scan.bodies


def main() -> None:
    sys.setrecursionlimit(10000)
    batch, out = io.BufferedReader(sys.stdin.buffer.raw, 1 << 20), sys.stdout
    dumps = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), check_circular=False).encode
    while header := batch.readline():
        fields = header.split()
        if len(fields) != 3:
            continue  # missing here
        source = batch.read(int(fields[2]))
        batch.read(1)
        try:
            made, bodies = table(source)
        except (RecursionError, MemoryError):
            made, bodies = {"unread": True}, []
        out.write(f"{fields[0].decode()}\t{dumps(made)}\t{dumps(bodies)}\n")


if __name__ == "__main__":
    main()
