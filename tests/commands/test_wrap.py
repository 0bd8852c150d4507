"""A wrapped command talks through a proxy, and otherwise notices nothing."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import orjson
import pytest
from palimpsest.commands.wrap import arguments, variables, with_own_upstreams
from palimpsest.domain import Json
from palimpsest.domain.errors import PolicyError
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.settings.load import read_yaml, shipped
from palimpsest.settings.policy import Policy

from tests.commands.test_cli import palimpsest
from tests.running import PATIENCE_SECONDS, PATIENT, ROOT, Proxy, free_port, request, rows, until

pytestmark = pytest.mark.slow

URL = "http://127.0.0.1:1"
PROGRAM = (sys.executable, "-m", "palimpsest")

ASK = """
import json, os, sys, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
answer = urllib.request.urlopen(urllib.request.Request(url, body, {"authorization": "Bearer sk-x"}))
print(json.load(answer)["choices"][0]["message"]["content"], answer.headers["x-palimpsest-event"], url)
"""


class Wrapped:
    """`palimpsest wrap` with a data folder and a port of its own."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.data, self.port = folder / "data", free_port()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PALIMPSEST_", "OPENAI_"))}
        own = {"PYTHONPATH": str(ROOT / "proxy"), "PALIMPSEST_MODEL__DOWNLOAD": "never"}
        own["PALIMPSEST_MODEL__CACHE"] = str(folder / "models")  # nothing here asks for what is a fifth of a start
        self.env = kept | own | PATIENT | variables

    def words(self, *command: str, project: str = "") -> list[str]:
        named = ["--scope", project] if project else []
        return ["wrap", "--port", str(self.port), "--data", str(self.data), *named, "--", *command]

    def run(self, *command: str, stdin: str = "", project: str = "") -> subprocess.CompletedProcess[str]:
        assert Proxy.fork_server is not None
        return Proxy.fork_server.run(self.words(*command, project=project), self.env, stdin=stdin)

    def start(self, *command: str) -> subprocess.Popen[str]:
        words = [*PROGRAM, *self.words(*command)]
        return subprocess.Popen(words, env=self.env, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    @property
    def log(self) -> str:
        return (self.data / "wrap.log").read_text()


def is_free(port: int) -> bool:
    try:
        request(port, "GET", "/healthz")
    except OSError:
        return True
    return False


def test_a_command_speaks_through_a_proxy_that_goes_when_it_does(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.script = lambda _: "hello to you"
    wrapped = Wrapped(tmp_path, OPENAI_BASE_URL=upstream.url)
    done = wrapped.run(sys.executable, "-c", ASK)
    assert done.stdout == f"hello to you start http://127.0.0.1:{wrapped.port}/v1/chat/completions\n"
    assert (done.returncode, done.stderr) == (0, "")
    assert upstream.received[0].headers["Authorization"] == "Bearer sk-x"
    assert is_free(wrapped.port)
    assert "Application startup complete" in wrapped.log


def test_the_requests_of_a_command_belong_to_the_project_that_is_named_for_it(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script = lambda _: "hello to you"
    wrapped = Wrapped(tmp_path, OPENAI_BASE_URL=upstream.url)
    done = wrapped.run(sys.executable, "-c", ASK, project="Ann's shop")
    asked = f"http://127.0.0.1:{wrapped.port}/@Ann%27s%20shop/v1/chat/completions"
    assert (done.stdout, done.stderr) == (f"hello to you start {asked}\n", "")
    assert upstream.received[0].path == "/v1/chat/completions"
    assert "x-palimpsest-scope" not in {name.lower() for name in upstream.received[0].headers}
    assert rows(wrapped.data, "SELECT scope FROM conversation") == [("Ann's shop",)]


@pytest.mark.parametrize(
    ("mark", "project"),
    [("", "shop"), ("gitdir: /src/main-shop/.git/worktrees/shop\n", "main-shop"), (None, "src")],
    ids=["in one", "in a worktree of one", "in none"],
)
def test_a_dot_names_the_repository_in_which_the_command_is_run(tmp_path: Path, mark: str | None, project: str) -> None:
    (here := tmp_path / "shop" / "src").mkdir(parents=True)
    if mark is not None:
        (tmp_path / "shop" / ".git").write_text(mark)
    words = [*PROGRAM, *Wrapped(tmp_path).words("sh", "-c", "echo $OPENAI_BASE_URL", project=".")]
    done = subprocess.run(words, env=Wrapped(tmp_path).env, cwd=here, capture_output=True, text=True, check=False)
    assert done.stdout.endswith(f"/@{project}/v1\n"), done.stderr


@pytest.mark.parametrize(("named", "project"), [(["--scope", "inner"], "inner"), ([], "outer")])
def test_a_command_inside_of_another_has_its_project_unless_it_names_one(
    tmp_path: Path, named: list[str], project: str
) -> None:
    wrapped = Wrapped(tmp_path)
    inner = [*PROGRAM, "wrap", *named, "--", "sh", "-c", "echo $OPENAI_BASE_URL $ANTHROPIC_BASE_URL"]
    root = f"http://127.0.0.1:{wrapped.port}/@{project}"
    assert wrapped.run(*inner, project="outer").stdout == f"{root}/v1 {root}\n"


def test_the_project_that_the_users_own_address_names_stays(tmp_path: Path) -> None:
    wrapped = Wrapped(tmp_path)
    wrapped.env["OPENAI_BASE_URL"] = f"http://127.0.0.1:{wrapped.port}/@shop/v1"
    done = wrapped.run("sh", "-c", "echo $OPENAI_BASE_URL")
    assert done.stdout == f"http://127.0.0.1:{wrapped.port}/@shop/v1\n"


def test_an_address_of_a_provider_names_no_project(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    wrapped = Wrapped(tmp_path, OPENAI_BASE_URL=f"{upstream.url.removesuffix('/v1')}/@account/v1")
    done = wrapped.run("sh", "-c", "echo $OPENAI_BASE_URL")
    assert done.stdout == f"http://127.0.0.1:{wrapped.port}/v1\n"


@pytest.mark.parametrize("name", [" ", "two\nlines", "x" * 201])
def test_a_project_without_a_name_that_can_be_stored_is_refused(tmp_path: Path, name: str) -> None:
    done = Wrapped(tmp_path).run("true", project=name)
    assert done.returncode == 2 and "--scope must be a name" in done.stderr


def test_a_folder_without_a_name_is_said_to_have_none(tmp_path: Path) -> None:
    done = palimpsest("wrap", "--scope", ".", "--data", str(tmp_path), "--", "true", cwd=Path("/"))
    assert done.returncode == 2 and "this folder has none" in done.stderr


def test_standard_input_and_exit_status_are_the_commands(tmp_path: Path) -> None:
    done = Wrapped(tmp_path).run("sh", "-c", "cat; echo oops >&2; exit 7", stdin="a line")
    assert (done.stdout, done.stderr, done.returncode) == ("a line", "oops\n", 7)


def test_a_running_proxy_is_used_and_left_alone(own_proxy: Proxy, upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.script = lambda _: "hello to you"
    wrapped = Wrapped(tmp_path, PALIMPSEST_UPSTREAM=own_proxy.upstream_url)
    with own_proxy:
        wrapped.port, wrapped.data = own_proxy.port, own_proxy.data
        done = wrapped.run(sys.executable, "-c", ASK)
        assert done.stdout.endswith(f":{own_proxy.port}/v1/chat/completions\n")
        assert own_proxy.get("/healthz").status == 200
        assert own_proxy.metric("palimpsest_requests_total") == 1
    assert not (wrapped.data / "wrap.log").exists()


@pytest.mark.parametrize("token", ["", "t0ken-t0ken-t0ken"])
def test_a_running_proxy_of_the_same_folder_is_used_with_the_upstream_that_it_was_given(
    own_proxy: Proxy, upstream: ScriptedUpstream, tmp_path: Path, token: str
) -> None:
    upstream.script = lambda _: "hello to you"
    own_proxy.env["PALIMPSEST_ADMIN_TOKEN"] = token
    with own_proxy:
        wrapped = Wrapped(tmp_path, PALIMPSEST_ADMIN_TOKEN=token)
        wrapped.port, wrapped.data = own_proxy.port, own_proxy.data
        done = wrapped.run(sys.executable, "-c", ASK)
        assert done.stdout.endswith(f":{own_proxy.port}/v1/chat/completions\n")
        assert f"using the proxy that runs at http://127.0.0.1:{own_proxy.port}" in done.stderr
        wrapped.data = tmp_path / "another folder"
        done = wrapped.run("sh", "-c", "echo $OPENAI_BASE_URL")
        assert f":{own_proxy.port}/" not in done.stdout and "to use that one" in done.stderr
        wrapped.data, wrapped.env["PALIMPSEST_UPSTREAM"] = own_proxy.data, "http://127.0.0.1:1/v1"
        done = wrapped.run("sh", "-c", "echo $OPENAI_BASE_URL")
        assert f":{own_proxy.port}/" not in done.stdout, "who names another provider gets it"


def test_where_another_program_listens_the_proxy_stands_elsewhere(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.script = lambda _: "hello to you"
    wrapped = Wrapped(tmp_path, OPENAI_BASE_URL=upstream.url)
    with socket.create_server(("127.0.0.1", wrapped.port)) as other:
        other.listen()
        done = wrapped.run(sys.executable, "-c", ASK)
    assert done.stdout.startswith("hello to you start ")
    assert f":{wrapped.port}/" not in done.stdout
    assert f"http://127.0.0.1:{wrapped.port} is taken: another program; this command uses http" in done.stderr


def test_an_address_that_nobody_answers_at_may_be_taken_all_the_same(tmp_path: Path) -> None:
    wrapped = Wrapped(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", wrapped.port))
        done = wrapped.run("sh", "-c", "echo $OPENAI_BASE_URL")
    assert done.stdout.startswith("http://127.0.0.1:") and f":{wrapped.port}/" not in done.stdout
    assert "is taken: address already in use" in done.stderr


def test_an_address_that_this_machine_has_not_is_refused(tmp_path: Path) -> None:
    done = Wrapped(tmp_path, PALIMPSEST_HOST="192.0.2.1").run("true")
    assert done.returncode == 2
    assert done.stderr.startswith("palimpsest: listen.host: 192.0.2.1: cannot listen there: ")


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_the_command(tmp_path: Path, sign: signal.Signals) -> None:
    wrapped = Wrapped(tmp_path)
    said = "import signal, sys, time\nsignal.signal(signal.%s, lambda *_: sys.exit(5))\nprint('up', flush=True)"
    with wrapped.start(sys.executable, "-c", f"{said % sign.name}\ntime.sleep({PATIENCE_SECONDS})") as running:
        assert running.stdout is not None and running.stdout.readline() == "up\n"
        running.send_signal(sign)
        assert running.wait(PATIENCE_SECONDS) == 5
    assert is_free(wrapped.port)


def test_a_signal_before_the_command_runs_ends_what_was_begun(tmp_path: Path) -> None:
    wrapped = Wrapped(tmp_path)
    with wrapped.start("sleep", str(PATIENCE_SECONDS)) as running:
        until((wrapped.data / "wrap.log").exists, "the proxy to be started")
        running.terminate()
        assert running.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
    assert is_free(wrapped.port)


def test_a_command_that_a_signal_ends_has_the_status_that_shells_give_it(tmp_path: Path) -> None:
    assert Wrapped(tmp_path).run("sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_the_proxy_of_a_wrap_that_was_killed_goes_too(tmp_path: Path) -> None:
    wrapped = Wrapped(tmp_path)
    with wrapped.start("sh", "-c", "echo up; read line") as running:
        assert running.stdout is not None and running.stdout.readline() == "up\n"
        running.kill()
    until(lambda: is_free(wrapped.port), "the proxy to notice that its wrap is gone")


def test_the_terminal_is_the_commands(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    wrapped = Wrapped(tmp_path)
    look = "import os, sys\nsys.exit(0 if os.isatty(0) and os.isatty(1) and os.tcgetpgrp(0) == os.getpgrp() else 1)"
    on_a_terminal = f"import os, sys\nos.login_tty({theirs})\nos.execvp(sys.argv[1], sys.argv[1:])"
    running = subprocess.Popen(
        [sys.executable, "-c", on_a_terminal, *PROGRAM, *wrapped.words(sys.executable, "-c", look)],
        env=wrapped.env,
        cwd=ROOT,
        pass_fds=[theirs],
    )
    os.close(theirs)
    assert running.wait(PATIENCE_SECONDS) == 0
    os.close(ours)


@pytest.mark.parametrize(("name", "status"), [("no-such-command", 127), ("./README.md", 126)])
def test_a_command_that_is_none_starts_nothing(tmp_path: Path, name: str, status: int) -> None:
    wrapped = Wrapped(tmp_path)
    done = wrapped.run(name)
    assert done.returncode == status
    assert done.stderr.startswith(f"palimpsest: {name}: ")
    assert not wrapped.data.exists()


def test_a_proxy_that_does_not_start_says_why(tmp_path: Path) -> None:
    wrapped = Wrapped(tmp_path, PALIMPSEST_SECRET="short")
    done = wrapped.run("true")
    assert done.returncode == 1
    assert "it exited: palimpsest: PALIMPSEST_SECRET: is too short" in done.stderr


def test_a_wrapped_shell_needs_no_second_proxy(tmp_path: Path) -> None:
    wrapped = Wrapped(tmp_path)
    inner = [*PROGRAM, *wrapped.words("sh", "-c", "echo $OPENAI_BASE_URL")]
    assert wrapped.run(*inner).stdout == f"http://127.0.0.1:{wrapped.port}/v1\n"
    assert wrapped.log.count("Started server process") == 1


def test_a_client_that_reads_no_variable_gets_arguments(tmp_path: Path) -> None:
    client = tmp_path / "codex"
    client.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    client.chmod(0o755)
    wrapped = Wrapped(tmp_path)
    done = wrapped.run(str(client), "exec", "hi")
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert said[-2:] == ["exec", "hi"]
    assert f'base_url="http://127.0.0.1:{wrapped.port}/v1"' in said[3]


@pytest.mark.parametrize("where", ["in a wrapped shell", "beside a running proxy"])
def test_codex_has_the_proxy_compact_that_serves_it_whatever_its_own_settings_say(
    own_proxy: Proxy, tmp_path: Path, where: str
) -> None:
    client = tmp_path / "codex"
    client.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    client.chmod(0o755)
    answering = {"PALIMPSEST_MEMORY__COMPACTION": "answer"}
    wrapped = Wrapped(tmp_path, OPENAI_BASE_URL="http://127.0.0.1:1/v1")
    if where == "in a wrapped shell":
        inner = " ".join([*PROGRAM, *wrapped.words(str(client))])
        wrapped.env |= answering
        done = wrapped.run("sh", "-c", f"unset {' '.join(answering)}; {inner}")
    else:
        own_proxy.env |= answering
        with own_proxy:
            wrapped.port, wrapped.data = own_proxy.port, own_proxy.data
            wrapped.env["PALIMPSEST_UPSTREAM"] = own_proxy.upstream_url
            done = wrapped.run(str(client))
    assert 'model_providers.palimpsest={name="OpenAI", ' in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("variables", "login", "credential"),
    [
        ({}, None, "requires_openai_auth=true"),
        ({"OPENAI_API_KEY": "sk-x"}, None, 'env_key="OPENAI_API_KEY"'),
        ({"OPENAI_API_KEY": "sk-x"}, ".codex/auth.json", "requires_openai_auth=true"),
        ({"OPENAI_API_KEY": "sk-x", "CODEX_HOME": "elsewhere"}, "elsewhere/auth.json", "requires_openai_auth=true"),
    ],
    ids=["nothing", "key", "key and login", "key and login elsewhere"],
)
def test_codex_uses_its_login_and_without_one_the_key(
    tmp_path: Path, variables: dict[str, str], login: str | None, credential: str
) -> None:
    environment = {"HOME": str(tmp_path)} | variables
    if "CODEX_HOME" in variables:
        environment["CODEX_HOME"] = str(tmp_path / "elsewhere")
    if login:
        (tmp_path / login).parent.mkdir()
        (tmp_path / login).write_text("{}")
    *_, provider = arguments(read_yaml(shipped("wrap.yaml")), "codex", URL, environment)
    assert provider.endswith(f', wire_api="responses", {credential}}}')


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        (Policy(), "OpenAI"),
        (with_own_upstreams(Policy(), {"OPENAI_BASE_URL": "https://api.openai.com/v1"}), "OpenAI"),
        (with_own_upstreams(Policy(), {"OPENAI_BASE_URL": "http://one/v1"}), "Palimpsest"),
        (Policy.model_validate({"upstreams": [{"name": "a"}, {"name": "b", "url": "http://b"}]}), "Palimpsest"),
        (Policy.model_validate({"upstreams": [{"litellm": "openai/*"}]}), "Palimpsest"),
        (Policy.model_validate({"upstreams": [{"url": "http://b"}], "memory": {"compaction": "answer"}}), "OpenAI"),
        (None, "Palimpsest"),
    ],
    ids=["default", "OpenAI by a variable", "another", "one of two", "LiteLLM", "the proxy compacts", "not known"],
)
def test_codex_has_the_provider_compact_only_where_openai_itself_or_the_proxy_answers(
    policy: Policy | None, name: str
) -> None:
    *_, provider = arguments(read_yaml(shipped("wrap.yaml")), "codex", URL, {}, policy)
    assert provider.startswith(f'model_providers.palimpsest={{name="{name}", ')


@pytest.mark.parametrize(
    ("login", "is_told"),
    [('{"tokens": {"access_token": "a.b.c"}}', True), ('{"OPENAI_API_KEY": "sk-x"}', False), ("{", False)],
    ids=["account", "key", "unreadable"],
)
def test_who_is_logged_in_with_an_account_is_told_how_to_be_remembered(
    tmp_path: Path, login: str, is_told: bool
) -> None:
    (tmp_path / "auth.json").write_text(login)
    (tmp_path / "codex").symlink_to("/bin/true")
    wrapped = Wrapped(tmp_path, CODEX_HOME=str(tmp_path))
    done = wrapped.run(str(tmp_path / "codex"))
    assert done.returncode == 0
    assert ("palimpsest wrap --config personal -- codex" in done.stderr) is is_told
    wrapped.env["PALIMPSEST_TENANTS__STATIC"] = "me"
    assert wrapped.run(str(tmp_path / "codex")).stderr == ""


def test_an_address_of_the_users_takes_no_logins_of_openais() -> None:
    elsewhere = with_own_upstreams(Policy(), {"OPENAI_BASE_URL": "http://one/v1"})
    assert [upstream.logins for upstream in elsewhere.upstreams] == [{}, {}]


def test_a_command_that_reads_variables_gets_no_arguments() -> None:
    assert arguments(read_yaml(shipped("wrap.yaml")), "claude", URL, {}) == []


# --- what is set ---------------------------------------------------------------------------------


def set_for(environment: Mapping[str, str]) -> dict[str, str]:
    table: Json = read_yaml(shipped("wrap.yaml"))
    return variables(table["variables"], URL, environment)


def test_openai_addresses_end_in_v1_and_anthropic_ones_do_not() -> None:
    given = set_for({})
    assert {given[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE")} == {f"{URL}/v1"}
    assert {given[name] for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE")} == {URL}
    urls = orjson.loads(given["OPENCODE_CONFIG_CONTENT"])["provider"]
    assert {name: one["options"]["baseURL"] for name, one in urls.items()} == {
        "openai": f"{URL}/v1",
        "anthropic": f"{URL}/v1",
    }


def test_an_address_of_the_users_is_replaced_and_his_configuration_is_not() -> None:
    given = set_for({"OPENAI_BASE_URL": "http://provider/v1", "OPENCODE_CONFIG_CONTENT": "{}", "NO_PROXY": "intranet"})
    assert given["OPENAI_BASE_URL"] == f"{URL}/v1"
    assert "OPENCODE_CONFIG_CONTENT" not in given
    assert (given["NO_PROXY"], given["no_proxy"]) == ("intranet,127.0.0.1", "intranet,127.0.0.1")


def test_the_users_own_addresses_become_the_upstreams() -> None:
    own = {"OPENAI_BASE_URL": "http://one/v1beta/openai/", "ANTHROPIC_BASE_URL": "https://two/anthropic"}
    urls = {u.wire: u.url for u in with_own_upstreams(Policy(), own).upstreams}
    assert urls == {"openai": "http://one/v1beta/openai", "anthropic": "https://two/anthropic"}


def test_upstreams_that_were_chosen_are_kept_and_the_proxy_is_never_its_own() -> None:
    chosen = Policy.model_validate({"upstreams": [{"url": "http://chosen"}]})
    assert with_own_upstreams(chosen, {"OPENAI_BASE_URL": "http://one/v1"}) == chosen
    own = {"OPENAI_BASE_URL": "http://127.0.0.1:8484/v1", "ANTHROPIC_BASE_URL": "http://127.0.0.1:8484"}
    assert with_own_upstreams(Policy(), own) == Policy()


@pytest.mark.parametrize("url", ["http://one/openai", "one/v1", "http://me:secret@one/v1"])
def test_an_address_that_cannot_be_forwarded_to_is_refused(url: str) -> None:
    with pytest.raises(PolicyError, match="environment: OPENAI_BASE_URL: must ") as refused:
        with_own_upstreams(Policy(), {"OPENAI_BASE_URL": url})
    assert "secret" not in str(refused.value)
