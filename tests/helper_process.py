"""
What stands in the place of a process that a server of the tests starts: the fork server is asked for the process.

It hands over its descriptors, environment and folder, ends when the process ends, with its status, and when it is
killed the process is. It loads as little as can be, in place of what the process would.
"""

import json
import os
import signal
import socket
import sys

MOST_DESCRIPTORS = 100  # that a server has when it starts a process: a few dozen


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # as the processes do
    signal.signal(ignored, signal.SIG_IGN)
address, _, _, *words = sys.argv[1:]  # python -P -m MODULE ...
given = [number for number in range(MOST_DESCRIPTORS) if is_open(number)]
folder = os.getcwd()  # noqa: PTH109 # importing pathlib takes half as long as all of this
asked = {"words": words, "env": dict(os.environ), "folder": folder, "descriptors": given}
question = f"{json.dumps(asked)}\n".encode()
with socket.socket(socket.AF_UNIX) as asking:
    asking.connect(address)
    asking.sendall(question[socket.send_fds(asking, [question], given) :])
    for number in given:
        os.close(number)
    os._exit(int(asking.recv(1) or 1))
