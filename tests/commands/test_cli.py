import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from palimpsest import __version__
from palimpsest.commands import cli

from tests.running import ROOT, Proxy, store_of

pytestmark = pytest.mark.slow


def palimpsest(
    *arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What the installed program says to these words, with no settings in its environment but `env`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PALIMPSEST_")}
    assert Proxy.fork_server is not None
    kept |= {"PYTHONPATH": str(ROOT / "proxy")} | store_of(arguments)
    return Proxy.fork_server.run(arguments, kept | dict(env or {}), cwd)


def test_help_names_the_commands_that_exist() -> None:
    said = palimpsest("--help").stdout
    commands = "serve wrap doctor demo check-config settings model index search explain stats bench version"
    for command in (*commands.split(), *["forget", "retire", "unretire", "receipt"]):
        assert command in said


def test_check_config_says_what_a_file_changes(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("listen: {port: 9000}\nmemory: {off_for_models: [o1]}")
    done = palimpsest("check-config", "mine.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["mine.yaml:", "fine"],
        ["listen.port", "9000"],
        ["memory.off_for_models", '["o1"]'],
    ]


def test_check_config_names_file_key_value_and_what_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("memory: {deadline_ms: 0}")
    done = palimpsest("check-config", "mine.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "palimpsest: mine.yaml: memory.deadline_ms: 0 is not allowed; allowed: a number, > 0\n"


def test_check_config_without_a_file_checks_the_environment() -> None:
    assert palimpsest("check-config").stdout == "defaults: fine\n"
    assert palimpsest("check-config", env={"PALIMPSEST_PORT": "x"}).returncode == 2


def test_shipped_presets_are_fine() -> None:
    assert palimpsest("check-config", "default").stdout == "default: fine\n"
    assert "tenants.static" in palimpsest("check-config", "personal").stdout


def test_settings_are_printed_as_a_file_that_is_fine(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(palimpsest("settings").stdout)
    assert palimpsest("check-config", "mine.yaml", cwd=tmp_path).stdout == "mine.yaml: fine\n"
    assert palimpsest("settings", "--markdown").stdout.startswith("# Settings\n")


def test_check_config_tries_the_data_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = palimpsest("check-config", env={"PALIMPSEST_DATA": str(tmp_path / "file" / "data")})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"palimpsest: data: {tmp_path / 'file'} is a file")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o755)
    open_to_all.chmod(0o755)
    done = palimpsest("check-config", env={"PALIMPSEST_DATA": str(open_to_all)})
    assert done.returncode == 0
    assert done.stdout.startswith(f"other users can read {open_to_all}: chmod 700")


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_version_is_the_packages(arguments: list[str]) -> None:
    assert palimpsest(*arguments).stdout == f"{__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["serv"], "unknown command serv; did you mean serve?"),
        (["serve", "--prot", "9000"], "unrecognized arguments: --prot 9000; did you mean --port?"),
        (["wrap", "--upstreem=http://x", "--", "true"], "--upstreem=http://x; did you mean --upstream?"),
        (["doctor", "now"], "unrecognized arguments: now\n"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(arguments: list[str], meant: str) -> None:
    done = palimpsest(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert meant in done.stderr


def test_without_a_command_all_of_them_are_listed() -> None:
    done = palimpsest()
    assert done.returncode == 2
    assert "check-config" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["conclude"], ["serve", "--port", "many"], ["serve", "--config", "no.yaml"]])
def test_wrong_arguments_end_with_status_2(arguments: list[str]) -> None:
    done = palimpsest(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_serve_says_that_its_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = palimpsest("serve", "--port", str(port), "--data", str(tmp_path / "data"))
    assert done.returncode == 2
    assert f"listen.port: {port}: cannot listen on 127.0.0.1: address already in use; stop what" in done.stderr


@pytest.mark.parametrize("host", ["192.0.2.1", "nobody.invalid"])
def test_serve_says_that_its_address_is_not_one_of_this_machine(host: str, tmp_path: Path) -> None:
    done = palimpsest("serve", "--host", host, "--port", "0", "--data", str(tmp_path / "data"))
    assert done.returncode == 2
    assert f"listen.host: {host}: cannot listen there: " in done.stderr and "--port" not in done.stderr


def test_serve_on_a_preset_for_one_person_refuses_other_peoples_networks(tmp_path: Path) -> None:
    done = palimpsest("serve", "--config", "personal", "--host", "0.0.0.0", "--data", str(tmp_path / "data"))
    assert done.returncode == 2
    assert "all of them would share one memory" in done.stderr
    assert not (tmp_path / "data").exists()


def test_serve_says_that_its_data_folder_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = palimpsest("serve", "--data", str(tmp_path / "file" / "data"))
    assert done.returncode == 2
    assert "cannot be made" in done.stderr
    taken = palimpsest("serve", "--data", str(tmp_path / "file"))
    assert (taken.returncode, f"{tmp_path / 'file'}: is a file; choose" in taken.stderr) == (2, True)


def test_model_install_without_a_way_to_one_fails_and_says_what_to_try(tmp_path: Path) -> None:
    done = palimpsest(
        "model",
        "install",
        env={"PALIMPSEST_MODEL__CACHE": str(tmp_path), "PALIMPSEST_MODEL__DOWNLOAD": "never"},
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("palimpsest: looking for the embedding model all-MiniLM-L6-v2: none in ")


def test_model_list_names_every_model_and_marks_the_one_in_use() -> None:
    lines = palimpsest("model", "list", "--model", "intfloat/multilingual-e5-large").stdout.splitlines()
    marked = [line.split() for line in lines if line.startswith("*")]
    assert [words[:5] for words in marked] == [["*", "intfloat/multilingual-e5-large", "1,024", "2,240", "mit"]]
    assert "all-MiniLM-L6-v2 384 150 apache-2.0 English" in [" ".join(line.split()) for line in lines]


def test_model_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    done = palimpsest("model", "install", "--model", "multilingual-e5-larg")
    assert done.returncode == 2
    assert done.stderr.endswith("did you mean intfloat/multilingual-e5-large?\n")


@pytest.mark.parametrize("module", cli.MODULES)
def test_each_module_adds_the_commands_that_the_table_names(module: str) -> None:
    without = {*cli._parser((), [])[1]}
    assert {*cli._parser((), [module])[1]} - without == {*cli.MODULES[module]}
