"""Counters of what language models used in each role of memory, by day and tenant, shared by all processes."""

from __future__ import annotations

from dataclasses import astuple
from datetime import datetime, timedelta

from palimpsest.domain import AssistRole, frozen
from palimpsest.store.engine import Ask, Transaction

KEPT_DAYS = 90  # a quarter's bill

ADD = """
INSERT INTO assist_usage AS had (day, role, tenant, calls, failures, prompt_tokens, completion_tokens, dollars)
VALUES (?, ?, coalesce((SELECT id FROM tenant WHERE name = ?), 0), ?, ?, ?, ?, ?)
ON CONFLICT (day, role, tenant) DO UPDATE SET
    calls = had.calls + excluded.calls, failures = had.failures + excluded.failures,
    prompt_tokens = had.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = had.completion_tokens + excluded.completion_tokens, dollars = had.dollars + excluded.dollars
"""
SUMS = "sum(calls), sum(failures), sum(prompt_tokens), sum(completion_tokens), sum(dollars)"


@frozen
class AssistUsage:
    """Calls, those of them that failed, and what they used."""

    calls: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: AssistUsage) -> AssistUsage:
        return AssistUsage(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


def usage_of_day(ask: Ask, day: str, role: AssistRole) -> AssistUsage:
    """What all tenants together used in a role on a day."""
    ((calls, *rest),) = ask(f"SELECT {SUMS} FROM assist_usage WHERE day = ? AND role = ?", (day, role))
    return AssistUsage() if calls is None else AssistUsage(calls, *rest)


def newest_use(ask: Ask) -> tuple[str, dict[str, AssistUsage]]:
    """The newest day on which a model was asked, and what each role used on it, by role; "" and none: never."""
    sql = f"""SELECT day, role, {SUMS} FROM assist_usage WHERE day = (SELECT max(day) FROM assist_usage)
        GROUP BY day, role ORDER BY role"""
    rows = ask(sql)
    return (rows[0][0] if rows else ""), {role: AssistUsage(*sums) for _, role, *sums in rows}


def add(transaction: Transaction, day: str, role: AssistRole, tenant: str, usage: AssistUsage) -> None:
    """Add to the usage of a day; negative numbers subtract. Deletes rows older than a quarter."""
    row = (usage.calls, usage.failures, usage.prompt_tokens, usage.completion_tokens, usage.dollars)
    transaction.write(ADD, [(day, role, tenant, *row)])
    oldest = datetime.fromisoformat(day).date() - timedelta(days=KEPT_DAYS)
    transaction.write("DELETE FROM assist_usage WHERE day < ?", [(oldest.isoformat(),)])
