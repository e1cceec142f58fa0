"""Files: what may be read in the sandbox."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Collection
from typing import NamedTuple

SYSTEM = (
    # Programs and libraries.
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
    # Time, types of files, fonts, certificates (not their private keys).
    "/etc/localtime", "/etc/timezone", "/etc/mime.types", "/etc/fonts", "/etc/nsswitch.conf",
    "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/ca-certificates",
    # What torch, OpenMP and joblib ask about the processors and the memory.
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version",
    "/proc/filesystems", "/proc/vmstat", "/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/fs",
    "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
    # macOS.
    "/System", "/Library/Frameworks", "/Library/Fonts", "/private/var/db/timezone", "/opt/homebrew",
)  # fmt: skip
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
"""Not ``/dev/zero``: what is mapped of it is memory that nothing shows."""
SHARED_MEMORY = "/dev/shm"

PARTS = (
    "bin",
    "lib",
    "lib64",
    "libexec",
    "include",
    "share",
    "etc",
    "Lib",
    "DLLs",
    "Frameworks",
    "pyvenv.cfg",
)
"""What belongs to an installation of Python below its prefix, which may be a home directory."""

HARMLESS = r"(?!\.(DS_Store|gitkeep|keep|gitignore|gitattributes)$)"
"""Hidden files that tell nothing, and lie in many a folder of data."""
SECRET = re.compile(
    HARMLESS + r"(\.|(secrets?|credentials?)(\.|$)|id_(rsa|dsa|ecdsa|ed25519)|.*\.(pem|key|p12|pfx|kdbx)$)",
    re.IGNORECASE,
)
"""Names that are withheld wherever they are: all other hidden ones, and what is called a secret."""

ENTRIES = 4096
"""Entries of a folder that are allowed one by one."""
RULES = 1 << 16
"""Files and folders that are allowed one by one, in all folders together."""
LOOKED_AT = 1 << 21
"""Entries that are looked at below a folder, to find what is withheld; what comes later stays closed."""
DEPTH = 64
"""Folders in each other that are looked into."""


class Readable(NamedTuple):
    """What may be read."""

    whole: list[str]
    """Files, and folders with everything below them."""
    listed: list[str]
    """Folders whose names (and those below) may be listed."""


def is_shared(folder: str) -> bool:
    """Whether a folder holds more than a project: a home, what is above one, a temporary folder."""
    homes = [os.path.expanduser("~")]
    try:
        import pwd

        homes += [pwd.getpwuid(os.getuid()).pw_dir]
    except (ImportError, KeyError):
        pass
    crowded = [
        *homes,
        tempfile.gettempdir(),
        "/tmp",
        "/var/tmp",
        "/dev/shm",
        "/run",
        "/etc",
        "/proc",
        "/home",
    ]
    real = os.path.join(os.path.realpath(folder), "")
    return any(os.path.join(os.path.realpath(one), "").startswith(real) for one in crowded)


def project_files(root: str, script: str) -> Readable:
    """What may be read of the project at ``root`` for the script at ``script``.

    What is hidden (``.git``, ``.env``, ``.ssh``) or called a secret is left out at every depth, and on the
    way from the root down to the script's own folder symbolic links as well, which a project that somebody
    else wrote may point anywhere. Of a folder that holds more than a project, such as the home folder, only
    the plain files beside the script are opened.
    """
    down = folders_down(root, script)
    folder = down[-1]
    if is_shared(folder):
        return Readable(
            [entry.path for entry in _visible(folder) if entry.is_file(follow_symlinks=False)], []
        )
    found = Readable([], [])
    for top, below in zip(down, [*down[1:], ""]):
        _open(found, top, without=below)
    return found


def folders_down(root: str, script: str) -> list[str]:
    """The folders from the project's root down to the script's own: those that are opened entry by entry."""
    folder = os.path.realpath(os.path.dirname(script))
    top = os.path.realpath(root)
    if is_shared(top) or not (folder + os.sep).startswith(os.path.join(top, "")):
        return [folder]
    found = [top]
    while found[-1] != folder:
        found.append(os.path.join(found[-1], os.path.relpath(folder, found[-1]).split(os.sep)[0]))
    return found


SYSTEM_FOLDERS = ("/etc", "/run", "/var/run", "/proc", "/sys", "/boot", "/dev")


def data_folders(folders: list[str]) -> Readable:
    """What may be read of folders outside the project.

    The configuration that names them may come with the code: so nothing that holds more than data, nothing
    hidden or secret, and no links to elsewhere.
    """
    found = Readable([], [])
    for folder in filter(is_data, folders):
        _open(found, os.path.realpath(folder))
    return found


def is_data(folder: str) -> bool:
    """Whether a folder is one that may hold data: not a home folder, a temporary one, the system's own, nor
    in one that is hidden."""
    real = os.path.realpath(folder)
    hidden = any(SECRET.match(part) for part in real.split(os.sep) if part)
    system = (real + os.sep).startswith(tuple(one + os.sep for one in SYSTEM_FOLDERS))
    return os.path.isdir(real) and not (is_shared(real) or hidden or system)


def _open(found: Readable, folder: str, without: str = "") -> None:
    """Add what may be read of a folder, entry by entry, all but the path ``without``."""
    left = [LOOKED_AT]
    found.listed.append(folder)
    for entry in _visible(folder):
        if entry.path != without:
            inner = _inside(entry.path, left) if entry.is_dir(follow_symlinks=False) else None
            found.whole.extend([entry.path] if inner is None else inner.whole)
            found.listed.extend([] if inner is None else inner.listed)
    del found.whole[RULES:]


def _inside(folder: str, left: list[int], depth: int = 0) -> Readable | None:
    """What may be read below a folder where something in it is to be withheld; nothing if all of it may.

    Args:
        left: How many entries may be looked at yet.
    """
    try:
        with os.scandir(folder) as scanned:
            entries = list(scanned)
    except OSError:
        return Readable([], [])
    left[0] -= len(entries)
    if left[0] < 0 or depth > DEPTH:
        return Readable([], [])
    shown = [entry for entry in entries if not SECRET.match(entry.name)]
    whole = len(shown) == len(entries)
    found = Readable([], [folder])
    for entry in shown:
        inner = _inside(entry.path, left, depth + 1) if entry.is_dir(follow_symlinks=False) else None
        whole = whole and inner is None
        found.listed.extend([] if inner is None else inner.listed)
        if inner is not None:
            found.whole.extend(inner.whole)
        elif not entry.is_symlink():
            found.whole.append(entry.path)
    return None if whole else found


def _visible(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder that are no secret and no symbolic link; folders and Python files first."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not SECRET.match(entry.name) and not entry.is_symlink()]
    except OSError:
        return []
    found.sort(key=lambda entry: (not entry.is_dir(), not entry.name.endswith(".py"), entry.name))
    return found[:ENTRIES]


def interpreter_files() -> Readable:
    """What this interpreter may read: itself, its libraries, its packages (editable ones too), the system."""
    paths = [path for name, path in sysconfig.get_paths().items() if name != "data"]
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    return _installed(prefixes, paths, [*sys.path, *_editable()])


def environment_files(prefixes: Collection[str]) -> Readable:
    """What the interpreter of an environment that is not to be asked may read: what lies below ``prefixes``,
    those of the environment and of the interpreter that it was made with, and the system."""
    return _installed(prefixes, [], os.environ.get("PYTHONPATH", "").split(os.pathsep))


def _installed(prefixes: Collection[str], paths: list[str], imported_from: list[str]) -> Readable:
    whole = list(SYSTEM)
    for prefix in prefixes:
        whole += [os.path.join(prefix, part) for part in PARTS]
    whole += paths
    for variable in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
        whole += [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]
    whole = [path for path in whole if os.path.isabs(path) and os.path.exists(path) and not is_shared(path)]
    found = Readable([], [])
    installed = tuple(os.path.join(os.path.realpath(path), "") for path in whole)
    for entry in imported_from:
        real = os.path.realpath(entry)
        if not entry or not os.path.exists(real) or (real + os.sep).startswith(installed) or is_shared(real):
            continue
        if os.path.isdir(real):
            _open(found, real)
        else:
            found.whole.append(real)
    return Readable(list(dict.fromkeys([*whole, *found.whole, *DEVICES])), found.listed)


def _editable() -> list[str]:
    """Folders and files of packages that setuptools has installed as editable, by an import hook."""
    found: list[str] = []
    for finder in sys.meta_path:
        module = sys.modules.get(getattr(finder, "__module__", ""))
        mapping = getattr(module, "MAPPING", None)
        if isinstance(mapping, dict):
            found += [path for path in mapping.values() if isinstance(path, str)]
    return found
