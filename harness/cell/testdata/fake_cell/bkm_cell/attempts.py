# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""Attempts to leave the sandbox. attempts() reports the outcome of each: "OK" or the name of its errno."""

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import socket
import stat
import struct
from collections.abc import Callable
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)

# Numbers of x86-64 and aarch64; the test runs on both.
_X86 = os.uname().machine == "x86_64"
_CALLS = {
    "ptrace": (101, 117),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "bpf": (321, 280),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "perf_event_open": (298, 241),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "reboot": (169, 142),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "sethostname": (170, 161),
    "fanotify_init": (300, 262),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "process_madvise": (440, 440),
    "openat2": (437, 437),
    "clone3": (435, 435),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "io_setup": (206, 0),
    "a call of the future": (900, 900),
}


def _errno_of(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return "OK"


def _call(name: str, *arguments: Any) -> Callable[[], Any]:
    number = _CALLS[name][0 if _X86 else 1]

    def run() -> None:
        if _libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]) == -1:
            raise OSError(ctypes.get_errno(), name)

    return run


def _checked(result: int) -> None:
    if result == -1:
        raise OSError(ctypes.get_errno(), "call")


def _socket(family: int, kind: int, protocol: int = 0) -> Callable[[], Any]:
    return lambda: socket.socket(family, kind, protocol).close()


def _connect(address: str) -> Callable[[], Any]:
    def run() -> None:
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
            client.connect(address)

    return run


def _write(path: str) -> Callable[[], Any]:
    def run() -> None:
        os.close(os.open(path, os.O_WRONLY))

    return run


def _set_rights(bits: int) -> Callable[[], Any]:
    def run() -> None:
        with open("rights", "w") as file:
            file.write("x")
        os.chmod("rights", 0o755 | bits)

    return run


def _clone(flags: int) -> Callable[[], Any]:
    def run() -> None:
        child = _libc.syscall(56 if _X86 else 220, ctypes.c_long(flags | signal.SIGCHLD), 0, 0, 0, 0)
        if child == 0:
            os._exit(0)
        if child == -1:
            raise OSError(ctypes.get_errno(), "clone")
        os.waitpid(child, 0)

    return run


def _connect_by(address: tuple[str, int], flags: int = 0) -> Callable[[], Any]:
    def run() -> None:
        with contextlib.closing(socket.socket()) as client:
            if flags:
                client.sendto(b"x", flags, address)
            else:
                client.connect(address)

    return run


def _preallocate() -> None:
    keep_size = 1
    with open("preallocated", "w") as file:
        number = 285 if _X86 else 47
        _checked(_libc.syscall(number, file.fileno(), keep_size, ctypes.c_long(0), ctypes.c_long(1 << 20)))


def _limit_parent() -> None:
    limits = (ctypes.c_ulong * 2)(1, 1)
    _checked(_libc.prlimit(os.getppid() or 1, 7, ctypes.byref(limits), None))


def _dots(descriptor: int) -> Callable[[], Any]:
    return lambda: os.stat("../" * 40 + "etc/hostname", dir_fd=descriptor)


def attempts(request: dict[str, Any]) -> dict[str, str]:
    """Each attempt alone; none stops the others."""
    outside = request["outside"]
    tried: dict[str, Callable[[], Any]] = {
        "read a secret": lambda: open(outside["secret"]),
        "list the secret's folder": lambda: os.listdir(os.path.dirname(outside["secret"])),
        "connect to a socket of the machine": _connect(outside["socket"]),
        "connect to an abstract socket of the machine": _connect("\0" + outside["abstract"]),
        "read another cell's folder": lambda: os.listdir(outside["cell"]),
        "read the init's environment": lambda: open("/proc/1/environ").read(),
        "read the init's memory": lambda: open("/proc/1/mem", "rb"),
        "enter the init's root": lambda: os.listdir("/proc/1/root"),
        "list the init's descriptors": lambda: os.listdir("/proc/1/fd"),
        "signal everyone": lambda: os.kill(-1, 0),
        "become root": lambda: os.setuid(0),
        "become another group": lambda: os.setgid(0),
        "leave groups": lambda: os.setgroups([]),
        "write core_pattern": _write("/proc/sys/kernel/core_pattern"),
        "write a sysctl": _write("/proc/sys/kernel/hostname"),
        "write sysrq-trigger": _write("/proc/sysrq-trigger"),
        "write oom_score_adj": _write("/proc/self/oom_score_adj"),
        "make a device": lambda: os.mknod("device", 0o666 | stat.S_IFCHR, os.makedev(1, 1)),
        "set the user's bit": _set_rights(stat.S_ISUID),
        "set the group's bit": _set_rights(stat.S_ISGID),
        "create a file with the user's bit": lambda: os.open("fresh", os.O_CREAT | os.O_WRONLY, 0o4755),
        "create an unnamed file with the user's bit": lambda: os.open(
            ".", os.O_TMPFILE | os.O_WRONLY, 0o4755
        ),
        "connect to a server of the machine": _connect_by(("127.0.0.1", outside["port"])),
        "connect to it by fast open": _connect_by(("127.0.0.1", outside["port"]), 0x20000000),
        "preallocate beyond the end": _preallocate,
        "set an attribute": lambda: os.setxattr(".", "user.x", b"x" * 64),
        "remove an attribute": lambda: os.removexattr(request["paths"]["engine"] + "/engine.py", "user.x"),
        "take a lease": lambda: fcntl.fcntl(os.open("leased", os.O_CREAT | os.O_RDONLY), 1024, fcntl.F_RDLCK),
        "mark a file": lambda: fcntl.ioctl(os.open(".", os.O_RDONLY), 0x40086602, struct.pack("l", 0x80)),
        "limit another process": _limit_parent,
        "watch files": lambda: _checked(_libc.inotify_init1(0)),
        "pair of vsock": lambda: socket.socketpair(40, socket.SOCK_STREAM),
        "pair of tipc": lambda: socket.socketpair(30, socket.SOCK_SEQPACKET),
        "write to the root": lambda: open("/x", "w"),
        "write to the cell's folder": lambda: open(request["dir"] + "/x", "w"),
        "write to the tree": lambda: open(request["paths"]["engine"] + "/x", "w"),
        "write to the probe": lambda: open(request["probe_dir"] + "/x", "w"),
        "write to the environment": lambda: open("/usr/x", "w"),
        "new user namespace": _clone(0x10000000),
        "new mount namespace": _clone(0x00020000),
        "new process namespace": _clone(0x20000000),
        "vsock": _socket(40, socket.SOCK_STREAM),
        "raw socket": _socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        "ping socket": _socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
        "packet socket": _socket(17, socket.SOCK_RAW),
        "crypto socket": _socket(38, socket.SOCK_SEQPACKET),
        "netlink audit": _socket(16, socket.SOCK_RAW, 9),
        "sctp": _socket(socket.AF_INET, socket.SOCK_STREAM, 132),
        "type into a terminal": lambda: fcntl.ioctl(0, 0x5412, b"x"),
    }
    for name in _CALLS:
        tried[name] = _call(name, 0, 0, 0, 0, 0, 0)
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            if stat.S_ISDIR(os.fstat(number).st_mode):
                tried[f"leave by descriptor {number}"] = _dots(number)
    return {name: _errno_of(attempt) for name, attempt in tried.items()}


def surroundings() -> dict[str, Any]:
    with open("/proc/self/environ", "rb") as file:
        names = sorted(entry.split(b"=")[0].decode() for entry in file.read().split(b"\0") if entry)
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return {
        "root": sorted(os.listdir("/")),
        "dev": sorted(os.listdir("/dev")),
        "etc": sorted(os.listdir("/etc")),
        "uid": os.getuid(),
        "groups": os.getgroups(),
        "environment": names,
        "status": {key: status[key] for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")},
        "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
        "host": socket.gethostname(),
        "user": __import__("getpass").getuser(),
    }
