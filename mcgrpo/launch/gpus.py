"""Run a program on GPUs that no other program started this way uses: it sees those, and no others.

    python -m mcgrpo.launch.gpus COUNT PROGRAM [ARGS...]     waits for COUNT free devices; 0 shows the program none

Snakemake counts GPUs but hands out no device numbers. A device is a file here, locked (flock(2)) by the program that
uses it: the lock is inherited by exec and fork, and gone when the last process that has it is, whatever it died of.
Requests for the same devices are served in the order in which they came, each all at once.

Which devices there are, `mcgrpo.launch.devices` says. Locks are named by UUID: within a scheduler's cgroup every job's
device is number 0. They are in `MCGRPO_LOCKS`, a folder of a local disk; `fuser FILE` names the processes that hold
one.
"""

import fcntl
import os
import signal
import stat
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NoReturn

from mcgrpo.launch.devices import Device, DeviceError, devices, listed
from mcgrpo.launch.parents import HOLDER, ancestors

LOCKS = "/tmp/mcgrpo-gpus"
"""One for all users and jobs, hence not TMPDIR, which may differ between them. It has to be root's where there are
several users: one that the first of them makes is refused to all others."""
POLL_SECONDS = 0.2


def enough(wanted: int, found: list[Device]) -> None:
    """Refuse what could never be had.

    Raises:
        DeviceError: if there are fewer devices than are wanted, or they are in use by the program that wants them.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    where = "this machine has" if visible is None else f"CUDA_VISIBLE_DEVICES={visible} leaves of this machine"
    if wanted > len(found):
        raise DeviceError(f"{wanted} {_gpus(wanted)} wanted, {where} {len(found)}: {listed(found)}")
    if (holder := os.environ.get(HOLDER, "")).isdigit() and int(holder) in (os.getpid(), *ancestors()):
        raise DeviceError(f"this runs within process {holder}, which holds the devices: it would wait for ever")


def _gpus(count: int) -> str:
    return "GPU" if count == 1 else "GPUs"


def take(wanted: int, found: list[Device], folder: Path, owner: str) -> dict[Device, int]:
    """Wait for `wanted` of the devices to be free; lock them, and say in the lock files who did.

    Returns:
        device -> file descriptor of its lock, which is held as long as that or a copy of it is open in any process.
    """
    taken = _attempt(wanted, found, folder, patient=False)
    if taken is None:
        _say(f"waits for {wanted} {_gpus(wanted)} of {len(found)}; last taken by {_owners(found, folder)}")
        taken = _attempt(wanted, found, folder, patient=True)
    for fd in taken.values():
        os.ftruncate(fd, 0)
        os.pwrite(fd, owner.encode(errors="replace"), 0)
    return taken


def _attempt(wanted: int, found: list[Device], folder: Path, patient: bool) -> dict[Device, int] | None:
    """Queue for every device and, at the head of all queues, lock those that are free; None without patience.

    Queues are entered in one order, so no two requests wait for each other; whoever wants none of the same devices
    never waits. At the head of a queue nobody else takes its device, so even a request for all is served at last.
    """
    with ExitStack() as queues:
        for path in sorted(_lock_file(each, folder) for each in found):
            fd = _lock(path.with_name(f"{path.name}.queue"), patient)
            if fd is None:
                return None
            queues.callback(os.close, fd)
        while (taken := _free(wanted, found, folder)) is None and patient:
            time.sleep(POLL_SECONDS)
        return taken


def _free(wanted: int, found: list[Device], folder: Path) -> dict[Device, int] | None:
    """Lock as many devices as are wanted, or none."""
    taken: dict[Device, int] = {}
    for each in found:
        if len(taken) < wanted and (fd := _lock(_lock_file(each, folder), patient=False)) is not None:
            taken[each] = fd
    if len(taken) == wanted:
        return taken
    for fd in taken.values():
        os.close(fd)
    return None


def _lock_file(device: Device, folder: Path) -> Path:
    return folder / device.uuid.replace("/", "_")


def _lock(path: Path, patient: bool) -> int | None:
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def _open(path: Path) -> int:
    """Open a file that may be another user's: where `fs.protected_regular` is on, O_CREAT is refused for those."""
    while True:
        try:
            return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            pass
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue


def _owners(found: list[Device], folder: Path) -> str:
    """Who took which device last, as far as that is known."""
    texts = []
    for each in found:
        with suppress(OSError):  # made by the first who takes it, which may be about to happen
            texts.append(f"{each.visible}: {_lock_file(each, folder).read_text(errors='replace') or 'nobody'}")
    return "; ".join(texts)


def check_lock_folder() -> Path:
    """The folder of the locks, which may not be there yet; it must be root's or this user's.

    Raises:
        DeviceError: if somebody else could remove its locks, or could have it point elsewhere.
    """
    folder = Path(os.environ.get("MCGRPO_LOCKS") or LOCKS)
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return folder
    except OSError as error:
        raise DeviceError(f"{folder}: {error.strerror}: set MCGRPO_LOCKS") from None
    if not stat.S_ISDIR(found.st_mode):
        raise DeviceError(f"{folder} is a link or no folder: remove it, or set MCGRPO_LOCKS")
    if found.st_uid not in (0, os.getuid()):
        raise DeviceError(
            f"{folder} belongs to user {found.st_uid}, who could remove its locks: have root make it "
            f"(install -d -m 1777 {folder}), or set MCGRPO_LOCKS"
        )
    return folder


def _lock_folder() -> Path:
    """The folder of the locks, made if need be, and kept from being cleaned up: systemd-tmpfiles heeds a lock on it."""
    folder = check_lock_folder()
    folder.mkdir(mode=0o1777, parents=True, exist_ok=True)
    check_lock_folder()  # another user may have made it in between; whoever owns it now keeps it, /tmp being sticky
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    fcntl.flock(fd, fcntl.LOCK_SH)
    os.set_inheritable(fd, True)
    return folder


def hold(wanted: int, owner: str) -> list[Device]:
    """Take `wanted` devices for this process, and for whatever it becomes by exec.

    Raises:
        DeviceError: see `devices` and `enough`.
    """
    enough(wanted, found := devices())
    umask = os.umask(0)  # the files are every user's
    try:
        taken = take(wanted, found, _lock_folder(), owner)
    finally:
        os.umask(umask)
    for fd in taken.values():
        os.set_inheritable(fd, True)
    return list(taken)


def _say(text: str) -> None:
    print(f"mcgrpo.launch.gpus: {text}", file=sys.stderr, flush=True)


def _become(command: list[str]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by every Python, and by what it becomes
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        _say(f"{command[0]}: {error.strerror}")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def main() -> None:
    """Run the program that the command line names, on as many devices as it asks for."""
    if len(sys.argv) < 3 or not sys.argv[1].isdecimal():
        sys.exit("usage: python -m mcgrpo.launch.gpus COUNT PROGRAM [ARGS...]")
    wanted, command = int(sys.argv[1]), sys.argv[2:]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ctrl-c ends the wait without a traceback
    start, taken = time.monotonic(), []
    if wanted:
        try:
            taken = hold(wanted, f"process {os.getpid()} ({' '.join(command)[:200]})")
        except (DeviceError, OSError) as error:
            sys.exit(f"mcgrpo.launch.gpus: {error}")
        _say(f"takes {listed(taken)} after {time.monotonic() - start:.1f} s")
        os.environ |= {HOLDER: str(os.getpid()), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # nvidia-smi's order
    else:
        os.environ.pop(HOLDER, None)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(each.visible for each in taken)
    _become(command)


if __name__ == "__main__":
    main()
