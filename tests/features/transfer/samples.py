"""Small files in the forms in which other programs keep conversations, with what is odd about each."""

from __future__ import annotations

from typing import Any

import orjson
from palimpsest.domain import Json

AT = 1_700_000_000.0


def _chatgpt(id: str, parent: str | None, role: str, content: Json, at: float, **more: Any) -> Json:
    author = {"role": role, "name": more.pop("name", None), "metadata": {}}
    message = {"id": id, "author": author, "create_time": at, "content": content, "status": "finished_successfully"}
    message |= {"metadata": more.pop("metadata", {}), "recipient": "all", "weight": 1.0} | more
    return {"id": id, "message": message, "parent": parent, "children": []}


def _said(text: str) -> Json:
    return {"content_type": "text", "parts": [text]}


def chatgpt_conversation(id: str = "g-1") -> Json:
    """An answer made again, a tool that was called, a picture, thoughts, and custom instructions."""
    model = {"model_slug": "gpt-4o"}
    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["sys"]},
        _chatgpt("sys", "root", "system", _said(""), AT, metadata={"is_visually_hidden_from_conversation": True}),
        _chatgpt(
            "profile",
            "sys",
            "user",
            {"content_type": "user_editable_context", "user_profile": "I keep bees.", "user_instructions": "Be brief."},
            AT,
        ),
        _chatgpt("ask", "profile", "user", _said("Which hive did I call Wilhelmina?"), AT + 1),
        _chatgpt("old", "ask", "assistant", _said("I cannot know that."), AT + 2, metadata=model),
        _chatgpt("think", "ask", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}, AT + 3),
        _chatgpt(
            "call",
            "think",
            "assistant",
            {"content_type": "code", "language": "json", "text": '{"query": "Wilhelmina"}'},
            AT + 4,
            recipient="bio.search",
            metadata=model,
        ),
        _chatgpt(
            "result",
            "call",
            "tool",
            {"content_type": "execution_output", "text": "hive seven, by the quince"},
            AT + 5,
            name="bio.search",
        ),
        _chatgpt("new", "result", "assistant", _said("Hive seven, beside the quince tree."), AT + 6, metadata=model),
        _chatgpt(
            "picture",
            "new",
            "user",
            {
                "content_type": "multimodal_text",
                "parts": [{"content_type": "image_asset_pointer", "asset_pointer": "file-service://f-1"}, "And this?"],
            },
            AT + 7,
        ),
        _chatgpt("last", "picture", "assistant", _said("A swarm of drones."), AT + 8, metadata=model),
    ]
    mapping = {node["id"]: node for node in nodes}
    for node in nodes:
        if node["parent"]:
            mapping[node["parent"]]["children"].append(node["id"])
    return {
        "title": "Bees",
        "create_time": AT,
        "update_time": AT + 8,
        "mapping": mapping,
        "current_node": "last",
        "conversation_id": id,
        "id": id,
    }


def claude_conversation(id: str = "a-1", branches: bool = True) -> Json:
    """A tool that the site itself called, an attachment, and a question that was edited."""
    first = "00000000-0000-4000-8000-000000000000"

    def message(uuid: str, parent: str, sender: str, content: list[Json], at: str, **more: Any) -> Json:
        said = {"uuid": uuid, "text": "", "content": content, "sender": sender, "created_at": at, "updated_at": at}
        return said | {"attachments": [], "files": []} | more | ({"parent_message_uuid": parent} if branches else {})

    def text(said: str) -> Json:
        return {"type": "text", "text": said, "start_timestamp": None, "stop_timestamp": None, "citations": []}

    use = {"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": {"query": "mead"}, "message": None}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "name": "web_search", "is_error": False}
    result["content"] = [{"type": "text", "text": "honey and water, six weeks", "uuid": "x"}]
    attached = [
        {"file_name": "cellar.txt", "file_size": 9, "file_type": "txt", "extracted_content": "carboy number 31"}
    ]
    listed = [
        message(
            "m1", first, "human", [text("How do I make mead?")], "2024-05-01T10:00:00.123456Z", attachments=attached
        ),
        message(
            "m2",
            "m1",
            "assistant",
            [
                {"type": "thinking", "thinking": "hm"},
                text("Let me look."),
                use,
                result,
                text("Honey, water, six weeks."),
            ],
            "2024-05-01T10:00:09Z",
        ),
        *([message("m3", "m2", "human", [text("And cyder?")], "2024-05-01T10:01:00Z")] if branches else []),
        message("m4", "m2", "human", [text("And perry?")], "2024-05-01T10:02:00Z"),
        message("m5", "m4", "assistant", [text("Pears, and patience.")], "2024-05-01T10:02:30Z"),
    ]
    return {
        "uuid": id,
        "name": "Mead",
        "created_at": "2024-05-01T10:00:00Z",
        "updated_at": "2024-05-01T10:02:30Z",
        "account": {"uuid": "u"},
        "chat_messages": listed,
    }


def claude_code_lines(session: str = "11111111-2222-4333-8444-555555555555") -> list[Json]:
    """An answer on several lines, a tool, a sub-agent, a compaction, and what the program says of itself."""

    def line(kind: str, uuid: str, parent: str | None, second: int, **more: Any) -> Json:
        at = f"2025-09-01T12:00:{second:02d}.000Z"
        told = {"parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/home/me/apiary"}
        told |= {"sessionId": session, "version": "2.0.1", "gitBranch": "main", "type": kind, "uuid": uuid}
        return told | {"timestamp": at} | more

    def user(content: Any) -> Json:
        return {"message": {"role": "user", "content": content}}

    def model(id: str, *content: Json) -> Json:
        said = {"id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [*content]}
        return {"message": said | {"usage": {"input_tokens": 9}}, "requestId": "req"}

    read = {"type": "tool_use", "id": "toolu_9", "name": "Read", "input": {"file_path": "hives.toml"}}
    done = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "[seven]\nqueen = 'Wilhelmina'"}
    synthetic = model("msg_x", {"type": "text", "text": "API Error"})
    synthetic["message"]["model"] = "<synthetic>"
    return [
        {"type": "file-history-snapshot", "messageId": "s", "snapshot": {}, "sessionId": session},
        line("user", "u0", None, 0, isMeta=True, **user("<local-command-caveat>ignore this</local-command-caveat>")),
        line("user", "u1", "u0", 1, **user("Who is the queen of hive seven?")),
        line("assistant", "a1", "u1", 2, **model("msg_1", {"type": "thinking", "thinking": "hm", "signature": "s"})),
        line("assistant", "a2", "a1", 3, **model("msg_1", {"type": "text", "text": "I will look it up."})),
        line("assistant", "a3", "a2", 4, **model("msg_1", read)),
        line("user", "r1", "a3", 5, **user([done]), toolUseResult={"type": "text"}),
        line("assistant", "a4", "r1", 6, **model("msg_2", {"type": "text", "text": "Wilhelmina is its queen."})),
        line("assistant", "e1", "a4", 7, isApiErrorMessage=True, **synthetic),
        line("user", "s1", None, 8, **user("Count the drones in the northern frames.")) | {"isSidechain": True},
        line("assistant", "s2", "s1", 9, **model("msg_3", {"type": "text", "text": "Four hundred drones."}))
        | {"isSidechain": True},
        line("system", "b1", None, 10, subtype="compact_boundary", logicalParentUuid="e1", compactMetadata={}),
        line("user", "c1", "b1", 11, isCompactSummary=True, **user("This session continues: the queen is Wilhelmina.")),
        line("user", "u2", "c1", 12, **user("Then rename hive seven after her.")),
        line("assistant", "a5", "u2", 13, **model("msg_4", {"type": "text", "text": "Renamed."})),
        {"type": "summary", "summary": "Bees", "leafUuid": "a5"},
    ]


def codex_lines(session: str = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee") -> list[Json]:
    """A tool, a rollback, a compaction, and events that only the program reads."""

    def line(second: int, kind: str, **payload: Any) -> Json:
        return {"timestamp": f"2025-10-01T08:00:{second:02d}.500Z", "type": kind, "payload": payload}

    def said(second: int, role: str, text: str) -> Json:
        kind = "output_text" if role == "assistant" else "input_text"
        return line(second, "response_item", type="message", role=role, content=[{"type": kind, "text": text}])

    return [
        line(0, "session_meta", id=session, cwd="/w", base_instructions={"text": "Be."}),
        line(1, "turn_context", cwd="/w", model="gpt-5.1-codex"),
        said(2, "user", "<environment_context><cwd>/w</cwd></environment_context>"),
        said(3, "user", "Where is the smoker kept?"),
        line(3, "event_msg", type="user_message", message="Where is the smoker kept?"),
        line(4, "response_item", type="reasoning", summary=[], encrypted_content="gAAAA"),
        said(5, "assistant", "Looking."),
        line(6, "response_item", type="function_call", name="shell", arguments='{"cmd": "rg smoker"}', call_id="c1"),
        line(7, "response_item", type="function_call_output", call_id="c1", output="shed.txt: on the third shelf"),
        said(8, "assistant", "On the third shelf of the shed."),
        said(9, "user", "A question that is taken back"),
        said(10, "assistant", "An answer that goes with it"),
        line(11, "event_msg", type="thread_rolled_back", num_turns=1),
        said(12, "user", "And the veil?"),
        said(13, "assistant", "It hangs behind the door."),
        line(14, "compacted", message="", replacement_history=[{"type": "message", "role": "user",
             "content": [{"type": "input_text", "text": "Summary: smoker on the shelf, veil on the door."}]}]),
        said(15, "user", "Order a new veil."),
        said(16, "assistant", "Ordered."),
    ]  # fmt: skip


def lines_of(values: list[Json]) -> bytes:
    return b"".join(orjson.dumps(value) + b"\n" for value in values)
