"""Every command and every option of it runs, as `python -m palimpsest`, on real data and beside a running proxy."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from palimpsest import __version__
from palimpsest.commands import cli
from palimpsest.memory.embedding.model import locate
from palimpsest.settings.policy import ModelPolicy

from tests.running import PATIENCE_SECONDS, Conversation, Proxy, free_port, until, upstream_on_a_thread

MODEL = "all-MiniLM-L6-v2"
SETTINGS = {
    "tenants": {"static": "me"},
    "memory": {"reach": "tenant"},
    "facts": {"policy": "use"},
    "mcp": {"enabled": True},
    "consolidation": {"writer": "epc"},
    "retention": {"turns": "90d"},
}
HELLO = (
    '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", '
    '"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}\n'
)

Place = tuple[str, str]  # a command with its actions, and an option of it; "" the command itself


@dataclass(frozen=True)
class Run:
    """
    One run: what is typed, with `{names}` of what earlier runs showed; the status; and a pattern of what is shown.

    Args:
        keeps: name under which the pattern's first group is kept.
        stop: the signal that ends a command which does not end by itself, once the pattern is shown.
    """

    words: str
    shows: str
    status: int = 0
    keeps: str = ""
    stdin: str = ""
    stop: signal.Signals | None = None
    env: Mapping[str, str] = field(default_factory=dict)


NOBODY = {"HOME": "{data}", "XDG_CONFIG_HOME": ""}  # somebody without files
HERE = "--config {config} --data {data}"
EVERY_SELECTOR = (
    "--conversation {conversation} --turn {turn} --user ann --scope shop --tenant static:me --older-than 1m --matching "
    "quince"
)

ELSEWHERE = (  # machines that do not answer
    "--server http://127.0.0.1:9 --key-file {key_file}",
    "--server http://192.0.2.1:9 --key sk-test --insecure",
)

BESIDE = "beside a proxy"

# Each chain has a data folder of its own, and runs in its order.
CHAINS: Mapping[str, tuple[Run, ...]] = {
    BESIDE: (
        Run(
            f"doctor --json {HERE} --host 127.0.0.1 --port {{port}} --upstream {{upstream}} --model {MODEL}", '"state"'
        ),
        Run(f"healthcheck --ready {HERE} --host 127.0.0.1 --port {{port}} --upstream {{upstream}}", r"\A\Z"),
        Run(f"stats --json {HERE}", r'"conversations": 1\b'),
        Run(f"stats --watch 0.2 --host 127.0.0.1 --port {{port}} {HERE}", "requests", stop=signal.SIGINT),
        Run(
            f"mcp --url http://127.0.0.1:{{port}} --key-env MY_KEY --user ann --scope shop {HERE}",
            '"serverInfo"',
            stdin=HELLO,
            env={"MY_KEY": "sk-test"},
        ),
        Run(
            f"open {{turn}} --print {HERE} --host 127.0.0.1 --port {{port}} --upstream {{upstream}}",
            r"\Ahttp://127.0.0.1:{port}/memory/turns/{turn}\n\Z",
        ),
        Run(f"disable --tenant static:me --reason 'to try' {HERE}", "memory is off for static:me"),
        Run(f"enable --tenant static:me {HERE}", "memory is on for static:me"),
        Run(
            f"wrap {HERE} --host 127.0.0.1 --port {{free}} --upstream {{upstream}} --model {MODEL} --scope shop -- "
            "sh -c 'echo $OPENAI_BASE_URL'",
            "http://127.0.0.1:{free}/@shop/v1",
        ),
        *(
            Run(
                "wrap --config {config} --data {out}-wrapped --host 127.0.0.1 --port {free} --upstream {upstream} "
                f"--model {MODEL} {where} -- sh -c 'echo $OPENAI_BASE_URL'",
                "http://127.0.0.1:{free}/v1",
            )
            for where in ELSEWHERE
        ),
    ),
    "look": (
        Run(f"stats --cost --by day --limit 3 --json {HERE}", '"day": '),
        Run(
            f"service status {HERE} --host 127.0.0.1 --port {{free}} --upstream {{upstream}}",
            "palimpsest.service: is not there" if sys.platform == "linux" else "",
            status=1,
            env=NOBODY,
        ),
        Run(
            f"unwrap --yes {HERE} --host 127.0.0.1 --port {{free}} --upstream {{upstream}}",
            "no shell file and no client's settings lead to the proxy",
            env=NOBODY,
        ),
        Run("--version", re.escape(__version__)),
        Run("version", re.escape(__version__)),
        Run("check-config {config}", "tenants.static"),
        Run("settings --markdown", "# Settings"),
        Run("openapi", '"openapi"'),
        Run(f"model list {HERE} --model {MODEL}", r"\* +all-MiniLM-L6-v2"),
        Run(f"index --all {HERE} --model {MODEL}", "everything is indexed"),
        Run(
            f"search quince --conversation {{conversation}} --tenant static:me --limit 1 --ask-models --json {HERE} "
            f"--model {MODEL}",
            '"text": .*quince',
        ),
        Run(f"explain {{turn}} {HERE}", "1 of 3 of {conversation}"),
        Run(f"explain {{conversation}} 2 {HERE}", "2 of 3 of {conversation}"),
        Run(
            f"why-not {{conversation}} quince --turn {{conversation}}/2 --json --ask-models {HERE} --model {MODEL}",
            '"archived"',
            status=1,
        ),
        Run(f"gaps --probes 3 --seed 1 --json --ask-models {HERE} --model {MODEL}", r"write_gap|null", status=0),
        Run(f"check --repair --yes {HERE}", "3 turns, .* messages: fine"),
        Run("bench recall --help", "--limit"),
        Run("hook --where claude-code", "plugins/claude-code"),
    ),
    "keys and facts": (
        Run(
            f"key create ann --tenant me --user ann --scope shop --expires 90d --read-only --json {HERE}",
            '"id": "(k-[^"]+)"',
            keeps="key",
        ),
        Run(f"key list --json {HERE}", "{key}"),
        Run(f"key revoke {{key}} --yes --json {HERE}", '"revoked_at"'),
        Run(f"facts rebuild --json {HERE}", '"statements"'),
        Run(
            "facts remember user dog Rex --tenant static:me --user ann --scope shop --category note --pin "
            f"--until 2099-01-01 --json {HERE}",
            '"id": "(f-[^"]+)"',
            keeps="fact",
        ),
        Run(
            "facts --tenant static:me --user ann --scope shop --category note --subject us* --matching rex --history "
            f"--limit 5 --json {HERE}",
            "{fact}",
        ),
        Run(f"facts --conversation {{conversation}} {HERE}", "Lisbon"),
        Run(f"facts unpin {{fact}} --tenant static:me --json {HERE}", "{fact}"),
        Run(f"facts pin {{fact}} --tenant static:me --json {HERE}", "{fact}"),
        Run(f"facts forget {{fact}} --tenant static:me --yes --json {HERE}", '"statements": 1'),
        Run(f"consolidate --dry-run --tenant static:me --user ann --scope shop {HERE}", "there are no items|items"),
        Run(f"consolidate {HERE}", "items were kept of what has been said since"),
        Run(f"consolidate --list --json {HERE}", r'"runs": \[\]'),
        # there is nothing to take back: tests/features/items/test_command.py does
        Run(f"consolidate --undo k-1 --yes {HERE}", "there is no run k-1", status=1),
    ),
    "files and erasures": (
        Run(
            f"export --user ann --scope shop --tenant static:me --conversation {{conversation}} --output {{out}}.jsonl "
            f"{HERE}",
            "3 turns",
        ),
        Run(
            "import {out}.jsonl --user bob --scope home --tenant static:you --config {config} --data {out}-new",
            "3 turns, ",
        ),
        Run(f"backup {{out}}.tar {HERE}", "opened and found intact"),
        Run(f"backup {{out}}-bare.tar --without-secret {HERE}", "does not contain the secret"),
        Run(f"retire --dry-run {EVERY_SELECTOR} {HERE}", r"messages +\d"),
        Run(f"retire --conversation {{conversation}} --yes {HERE}", '"id": "([^"]+)"', keeps="retirement"),
        Run(f"unretire {{retirement}} {HERE}", "{retirement}"),
        Run(f"forget --dry-run {EVERY_SELECTOR} {HERE}", r"messages +\d"),
        Run(f"forget --credentials --dry-run {HERE}", "nothing stored matches", status=1),
        Run(f"retire --credentials --dry-run {HERE}", "nothing in use matches", status=1),
        Run(f"retention --dry-run {HERE}", r"turns +90d +0 due"),
        Run(f"retention --run --yes {HERE}", "0 rows erased"),
        Run(f"vacuum {HERE}", "MB before"),
        Run(f"forget --turn {{conversation}}/1 --vacuum --yes {HERE}", r"(\{[\s\S]*\})", keeps="receipt"),
        Run(f"receipt - {HERE}", "genuine: ", stdin="{receipt}"),
        Run(
            "restore {out}.tar --force --erasures {data}/palimpsest.db --config {config} --data {out}-new",
            "what was there before is in",
        ),
        Run(f"restore {{out}}.tar --force --ignore-erasures {HERE}", "restored as it was"),
        Run(f"migrate --from {{data}} --to {{out}}-moved {HERE}", "the same"),
    ),
    "serving": (
        Run(
            f"serve {HERE} --host 127.0.0.1 --port {{free}} --upstream {{upstream}} --model {MODEL} --workers 1 "
            "--forward-anyway",
            "Application startup complete",
            stop=signal.SIGTERM,
        ),
        *(
            Run(
                "serve --config {config} --data {out}-served --host 127.0.0.1 --port {free} --upstream {upstream} "
                f"--model {MODEL} {where}",
                "Application startup complete",
                stop=signal.SIGTERM,
            )
            for where in ELSEWHERE
        ),
        Run("demo", "helps with a probability"),
        Run("demo --web", "/memory/conversations/c-", stop=signal.SIGINT),
        Run("serve --demo", "helps with a probability"),
    ),
}


def places(parser: argparse.ArgumentParser, path: str = "") -> Iterator[Place]:
    """All that can be typed. What help leaves out, one of our programs tells another: `wrap` runs it."""
    yield path, ""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from places(command, f"{path} {name}".strip())
        elif action.option_strings and action.dest != "help" and action.help != argparse.SUPPRESS:
            yield path, action.option_strings[-1]


def tried(run: Run) -> set[Place]:
    """What a run tries."""
    parser, path, found = cli._parser(())[0], "", {("", "")}
    for word in shlex.split(run.words):
        if word == "--":
            break
        if word.startswith("--"):
            found.add((path, word))
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                parser, path = action.choices[word], f"{path} {word}".strip()
                found.add((path, ""))
                break
    return found


def test_every_command_and_every_option_has_a_run() -> None:
    every = {*places(cli._parser(())[0])}
    runs = set().union(*(tried(run) for chain in CHAINS.values() for run in chain))
    # whoever asks for a benchmark waits minutes for it: tests/evaluation/test_command.py runs them on little
    assert sorted(every - runs - {("key", "")}) == []
    assert {run for run in runs if run[1] not in ("", "--help", "--version")} <= every


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """What a proxy has archived: its folder, its settings, the scripted upstream, a conversation and its first turn."""
    folder = tmp_path_factory.mktemp("stored")
    (key_file := folder / "key").write_text("sk-test\n")
    key_file.chmod(0o600)
    with upstream_on_a_thread() as upstream:
        upstream.script = lambda _question: "Noted."
        with Proxy(folder / "data", upstream.url, SETTINGS) as proxy:
            talk = Conversation(proxy, "sk-test", headers={"x_palimpsest_user": "ann", "x_palimpsest_scope": "shop"})
            first = talk.say("I live in Lisbon, and the quince tree of Anna Belmonte stands in Leith.")
            talk.say("My favourite colour is red.")
            talk.say("My favourite colour is blue.")
            proxy.settle()
        yield {
            "data": str(proxy.data),
            "config": str(proxy.config),
            "upstream": upstream.url,
            "conversation": first.said("conversation"),
            "turn": first.said("turn"),
            "key_file": str(key_file),
        }


@pytest.mark.slow
@pytest.mark.skipif(locate(ModelPolicy()) is None, reason="needs the embedding model: run palimpsest model install")
@pytest.mark.parametrize("chain", CHAINS)
def test_every_run_ends_as_it_should(stored: Mapping[str, str], tmp_path: Path, chain: str) -> None:
    data = tmp_path / "data"
    shutil.copytree(stored["data"], data)
    names = {**stored, "data": str(data), "out": str(tmp_path / "out"), "free": str(free_port())}
    proxy = Proxy(data, stored["upstream"], SETTINGS)
    with proxy if chain == BESIDE else nullcontext():
        failures = _run_all(CHAINS[chain], names | {"port": str(proxy.port)}, tmp_path)
    assert not failures, "\n\n".join(failures)


def _run_all(chain: tuple[Run, ...], names: dict[str, str], folder: Path) -> list[str]:
    """What failed of a chain, in words."""
    failures = []
    for run in chain:
        words = [_filled(word, names) for word in shlex.split(run.words)]
        env = {name: _filled(value, names) for name, value in run.env.items()}
        status, shown = _run(run, words, _filled(run.stdin, names), env, folder)
        pattern = _filled(run.shows, names)
        match = re.search(pattern, shown)
        if status != run.status or match is None:
            failures.append(f"palimpsest {' '.join(words)}: status {status}, and not {pattern!r} in:\n{shown[-2000:]}")
        elif run.keeps:
            names[run.keeps] = match[1]
    return failures


def _filled(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\{([a-z_]+)\}", lambda name: names.get(name[1], name[0]), text)


def _run(run: Run, words: list[str], stdin: str, own: Mapping[str, str], folder: Path) -> tuple[int, str]:
    """The status of the program, and all that it showed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PALIMPSEST_")}
    env = kept | {"PALIMPSEST_MODEL__DOWNLOAD": "never", "COLUMNS": "80"} | dict(own)
    given, shown = folder / "stdin", folder / "shown"
    given.write_text(stdin)
    assert Proxy.fork_server is not None
    with given.open() as source, shown.open("wb") as target:
        started = Proxy.fork_server.start(words, env, (source.fileno(), target.fileno(), target.fileno()))
    if run.stop is not None:
        until(lambda: started.poll() is not None or re.search(run.shows, shown.read_text()), f"{run.shows} to be shown")
        started.send_signal(run.stop)
    return started.wait(PATIENCE_SECONDS), shown.read_text()
