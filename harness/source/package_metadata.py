# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Reads a Python package's declarations without running any of its code.

    declared DIR    {"name", "requirements", "origin"} of a source folder; origin: the last file read
    metadata FILE   the same of a dist-info METADATA
    sdist FILE      the same, of what building a source distribution needs
    pylock          {"packages": [...]} of the pylock.toml on stdin
    compile         compiles SOURCE into TARGET for each line "SOURCE<tab>TARGET" of stdin;
                    {"tag": "cpython-311"}
    compile-tree DIR    compiles the .py files below DIR beside themselves; {"tag": "cpython-311"}

Prints one JSON object. {"error": "...", "kind": "malformed"} when a declaration is broken,
"not-allowed" when reading it is forbidden or needs its code to run. Packages may be hostile: files
are opened without following links out of their folder, and time, memory and sizes are bounded.
"""

import ast
import configparser
import email.parser
import importlib.util
import json
import lzma
import os
import pathlib
import py_compile
import re
import resource
import signal
import stat
import sys
import tarfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable

MIB = 1 << 20
origins: list[str] = []  # the files that were read
LARGEST_DECLARATION = 4 * MIB
LARGEST_METADATA = 16 * MIB  # it contains the package's whole description
MOST_REQUIREMENTS = 10_000
MOST_MEMBERS = 200_000  # of an archive
SECONDS_TO_READ = 30
SECONDS_TO_COMPILE = 60  # one file
MIB_TO_READ = 1024
MIB_TO_COMPILE = 4096


class Malformed(Exception):
    """A declaration is broken."""


class NotAllowed(Exception):
    """A declaration exists, but only running code or leaving the folder would give its value."""


def bound(seconds: int, mib: int) -> None:
    """Limits this process. A file that exceeds the limits ends it, which the caller sees."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (mib * MIB, mib * MIB))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def read(folder: pathlib.Path, name: str, limit: int = LARGEST_DECLARATION) -> str:
    """The text of a regular file below `folder`."""
    root = os.path.realpath(folder)
    if not name or "\0" in name or os.path.isabs(name) or ".." in pathlib.PurePath(name).parts:
        raise NotAllowed(f"{name[:80]!r} is not the path of a file below the package's folder")
    origins.append(name[:80])
    path = os.path.realpath(os.path.join(root, name))
    if not path.startswith(root.rstrip("/") + "/"):
        raise NotAllowed(f"{name[:80]!r} is a link that leaves the package's folder")
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotAllowed(f"{name[:80]!r} cannot be opened: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise NotAllowed(f"{name[:80]!r} is not a regular file")
    origins.append(name[:80])  # not before: a file that is not read is told with who names it
    with os.fdopen(file, "rb") as opened:
        content = opened.read(limit + 1)
    if len(content) > limit:
        raise NotAllowed(f"{name[:80]!r} has more than {limit // MIB} MiB")
    return content.decode("utf-8-sig")


def exists(folder: pathlib.Path, name: str) -> bool:
    return os.path.lexists(folder / name)


def table(value: object, where: str) -> dict:
    if not isinstance(value, dict):
        raise Malformed(f"{where} is not a table")
    return value


def text_or_none(value: object, where: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise Malformed(f"{where} is not a string")
    return value


def strings(value: object, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Malformed(f"{where} is not a list of strings")
    if len(value) > MOST_REQUIREMENTS:
        raise NotAllowed(f"{where} has more than {MOST_REQUIREMENTS} items")
    return value


class SetupScript:
    """The values of setup.py's top-level names that are plain lists or strings."""

    def __init__(self, text: str):
        self.values: dict[str, object] = {}
        self.arguments: dict[str, ast.expr] = {}
        for statement in ast.parse(text).body:
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
        except NotAllowed:
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
                return self._sum(self._value(left), self._value(right), node)
            case ast.Call(func=ast.Name(id="list"), args=[only], keywords=[]):
                return self._value(only)
        raise NotAllowed(
            f"only running line {node.lineno} would give its value: {ast.unparse(node)[:80]}"
        )

    @staticmethod
    def _sum(left: object, right: object, node: ast.expr) -> object:
        if type(left) is not type(right):
            raise Malformed(f"line {node.lineno} adds a list and a string")
        # Without a bound, a few lines that double a list would fill the memory.
        if len(left) + len(right) > LARGEST_DECLARATION:
            raise NotAllowed(f"line {node.lineno} makes a value that is too long")
        return left + right


def requirement_lines(text: str) -> list[str]:
    """The lines of a requirements.txt, without comments. Options such as -r are kept: the caller
    refuses them."""
    lines = [re.sub(r"(^|[ \t])#.*$", "", line).strip(" \t\r") for line in text.split("\n")]
    return [line for line in lines if line]


def from_pyproject(folder: pathlib.Path, project: dict, tool: dict) -> list[str] | None:
    if "dependencies" in project:
        return strings(project["dependencies"], "project.dependencies")
    setuptools = table(tool.get("setuptools", {}), "tool.setuptools")
    dynamic = table(setuptools.get("dynamic", {}), "tool.setuptools.dynamic")
    dependencies = dynamic.get("dependencies", {})
    files = dependencies.get("file", []) if isinstance(dependencies, dict) else []
    where = "tool.setuptools.dynamic.dependencies.file"
    files = strings([files] if isinstance(files, str) else files, where)
    if "dependencies" not in strings(project.get("dynamic", []), "project.dynamic") or not files:
        return None
    if len(files) > 100:
        raise NotAllowed(f"{where} names more than 100 files")
    return [line for file in files for line in requirement_lines(read(folder, file))]


def from_setup(folder: pathlib.Path) -> tuple[str | None, list[str]] | None:
    """Name and requirements from setup.py, otherwise from setup.cfg."""
    name = None
    if exists(folder, "setup.py"):
        script = SetupScript(read(folder, "setup.py"))
        try:
            name = text_or_none(script.argument("name"), "the name in setup.py")
        except NotAllowed:
            pass
        requirements = script.argument("install_requires")
        if isinstance(requirements, str):
            requirements = requirement_lines(requirements)
        if requirements is not None:
            return name, strings(requirements, "install_requires in setup.py")
    if exists(folder, "setup.cfg"):
        config = configparser.ConfigParser(interpolation=None)
        config.read_string(read(folder, "setup.cfg"), "setup.cfg")
        name = name or config.get("metadata", "name", fallback=None)
        text = config.get("options", "install_requires", fallback=None)
        if text is not None:
            return name, requirement_lines(text)
    return (name, []) if name else None


def declared(folder: pathlib.Path) -> dict:
    pyproject = {}
    if exists(folder, "pyproject.toml"):
        pyproject = tomllib.loads(read(folder, "pyproject.toml"))
    project = table(pyproject.get("project", {}), "project")
    tool = table(pyproject.get("tool", {}), "tool")
    found = from_pyproject(folder, project, tool)
    name = text_or_none(project.get("name"), "project.name")
    if found is not None:
        return {"name": name, "requirements": found}
    setup = from_setup(folder)
    if setup:
        return {"name": name or setup[0], "requirements": setup[1]}
    if "poetry" in tool:
        raise NotAllowed("pyproject.toml declares the requirements for poetry")
    return {"name": name, "requirements": []}


def metadata(path: pathlib.Path) -> dict:
    message = email.parser.HeaderParser().parsestr(read(path.parent, path.name, LARGEST_METADATA))
    requirements = [str(r) for r in message.get_all("Requires-Dist") or []]
    # Whoever checks the requirements refuses one that is too long; here it would only cost time.
    own = [r for r in requirements if len(r) > 10_000 or not re.search(r";.*\bextra\b", r)]
    return {"name": str(message["Name"] or ""), "requirements": strings(own, "Requires-Dist")}


def build_system(path: pathlib.Path) -> dict:
    """What PEP 517 and 518 say that building needs. The archive is not unpacked."""
    origins.append("build-system in pyproject.toml")
    text = ""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist()[:MOST_MEMBERS]:
                if re.fullmatch(r"[^/]+/pyproject\.toml", info.filename):
                    text = archive.open(info).read(LARGEST_DECLARATION).decode("utf-8-sig")
    else:
        with tarfile.open(path, "r|*") as archive:
            for count, member in enumerate(archive):
                if count > MOST_MEMBERS:
                    raise NotAllowed(f"the archive has more than {MOST_MEMBERS} members")
                if member.isreg() and re.fullmatch(r"(\./)?[^/]+/pyproject\.toml", member.name):
                    text = archive.extractfile(member).read(LARGEST_DECLARATION).decode("utf-8-sig")
                    break
    system = table(tomllib.loads(text).get("build-system", {}), "build-system")
    default = ["setuptools>=40.8.0"]
    return {"name": "", "requirements": strings(system.get("requires", default), "requires")}


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
    except (py_compile.PyCompileError, ValueError, RecursionError, MemoryError):
        pathlib.Path(target).touch()


def compile_in_turn(pairs: list[str], progress: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MIB_TO_COMPILE * MIB, MIB_TO_COMPILE * MIB))
    for pair in pairs:
        signal.setitimer(signal.ITIMER_PROF, SECONDS_TO_COMPILE)  # its signal ends the process
        compile_one(pair)
        os.write(progress, b".")


def compile_some(pairs: list[str]) -> None:
    """Compiles in a child process. A source that crashes the child or exceeds its limits costs only
    itself."""
    while pairs:
        done, progress = os.pipe()
        child = forked(lambda: compile_in_turn(pairs, progress))
        os.close(progress)
        finished = 0
        while chunk := os.read(done, 65536):
            finished += len(chunk)
        os.close(done)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code > 0 or code == -signal.SIGKILL:  # the disk or the memory of the machine
            raise OSError(f"cannot compile {pairs[finished:][:1]}")
        if code < 0 and finished < len(pairs):
            pathlib.Path(pairs[finished].split("\t")[1]).touch()
            finished += 1
        pairs = pairs[finished:]


def forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)


def compile_all(pairs: list[str]) -> dict:
    workers = min(os.cpu_count() or 1, len(pairs) // 32) or 1
    shares = [pairs[worker::workers] for worker in range(workers)]
    children = [forked(lambda: compile_some(share)) for share in shares[1:]]
    compile_some(shares[0])
    if any(os.waitpid(child, 0)[1] for child in children):
        raise OSError("a process that compiles Python ended early")
    return {"tag": sys.implementation.cache_tag}


def is_plain(path: str) -> bool:
    return os.path.lexists(path) and stat.S_ISREG(os.lstat(path).st_mode)


def compile_tree(folder: str) -> dict:
    pairs = []
    for root, folders, files in os.walk(folder):  # does not follow links
        cache = os.path.join(root, "__pycache__")
        if os.path.islink(cache):
            continue
        for file in files:
            source = os.path.join(root, file)
            if not file.endswith(".py") or not source.isprintable():
                continue
            target = importlib.util.cache_from_source(source)
            if is_plain(source) and (is_plain(target) or not os.path.lexists(target)):
                os.makedirs(cache, exist_ok=True)
                pairs.append(f"{source}\t{target}")
    answer = compile_all(pairs)
    for pair in pairs:
        # Beside its source, an empty file would be an error and not a missing one.
        target = pair.split("\t")[1]
        if os.path.getsize(target) == 0:
            os.unlink(target)
    return answer


def main() -> dict:
    match sys.argv[1:]:
        case ["compile"]:
            return compile_all(sys.stdin.read().splitlines())
        case ["compile-tree", folder]:
            return compile_tree(folder)
    bound(SECONDS_TO_READ, MIB_TO_READ)
    match sys.argv[1:]:
        case ["declared", folder]:
            return declared(pathlib.Path(folder))
        case ["metadata", path]:
            return metadata(pathlib.Path(path))
        case ["sdist", path]:
            return build_system(pathlib.Path(path))
        case ["pylock"]:
            return pylock(sys.stdin.read())
    return {"error": f"unknown command {sys.argv[1:]}"}


def answer() -> dict:
    try:
        return main()
    except NotAllowed as error:
        return {"kind": "not-allowed", "error": f"{error}"}
    except (RecursionError, MemoryError) as error:
        return {"kind": "malformed", "error": f"nested too deep or too large ({type(error).__name__})"}
    except UnicodeError:
        return {"kind": "malformed", "error": "not UTF-8"}
    except (Malformed, ValueError, SyntaxError, configparser.Error) as error:
        return {"kind": "malformed", "error": f"{error}"[:500]}
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError) as error:
        return {"kind": "malformed", "error": f"not a readable archive: {error}"[:500]}
    except OSError as error:
        return {"error": f"{error}"}


if __name__ == "__main__":
    result = answer()
    if origins:
        result["origin"] = origins[-1]
    try:
        json.dumps(result, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # one half of a surrogate pair, which is not a character
        result = {"kind": "malformed", "error": "not Unicode"}
    print(json.dumps(result))
