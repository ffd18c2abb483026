"""A process watched from outside: every call by which it changes a disk, whichever library makes
it.

Python's own writes, those of Arrow and those of SQLite all end in calls of the system. ``ptrace``
stops the process before each of them; whoever watches lets it pass, lets it fail as on a full disk,
or ends the process there. Linux on x86-64 alone.
"""

import ctypes
import errno
import os
import platform
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Decision = Literal["pass", "full", "kill"]

_TRACE_ME, _GET_REGISTERS, _SET_REGISTERS, _TO_NEXT_CALL, _SET_OPTIONS = 0, 12, 13, 24, 0x4200
# Calls are told from other stops; threads and children are watched too; nobody is left stopped when
# the watcher dies.
_OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x100000
_CALL_STOP = signal.SIGTRAP | 0x80
_ALL_THREADS = 0x40000000
_HERE = -100  # AT_FDCWD

# Number of a call: its name, and in which register its file is, as a descriptor or as a name.
_BY_DESCRIPTOR = {
    1: "write",
    18: "pwrite64",
    20: "writev",
    77: "ftruncate",
    285: "fallocate",
    74: "fsync",
    75: "fdatasync",
}
_BY_NAME = {
    83: ("mkdir", "rdi"), 258: ("mkdirat", "rsi"), 257: ("openat", "rsi"), 82: ("rename", "rsi"), 264: ("renameat", "r10"),
    316: ("renameat2", "r10"), 87: ("unlink", "rdi"), 263: ("unlinkat", "rsi"), 84: ("rmdir", "rdi"),
}  # fmt: skip
_REGISTERS = (
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip",
    "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs",
)  # fmt: skip


class _Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in _REGISTERS]


@dataclass(frozen=True)
class Change:
    """A call that is about to change what is on the disk.

    Attributes
    ----------
    name
        Of the call.
    file
        That it is about.
    """

    name: str
    file: Path

    @property
    def needs_room(self) -> bool:
        """Whether a full disk would refuse it."""
        return self.name not in ("unlink", "unlinkat", "rmdir", "ftruncate")

    @property
    def flushes(self) -> bool:
        """Whether it brings a file, or the names in a folder, safely to the disk."""
        return self.name in ("fsync", "fdatasync")


def can_watch() -> bool:
    """Whether processes can be watched on this machine."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    child = os.fork()
    if child == 0:
        os._exit(0 if _ptrace()(_TRACE_ME, 0, None, None) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def stop_to_be_watched() -> None:
    """Called by the process itself, first of all."""
    _ptrace()(_TRACE_ME, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)


def watch(process: int, folder: Path, decide: Callable[[Change], Decision]) -> int:
    """Watch a child that stopped itself to its end; its exit code.

    Parameters
    ----------
    folder
        Changes to files inside it are watched; logs (``*.txt``) are not.
    decide
        What happens to a change; asked before it happens.
    """
    call = _ptrace()
    os.waitpid(process, 0)
    call(_SET_OPTIONS, process, None, _OPTIONS)
    call(_TO_NEXT_CALL, process, None, None)
    inside: dict[int, Decision] = {}  # threads within a call
    while True:
        thread, status = os.waitpid(-1, _ALL_THREADS)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if thread == process:
                return os.waitstatus_to_exitcode(status)
            continue
        stopped_by, told = os.WSTOPSIG(status), 0
        if stopped_by == _CALL_STOP:
            if thread in inside:
                _leave_call(thread, inside.pop(thread))
            else:
                inside[thread] = _enter_call(thread, process, folder, decide)
        elif stopped_by not in (signal.SIGTRAP, signal.SIGSTOP):
            told = stopped_by
        call(_TO_NEXT_CALL, thread, None, told)


def _enter_call(
    thread: int, process: int, folder: Path, decide: Callable[[Change], Decision]
) -> Decision:
    registers = _registers(thread)
    change = _change(registers, thread, folder)
    decision: Decision = "pass" if change is None else decide(change)
    if decision == "kill":
        os.kill(process, signal.SIGKILL)
    elif decision == "full":
        registers.orig_rax = ctypes.c_ulonglong(-1).value  # no call at all
        _ptrace()(_SET_REGISTERS, thread, None, ctypes.byref(registers))
    return decision


def _leave_call(thread: int, decision: Decision) -> None:
    if decision == "full":
        registers = _registers(thread)
        registers.rax = ctypes.c_ulonglong(-errno.ENOSPC).value
        _ptrace()(_SET_REGISTERS, thread, None, ctypes.byref(registers))


def _change(registers: _Registers, thread: int, folder: Path) -> Change | None:
    """The change that a call would make inside the folder; None where it makes none."""
    number = registers.orig_rax
    if number in _BY_DESCRIPTOR:
        name = _BY_DESCRIPTOR[number]
        try:
            file = Path(f"/proc/{thread}/fd/{registers.rdi}").readlink()
        except OSError:
            return None
    elif number in _BY_NAME:
        name, register = _BY_NAME[number]
        file = folder / _text(thread, getattr(registers, register))
        makes = name in ("mkdir", "mkdirat") or (name == "openat" and registers.rdx & os.O_CREAT)
        if name in ("mkdir", "mkdirat", "openat") and (not makes or os.path.lexists(file)):
            return None
        if (
            name in ("unlinkat", "openat")
            and ctypes.c_int(registers.rdi & 0xFFFFFFFF).value != _HERE
        ):
            try:
                file = Path(f"/proc/{thread}/fd/{registers.rdi}").readlink() / file.name
            except OSError:
                return None
    else:
        return None
    inside = file == folder or folder in file.parents
    return Change(name, file) if inside and file.suffix != ".txt" else None


def _text(thread: int, address: int) -> str:
    with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return os.fsdecode(memory.read(4096).partition(b"\0")[0])


def _registers(thread: int) -> _Registers:
    registers = _Registers()
    _ptrace()(_GET_REGISTERS, thread, None, ctypes.byref(registers))
    return registers


def _ptrace() -> Callable[..., int]:
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    call.restype = ctypes.c_long
    return call
