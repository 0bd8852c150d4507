"""A database lives on a disk of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from palimpsest.domain.errors import PolicyError
from palimpsest.store.data_dir import refuse_network_file_system

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
server:/export /mnt/nfs nfs4 rw 0 0
//server/share /mnt/with\\040space cifs rw 0 0
me@host:/ /mnt/nfs/ssh fuse.sshfs rw 0 0
/dev/sdb1 /mnt/nfs/local xfs rw 0 0
portal /run/portal fuse.portal rw 0 0
"""


@pytest.mark.parametrize("folder", ["/mnt/nfs", "/mnt/nfs/deep/er", "/mnt/with space/data", "/mnt/nfs/ssh/data"])
def test_network_file_systems_are_refused(folder: str) -> None:
    with pytest.raises(PolicyError, match="local disk"):
        refuse_network_file_system(Path(folder), MOUNTS)


@pytest.mark.parametrize(
    "folder", ["/", "/home/ann", "/tmp/x", "/mnt/nfsother", "/mnt/nfs/local/data", "/run/portal/x"]
)
def test_local_ones_are_not(folder: str) -> None:
    refuse_network_file_system(Path(folder), MOUNTS)


def test_this_machines_own_mounts_can_be_read(tmp_path: Path) -> None:
    refuse_network_file_system(tmp_path / "not" / "there" / "yet")
