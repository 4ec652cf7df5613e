"""terminal.py COMMAND...: runs a command on a pseudo terminal. Standard input has
one step a line: what to type and what to wait for, in hexadecimal, and how
many milliseconds to wait before it. WIDTH, or else COLUMNS, is the width of the
terminal."""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

SECONDS = 60  # enough for a busy machine

steps = []
for line in sys.stdin:
    send, wait, pause = line.rstrip("\n").split(" ")
    steps.append((bytes.fromhex(send), bytes.fromhex(wait), int(pause)))

pid, fd = pty.fork()
if pid == 0:
    columns = int(os.environ.get("WIDTH") or os.environ.get("COLUMNS", 0))
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])


def read_until(wait):
    """Returns the output up to `wait` (all output, if it is empty)."""
    got = b""
    end = time.time() + SECONDS
    while time.time() < end:
        if wait and wait in got:
            return got
        ready, _, _ = select.select([fd], [], [], 0.1)
        if not ready:
            continue
        try:
            data = os.read(fd, 4096)
        except OSError:
            return got
        if not data:
            return got
        got += data
    return got + b"\n(nothing more came)\n"


out = b""
for send, wait, pause in steps:
    time.sleep(pause / 1000)
    os.write(fd, send)
    out += read_until(wait)
out += read_until(b"")
sys.stdout.buffer.write(out)
sys.stdout.flush()
os.close(fd)
end = time.time() + SECONDS
ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
while os.waitid(os.P_PID, pid, ended) is None:
    if time.time() > end:
        os.kill(pid, signal.SIGKILL)
        break
    time.sleep(0.01)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) & 255)
# SPDX-License-Identifier: MIT
