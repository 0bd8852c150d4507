"""`palimpsest facts`: list the facts of messages and programs, add, pin or forget one, extract all again."""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.table import Table

from palimpsest.console import terminal
from palimpsest.console.arguments import DONE, FAILED, Command, action_of, policy_flags, quiet_policy, yes_flag
from palimpsest.core.facts.endings import is_denial
from palimpsest.domain import Fact, FactCategory
from palimpsest.domain.days import day_of, seconds_of
from palimpsest.domain.errors import PolicyError
from palimpsest.domain.facts import by_tool
from palimpsest.domain.frozen import json_value

if TYPE_CHECKING:
    from palimpsest.console.offline import Commands
    from palimpsest.features.facts.service import Facts

LISTED = 50  # two screenfuls
LOOK_SECONDS = 0.5  # between looks while a running proxy extracts the rest
TOOL = "palimpsest facts"  # that a fact was told with
_DAY = re.compile(r"\d{4}-\d\d-\d\d")

Work = Callable[["Commands"], Coroutine[Any, Any, int]]


def add_commands(command: Command) -> None:
    parser = command("facts", _list, "List facts that messages state or programs added; add, pin or forget one.")
    _owner_flags(parser)
    parser.add_argument("--conversation", default="", metavar="ID", help="only facts stated in this conversation")
    parser.add_argument("--category", choices=[*FactCategory], help="only this kind")
    parser.add_argument(
        "--subject", default="", metavar="PATTERN", help="only facts about matching subjects; * matches anything"
    )
    parser.add_argument(
        "--matching", default="", metavar="PATTERN", help="only facts that contain this; * matches anything"
    )
    parser.add_argument(
        "--history", action="store_true", help="include superseded facts and facts that are not valid now"
    )
    parser.add_argument("--limit", type=int, default=LISTED, metavar="N", help=f"the newest ({LISTED})")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    policy_flags(parser)
    action = action_of(parser, is_required=False)
    remember = action("remember", _remember, "Add a fact; it supersedes the slot's former value.")
    remember.add_argument("subject", metavar="SUBJECT", help="what it is about: user, project, a name")
    remember.add_argument("slot", metavar="SLOT", help="which of its properties: port, 'home town'")
    remember.add_argument("value", metavar="VALUE", help="what that is")
    _owner_flags(remember)
    remember.add_argument("--category", choices=[*FactCategory], default=FactCategory.NOTE, help="its kind (note)")
    remember.add_argument("--until", metavar="DAY", help="until when it holds: 2026-12-24, or with a time")
    remember.add_argument("--pin", action="store_true", help="list it before all others")

    def of_one(name: str, run: object, about: str) -> argparse.ArgumentParser:
        added = action(name, run, about)
        added.add_argument("id", metavar="ID", help="as listed by palimpsest facts")
        added.add_argument("--tenant", metavar="T", help="tenant, if several have a fact with this id")
        return added

    forget = of_one(
        "forget",
        _forget,
        "Forget a fact for good. The messages that state it stay, and it is not extracted from them again.",
    )
    yes_flag(forget)
    of_one("pin", partial(_pin, is_pinned=True), "List a fact before all others.")
    of_one("unpin", partial(_pin, is_pinned=False), "Undo a pin.")
    action("rebuild", _rebuild, "Extract the facts of all messages again; facts added by hand stay.")


def _owner_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenant", metavar="T", help="whose, where several are stored")
    parser.add_argument("--user", default="", metavar="U", help="of this user")
    parser.add_argument("--scope", default="", metavar="S", help="of this project")


def _list(given: argparse.Namespace) -> int:
    from palimpsest.features.facts.service import filter_of

    if given.limit < 1:
        raise PolicyError("--limit: must be at least 1")

    async def work(commands: Commands) -> int:
        found = await _facts(commands).list_facts(filter_of(given), given.limit + 1)
        page = found[: given.limit]
        if given.json:
            return terminal.print_json({"facts": [json_value(fact) for fact in page]})
        if not page:
            _print_aside(f"no facts{'' if commands.policy.facts.is_on else '; facts.policy is off'}")
            return DONE
        terminal.console().print(_table(page, is_long=given.history))
        if len(found) > len(page):
            _print_aside(f"these are the newest {given.limit}; --limit shows more")
        return DONE

    return _run(given, work)


def _remember(given: argparse.Namespace) -> int:
    from palimpsest.features.facts.service import new_fact

    until = _time(given.until) if given.until else None

    async def work(commands: Commands) -> int:
        tenant = await commands.only_tenant(given.tenant)
        new = new_fact(given, tenant, by_tool(TOOL, who="operator"), until, given.pin)
        fact = await _facts(commands).add(new)
        if given.json:
            return terminal.print_json(json_value(fact))
        terminal.console().print(terminal.safe(f"{fact.id}  {_fact_text(fact)}"))
        return DONE

    return _run(given, work)


def _forget(given: argparse.Namespace) -> int:
    async def work(commands: Commands) -> int:
        if (fact := await _find(commands, given)) is None:
            return FAILED
        _print_aside(_fact_text(fact))
        if not terminal.is_confirmed(given, "facts forget", "This cannot be undone. Type yes to forget it: "):
            _print_aside("nothing was forgotten")
            return FAILED
        statements = await _facts(commands).forget(fact.tenant, fact.id)
        if given.json:
            return terminal.print_json({"id": fact.id, "statements": statements})
        times = "" if statements == 1 else f", stated {statements} times"
        terminal.console().print(terminal.safe(f"forgotten: {_fact_text(fact)}{times}"))
        if fact.source.conversation:
            _print_aside(f"its message stays; palimpsest forget --turn {fact.source.turn} erases that turn")
        return DONE

    return _run(given, work)


def _pin(given: argparse.Namespace, is_pinned: bool) -> int:
    async def work(commands: Commands) -> int:
        if (fact := await _find(commands, given)) is None:
            return FAILED
        await _facts(commands).pin(fact.tenant, fact.id, is_pinned)
        if given.json:
            return terminal.print_json(json_value(await _facts(commands).by_id(fact.tenant, fact.id) or fact))
        terminal.console().print(terminal.safe(f"{'pinned' if is_pinned else 'no longer pinned'}: {_fact_text(fact)}"))
        return DONE

    return _run(given, work)


def _rebuild(given: argparse.Namespace) -> int:
    async def work(commands: Commands) -> int:
        statements = await _extract_anew(commands)
        if given.json:
            return terminal.print_json({"statements": statements})
        counts = ", ".join(f"{count:,} {category}" for category, count in statements.items()) or "none"
        terminal.console().print(f"{sum(statements.values()):,} statements: {counts}")
        return DONE

    return _run(given, work)


def _run(given: argparse.Namespace, work: Work) -> int:
    from palimpsest.console import offline

    return offline.run(quiet_policy(given), work)


def _facts(commands: Commands) -> Facts:
    from palimpsest.features.facts.service import Facts

    return Facts.of(commands.archive)


async def _find(commands: Commands, given: argparse.Namespace) -> Fact | None:
    """The fact that an argument names; None, and a message, where there is none."""
    fact = await _facts(commands).by_id_of_any_tenant(given.id, given.tenant or "")
    if fact is None:
        _print_aside(f"there is no fact {given.id}; palimpsest facts --history lists them all")
    return fact


def _time(text: str) -> float:
    """Unix seconds of a day's end, or of a time; UTC unless it says."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise PolicyError("--until: must be a day such as 2026-12-24, or a time such as 2026-12-24T18:00") from None
    return seconds_of(at) + 86_400 * bool(_DAY.fullmatch(text))


def _table(facts: list[Fact], is_long: bool) -> Table:
    """Facts as a table; columns of tenant and user only where they differ."""
    has_users = any(fact.user or fact.scope for fact in facts)
    has_tenants = len({fact.tenant for fact in facts}) > 1
    names = [*(["tenant"] if has_tenants else []), *(["of"] if has_users else [])]
    table = Table("id", *names, "what", "value", "category", "said", "state", box=None, padding=(0, 2, 0, 0))
    for fact in facts:
        whose = [*([fact.tenant] if has_tenants else []), *([f"{fact.user}/{fact.scope}"] if has_users else [])]
        row = (
            *whose,
            f"{fact.subject}: {fact.slot}",
            fact.value,
            fact.category.value,
            day_of(fact.said_at),
            _state(fact),
        )
        table.add_row(fact.id, *map(terminal.safe, row))
    return table


def _state(fact: Fact) -> str:
    parts = [
        *(["pinned"] if fact.is_pinned else []),
        *([f"said {fact.repeats} times"] if fact.repeats > 1 else []),
        *([f"added by {fact.source.who or fact.source.tool}"] if fact.source.tool else []),
        *([f"until {day_of(fact.valid_until - 1)}"] if fact.valid_until is not None else []),
        *([f"now {fact.superseded_by}"] if fact.superseded_by else []),
        *(["not valid"] if not (fact.is_current or fact.superseded_by or is_denial(fact.slot)) else []),
    ]
    return ", ".join(parts)


def _fact_text(fact: Fact) -> str:
    return f"{fact.subject}: {fact.slot} = {fact.value}"


def _print_aside(text: str) -> None:
    terminal.console(is_aside=True).print(terminal.safe(text))


async def _extract_anew(commands: Commands) -> dict[str, int]:
    """Extract the facts of all messages anew, together with proxies that run; statements by category."""
    from palimpsest.features.facts.extraction import FactExtraction
    from palimpsest.store.knowledge.fact_extraction import oldest_waiting_at
    from palimpsest.store.knowledge.facts import count_by_category

    if not commands.policy.facts.is_on:
        raise PolicyError("facts.policy is off: set it to suggest or use to extract facts")
    extraction = FactExtraction.of(commands.archive)
    await _facts(commands).start_over()
    while await commands.database.ask(oldest_waiting_at):
        if not await extraction.extract_batch():
            await asyncio.sleep(LOOK_SECONDS)  # the rest is a running proxy's, or a dead one's until its lease ends
    return await commands.database.ask(count_by_category)
