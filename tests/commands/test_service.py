"""The service on the command line, with a `systemctl` that writes down what it is told, and systemd's own programs."""

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from palimpsest.commands.service import Launchd, manager_of
from palimpsest.commands.service_files import is_as_written, quoted
from palimpsest.domain.errors import MemoryFault
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.settings.policy import ListenPolicy

from tests.running import PATIENCE_SECONDS, ROOT, Proxy, free_port, request

pytestmark = pytest.mark.slow

SYSTEMCTL = """\
#!/bin/sh
echo "$@" >> "$HOME/told"
[ ! -e "$HOME/no-session" ] || { echo "Failed to connect to bus" >&2; exit 1; }
"""


class Home:
    """A home folder of its own, and the program there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.units = folder / ".config" / "systemd" / "user"
        program = folder / "bin" / "systemctl"
        program.parent.mkdir(parents=True)
        program.write_text(SYSTEMCTL)
        program.chmod(0o755)

    def service(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "HOME": str(self.folder),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "proxy"),
        }
        assert Proxy.fork_server is not None
        return Proxy.fork_server.run(("service", *words), environment, self.folder)

    def install(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.service("install", "--port", str(self.port), *words)

    def told(self) -> str:
        return (self.folder / "told").read_text()

    def files(self) -> set[str]:
        return {str(file.relative_to(self.folder)) for file in self.folder.rglob("*") if file.is_file()}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home of a user")


def test_install_writes_two_units_shows_them_and_uninstall_removes_nothing_else(home: Home) -> None:
    before = home.files() | {"told"}
    done = home.install("--upstream", "http://127.0.0.1:1/v1", "--data", "my data", "--config", "personal")
    assert done.returncode == 0, done.stderr
    assert home.files() - before == {f".config/systemd/user/palimpsest.{kind}" for kind in ("socket", "service")}
    for file in home.units.iterdir():
        text = file.read_text()
        assert is_as_written(text) and all(line in done.stdout for line in text.splitlines())
        assert file.stat().st_mode & 0o077 == 0
    (line,) = (one for one in (home.units / "palimpsest.service").read_text().splitlines() if "ExecStart=" in one)
    words = shlex.split(line.partition("=")[2])
    assert words[:4] == [sys.executable, "-m", "palimpsest", "serve"] and "--forward-anyway" in words
    assert words[words.index("--data") + 1] == str(home.folder / "my data")
    assert words[words.index("--config") + 1] == "personal"
    assert "enable --now palimpsest.socket" in home.told()
    assert home.service("uninstall").returncode == 0
    assert home.files() == before
    assert "disable --now palimpsest.socket palimpsest.service" in home.told()
    assert "no service is installed" in home.service("uninstall").stdout


def test_a_unit_that_was_changed_is_neither_replaced_nor_removed(home: Home) -> None:
    home.install()
    unit = home.units / "palimpsest.service"
    unit.write_text(unit.read_text().replace("Restart=on-failure", "Restart=no"))
    refused = home.install()
    assert refused.returncode == 2 and str(unit) in refused.stderr
    assert home.service("uninstall").returncode == 1
    assert list(home.units.iterdir()) == [unit]


def test_installing_again_takes_the_new_options(home: Home) -> None:
    home.install()
    assert home.install("--upstream", "http://127.0.0.1:2/v1").returncode == 0
    assert "http://127.0.0.1:2/v1" in (home.units / "palimpsest.service").read_text()


def test_where_no_systemd_runs_for_the_user_nothing_is_written(home: Home) -> None:
    (home.folder / "no-session").touch()
    before = home.files() | {"told"}
    refused = home.install()
    assert refused.returncode == 1 and "no systemd runs for this user" in refused.stderr
    assert home.files() == before


def test_a_wrong_setting_or_a_taken_port_is_refused_before_anything_is_written(
    home: Home, upstream: ScriptedUpstream
) -> None:
    home.port = int(upstream.url.split(":")[2].split("/")[0])
    taken, wrong = home.install(), home.install("--upstream", "nowhere")
    assert taken.returncode == 2 and "another program" in taken.stderr
    assert wrong.returncode == 2 and not home.units.exists()


def test_status_says_what_is_there_and_whether_the_proxy_answers(home: Home) -> None:
    home.install()
    told = home.service("status", "--port", str(home.port))
    assert told.returncode == 1 and told.stdout.count("as it was written") == 2


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_finds_no_fault_in_the_units(home: Home) -> None:
    home.install("--data", 'a "folder" with $PATH and 5 %h')
    units = [str(unit) for unit in home.units.iterdir()]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home.folder), "XDG_RUNTIME_DIR": str(home.folder)}
    words = ["systemd-analyze", "verify", "--user", *units]
    told = subprocess.run(words, env=environment, capture_output=True, text=True)
    about_ours = [line for line in told.stderr.splitlines() if "palimpsest" in line and "man-pages" not in line]
    assert told.returncode == 0 and not about_ours, told.stderr


@pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="needs systemd")
def test_a_request_that_comes_first_starts_the_proxy_and_is_answered(home: Home, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda _: "hello"
    home.install("--upstream", upstream.url, "--data", str(home.folder / "data"))
    (line,) = (one for one in (home.units / "palimpsest.service").read_text().splitlines() if "ExecStart=" in one)
    command = ["systemd-socket-activate", "-l", f"127.0.0.1:{home.port}"]
    command += [word for name in ("HOME", "PATH", "PYTHONPATH") for word in ("-E", name)]
    environment = {"HOME": str(home.folder), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "proxy")}
    with (home.folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *shlex.split(line.partition("=")[2])],
            env={**environment, "PALIMPSEST_MODEL__DOWNLOAD": "never"},
            stdout=log,
            stderr=log,
        )
    try:
        _await_listening(home)
        body = b'{"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}'
        answered = request(home.port, "POST", "/v1/chat/completions", body, {"authorization": "Bearer sk-a"})
        assert answered.status == 200, (home.folder / "log").read_text()
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _await_listening(home: Home) -> None:
    """Wait until the port is open, without connecting: the first connection starts the proxy."""
    from tests.running import until

    until(lambda: "Listening on" in (home.folder / "log").read_text(), "systemd to listen")


def test_words_of_a_command_arrive_as_they_are() -> None:
    assert quoted("/usr/bin/python3") == "/usr/bin/python3"
    assert quoted('a "b" $c %d \\') == '"a \\"b\\" $$c %%d \\\\"'


def test_launchd_is_told_to_start_the_command_and_keep_it_running(tmp_path: Path) -> None:
    ((file, text),) = Launchd({"HOME": str(tmp_path)}).files(["/x/python", "-m", "palimpsest"], ListenPolicy()).items()
    assert file == tmp_path / "Library" / "LaunchAgents" / "palimpsest.plist" and is_as_written(text)
    told = plistlib.loads(text.encode())
    assert told["ProgramArguments"] == ["/x/python", "-m", "palimpsest"]
    assert told["Label"] == "palimpsest" and told["RunAtLoad"] is told["KeepAlive"] is True


def test_a_platform_with_neither_is_refused() -> None:
    with pytest.raises(MemoryFault, match="win32"):
        manager_of("win32", {})
