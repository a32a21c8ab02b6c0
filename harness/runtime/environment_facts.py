# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Describes the environment of the interpreter that runs it, which must be started with -I -S.

    versions    {"python": "3.11.2", "executable": "/env/bin/python",
                "packages": {"torch": "2.13.0+cpu", ...}}
    installed   {"installed": [{"package": "verl", "version": "0.9.1", "commit": "<40 hex>" or "",
                "folder": "/env/lib/python3.11/site-packages"}, ...]} of the packages on stdin, one
                per line, that could be imported; none of them is imported
    metadata    {"distributions": [["torch", "2.13.0+cpu", "Name: torch\\nVersion: ..."], ...]}: of each
                distribution, what its metadata says of name, version and requirements

Runs nothing of the environment: no line of a .pth file, no sitecustomize, no package. So the
environment's path is worked out here, as site.py would without these.
"""

import ast
import importlib.machinery
import importlib.metadata
import json
import os
import platform
import re
import site
import sys
import urllib.parse
import urllib.request


def virtual_environment() -> tuple[str, bool]:
    """The folder of the interpreter's virtual environment ("" if it has none), and whether that
    environment sees the base interpreter's packages, too."""
    programs = os.path.dirname(os.path.abspath(sys.executable))
    for folder in (programs, os.path.dirname(programs)):
        try:
            with open(os.path.join(folder, "pyvenv.cfg"), encoding="utf-8") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        pairs = [line.partition("=") for line in lines]
        settings = {key.strip().lower(): value.strip().lower() for key, _, value in pairs}
        return folder, settings.get("include-system-site-packages") == "true"
    return "", True


def add_folder(folder: str, path: list[str]) -> None:
    """Adds a folder and what the path lines of its .pth files name. Other lines are code."""
    if not os.path.isdir(folder) or folder in path:
        return
    path.append(folder)
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".pth") or name.startswith("."):
            continue
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith(("#", "import ", "import\t")) or not line.strip():
                continue
            named = os.path.abspath(os.path.join(folder, line.rstrip()))
            if os.path.exists(named) and named not in path:
                path.append(named)


def package_path() -> list[str]:
    """The folders that hold the environment's packages, in the order of sys.path."""
    path: list[str] = []
    base = [sys.base_prefix, sys.base_exec_prefix]
    environment, sees_base = virtual_environment()
    if environment:
        # Some distributions' site.py asks for these to tell a virtual environment from a system.
        sys.prefix = sys.exec_prefix = environment
        for folder in site.getsitepackages([environment]):
            add_folder(folder, path)
        sys.prefix, sys.exec_prefix = base
    if sees_base:
        for folder in site.getsitepackages(base):
            add_folder(folder, path)
    return path


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def versions(path: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions(path=path):
        # Python imports the first one on sys.path.
        if distribution.metadata and distribution.metadata["Name"]:
            found.setdefault(normalized(distribution.metadata["Name"]), distribution.version)
    return found


_TOLD = ("Metadata-Version", "Name", "Version", "Requires-Python", "Requires-Dist", "Provides-Extra")


def metadata(path: list[str]) -> list[list[str]]:
    found: dict[str, list[str]] = {}
    for distribution in importlib.metadata.distributions(path=path):
        told = distribution.metadata
        if not told or not told["Name"]:
            continue
        lines = [
            f"{field}: {' '.join(str(value).split())}"
            for field in _TOLD
            for value in told.get_all(field) or []
        ]
        name = normalized(told["Name"])
        found.setdefault(name, [name, distribution.version, "\n".join(lines)])
    return list(found.values())


def distribution_of(name: str, path: list[str]) -> importlib.metadata.Distribution | None:
    return next(iter(importlib.metadata.distributions(name=name, path=path)), None)


def direct_url(distribution: importlib.metadata.Distribution | None) -> dict:
    """What PEP 610 says of where a distribution came from; empty if it came from an index."""
    text = distribution and distribution.read_text("direct_url.json")
    url = json.loads(text) if text else {}
    return url if isinstance(url, dict) else {}


def mapped_folders(path: list[str]) -> dict[str, str]:
    """Packages that an editable installation of setuptools finds by code, with their folders: the
    literal MAPPING of its finder."""
    found: dict[str, str] = {}
    for folder in path:
        if not os.path.isdir(folder):
            continue
        for name in sorted(os.listdir(folder)):
            if not (name.startswith("__editable__") and name.endswith("_finder.py")):
                continue
            try:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    tree = ast.parse(file.read())
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            for node in tree.body:
                target = node.target if isinstance(node, ast.AnnAssign) else None
                target = node.targets[0] if isinstance(node, ast.Assign) else target
                if not isinstance(target, ast.Name) or target.id != "MAPPING":
                    continue
                if not isinstance(node.value, ast.Dict):
                    continue
                try:
                    found.update(ast.literal_eval(node.value))
                except (ValueError, TypeError, RecursionError, MemoryError):
                    continue
    return found


def is_package(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "__init__.py"))


def folder_of(name: str, path: list[str], mapped: dict[str, str], url: dict) -> str:
    """The folder that contains the package; "" if Python would not find it."""
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec and spec.origin and spec.submodule_search_locations:
        return os.path.dirname(os.path.dirname(spec.origin))
    if is_package(str(mapped.get(name, ""))):
        return os.path.dirname(mapped[name])
    source = urllib.parse.urlparse(url.get("url", ""))
    if source.scheme == "file" and url.get("dir_info", {}).get("editable"):
        tree = urllib.request.url2pathname(source.path)
        for folder in (tree, os.path.join(tree, "src")):
            if is_package(os.path.join(folder, name)):
                return folder
    return ""


def installed(names: list[str], path: list[str]) -> list[dict[str, str]]:
    mapped = mapped_folders(path)
    found = []
    for name in names:
        distribution = distribution_of(name, path)
        url = direct_url(distribution)
        folder = folder_of(name, path, mapped, url)
        if not folder:
            continue
        # Without a distribution, the package is a mere folder on the path.
        version = distribution.version if distribution else ""
        commit = url.get("vcs_info", {}).get("commit_id", "")
        found.append({"package": name, "version": version, "commit": commit, "folder": folder})
    return found


def main() -> dict:
    if not sys.flags.no_site:
        raise ValueError("start this program with -S: packages ran code before it began")
    path = package_path()
    if sys.argv[1:] == ["versions"]:
        return {
            "python": platform.python_version(),
            "executable": sys.executable,
            "packages": versions(path),
        }
    if sys.argv[1:] == ["installed"]:
        return {"installed": installed(sys.stdin.read().splitlines(), path)}
    if sys.argv[1:] == ["metadata"]:
        return {"distributions": metadata(path)}
    return {"error": f"unknown command {sys.argv[1:]}"}


if __name__ == "__main__":
    try:
        answer = main()
    except Exception as error:  # the environment's files say anything
        answer = {"error": f"cannot read the environment: {type(error).__name__}: {error}"}
    print(json.dumps(answer))
