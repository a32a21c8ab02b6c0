"""A switch of the build: on or off by --//PACKAGE:NAME=true or false."""

def _switch_impl(_ctx):
    return []

switch = rule(
    implementation = _switch_impl,
    build_setting = config.bool(flag = True),
)
