# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Calls of a model by witnesses leave no trace in what it trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def put_back(modules: list[torch.nn.Module]) -> Iterator[None]:
    """Random numbers and buffers (counters, such as of the tokens of each expert) are as before
    afterwards; and so are the weights that autocast keeps cast, which would have no gradient."""
    buffers = [(buffer, buffer.detach().clone()) for m in modules for buffer in m.buffers()]
    state, keeps_cast = torch.get_rng_state(), torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(keeps_cast)
        torch.set_rng_state(state)
        with torch.no_grad():
            for buffer, before in buffers:
                if not torch.equal(buffer, before):  # one may be read-only, or a view of one value
                    buffer.copy_(before)
