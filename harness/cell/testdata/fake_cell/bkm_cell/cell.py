# SPDX-License-Identifier: Apache-2.0
"""run() calls the function that "adapter" names: each is one behaviour of a subject."""

import contextlib
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Emit = Callable[[str], None]
Request = dict[str, Any]


def _say(emit: Emit, **event: Any) -> None:
    emit(json.dumps(event))


def _engine_file(request: Request) -> str:
    return os.path.join(request["paths"]["engine"], "engine.py")


def completes(request: Request, emit: Emit) -> None:
    print("hello from the cell", flush=True)
    _say(emit, stage="construct")
    _say(emit, set={"backend": {"configured": "flex"}})
    _say(emit, set={"backend": {"ops": ["a"]}, "shims": []})
    _say(emit, append={"steps": {"loss": 1.5}})
    _say(emit, append={"steps": {"loss": 1.25}})
    _say(emit, done=True)


def reports_surroundings(request: Request, emit: Emit) -> None:
    import tempfile

    _say(
        emit,
        set={
            "surroundings": {
                "cwd": os.getcwd(),
                "tempdir": tempfile.gettempdir(),
                "environment": dict(os.environ),
                "argv": sys.argv,
                "pid": os.getpid(),
                "proc_self": os.readlink("/proc/self"),
                "tmp": os.listdir("/tmp"),
                "interfaces": [name for _, name in socket.if_nameindex()],
                "descriptors": [int(d) for d in os.listdir("/proc/self/fd") if int(d) > 2],
                "kernels": request.get("kernels"),
                "probe": os.listdir(request["probe_dir"]),
            }
        },
    )
    _say(emit, done=True)


def uses_what_is_preloaded(request: Request, emit: Emit) -> None:
    """The worker is process 1 of its namespace."""
    import counts_its_imports as module

    _say(emit, set={"imported": {"in": module.imported_in, "here": module.imported_in == os.getpid()}}, done=True)


def tells_of_its_interpreter(request: Request, emit: Emit) -> None:
    facts = {
        "version": list(sys.version_info[:2]),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "path": sys.path,
        "hash": hash("a text"),
        "utf8": sys.flags.utf8_mode,
        "writes_bytecode": not sys.dont_write_bytecode,
        "signals": {name.name: str(signal.getsignal(name)) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)},
        "main": sorted(name for name in vars(sys.modules["__main__"]) if not name.startswith("__")),
    }
    _say(emit, set={"interpreter": facts}, done=True)


def says_exception(request: Request, emit: Emit) -> None:
    _say(emit, exception={"type": "ImportError", "message": "said"})


def raises(request: Request, emit: Emit) -> None:
    raise ValueError("let out")


def raises_unprintable(request: Request, emit: Emit) -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    raise Unprintable


def exits_at_once(request: Request, emit: Emit) -> None:
    os._exit(3)


def exits_politely(request: Request, emit: Emit) -> None:
    sys.exit(4)


def forgets_to_finish(request: Request, emit: Emit) -> None:
    return


def segfaults(request: Request, emit: Emit) -> None:
    import ctypes

    ctypes.string_at(0)


def kills_itself(request: Request, emit: Emit) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kills_everyone(request: Request, emit: Emit) -> None:
    try:
        os.kill(1, signal.SIGKILL)
    except PermissionError:
        pass  # it is another user's
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        _say(emit, set={"found": "nobody"}, done=True)


def sleeps(request: Request, emit: Emit) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600)


def eats_memory(request: Request, emit: Emit) -> None:
    eaten = []
    while True:
        eaten.append(b"x" * (1 << 20))


def shares_memory(request: Request, emit: Emit) -> None:
    """Three processes share the same pages: together no more memory than one."""
    held = b"x" * (60 << 20)
    for _ in range(2):
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)
    time.sleep(0.5)
    _say(emit, set={"held": len(held)}, done=True)


def prints_forever(request: Request, emit: Emit) -> None:
    line = "x" * 65536
    while True:
        print(line)


def fills_folder(request: Request, emit: Emit) -> None:
    for i in range(1 << 20):
        with open(f"file{i}", "wb") as file:
            file.write(b"x" * (1 << 20))
        time.sleep(0.01)


def fills_unlinked_file(request: Request, emit: Emit) -> None:
    with open("file", "wb") as file:
        os.unlink("file")
        for _ in range(1 << 20):
            file.write(b"x" * (1 << 20))
            time.sleep(0.01)


def makes_many_files(request: Request, emit: Emit) -> None:
    for i in range(1 << 20):
        open(f"file{i}", "w").close()


def nests_folders(request: Request, emit: Emit) -> None:
    for _ in range(1 << 20):
        os.mkdir("folder")
        os.chdir("folder")
    time.sleep(60)


def makes_unlinked_files(request: Request, emit: Emit) -> None:
    """More than one process can have open."""
    for process in range(6):
        if os.fork() == 0:
            held = []
            for i in range(4000):
                held.append(open(f"file{process}", "w"))
                os.unlink(f"file{process}")
            time.sleep(60)
    time.sleep(60)


def _compute(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def computes_in_children(request: Request, emit: Emit) -> None:
    """None of them computes for as long as the cell may."""
    for _ in range(6):
        if os.fork() == 0:
            _compute(0.3)
            os._exit(0)
    time.sleep(60)


def computes_in_short_processes(request: Request, emit: Emit) -> None:
    """Processes that nobody waits for and that are hardly ever seen."""
    while True:
        if os.fork() == 0:
            if os.fork() == 0:
                _compute(0.02)
            os._exit(0)
        os.wait()
        time.sleep(0.02)


def computes_a_little(request: Request, emit: Emit) -> None:
    for _ in range(2):
        if os.fork() == 0:
            _compute(0.2)
            os._exit(0)
    for _ in range(2):
        os.wait()
    _say(emit, done=True)


def ends_as_if_out_of_time(request: Request, emit: Emit) -> None:
    _say(emit, set={"ending": {"kind": "limit", "limit": "cpu"}})
    os.kill(os.getpid(), signal.SIGXCPU)


def fills_evidence(request: Request, emit: Emit) -> None:
    for i in range(1 << 20):
        with open(f"../tensors/file{i}", "wb") as file:
            file.write(b"x" * (8 << 20))


def opens_many_files(request: Request, emit: Emit) -> None:
    held = []
    while True:
        held.append(open("/dev/null"))


def kills_itself_by_a_timer(request: Request, emit: Emit) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    while True:
        pass


def forks_forever(request: Request, emit: Emit) -> None:
    while True:
        if os.fork() == 0:
            time.sleep(3600)


def leaves_daemon(request: Request, emit: Emit) -> None:
    """A double fork into a new session; the process name makes it easy to find."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sleep", [request["probe"]["name"], "3600"])
        os._exit(0)
    time.sleep(0.3)
    _say(emit, done=True)


def child_runs_on(request: Request, emit: Emit) -> None:
    """The forked child returns into the harness as if it were the cell."""
    if os.fork() == 0:
        _say(emit, set={"impostor": True}, done=True)
        raise RuntimeError("impostor")
    os.wait()
    _say(emit, done=True)


def deletes_sources(request: Request, emit: Emit) -> None:
    os.unlink(_engine_file(request))


def edits_sources(request: Request, emit: Emit) -> None:
    with open(_engine_file(request), "a", encoding="utf-8") as file:
        file.write("# edited\n")


def writes_environment(request: Request, emit: Emit) -> None:
    with open(os.path.join(os.path.dirname(json.__file__), "bkm_was_here"), "w") as file:
        file.write("x")


def writes_beside_work(request: Request, emit: Emit) -> None:
    with open(os.path.join(request["dir"], "observation.json"), "w") as file:
        file.write("{}")


def remounts(request: Request, emit: Emit) -> None:
    subprocess.run(["mount", "-o", "remount,rw", "/"], check=True)


def writes_where_it_may(request: Request, emit: Emit) -> None:
    for path in ("here", "home/x", "tmp/x", "/tmp/x", "/dev/shm/x", "../tensors/x"):
        with open(path, "w") as file:
            file.write("x")
    _say(emit, done=True)


def opens_socket(request: Request, emit: Emit) -> None:
    socket.create_connection(("192.0.2.1", 80), timeout=5)


def talks_to_itself(request: Request, emit: Emit) -> None:
    server = socket.create_server(("127.0.0.1", 29500))
    client = socket.create_connection(("127.0.0.1", 29500), timeout=5)
    client.sendall(b"hi")
    _say(emit, set={"heard": server.accept()[0].recv(2).decode()}, done=True)


def babbles(request: Request, emit: Emit) -> None:
    """Writes to every descriptor it finds, the event pipe among them."""
    _say(emit, stage="construct")
    for name in os.listdir("/proc/self/fd"):
        try:
            os.write(int(name), b"not an event\n")
        except OSError:
            pass
    _say(emit, done=True)


def claims_not_to_have_started(request: Request, emit: Emit) -> None:
    """A cell that did not start would be the machine's fault."""
    _say(emit, failed_to_start="no space")
    _say(emit, set={"sandbox": ["none"], "usage": {"wall_s": 0}, "ending": {"kind": "cancelled"}})
    sys.exit(7)


def reports_deeply(request: Request, emit: Emit) -> None:
    _say(emit, stage="construct")
    emit('{"set":' + "[" * 1000000)
    time.sleep(60)


def reports_without_end(request: Request, emit: Emit) -> None:
    _say(emit, stage="construct")
    while True:
        emit(json.dumps({"set": {"text": "x" * (1 << 20)}}))


def closes_everything(request: Request, emit: Emit) -> None:
    os.closerange(3, 65536)
    _say(emit, done=True)


def attempts(request: Request, emit: Emit) -> None:
    from bkm_cell.attempts import attempts as outcomes

    _say(emit, set={"attempts": outcomes(request)}, done=True)


def reports_machine(request: Request, emit: Emit) -> None:
    from bkm_cell.attempts import surroundings

    _say(emit, set={"surroundings": surroundings()}, done=True)


def _opened(path: str, flags: int) -> str:
    try:
        os.close(os.open(path, flags))
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "OK"


def opens_files(request: Request, emit: Emit) -> None:
    _say(emit, set={"opened": {path: _opened(path, os.O_RDONLY) for path in request["files"]}})
    _say(emit, set={"prefix": sys.prefix}, done=True)


def searches_memory(request: Request, emit: Emit) -> None:
    """Tells whether this process holds the marker that the request spells backwards."""
    marker = re.compile(b"".join(b"[%c]" % letter for letter in reversed(request["marker"].encode())))
    found = False
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
        for area in [line.split() for line in maps]:
            start, end = (int(part, 16) for part in area[0].split("-"))
            with contextlib.suppress(OSError, OverflowError):
                memory.seek(start)
                found = found or marker.search(memory.read(end - start)) is not None
    _say(emit, set={"found": found}, done=True)


def changes_attributes(request: Request, emit: Emit) -> None:
    with open("own", "w"):
        pass
    before = os.stat("own")
    for path in [*request["files"], "own"]:
        for change in (lambda: os.chmod(path, 0), lambda: os.utime(path, (1, 1))):
            try:
                change()
            except OSError:
                pass
    own = os.stat("own")
    same = (own.st_mode, own.st_mtime) == (before.st_mode, before.st_mtime)
    _say(emit, set={"own": "as it was" if same else "changed"})
    _say(emit, set={"opened": {path: _opened(path, os.O_RDWR) for path in request["files"]}}, done=True)


def sees_devices(request: Request, emit: Emit) -> None:
    nodes = ("nvidia0", "nvidiactl", "nvidia-caps/nvidia-cap2", "nvidia-modeset", "null")
    paths = [f"/dev/{node}" for node in nodes] + ["/proc/self/comm"]
    seen = {path: _opened(path, os.O_WRONLY) for path in paths}
    is_fixed = os.statvfs("/proc/sys").f_flag & os.ST_RDONLY
    seen["/proc/sys"] = "read-only" if is_fixed else "writable"
    _say(emit, set={"devices": seen})
    _say(emit, done=True)


def uses_what_it_may(request: Request, emit: Emit) -> None:
    """What trainers do: threads, processes, a compiler, sockets on the loopback, shared memory."""
    import multiprocessing.shared_memory
    import threading

    with open("a.c", "w") as file:
        file.write("int f(void) { return 42; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "a.so", "a.c"], check=True)
    import ctypes

    found = {"compiled": ctypes.CDLL(os.path.abspath("a.so")).f()}
    thread = threading.Thread(target=lambda: found.update(thread=True))
    thread.start()
    thread.join()
    shared = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
    shared.close()
    shared.unlink()
    child = os.fork()
    if child == 0:
        os._exit(7)
    found["child"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found["interfaces"] = [name for _, name in socket.if_nameindex()]
    found["address"] = socket.gethostbyname("localhost")
    one, other = socket.socketpair()
    one.send(b"x")
    found["pair"] = other.recv(1).decode()
    found["processors"] = len(os.sched_getaffinity(0))
    with open("/proc/cpuinfo") as file:
        found["cpuinfo"] = file.read(9)
    with open("/proc/meminfo") as file:
        found["meminfo"] = file.read(8)
    found["cpus"] = os.path.exists("/sys/devices/system/cpu/online")
    # The kernel ignores the mode of what is not created.
    libc = ctypes.CDLL(None, use_errno=True)
    number = 257 if os.uname().machine == "x86_64" else 56
    found["mode"] = libc.syscall(number, -100, b"a.c", os.O_RDONLY, 0o6755) > 0
    _say(emit, set={"found": found}, done=True)


def run(request: Request, emit: Emit) -> None:
    _say(emit, stage="import")
    globals()[request["adapter"]](request, emit)
