# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Describes the environment of the interpreter that runs it.

    versions    {"python": "3.11.2", "packages": {"torch": "2.13.0+cpu", ...}}
    violated    {"violated": [{"requirement": "numpy<2", "found": "2.4.6"}, ...]} of the
                requirements on stdin, one per line; "found" is empty when the package is missing
    installed   {"installed": [{"package": "verl", "version": "0.9.1", "commit": "<40 hex>" or "",
                "folder": "/env/lib/python3.11/site-packages"}, ...]} of the packages on stdin, one
                per line, that could be imported; none of them is imported
"""

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        # Python imports the first one on sys.path.
        if distribution.metadata and distribution.metadata["Name"]:
            found.setdefault(normalized(distribution.metadata["Name"]), distribution.version)
    return found


def requirement_class() -> type:
    """packaging's Requirement, from any copy of packaging in this environment."""
    for module in ("packaging", "setuptools._vendor.packaging", "pip._vendor.packaging"):
        try:
            __import__(f"{module}.requirements")
        except ImportError:
            continue
        return sys.modules[f"{module}.requirements"].Requirement
    raise ImportError("no copy of 'packaging', which is needed to evaluate version pins")


def violated(lines: list[str]) -> list[dict[str, str]]:
    requirement_of = requirement_class()
    found = versions()
    result = []
    for line in lines:
        requirement = requirement_of(line)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        version = found.get(normalized(requirement.name), "")
        if not version or not requirement.specifier.contains(version, prereleases=True):
            result.append({"requirement": line, "found": version})
    return result


def installed(names: list[str]) -> list[dict[str, str]]:
    found = []
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.origin or not spec.submodule_search_locations:
            continue
        fact = {"package": name, "version": "", "commit": ""}
        fact["folder"] = os.path.dirname(os.path.dirname(spec.origin))
        try:
            distribution = importlib.metadata.distribution(name)
            fact["version"] = distribution.version
            source = json.loads(distribution.read_text("direct_url.json") or "{}")
            fact["commit"] = source.get("vcs_info", {}).get("commit_id", "")
        except importlib.metadata.PackageNotFoundError:
            pass  # a folder on the path, not an installed distribution
        found.append(fact)
    return found


def main() -> dict:
    if sys.argv[1:] == ["versions"]:
        return {"python": platform.python_version(), "packages": versions()}
    if sys.argv[1:] == ["violated"]:
        return {"violated": violated(sys.stdin.read().splitlines())}
    if sys.argv[1:] == ["installed"]:
        return {"installed": installed(sys.stdin.read().splitlines())}
    return {"error": f"unknown command {sys.argv[1:]}"}


if __name__ == "__main__":
    try:
        answer = main()
    except (ImportError, ValueError) as error:
        answer = {"error": f"{error}"}
    print(json.dumps(answer))
