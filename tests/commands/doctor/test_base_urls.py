import socket
from pathlib import Path

from palimpsest.commands.doctor.base_urls import unreachable_urls
from palimpsest.commands.doctor.finding import State

from tests.running import free_port


def test_a_base_url_where_nobody_answers_is_named_with_file_line_and_remedy(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / ".zshrc").write_text(f"\nexport ANTHROPIC_BASE_URL=http://127.0.0.1:{port}\n")
    (found,) = unreachable_urls({"HOME": str(tmp_path)}, tmp_path)
    assert found.state is State.WARNING and f"{tmp_path}/.zshrc:2: ANTHROPIC_BASE_URL" in found.found
    assert f"unwrap --port {port} --yes" in found.advice
    (found,) = unreachable_urls({"HOME": "/nowhere", "OPENAI_BASE_URL": f"http://localhost:{port}/v1"}, tmp_path)
    assert "the environment" in found.found and "unset OPENAI_BASE_URL" in found.advice


def test_one_where_somebody_answers_is_fine_and_so_is_none(tmp_path: Path) -> None:
    assert unreachable_urls({"HOME": str(tmp_path)}, tmp_path)[0].state is State.OK
    with socket.create_server(("127.0.0.1", 0)) as other:
        told = {"HOME": str(tmp_path), "X_BASE_URL": f"http://127.0.0.1:{other.getsockname()[1]}"}
        assert unreachable_urls(told, tmp_path)[0].state is State.OK
