# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""What Ray does for `bkm --executor ray`, as JSON lines on stdin and stdout (harness/ray/README.md).

It reserves resources on nodes, starts one program per node and runtime, and passes lines between bkm and these programs. It
decides nothing: which cell runs where and how often is decided by bkm.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import socket
import sys
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from bkm_ray import actor as actor_module

_LONGEST_LINE = 1 << 30
_RECEIVE_S = 1.0
_NODES_S = 1.0
_CONNECT_S = 10.0

ray.cloudpickle.register_pickle_by_value(actor_module)
_Pipe = ray.remote(
    num_cpus=0,
    max_restarts=0,  # bkm decides what runs again
    max_task_retries=0,
    concurrency_groups={"in": 1, "out": 1},
)(actor_module.Pipe)


# Ray and its libraries print to stdout, too, and must not reach bkm: they get stderr instead.
_messages = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def say(**message: Any) -> None:
    _messages.write(json.dumps(message) + "\n")
    _messages.flush()


def why(error: BaseException) -> str:
    """An error as one short sentence: Ray's own errors begin with it, those of a program end with it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [repr(error)]
    return lines[-1 if isinstance(error, ray.exceptions.RayTaskError) else 0][:300]


class Driver:
    def __init__(self) -> None:
        self._slots: dict[int, PlacementGroup] = {}
        self._workers: dict[int, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_LONGEST_LINE)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        self._keep(self._watch_nodes())
        while line := await reader.readline():
            message = json.loads(line)
            getattr(self, "on_" + message.pop("type"))(**message)

    def _keep(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        for pipe in self._workers.values():
            ray.kill(pipe)

    async def _watch_nodes(self) -> None:
        known: Any = None
        while True:
            nodes = sorted(
                ({"id": node["NodeID"], "resources": node["Resources"]} for node in ray.nodes() if node["Alive"]),
                key=lambda node: node["id"],
            )
            if nodes != known:
                say(type="nodes", nodes=nodes)
            known = nodes
            await asyncio.sleep(_NODES_S)

    def on_reserve(self, slot: int, resources: dict[str, float], not_nodes: list[str], labels: dict[str, str]) -> None:
        selector = dict(labels)
        if not_nodes:
            selector["ray.io/node-id"] = f"!in({','.join(not_nodes)})"
        try:
            self._slots[slot] = placement_group([resources], bundle_label_selector=[selector] if selector else None)
        except Exception as error:  # noqa: BLE001 - whatever Ray has against it is for bkm to say
            say(type="unreserved", slot=slot, why=why(error))
            return
        self._keep(self._wait_for(slot, self._slots[slot]))

    async def _wait_for(self, slot: int, group: PlacementGroup) -> None:
        pause = 0.01
        while self._slots.get(slot) is group:
            table = placement_group_table(group)
            if table.get("state") == "CREATED":
                say(type="reserved", slot=slot, node=table["bundles_to_node_id"][0])
                return
            await asyncio.sleep(pause)
            pause = min(1.0, 1.5 * pause)

    def on_release(self, slot: int) -> None:
        if group := self._slots.pop(slot, None):
            remove_placement_group(group)

    def on_open(self, worker: int, node: str, argv: list[str], environment: dict[str, str]) -> None:
        pipe = _Pipe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
        self._workers[worker] = pipe
        self._keep(self._pump(worker, pipe, pipe.open.options(concurrency_group="in").remote(argv, environment)))

    async def _pump(self, worker: int, pipe: Any, opened: Any) -> None:
        kind = "lost"
        try:
            try:
                await opened
            except ray.exceptions.RayTaskError:
                kind = "unstartable"
                raise
            ended = False
            while not ended:
                lines, ended = await pipe.receive.options(concurrency_group="out").remote(_RECEIVE_S)
                if lines:
                    say(type="lines", worker=worker, lines=lines)
            how = await pipe.status.options(concurrency_group="out").remote()
            reason = f"its bkm ended: {how}"
            # Whoever killed it says nothing about the node.
            kind = "lost" if how.startswith("signal") else "ended"
        except Exception as error:  # noqa: BLE001 - a lost node, a killed process, a program that is not there
            reason = why(error)
        if self._workers.pop(worker, None) is not None:
            say(type="gone", worker=worker, kind=kind, why=reason)
            ray.kill(pipe)

    def on_send(self, worker: int, text: str) -> None:
        if pipe := self._workers.get(worker):
            pipe.send.options(concurrency_group="in").remote(text)

    def on_close(self, worker: int) -> None:
        if pipe := self._workers.pop(worker, None):
            ray.kill(pipe)


def check_answers(address: str) -> None:
    """Ray itself looks for minutes for a cluster that is not there."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return  # "auto" and other forms, which Ray resolves at once
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise ConnectionError(
            f"no cluster answers at {address} ({error}): start one by `ray start --head`, or name another --address"
        ) from error


def connect(address: str, cpus: int) -> None:
    check_answers(address)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": None}
    if address:
        quiet.pop("include_dashboard")
        ray.init(address=address, **quiet)
    else:
        quiet["include_dashboard"] = False
        ray.init(address="local", num_cpus=cpus, object_store_memory=100 << 20, **quiet)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="")
    parser.add_argument("--cpus", type=int, default=1)
    options = parser.parse_args()
    try:
        connect(options.address, options.cpus)
    except Exception as error:  # noqa: BLE001
        say(type="fatal", message=why(error))
        return
    say(type="ready", ray=ray.__version__)
    driver = Driver()
    try:
        asyncio.run(driver.run())
    finally:
        driver.close()
        ray.shutdown()


if __name__ == "__main__":
    main()
