"""What was said to the proxies that wrote the databases of this folder (`scripts/old_databases.py`)."""

from __future__ import annotations

from palimpsest.domain import Json

SECRET = "the secret of the databases of earlier versions"
KEY = "sk-of-an-earlier-version"  # no credential of any provider
SYSTEM = {"role": "system", "content": "You look after an orchard and its archive."}


def answer(body: Json) -> str:
    return f"Noted, with {len(body['messages'])} messages in front of it: {body['messages'][-1]['content'][-60:]}"


def _answered(messages: list[Json]) -> list[Json]:
    return [*messages, {"role": "assistant", "content": answer({"messages": messages})}]


def _user(text: str) -> Json:
    return {"role": "user", "content": text}


def _dialogue() -> list[list[Json]]:
    """The message lists of all requests: a conversation that grows, is edited, loses its beginning; and another."""
    said = [
        "The quince beside the northern wall is called Wilhelmina and was grafted in the spring of 1987.",
        "The medlar is called Bartholomew; its rootstock has the number QX-4417.",
        "The key of the cider cellar hangs behind the third barrel from the left.",
        "Wasps nest in the old pear tree, so nobody climbs it before the first frost.",
    ]
    requests: list[list[Json]] = []
    history: list[Json] = [SYSTEM]
    for text in said:
        history = [*history, _user(text)]
        requests.append(history)
        history = _answered(history)
    edited = [*history[:-2], _user("Hornets nest in the old pear tree, so nobody climbs it at all.")]
    requests.append(edited)
    cut = [SYSTEM, *_answered(edited)[5:], _user("What is the number of the rootstock of the medlar Bartholomew?")]
    requests.append(cut)
    other = [SYSTEM, _user("In the greenhouse we keep lemons named after composers: Buxtehude bears fruit first.")]
    requests.append(other)
    requests.append([*_answered(other), _user("And which of the lemons bears fruit last? I think it is Telemann.")])
    return requests


DIALOGUE = _dialogue()
