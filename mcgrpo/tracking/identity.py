"""Which folder of results a run of MLflow is of: studies of one name may share a server."""

import os
import uuid
from pathlib import Path

FILE = ".tracking-id"


def identity_of(results: Path) -> str:
    """The random id of a folder of results, made when it is first asked for; a copy of the folder has the same.

    Raises:
        OSError: if there is none, and the folder cannot be written.
    """
    path = results / FILE
    if not path.is_file():
        made = uuid.uuid4().hex
        new = results / f"{FILE}.{made}"
        new.write_text(made + "\n")
        try:
            os.link(new, path)  # unlike a rename it fails where another process was faster
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    return path.read_text().strip()
