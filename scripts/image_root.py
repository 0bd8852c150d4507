"""
The image without a container engine: each step of the Dockerfile in a root of its own, and its command in the result.

What differs from a build by an engine: the base is Debian with Debian's Python, built by mmdebstrap, instead of the
`python` image; the network and the process ids are those of the machine; no layer is packed. What is the same: all RUN,
COPY, ENV, USER and CMD, as they are read from the Dockerfile, and nothing of the checkout that .dockerignore keeps out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.ledger import Ledger, is_whole
from tests.running import Answered, Proxy, as_headers, request, until, upstream_on_a_thread

ROOT = Path(__file__).parent.parent
SUITE = "bookworm"
PACKAGES = "python3,python3-pip,python3-venv,python-is-python3,ca-certificates"  # what the `python` image brings
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
# Of the machine, so that its registries can be reached; no step of the Dockerfile sees a difference.
FROM_MACHINE = ("etc/resolv.conf", CERTIFICATES)
BUILDING = {
    "PIP_BREAK_SYSTEM_PACKAGES": "1",  # Debian's Python refuses what the image's own allows
    "SSL_CERT_FILE": f"/{CERTIFICATES}",
    "HOME": "/root",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}
MOUNTED = ("proc", "dev")
ANSWER = "A long answer that goes on while the container is being stopped, word by word, to its very end."
MEGABYTE = 1e6


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@dataclass
class Stage:
    """One stage of the Dockerfile, and its root once it is built."""

    name: str
    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)  # ARG
    folder: str = "/"
    user: str = "0:0"
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def filled(self, text: str) -> str:
        """With the variables that a Dockerfile may name."""
        known = self.arguments | self.environment | {"PATH": self.environment.get("PATH", BUILDING["PATH"])}
        return re.sub(r"\$\{?(\w+)\}?", lambda found: known.get(found[1], ""), text)


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Dockerfile, each with all that follows it."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in lines.replace("\\\n", " ").splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word.upper(), rest.strip()


class Build:
    """The stages of a Dockerfile, built one after the other in a folder."""

    def __init__(self, folder: Path, base: Path, context: Path, given: dict[str, str]) -> None:
        self._folder = folder
        self._base = base
        self._context = context
        self._given = given  # --build-arg
        self._global: dict[str, str] = {}
        self.stages: list[Stage] = []

    def run(self, dockerfile: str) -> Stage:
        """Build all stages; the last one."""
        for word, rest in instructions(dockerfile):
            if word == "FROM":
                self._begin(rest)
            elif word == "ARG":
                name, _, value = rest.partition("=")
                known = self.stages[-1].arguments if self.stages else self._global
                known[name] = self._given.get(name, value)
            else:
                getattr(self, f"_{word.lower()}")(self.stages[-1], rest)
        return self.stages[-1]

    def _begin(self, rest: str) -> None:
        name = rest.partition(" AS ")[2] or str(len(self.stages))
        stage = Stage(name, self._folder / f"stage-{name}")
        copy_tree(self._base, stage.root)
        self.stages.append(stage)

    def _run(self, stage: Stage, rest: str) -> None:
        started = time.monotonic()
        inside(stage, ["/bin/sh", "-c", rest], stage.arguments | stage.environment)
        say(f"  {time.monotonic() - started:5.1f} s  RUN {' '.join(rest.split())[:90]}")

    def _copy(self, stage: Stage, rest: str) -> None:
        words = shlex.split(rest)
        sources = self._context
        if words[0].startswith("--from="):
            name = words.pop(0).partition("=")[2]
            sources = next(each.root for each in self.stages if each.name == name)
        *names, target = words
        into = stage.root / str(Path(stage.folder) / target).lstrip("/")
        for name in names:
            source = sources / name.lstrip("/")
            if source.is_dir():
                copy_tree(source, into)
            else:
                place = into / source.name if target.endswith("/") else into
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, place)

    def _env(self, stage: Stage, rest: str) -> None:
        pairs = (word.partition("=") for word in shlex.split(rest))
        stage.environment |= {name: stage.filled(value) for name, _, value in pairs}

    def _workdir(self, stage: Stage, rest: str) -> None:
        stage.folder = rest
        (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def _user(self, stage: Stage, rest: str) -> None:
        stage.user = rest

    def _cmd(self, stage: Stage, rest: str) -> None:
        stage.command = json.loads(rest)

    def _healthcheck(self, stage: Stage, rest: str) -> None:
        stage.health = json.loads(rest.partition(" CMD ")[2])

    def _says_nothing_here(self, stage: Stage, rest: str) -> None:
        """What only an engine reads."""

    _label = _volume = _expose = _stopsignal = _says_nothing_here


def inside(stage: Stage, command: list[str], environment: dict[str, str]) -> None:
    """Run a step as root in a stage's root."""
    for name in MOUNTED:
        subprocess.run(["mount", "--rbind", f"/{name}", stage.root / name], check=True)
    try:
        subprocess.run(
            ["chroot", stage.root, "/bin/sh", "-c", f'cd {stage.folder} && exec "$@"', "sh", *command],
            env=BUILDING | environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    finally:
        for name in MOUNTED:
            subprocess.run(["umount", "--lazy", stage.root / name], check=True)


def copy_tree(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "--archive", "--reflink=auto", f"{source}/.", target], check=True)


def megabytes(folder: Path) -> float:
    said = subprocess.run(["du", "-sb", folder], capture_output=True, text=True, check=True).stdout
    return int(said.split()[0]) / MEGABYTE


def base_root(target: Path) -> None:
    """A copy of the base, which is kept in this user's cache, as engines keep theirs."""
    kept = Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "palimpsest", "image", f"{SUITE},{PACKAGES}"
    )
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as temporary:
            made = Path(temporary, "base")
            command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(made)]
            subprocess.run(command, check=True)
            made.rename(kept)
    copy_tree(kept, target)
    for name in FROM_MACHINE:
        place = target / name
        place.unlink(missing_ok=True)
        shutil.copy(Path("/") / name, place)


def context_of(checkout: Path, target: Path) -> None:
    """What .dockerignore lets into a build: it leaves out everything, and takes some back in."""
    for line in (checkout / ".dockerignore").read_text().splitlines():
        if line.startswith("!"):
            source, place = checkout / line[1:], target / line[1:]
            place.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, place)


class Contained(Proxy):
    """The image's command in its root, as `docker run --read-only --tmpfs /tmp -v data:/data` runs it."""

    def __init__(self, stage: Stage, data: Path, upstream_url: str) -> None:
        super().__init__(data, upstream_url)
        self._stage = stage
        user, _, group = stage.user.partition(":")
        data.chmod(0o700)
        os.chown(data, int(user), int(group))

    def command(self, *words: str) -> list[str]:
        """As the image's user, without any privilege, on a root that cannot be written to."""
        root, (user, _, group) = self._stage.root, self._stage.user.partition(":")
        prepare = f"""
            mount --bind {root} {root} && mount -o remount,ro,bind {root}
            mount --rbind /dev {root}/dev && mount -t proc proc {root}/proc && mount -t tmpfs tmpfs {root}/tmp
            mount --bind {self.data} {root}/data
            exec chroot {root} "$@"
        """
        drop = [
            "setpriv",
            f"--reuid={user}",
            f"--regid={group}",
            "--clear-groups",
            "--no-new-privs",
            "--bounding-set=-all",
        ]
        unshared = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", prepare, "sh"]
        return [*unshared, *drop, "--inh-caps=-all", *words]

    @property
    def environment(self) -> dict[str, str]:
        told = {"PALIMPSEST_UPSTREAM": self.upstream_url, "PALIMPSEST_PORT": str(self.port), "HOME": "/data"}
        return self._stage.environment | told

    def start(self) -> Contained:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(*self._stage.command), env=self.environment, stdout=log, stderr=log
            )
        until(self.is_alive, f"the container to start: {self.log}")
        return self

    def runs(self, *words: str) -> int:
        """Run a command in a container of its own beside it, as `docker exec` does; its status."""
        return subprocess.run(self.command(*words), env=self.environment, capture_output=True).returncode


def verify(stage: Stage, folder: Path) -> None:
    """Start it, look, ask, stop it in mid-stream."""
    with upstream_on_a_thread(ScriptedUpstream()) as upstream:
        proxy = Contained(stage, folder / "data", upstream.url)
        started = time.monotonic()
        with proxy:
            say(f"  {time.monotonic() - started:5.1f} s  from the command to the first answer")
            assert proxy.runs("/bin/sh", "-c", "touch /venv/x /x") != 0, "the root can be written to"
            assert proxy.runs("/bin/sh", "-c", "touch /data/x /tmp/x && rm /data/x") == 0, "/data cannot be written to"
            assert proxy.runs("/bin/sh", "-c", "test $(id -u):$(id -g) = " + stage.user) == 0, "another user"
            assert proxy.runs(*stage.health) == 0, "the health check fails"
            _ask(proxy, upstream)
        say("  stopped with status 0 in mid-stream: every byte was delivered, every turn is in the journal")


def _ask(proxy: Contained, upstream: ScriptedUpstream) -> None:
    ledger = Ledger()
    upstream.play("The first answer is short.", Reply(ANSWER, lockstep=True))
    messages = [{"role": "user", "content": "What is said first?"}]
    ledger.write("talk", messages[0]["content"], _whole(proxy, {"model": "gpt-4o", "messages": messages}))
    messages += [
        {"role": "assistant", "content": "The first answer is short."},
        {"role": "user", "content": "And then?"},
    ]

    with ThreadPoolExecutor(1) as aside:
        asked = aside.submit(_whole, proxy, {"model": "gpt-4o", "messages": messages, "stream": True})
        until(lambda: len(upstream.received) == 2, "the second request to arrive")
        upstream.permit(2)
        assert proxy.process is not None
        proxy.process.terminate()
        upstream.permit(1000)
        answered = asked.result()
    assert answered.text == ANSWER, "the answer is not whole"
    ledger.write("talk", "And then?", answered)
    assert proxy.process.wait(60) == 0, "the status of the stop"
    found = ledger.audit(proxy.data)
    assert found.is_clean and found.turns == 2, found


def _whole(proxy: Contained, body: dict[str, object]) -> Answered:
    answered = request(proxy.port, "POST", "/v1/chat/completions", orjson.dumps(body), as_headers("sk-image", {}))
    assert is_whole(answered), answered
    return answered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-model", action="store_true", help="as --build-arg WITH_MODEL=no")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the roots there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="palimpsest-image-") as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        base, context, started = folder / "base", folder / "context", time.monotonic()
        base_root(base)
        say(f"  {time.monotonic() - started:5.1f} s  base: Debian {SUITE} with its Python")
        context_of(ROOT, context)
        arguments = {"WITH_MODEL": "no"} if given.without_model else {}
        stage = Build(folder, base, context, arguments).run((ROOT / "Dockerfile").read_text())
        sizes = {"base": base, "/venv": stage.root / "venv", "/model": stage.root / "model", "all": stage.root}
        say("  size: " + ", ".join(f"{name} {megabytes(place):.0f} MB" for name, place in sizes.items()))
        verify(stage, folder)


if __name__ == "__main__":
    main()
