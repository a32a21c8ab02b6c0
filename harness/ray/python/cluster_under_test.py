# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""A Ray cluster on this machine, for tests. Its head runs no cells.

Prints {"address": ...}, then answers each line of stdin: {"add": NAME, "environment": {...}} starts a node and prints
{"node": ID, "raylet": PID}; {"remove": NAME} ends it with all that runs on it and prints {}. Ends with stdin.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ray.cluster_utils import Cluster

_NODE = {"include_dashboard": False, "object_store_memory": 80 << 20}


def main() -> None:
    # Ray prints to stdout, too.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**what: Any) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    cluster = Cluster(initialize_head=True, head_node_args={**_NODE, "num_cpus": 0})
    nodes: dict[str, Any] = {}
    answer(address=cluster.address)
    for line in sys.stdin:
        message = json.loads(line)
        if name := message.get("add"):
            node = cluster.add_node(**_NODE, num_cpus=4, memory=64 << 30, env_vars=message["environment"])
            nodes[name] = node
            answer(node=node.node_id, raylet=node.all_processes["raylet"][0].process.pid)
        else:
            cluster.remove_node(nodes.pop(message["remove"]), allow_graceful=False)
            answer()
    cluster.shutdown()


if __name__ == "__main__":
    main()
