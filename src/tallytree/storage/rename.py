"""Moving a finished folder into its place in one step, without ever replacing what somebody else
put there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

_AT_FDCWD = -100
_NO_REPLACE, _EXCHANGE = 1, 2


def move_new(work: Path, target: Path) -> None:
    """Rename ``work`` to ``target``; FileExistsError where something is there, an empty folder too."""
    if _renameat2(work, target, _NO_REPLACE):
        return
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    work.rename(target)


def swap(work: Path, target: Path) -> bool:
    """Exchange two folders in one step, so that at every moment one of them is at ``target``.

    False where the system cannot do that; nothing has happened then.
    """
    return _renameat2(work, target, _EXCHANGE)


def _renameat2(old: Path, new: Path, flags: int) -> bool:
    """Whether the system call did it; False where the system or the file system does not have it."""
    call = _system_call()
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(code, os.strerror(code), str(old), None, str(new))


@cache
def _system_call() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
