"""
The running proxy against its own OpenAPI document, by schemathesis: statuses, bodies and content types as declared.

Examples are made from the document, some as it allows and some as it does not; the same ones every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from sqlite3 import connect
from typing import Any

import orjson
import psycopg
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from palimpsest.edge.admin.openapi import document
from palimpsest.edge.admin.routes import all_operations
from palimpsest.evaluation.scripted import ScriptedUpstream
from palimpsest.features.registry import OPERATIONS
from palimpsest.store.data_dir import DATABASE_FILE
from palimpsest.wire.envelope import MEDIA_TYPE
from schemathesis import Case, GenerationMode, SerializationContext
from schemathesis.checks import CHECKS, load_all_checks

from tests.running import Conversation, Proxy, request, until, upstream_on_a_thread
from tests.servers import ADMIN

pytestmark = pytest.mark.slow

EXAMPLES = 8  # of each operation, as declared and as not declared: all of them in twenty seconds
TOKEN = {"Authorization": "Bearer t0ken"}
JSON = {"Content-Type": "application/json"}
ENVIRONMENT = {"PALIMPSEST_ADMIN_TOKEN": "t0ken", "PALIMPSEST_FACTS__POLICY": "suggest"}

DOCUMENT = document(all_operations(OPERATIONS))
for shape in DOCUMENT["components"]["schemas"].values():
    shape.setdefault("additionalProperties", False)  # nothing is answered that is not described
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations()]
# What changes something comes last: until then there is something to be shown.
OPERATIONS.sort(key=lambda operation: operation.method.upper() != "GET")
SHOWING = [operation for operation in OPERATIONS if operation.method.upper() == "GET"]

load_all_checks()
CONFORMANCE = CHECKS.get_by_names(
    [
        *("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"),
        *("response_headers_conformance", "negative_data_rejection", "positive_data_acceptance", "ignored_auth"),
        *("missing_required_header", "unsupported_method", "allow_header_conformance"),
    ]
)


def shown(proxy: Proxy, path: str) -> Any:
    return request(proxy.port, "GET", f"/memory/v1/{path}", headers=TOKEN).json


RUN = """
INSERT INTO item(id, tenant, conversation, writer, text, question, topic, said_at, created_at, used_at)
    SELECT 1, tenant, id, 'epc/1', 'Clara lives in Porto.', '', '', 0, 0, 0 FROM conversation LIMIT 1;
INSERT INTO item_source(tenant, item, occurrence, start, stop)
    SELECT min(item.tenant), 1, min(occurrence.id), 0, 9
    FROM item JOIN occurrence ON occurrence.conversation = item.conversation;
INSERT INTO consolidation(id, key, tenant, at) SELECT 1, 'k-1', tenant, 0 FROM item;
INSERT INTO consolidation_step(tenant, run, item, heir, what, why, at)
    SELECT tenant, 1, 1, 0, 'related', '1 relations', 0 FROM item;
"""

# Something must be named, in one of several ways; of a fact whose it is, and a day that is to come; and bodies that
# are no JSON have a form of their own.
LENIENT = {
    f"{method} /memory/v1/{name}": ["positive_data_acceptance"]
    for method, name in [
        ("POST", "forget"),
        ("POST", "retire"),
        ("POST", "facts"),
        ("POST", "link/{turn}"),
        ("PUT", "link/{turn}"),
    ]
}


@schemathesis.serializer(MEDIA_TYPE)
def any_bytes(_context: SerializationContext, told: Any) -> bytes:
    return told if isinstance(told, bytes) else str(told).encode(errors="replace")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A running proxy with conversations, one of them compacted; by parameter, values that mean something there."""
    upstream = ScriptedUpstream(lambda body: f"Noted: {body['messages'][-1]['content'][:40]}")
    data = tmp_path_factory.mktemp("conformance") / "data"
    with upstream_on_a_thread(upstream), Proxy(data, upstream.url, **ENVIRONMENT) as proxy:
        talk = Conversation(proxy, "sk-a", headers={"x-palimpsest-user": "ann", "x-palimpsest-scope": "site"})
        for text in ("The staging database listens on port 7431.", "Clara lives in Porto.", "Thanks.", "Go on."):
            talk.say(text)
        talk.keep_last(2, "They talked.")
        turn = talk.say("Which port did we choose for the staging database?")
        assert turn.said("recalled") not in ("", "0")
        Conversation(proxy, "sk-b").say("Hello from another tenant.")
        until(lambda: len(shown(proxy, "tenants")["tenants"]) == 2, "both to be stored")
        tenant = shown(proxy, f"turns/{turn.said('turn')}")["tenant"]
        fact = {"tenant": tenant, "subject": "project", "slot": "port", "value": "7431"}
        told = request(proxy.port, "POST", "/memory/v1/facts", orjson.dumps(fact), {**TOKEN, **JSON})
        if data in Proxy.databases:
            with psycopg.connect(Proxy.databases[data], user=ADMIN) as server:
                server.execute(RUN)
        else:
            with closing(connect(data / DATABASE_FILE)) as database, database:
                database.executescript(RUN)
        yield {
            "fact": told.json["id"],
            "run": "k-1",
            "url": f"http://127.0.0.1:{proxy.port}",
            "conversation": turn.said("conversation"),
            "turn": turn.said("turn"),
            "number": "newest",
            "q": "which port?",
            "memory": 1,
            "user": "ann",
            "tenant": tenant,
        }


@pytest.mark.parametrize("operation", SHOWING, ids=lambda operation: operation.label)
def test_what_is_there_is_shown_as_the_document_says(known: dict[str, Any], operation: Any) -> None:
    named = [part["name"] for part in operation.definition.raw["parameters"]]
    path = {name: known[name] for name in named if "{" + name + "}" in operation.path}
    query = {name: known[name] for name in named if name in ("q", "tenant")}
    case = operation.Case(path_parameters=path, query=query)
    assert case.call_and_validate(known["url"], headers=TOKEN, checks=CONFORMANCE).status_code == 200


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_answers_are_as_the_document_says(known: dict[str, Any], operation: Any, mode: GenerationMode) -> None:
    @given(case=operation.as_strategy(generation_mode=mode), is_known=st.booleans())
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Case, is_known: bool) -> None:
        if is_known and mode is GenerationMode.POSITIVE:
            case.path_parameters = {name: known.get(name, value) for name, value in case.path_parameters.items()}
            case.query = {name: known.get(name, value) for name, value in case.query.items()}
        if mode is GenerationMode.POSITIVE:
            case.query = {name: value for name, value in case.query.items() if name != "cursor"}  # only the proxy's own
            if case.operation.path.endswith("/search"):
                case.query["tenant"] = known["tenant"]  # required where several are stored
        checks = [check for check in CONFORMANCE if check.__name__ not in LENIENT.get(case.operation.label, ())]
        case.call_and_validate(known["url"], headers=TOKEN, checks=checks)

    check()
