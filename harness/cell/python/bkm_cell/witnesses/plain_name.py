# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Names without what wraps modules."""

_WRAPPERS = ("_orig_mod.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module.")


def plain_name(name: str) -> str:
    """A module's or parameter's name without what compile, checkpointing and FSDP1 add to it."""
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name
