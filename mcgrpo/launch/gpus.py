"""Run a program on GPUs of its own, with CUDA_VISIBLE_DEVICES set to them.

    python -m mcgrpo.launch.gpus COUNT PROGRAM [ARGS...]     waits for COUNT free devices; with 0 the program sees none

Snakemake counts GPUs but does not number them. Each device has a file that is locked (flock(2)) by the program that
uses it. The lock is inherited by exec and fork, and released when the last process that holds it has died. Requests for
the same devices are served in order, each all at once.

Lock files are named by UUID, as in a scheduler's cgroup every job's device is number 0. They are in `MCGRPO_LOCKS`, a
folder on a local disk; `fuser FILE` names the processes that hold a lock.
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
"""One folder for all users and jobs; not in TMPDIR, which may differ between them. With several users, root has to own
it: all others refuse one that a user owns."""
POLL_SECONDS = 0.2


def enough(wanted: int, found: list[Device]) -> None:
    """Check that `wanted` devices can become free.

    Raises:
        DeviceError: if there are fewer devices, or if this process runs within the one that holds them.
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
    """Wait until `wanted` of the devices are free, lock them, and write `owner` into their lock files.

    Returns:
        device -> file descriptor of its lock; the lock is held while a process has that or a copy of it open.
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
    """Queue for every device and, at the head of all queues, lock those that are free; None if not `patient`.

    Queues are entered in the same order, which prevents deadlock. While a request is at the head of a queue no other
    takes that device, so that a request for all devices is served, too. Requests without a common device do not wait
    for each other.
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
    """Lock `wanted` devices, or none."""
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
    """Open a file that another user may own: with `fs.protected_regular`, O_CREAT is refused for those."""
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
    """The last owner of each device, by its lock file."""
    texts = []
    for each in found:
        with suppress(OSError):  # the file is made when the device is first taken
            texts.append(f"{each.visible}: {_lock_file(each, folder).read_text(errors='replace') or 'nobody'}")
    return "; ".join(texts)


def check_lock_folder() -> Path:
    """The folder of the locks, which need not exist yet.

    Raises:
        DeviceError: if it is a link or belongs to a user other than root and this one, who could remove its locks.
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
    """The folder of the locks, created if needed and locked, so that systemd-tmpfiles does not clean it up."""
    folder = check_lock_folder()
    folder.mkdir(mode=0o1777, parents=True, exist_ok=True)
    check_lock_folder()  # again: another user may have created it in between
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    fcntl.flock(fd, fcntl.LOCK_SH)
    os.set_inheritable(fd, True)
    return folder


def hold(wanted: int, owner: str) -> list[Device]:
    """Take `wanted` devices for this process, also after exec.

    Raises:
        DeviceError: see `devices` and `enough`.
    """
    enough(wanted, found := devices())
    umask = os.umask(0)  # every user may lock the files
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
    """Run the program on as many devices as the command line asks for."""
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
            sys.exit(f"error: {error}")
        _say(f"takes {listed(taken)} after {time.monotonic() - start:.1f} s")
        os.environ |= {HOLDER: str(os.getpid()), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # nvidia-smi's order
    else:
        os.environ.pop(HOLDER, None)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(each.visible for each in taken)
    _become(command)


if __name__ == "__main__":
    main()
