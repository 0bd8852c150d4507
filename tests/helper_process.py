"""
What stands in the place of a process that a server of the tests starts: the fork server is asked for the process.

It hands over its descriptors, environment and folder, passes signals on, ends when the process ends, with its status,
and when it is killed the process is. It loads nothing but what is built into Python: it starts twice for each server.
"""

import _signal as signal
import posix
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket

MOST_DESCRIPTORS = 100  # that a server has when it starts a process: a few dozen
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NUMBER_BYTES = 20


def is_open(number: int) -> bool:
    try:
        posix.fstat(number)
    except OSError:
        return False
    return True


def pass_on(sign: int, _frame: object) -> None:
    try:
        posix.kill(process, sign)
    except ProcessLookupError:
        """It has ended, and its status is on the way."""


signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
address, *words = sys.argv[1:]
given = [number for number in range(MOST_DESCRIPTORS) if is_open(number)]
numbers, to_number = posix.pipe()
asked = {"words": words, "env": posix.environ, "folder": posix.getcwd(), "descriptors": [*given, -1]}
question = f"{asked!a}\n".encode()
asking = socket(AF_UNIX)
asking.connect(address)
descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in (*given, to_number))
asking.sendall(question[asking.sendmsg([question], [(SOL_SOCKET, SCM_RIGHTS, descriptors)]) :])
for number in (*given, to_number):
    posix.close(number)
process = int(posix.read(numbers, NUMBER_BYTES) or 0)
for sign in PASSED_ON:
    signal.signal(sign, pass_on)
signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
status = asking.recv(1)
posix._exit(status[0] if status else 1)
