"""The seccomp filter: which system calls a process may make."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import sys
from typing import Any

from .kernel import PR_SET_NO_NEW_PRIVS, SandboxError, call, prctl

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The column in the tables of numbers, and ``AUDIT_ARCH_*``, of each machine."""

LAST = 462
"""``mseal``: the last number that was looked at here; newer calls are answered "not implemented"."""

X32 = 0x40000000

REFUSED = {
    # The network, and anything that reaches another program.
    "socket": (41, 198), "bind": (49, 200), "connect": (42, 203), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242), "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "inotify_init": (253, None), "inotify_init1": (294, 26),
    # Other processes.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    # Namespaces, mounts, and other ways around the rules for files.
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "move_mount": (429, 429), "open_tree": (428, 428),
    "mount_setattr": (442, 442), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "quotactl": (179, 60), "quotactl_fd": (443, 443),
    # The kernel itself.
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "syslog": (103, 116), "acct": (163, 89), "iopl": (172, None),
    "ioperm": (173, None), "modify_ldt": (154, None), "vhangup": (153, 58), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "personality": (135, 92), "seccomp": (317, 277),
    "uselib": (134, None), "lookup_dcookie": (212, 18),
}  # fmt: skip
"""Calls that fail with "operation not permitted": their numbers on x86-64 and aarch64."""

ABSENT = {
    "clone3": (435, 435), "openat2": (437, 437), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_setup": (206, 0), "io_submit": (209, 2),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "statmount": (457, 457), "listmount": (458, 458),
}  # fmt: skip
"""Calls that fail with "not implemented", so that the C library falls back to older ones.

Their arguments lie in memory, where no filter can look (``clone3``, ``openat2``); or they are ways to
do other calls unseen (``io_uring``); or memory that no limit counts (``memfd``).
"""

PRETENDED = {
    "setsid": (112, 157), "setpgid": (109, 154),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
}  # fmt: skip
"""Calls that do nothing and say that they did.

No process may leave the group by which it is ended. Owners, modes and times are not Landlock's, and
what copies or unpacks files sets them without need.
"""

CLONE = (56, 220)
SIGNALS = {"kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131)}
SIGNALS.update({"rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240)})
SOCKETPAIR, SENDTO, IOCTL, FCNTL, PRCTL = (53, 199), (44, 206), (16, 29), (72, 25), (157, 167)
MMAP, SETSOCKOPT, CLOSE_RANGE = (9, 222), (54, 208), (436, 436)
SENDING = ((46, 211), (307, 269))
"""``sendmsg`` and ``sendmmsg``."""
PRLIMIT, SETPRIORITY, SETAFFINITY = (302, 261), (141, 140), (203, 122)
TRUNCATE_CALL, OPEN, OPENAT = (76, 45), (2, None), (257, 56)

CLONE_FORBIDDEN = 0x7E020000 | 0x8000 | 0x2000
"""New namespaces, ``CLONE_PARENT`` (a child of the server) and ``CLONE_PTRACE``."""

CLONE_THREAD, CLONE_FILES, CLOSE_RANGE_UNSHARE = 0x00010000, 0x400, 2

TERMINAL_QUESTIONS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x802C542A)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, TCGETS2: no other ioctl is passed on."""

F_SETSIG, F_SETOWN, F_SETOWN_EX = 10, 8, 15
PR_SET_DUMPABLE = 4
MAP_KIND, SHARED_ANONYMOUS = 0x2F, (0x21, 0x23)
"""``MAP_SHARED`` or ``MAP_SHARED_VALIDATE`` with ``MAP_ANONYMOUS``, and the bits that say so."""
BUFFER_SIZES = (7, 8, 32, 33)
"""``SO_SNDBUF``, ``SO_RCVBUF``, and the same by force."""

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
ALLOW, KILL, NOTIFY = 0x7FFF0000, 0x80000000, 0x7FC00000
SECCOMP_SET_MODE_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5


def fails(number: int) -> int:
    """The filter's answer that makes a call fail with ``number``; with 0 it seems to succeed."""
    return 0x00050000 | number


Instruction = tuple[int, int, int, int]
"""An operation, how far to jump if true and if not, and an operand."""


def program(machine: str, *, abi: int, notify: bool, counted: bool = False) -> list[Instruction]:
    """The filter: a list of ``(operation, jump if true, jump if false, operand)``.

    ``abi`` is Landlock's (0: none is in force), which decides what the filter must do in its place.
    ``notify`` says that a supervisor answers for what the kernel does not hold back itself: memory that can
    be kept without being seen, if it is not ``counted``, and signals that Landlock does not hold back.
    """
    column, architecture = MACHINES[machine]
    code: list[Instruction] = [
        (LOAD, 0, 0, 4),
        (JUMP_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, 0),
    ]
    if machine == "x86_64":
        code += [(JUMP_GREATER_EQUAL, 0, 1, X32), (RETURN, 0, 0, KILL)]
    code += [(JUMP_GREATER_EQUAL, 0, 1, LAST + 1), (RETURN, 0, 0, fails(errno.ENOSYS))]

    def answer(numbers: tuple[int | None, ...], *block: Instruction) -> None:
        number = numbers[column]
        if number is not None:
            code.extend([(JUMP_EQUAL, 0, len(block), number), *block])

    def only(numbers: tuple[int | None, ...], error: int, *wanted: tuple[int, tuple[int, ...]]) -> None:
        """Allow a call if each of these arguments is one of these values."""
        block: list[Instruction] = []
        for argument, values in wanted:
            block.append(_low(argument))
            for index, value in enumerate(values):
                block.append((JUMP_EQUAL, len(values) - index, 0, value))
            block.append((RETURN, 0, 0, fails(error)))
        answer(numbers, *block, (RETURN, 0, 0, ALLOW))

    for numbers in REFUSED.values():
        answer(numbers, (RETURN, 0, 0, fails(errno.EPERM)))
    for numbers in ABSENT.values():
        answer(numbers, (RETURN, 0, 0, fails(errno.ENOSYS)))
    for numbers in PRETENDED.values():
        answer(numbers, (RETURN, 0, 0, fails(0)))
    answer(
        CLONE,
        _low(0),
        (JUMP_ANY_BIT, 0, 1, CLONE_FORBIDDEN),
        (RETURN, 0, 0, fails(errno.EPERM)),
        # A thread whose open files are its own could keep some where nobody looks.
        (AND, 0, 0, CLONE_THREAD | CLONE_FILES),
        (JUMP_EQUAL, 0, 1, CLONE_THREAD),
        (RETURN, 0, 0, fails(errno.EPERM)),
        (RETURN, 0, 0, ALLOW),
    )
    answer(
        CLOSE_RANGE,
        _low(2),
        (JUMP_ANY_BIT, 0, 1, CLOSE_RANGE_UNSHARE),
        (RETURN, 0, 0, fails(errno.EPERM)),
        (RETURN, 0, 0, ALLOW),
    )
    if abi < 6:
        other = NOTIFY if notify else fails(errno.EPERM)
        for numbers in SIGNALS.values():
            own = (_low(0), (JUMP_EQUAL, 0, 1, os.getpid()), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, other))
            answer(numbers, *own)
    # A pair of connected streams cannot be turned to anywhere else, as datagram sockets can.
    answer(
        SOCKETPAIR,
        _low(0),
        (JUMP_EQUAL, 0, 3, int(socket.AF_UNIX)),
        _low(1),
        (AND, 0, 0, 0xF),
        (JUMP_EQUAL, 1, 0, int(socket.SOCK_STREAM)),
        (RETURN, 0, 0, fails(errno.EPERM)),
        (RETURN, 0, 0, NOTIFY if notify and not counted else ALLOW),
    )
    if not counted:
        # Pages stay for as long as a single one of them is mapped; what waits in a socket is no process's.
        unseen = NOTIFY if notify else fails(errno.ENOMEM)
        kinds = [(JUMP_EQUAL, 2 - index, 0, kind) for index, kind in enumerate(SHARED_ANONYMOUS)]
        answer(MMAP, _low(3), (AND, 0, 0, MAP_KIND), *kinds, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, unseen))
        size = [(JUMP_EQUAL, 4 - index, 0, option) for index, option in enumerate(BUFFER_SIZES)]
        answer(SETSOCKOPT, _low(2), *size, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, fails(0)))
    only(SENDTO, errno.EPERM, (4, (0,)))
    only(IOCTL, errno.ENOTTY, (1, TERMINAL_QUESTIONS))
    # A signal for a descriptor goes to whom the descriptor's owner names.
    owners = [(JUMP_EQUAL, 3 - index, 0, cmd) for index, cmd in enumerate((F_SETSIG, F_SETOWN, F_SETOWN_EX))]
    answer(FCNTL, _low(1), *owners, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, fails(errno.EPERM)))
    # The supervisor could not look into a process that makes itself private.
    hide = (JUMP_EQUAL, 0, 1, PR_SET_DUMPABLE)
    answer(PRCTL, _low(0), hide, (RETURN, 0, 0, fails(0)), (RETURN, 0, 0, ALLOW))
    only(PRLIMIT, errno.EPERM, (0, (0, os.getpid())))
    only(SETAFFINITY, errno.EPERM, (0, (0, os.getpid())))
    only(SETPRIORITY, errno.EPERM, (0, (0,)), (1, (0,)))
    if 0 < abi < 3:
        # Landlock does not know of truncation yet, not even by opening a file for reading.
        answer(TRUNCATE_CALL, (RETURN, 0, 0, fails(errno.EACCES)))
        for numbers, argument in ((OPEN, 1), (OPENAT, 2)):
            answer(
                numbers,
                _low(argument),
                (AND, 0, 0, os.O_TRUNC | os.O_ACCMODE),
                (JUMP_EQUAL, 0, 1, os.O_TRUNC | os.O_RDONLY),
                (RETURN, 0, 0, fails(errno.EACCES)),
                (RETURN, 0, 0, ALLOW),
            )
    return [*code, (RETURN, 0, 0, ALLOW)]


def _low(argument: int) -> Instruction:
    """Load the low half of an argument: all that the kernel itself reads of an ``int``."""
    return (LOAD, 0, 0, 16 + 8 * argument)


def seccomp(abi: int, supervised: bool, counted: bool = False) -> int | None:
    """Put the filter on this process; returns the descriptor on which it asks its supervisor, if it has to.

    The kernel may refuse the latter (before 5.5, in gVisor, or if an outer sandbox already answers):
    then there is none, and the supervisor only counts.
    """
    machine = platform.machine()
    if machine not in MACHINES or sys.byteorder != "little" or sys.maxsize < 1 << 32:
        raise SandboxError("seccomp: there is no filter for " + machine)
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)
    number = REFUSED["seccomp"][MACHINES[machine][0]]
    assert number is not None
    asking = program(machine, abi=abi, notify=True, counted=counted)
    asks = supervised and any(one[0] == RETURN and one[3] == NOTIFY for one in asking)
    for flags in (NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER) if asks else ():
        try:
            return _install(number, flags, asking)
        except SandboxError:
            continue
    _install(number, 0, program(machine, abi=abi, notify=False, counted=counted))
    return None


def _install(number: int, flags: int, code: list[Instruction]) -> int:
    _kept, header = assembled(code)
    return call("seccomp", number, SECCOMP_SET_MODE_FILTER, flags, header)


def assembled(code: list[Instruction]) -> tuple[Any, Any]:
    """The instructions in memory, which must be kept until the kernel has them, and what points to them."""
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in code))
    return instructions, ctypes.create_string_buffer(
        struct.pack("@HP", len(code), ctypes.addressof(instructions))
    )
