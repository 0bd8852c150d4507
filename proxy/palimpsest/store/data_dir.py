"""
The data folder: its owner's alone, and not on a network file system, where SQLite's locks and
shared memory fail silently.
"""

from __future__ import annotations

import re
from pathlib import Path

from palimpsest.domain.errors import PolicyError

DATABASE_FILE = "palimpsest.db"
FOLDER_MODE = 0o700  # other people's conversations
MOUNTS = Path("/proc/self/mounts")  # Linux; elsewhere nothing can be asked and everything is allowed

# https://www.sqlite.org/useovernet.html. fuse.* are file systems over ssh, object stores
# and the like. 9p is allowed: sandboxes mount their own root so.
NETWORK_TYPES = frozenset(
    """
    afs beegfs ceph cifs coda davfs gfs2 glusterfs lustre ncpfs nfs nfs4 ocfs2 orangefs pvfs2 smb2 smb3 smbfs
    """.split()  # noqa: SIM905
)
NETWORK_FUSE = re.compile(r"fuse\.(?:.*sshfs|.*s3.*|rclone|gcsfuse|glusterfs|ceph.*|davfs.*|blobfuse2?|juicefs|goofys)")


def make_folder(data: Path) -> None:
    """Have the data folder, for its owner alone. Raises `PolicyError`: it cannot be made."""
    try:
        data.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as cause:
        wrong = "is a file" if data.is_file() else f"cannot be made: {cause.strerror}"
        raise PolicyError(f"data: {data}: {wrong}; choose another folder") from cause


def refuse_network_file_system(folder: Path, mounts: str | None = None) -> None:
    """
    Refuse a folder that other machines may write to.

    Args:
        folder: need not exist yet.
        mounts: text in the form of /proc/self/mounts; read from there when not given.

    Raises:
        PolicyError: it is on a network file system.
    """
    if mounts is None:
        mounts = MOUNTS.read_text() if MOUNTS.exists() else ""
    real = folder.resolve()
    kind, where = "", Path("/")
    for line in mounts.splitlines():
        fields = line.split(" ")
        point = Path(fields[1].encode().decode("unicode_escape"))  # a space is written \040
        if (point == real or point in real.parents) and len(point.parts) >= len(where.parts):
            kind, where = fields[2], point
    if kind in NETWORK_TYPES or NETWORK_FUSE.fullmatch(kind):
        raise PolicyError(
            f"data: {folder} is on a network file system ({kind} at {where}), which cannot hold a database: "
            "choose a folder on a local disk"
        )
