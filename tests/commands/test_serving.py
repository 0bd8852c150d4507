import os
import signal
import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest
from palimpsest.commands.cli import main
from palimpsest.evaluation.scripted import Reply, ScriptedUpstream

from tests.running import HAND_OVER, PATIENCE_SECONDS, ROOT, Conversation, Proxy, request, rows, until

pytestmark = pytest.mark.slow


def journalled(proxy: Proxy, turns: int) -> bool:
    return rows(proxy.data, "SELECT count(*) FROM turn WHERE ending = 'complete'") == [(turns,)]


def test_a_stop_is_no_failure_and_leaves_folder_and_secret_to_their_owner(own_proxy: Proxy) -> None:
    own_proxy.start()
    assert own_proxy.stop() == 0
    assert stat.S_IMODE((own_proxy.data / "secret").stat().st_mode) == 0o600


def test_an_answer_carries_the_upstreams_headers_and_none_of_the_servers(
    proxy: Proxy, upstream: ScriptedUpstream, conversation: Conversation
) -> None:
    headers = conversation.say("hello").headers
    assert "uvicorn" not in str(headers)
    assert request(proxy.port, "GET", "/healthz").headers.keys().isdisjoint({"server", "date"})


def test_the_log_names_the_address_and_holds_no_words_of_a_conversation(
    own_proxy: Proxy, upstream: ScriptedUpstream
) -> None:
    with own_proxy:
        own_proxy.chat({"model": "m", "messages": [{"role": "user", "content": "a secret zebrafish"}]}, key="sk-quagga")
        own_proxy.get("/v1/files?after=okapi")
    said = own_proxy.log.read_text()
    assert f"port={own_proxy.port}" in said
    for word in ("zebrafish", "quagga", "okapi", "Traceback"):
        assert word not in said


def test_the_start_says_where_everything_goes_and_what_clients_are_to_be_told(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    plain = {"name": "plain", "models": ["gpt-*", "o1"], "wire": "openai", "url": upstream.url}
    bridged = {"name": "bridged", "litellm": "ollama_chat/*", "url": "http://localhost:11434"}
    with Proxy(tmp_path / "data", "", {"upstreams": [plain, bridged], "memory": {"mode": "off"}}) as proxy:
        said = proxy.log.read_text()
    assert f"folder={proxy.data}" in said
    assert f"requests of OpenAI's API for gpt-*, o1 go to {upstream.url}" in said
    assert "requests go to ollama_chat/* through LiteLLM, at http://localhost:11434" in said
    assert f"export OPENAI_BASE_URL={proxy.url}\n" in said
    assert f"export ANTHROPIC_BASE_URL={proxy.url.removesuffix('/v1')}\n" in said


def test_several_workers_share_policy_database_and_metrics(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    upstream.script = lambda body: f"I have read all {len(body['messages'])} messages and will keep them in mind."
    proxy = Proxy(tmp_path / "data", upstream.url, {"listen": {"workers": 2}, "memory": {"off_for_models": ["o1"]}})
    with proxy:
        talk, conversations = Conversation(proxy, "sk-one"), set()
        for turn in range(1, 9):
            conversations.add(talk.say(f"question {turn}").said("conversation"))
            until(partial(journalled, proxy, turn), "the answer to be journalled")
        assert len(conversations) == 1
        assert {proxy.chat(talk.body() | {"model": "o1"}).said("note") for _ in range(8)} == {"off"}
        assert proxy.metric("palimpsest_requests_total", event="append") == 7
        assert proxy.stop() == 0


def test_a_stop_says_not_ready_first_and_lets_answers_end_and_be_journalled(
    tmp_path: Path, upstream: ScriptedUpstream
) -> None:
    upstream.script = lambda _body: Reply("A long answer that goes on while the proxy is being stopped.", lockstep=True)
    settings = {"listen": {"drain_seconds": 120}}  # longer than the test, which ends it
    with Proxy(tmp_path / "data", upstream.url, settings) as proxy, ThreadPoolExecutor(1) as aside:
        assert main(["healthcheck", "--ready", "--port", str(proxy.port)]) == 0
        talk = Conversation(proxy, "sk-drained", extra={"stream": True})
        answered = aside.submit(talk.say, "Tell me everything.")
        until(lambda: upstream.received, "the request to arrive")
        assert proxy.process is not None
        proxy.process.terminate()
        until(lambda: proxy.get("/readyz").status == 503, "readiness to end while requests are taken")
        assert "the proxy is stopping" in proxy.ready()["reasons"][0]
        assert main(["healthcheck", "--ready", "--port", str(proxy.port)]) == 1
        assert main(["healthcheck", "--port", str(proxy.port)]) == 0
        proxy.process.send_signal(signal.SIGINT)
        until(lambda: not accepts(proxy.port), "the proxy to stop listening")
        assert not answered.done()
        upstream.permit(1000)
        assert answered.result().text == "A long answer that goes on while the proxy is being stopped."
        assert proxy.process.wait(PATIENCE_SECONDS) == 0
    assert journalled(proxy, 1)


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path / "data", "", {"listen": {"workers": 2}, "memory": {"mode": "off"}}).start()
    proxy.kill()
    until(lambda: not accepts(proxy.port), "the workers to end")
    with proxy:
        assert proxy.stop() == 0


def test_a_worker_that_dies_while_it_is_asked_how_it_is_does_not_hold_up_the_others(tmp_path: Path) -> None:
    with Proxy(tmp_path / "data", "", {"listen": {"workers": 2}, "memory": {"mode": "off"}}) as proxy:
        assert proxy.process is not None
        supervisor = psutil.Process(proxy.process.pid)
        until(lambda: proxy.log.read_text().count("startup complete") == 2, "both workers to serve")
        worker = next(child for child in supervisor.children() if "spawn_main" in str(child.cmdline()))
        worker.suspend()
        time.sleep(1.5)  # by now it has been asked, and 30 s would be waited for an answer
        worker.kill()
        started = time.monotonic()
        until(lambda: worker.pid not in {child.pid for child in supervisor.children()}, "the worker to be replaced")
        assert time.monotonic() - started < 15


def test_a_socket_that_is_handed_over_is_served_and_outlives_the_process(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as aside:
        proxy = Proxy(tmp_path / "data", "", {"listen": {"port": 1}, "memory": {"mode": "off"}})
        proxy.hands_over = listening
        with proxy:
            port = proxy.port
            assert f"export OPENAI_BASE_URL=http://127.0.0.1:{port}/v1" in proxy.log.read_text()
        asked = aside.submit(request, port, "GET", "/healthz")  # waits for the next process
        with proxy:
            assert asked.result().status == 200


@pytest.mark.parametrize(("count", "said"), [("2", "hand over one socket"), ("1", "not an internet socket")])
def test_what_is_handed_over_and_cannot_be_served_stops_the_start(tmp_path: Path, count: str, said: str) -> None:
    hand_over = HAND_OVER.replace("LISTEN_FDS='1'", f"LISTEN_FDS='{count}'")
    command = [
        sys.executable,
        "-c",
        hand_over,
        "1",
        sys.executable,
        "-m",
        "palimpsest",
        "serve",
        "--data",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert said in done.stderr


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def test_port_0_takes_a_free_one_and_the_log_names_it(tmp_path: Path) -> None:
    env = os.environ | {"PALIMPSEST_MODEL__DOWNLOAD": "never", "PALIMPSEST_LOG__FORMAT": "json"}
    command = [sys.executable, "-m", "palimpsest", "serve", "--port", "0", "--data", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "running on" in line)
        port = int(line.partition("http://127.0.0.1:")[2].partition('"')[0].partition(" ")[0].rstrip("/"))
        assert request(port, "GET", "/healthz").status == 200
        process.terminate()
        process.stderr.read()
    assert process.returncode == 0


def test_an_upstream_that_is_the_proxy_itself_stops_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "palimpsest", "serve", "--port", port, "--data", str(tmp_path / "data")]
    command += ["--upstream", f"http://localhost:{port}/v1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"http://localhost:{port}/v1 is the proxy's own address" in done.stderr


def test_a_token_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "palimpsest", "serve", "--port", "0", "--data", str(tmp_path / "data")],
        cwd=ROOT,
        env=os.environ | {"PALIMPSEST_ADMIN_TOKEN_FILE": str(tmp_path / "nowhere")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "PALIMPSEST_ADMIN_TOKEN_FILE: cannot read" in done.stderr
