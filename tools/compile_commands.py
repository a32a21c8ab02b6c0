#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes compile_commands.json, as clang's tools read it, from what Bazel compiles.

bazel aquery 'mnemonic("CppCompile", //...)' --output=jsonproto | compile_commands.py FOLDER SOURCE...: the commands of
these sources only, with the options that decide what a source means (macros, include folders, standard): GCC's other options
are not clang's. Leaves out sources of targets that use LibTorch or Python, whose headers take a tool a minute for each source, and
says on stderr how many. Exit code 1: Bazel compiles one of the sources by no action.
"""
import json
import os
import sys
from pathlib import Path

# Options that are followed by their value, or have it attached.
WITH_VALUE = ("-I", "-iquote", "-isystem", "-D")
# Their folders among the include folders.
TOO_LARGE = ("external/torch/", "external/python/")
# Bazel's own: no dates in objects, and a check that asks for optimization.
NOT_MEANT = ("-D__", "-D_FORTIFY_SOURCE")


def meaning(arguments: list[str]) -> list[str]:
    """The options of a compilation that clang must know."""
    kept, standard = [], []
    rest = iter(arguments)
    for argument in rest:
        if argument in WITH_VALUE:
            kept += [argument, next(rest)]
        elif argument.startswith(WITH_VALUE) and not argument.startswith(NOT_MEANT):
            kept.append(argument)
        elif argument.startswith("-std="):
            standard = [argument]  # The last one counts.
    return kept + standard


def main() -> None:
    folder, wanted = Path(sys.argv[1]), set(sys.argv[2:])
    commands = {}
    left_out = set()
    for action in json.load(sys.stdin).get("actions", []):
        arguments = action["arguments"]
        source = arguments[arguments.index("-c") + 1]
        if source not in wanted:
            continue
        if any(folder in argument for argument in arguments for folder in TOO_LARGE):
            left_out.add(source)
        else:
            commands[source] = {
                "directory": os.getcwd(),
                "file": source,
                "arguments": ["clang++", *meaning(arguments), "-c", source],
            }
    left_out -= commands.keys()
    if missing := sorted(wanted - commands.keys() - left_out):
        sys.exit(f"compile_commands.py: Bazel compiles {len(missing)} of the sources by no action; the first is {missing[0]}")
    print(f"compile_commands.py: {len(commands)} sources; {len(left_out)} use LibTorch or Python", file=sys.stderr)
    (folder / "compile_commands.json").write_text(json.dumps(list(commands.values()), indent=1))


if __name__ == "__main__":
    main()
