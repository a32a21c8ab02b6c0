"""@python: the headers and library of the Python that the cell worker embeds, asked from its own sysconfig."""

_ASK = """
import sysconfig as s
print("\\n".join([s.get_paths()["include"], s.get_config_var("LDVERSION"), s.get_config_var("LIBDIR"), s.get_config_var("py_version_short"), s.get_config_var("prefix")]))
"""

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
)

cc_library(
    name = "embed",
    linkopts = ["-L%s", "-lpython%s"],
    deps = [":headers"],
)
"""

_STUB = """
package(default_visibility = ["//visibility:public"])
cc_library(name = "embed")
cc_library(name = "headers")
"""

def _impl(ctx):
    interpreter = ctx.os.environ.get("BKM_EMBED_PYTHON", "") or "/usr/bin/python3"
    lines = []
    if ctx.path(interpreter).exists:
        result = ctx.execute([interpreter, "-I", "-c", _ASK])
        if result.return_code == 0:
            lines = result.stdout.strip().split("\n")
    if not lines or not ctx.path(lines[0] + "/Python.h").exists:
        # buildifier: disable=print
        print("no Python.h for %s: the cell worker is skipped (apt-get install libpython3-dev, or run tools/bkm)" % interpreter)
        ctx.file("BUILD", _STUB)
        ctx.file("python.bzl", "PYTHON_AVAILABLE = False\nPYTHON_VERSION = ''\nPYTHON_HOME = ''\nPYTHON = ''\n")
        return
    ctx.symlink(lines[0], "include")
    ctx.file("BUILD", _BUILD % (lines[2], lines[1]))
    ctx.file("python.bzl", "PYTHON_AVAILABLE = True\nPYTHON_VERSION = %r\nPYTHON_HOME = %r\nPYTHON = %r\n" % (lines[3], lines[4], interpreter))

python_configure = repository_rule(
    implementation = _impl,
    environ = ["BKM_EMBED_PYTHON"],
    local = True,
    configure = True,
)
