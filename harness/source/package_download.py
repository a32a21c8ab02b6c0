# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Downloads the file of a package.

    URL TARGET    writes TARGET; the caller checks its hash

Prints {} or {"error": "..."}. Uses the proxies and certificates of the environment, and credentials
from the URL, from the indexes of uv that are on the same host, and from the user's netrc file.
"""

import base64
import json
import netrc
import os
import re
import sys
import urllib.parse
import urllib.request

LARGEST = 1 << 30
SECONDS_WITHOUT_DATA = 60


def of_index(host: str) -> tuple[str, str] | None:
    """Credentials of an index such as UV_INDEX="name=https://user:password@host/simple"."""
    variables = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL")
    for entry in " ".join(os.environ.get(name, "") for name in variables).split():
        name, _, url = entry.rpartition("=") if re.match(r"[\w.-]+=", entry) else ("", "", entry)
        parts = urllib.parse.urlsplit(url)
        if parts.hostname != host:
            continue
        prefix = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
        user = parts.username or os.environ.get(f"{prefix}_USERNAME", "")
        password = parts.password or os.environ.get(f"{prefix}_PASSWORD", "")
        if user or password:
            return urllib.parse.unquote(user), urllib.parse.unquote(password)
    return None


def of_netrc(host: str) -> tuple[str, str] | None:
    try:
        found = netrc.netrc(os.environ.get("NETRC") or None).authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return None
    return (found[0], found[2]) if found else None


def request_of(url: str) -> urllib.request.Request:
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    own = (parts.username, parts.password or "") if parts.username else None
    credentials = own or of_index(host) or of_netrc(host)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")
    request = urllib.request.Request(urllib.parse.urlunsplit(bare))
    if credentials:
        token = base64.b64encode(":".join(credentials).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")
    return request


def main(url: str, target: str) -> None:
    if not url.startswith(("https://", "http://", "file://")):
        raise ValueError("not an address of a file")
    size = 0
    with urllib.request.urlopen(request_of(url), timeout=SECONDS_WITHOUT_DATA) as answer:
        with open(target, "wb") as file:
            while chunk := answer.read(1 << 20):
                size += len(chunk)
                if size > LARGEST:
                    raise ValueError(f"the file has more than {LARGEST >> 30} GiB")
                file.write(chunk)


if __name__ == "__main__":
    result = {}
    try:
        main(*sys.argv[1:])
    except (OSError, ValueError) as error:
        result = {"error": f"{error}"}
    print(json.dumps(result))
