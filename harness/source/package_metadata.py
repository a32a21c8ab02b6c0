# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Reads a Python package's declarations without running any of its code.

    declared DIR    {"name", "requirements"} of a source folder
    metadata FILE   {"name", "requirements"} of a dist-info METADATA
    pylock          {"packages": [...]} of the pylock.toml on stdin
    compile         compiles SOURCE into TARGET for each line "SOURCE<tab>TARGET" of stdin;
                    {"tag": "cpython-311"}

Prints one JSON object; {"error": "..."} when a declaration cannot be read without running code.
"""

import ast
import concurrent.futures
import configparser
import email.parser
import json
import pathlib
import py_compile
import re
import sys
import tomllib


class Unreadable(Exception):
    """A declaration exists, but only running code would give its value."""


class SetupScript:
    """The values of setup.py's top-level names that are plain lists or strings."""

    def __init__(self, path: pathlib.Path):
        self.values: dict[str, object] = {}
        self.arguments: dict[str, ast.expr] = {}
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            self._read(statement)

    def argument(self, name: str) -> object:
        """The value given to setup(NAME=...); None when it is not given."""
        return self._value(self.arguments[name]) if name in self.arguments else None

    def _read(self, statement: ast.stmt) -> None:
        for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
            if getattr(call.func, "id", getattr(call.func, "attr", "")) == "setup":
                self.arguments = {k.arg: k.value for k in call.keywords if k.arg}
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign(name, value)
            case _:
                # Any other statement that changes a name makes its value unknown: +=, append(), ...
                for node in ast.walk(statement):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        self.values.pop(node.id, None)
                    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                        if node.attr in ("append", "extend", "insert", "remove", "pop", "clear"):
                            self.values.pop(node.value.id, None)

    def _assign(self, name: str, value: ast.expr) -> None:
        try:
            self.values[name] = self._value(value)
        except Unreadable:
            self.values.pop(name, None)

    def _value(self, node: ast.expr) -> object:
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._value(item) for item in items]
            case ast.Name(id=name) if name in self.values:
                return self.values[name]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._value(left) + self._value(right)
            case ast.Call(func=ast.Name(id="list"), args=[only], keywords=[]):
                return self._value(only)
        raise Unreadable(f"line {node.lineno}: {ast.unparse(node)[:80]}")


def requirement_lines(text: str) -> list[str]:
    """The requirements of a requirements.txt. Options such as -r are not supported."""
    lines = [re.sub(r"(^|\s)#.*$", "", line).strip() for line in text.splitlines()]
    for line in lines:
        if line.startswith("-"):
            raise Unreadable(f"an option among the requirements: {line}")
    return [line for line in lines if line]


def from_pyproject(folder: pathlib.Path, project: dict, tool: dict) -> list[str] | None:
    if "dependencies" in project:
        return project["dependencies"]
    dynamic = tool.get("setuptools", {}).get("dynamic", {}).get("dependencies", {})
    files = dynamic.get("file", []) if isinstance(dynamic, dict) else []
    files = [files] if isinstance(files, str) else files
    if "dependencies" not in project.get("dynamic", []) or not files:
        return None
    return [r for f in files for r in requirement_lines((folder / f).read_text("utf-8"))]


def from_setup(folder: pathlib.Path) -> tuple[str | None, list[str]] | None:
    """Name and requirements from setup.py, otherwise from setup.cfg."""
    name = None
    if (folder / "setup.py").exists():
        script = SetupScript(folder / "setup.py")
        try:
            name = script.argument("name")
        except Unreadable:
            pass
        requirements = script.argument("install_requires")
        if isinstance(requirements, str):
            requirements = requirement_lines(requirements)
        if requirements is not None:
            return name, requirements
    if (folder / "setup.cfg").exists():
        config = configparser.ConfigParser(interpolation=None)
        config.read(folder / "setup.cfg", encoding="utf-8")
        name = name or config.get("metadata", "name", fallback=None)
        text = config.get("options", "install_requires", fallback=None)
        if text is not None:
            return name, requirement_lines(text)
    return (name, []) if name else None


def declared(folder: pathlib.Path) -> dict:
    pyproject = {}
    if (folder / "pyproject.toml").exists():
        pyproject = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    project = pyproject.get("project", {})
    found = from_pyproject(folder, project, pyproject.get("tool", {}))
    name = project.get("name")
    if found is not None:
        return {"name": name, "requirements": found}
    setup = from_setup(folder)
    if setup:
        return {"name": name or setup[0], "requirements": setup[1]}
    if "poetry" in pyproject.get("tool", {}):
        raise Unreadable("pyproject.toml declares them for poetry")
    return {"name": name, "requirements": []}


def metadata(path: pathlib.Path) -> dict:
    message = email.parser.HeaderParser().parsestr(path.read_text("utf-8"))
    requirements = message.get_all("Requires-Dist") or []
    own = [r for r in requirements if not re.search(r";.*\bextra\b", r)]
    return {"name": message["Name"], "requirements": own}


def pylock(text: str) -> dict:
    packages = []
    for package in tomllib.loads(text).get("packages", []):
        files = package.get("wheels") or ([package["sdist"]] if "sdist" in package else [])
        times = [str(f["upload-time"]) for f in files if "upload-time" in f]
        packages.append(
            {
                "name": package["name"],
                "version": package.get("version", ""),
                "sha256": sorted(
                    {f["hashes"]["sha256"] for f in files if "sha256" in f.get("hashes", {})}
                ),
                "uploaded": min(times)[:10] if times else "",
                "files": [
                    {
                        "url": f.get("url", ""),
                        "sha256": f.get("hashes", {}).get("sha256", ""),
                        "wheel": bool(package.get("wheels")),
                    }
                    for f in files
                ],
            }
        )
    return {"packages": packages}


def compile_one(pair: str) -> None:
    """Leaves the target empty if the source does not compile: an import reports the error."""
    source, target = pair.split("\t")
    # Not checked against the source: nobody edits these files, and links do not keep the times.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    try:
        py_compile.compile(source, target, doraise=True, invalidation_mode=mode)
    except (py_compile.PyCompileError, ValueError, RecursionError):
        pathlib.Path(target).touch()


def compile_all(pairs: list[str]) -> dict:
    if len(pairs) > 32:
        with concurrent.futures.ProcessPoolExecutor() as pool:
            list(pool.map(compile_one, pairs, chunksize=16))
    else:
        for pair in pairs:
            compile_one(pair)
    return {"tag": sys.implementation.cache_tag}


def main() -> dict:
    match sys.argv[1:]:
        case ["declared", folder]:
            return declared(pathlib.Path(folder))
        case ["metadata", path]:
            return metadata(pathlib.Path(path))
        case ["pylock"]:
            return pylock(sys.stdin.read())
        case ["compile"]:
            return compile_all(sys.stdin.read().splitlines())
    return {"error": f"unknown command {sys.argv[1:]}"}


if __name__ == "__main__":
    try:
        answer = main()
    except (Unreadable, OSError, ValueError, SyntaxError) as error:
        answer = {"error": f"{error}"}
    print(json.dumps(answer))
