"""Which requests ask again for what was said."""

from __future__ import annotations

import pytest
from palimpsest.core.recall.asking_back import MOST_CHARS, asks_back


@pytest.mark.parametrize(
    "text",
    [
        "the stretch you told me about, for how long?",
        "Which of the two hotels did you recommend?",
        "what did we decide about the logo",
        "Who was it that you'd picked as the villain?",
        "remind me which port that was",
        "how do I start the dev server again?",
        "Can you give me the list again please",
        "what was that word",
        "who was it who rang about the boiler, call her back",
        "until when did we say the hall is ours",
        "how many guests are coming again?",
        "Wie hieß noch mal der Maler?",
        "Welches Öl hattest du für die Kette empfohlen?",
        "Du hast mir doch einen Titel vorgeschlagen, welchen?",
        "Le titre que tu avais proposé ?",
        "Rappelle-moi la dose",
        "¿Qué vino me recomendaste?",
        "Recuérdame el nombre del plan",
        "Che titolo mi avevi proposto?",
        "Ricordami la dose",
        "Qual foi o vinho que você recomendou?",
        "Welke wijn had je ook alweer aangeraden?",
    ],
)
def test_a_request_for_what_was_said_asks_back(text: str) -> None:
    assert asks_back(text)


@pytest.mark.parametrize(
    "text",
    [
        "What is a window function?",
        "Did you know that owls turn their heads?",
        "Please try again?",
        "Write the test again, with a fixture.",
        "What you just said is wrong.",
        "Remind me to call the dentist on Friday.",
        "How was it like to live in Rome?",
        "could you put all of it in one file",
        "Who wrote Hamlet?",
        "Read the file again",
        "repeat it for each ticket",
        "How can I make my sister love me again?",
        "remind me when the oven is done",
        "How did you say 'hello' in Japanese?",
        "As you said, it works. Now write the tests.",
        "I was told you gave up on Python",
        "Did you write the file?",
        "Die Wiederholungsrate soll 5 sein",
        "Was kostet das nochmal",
        "c'était qui Napoléon ?",
        "Warum ist der Himmel blau?",
        "Que dit la loi sur les pourboires ?",
        "¿Cuándo se dice buenas tardes?",
        f"{'log line ' * (MOST_CHARS // 8)}what was that?",
    ],
)
def test_other_requests_do_not(text: str) -> None:
    assert not asks_back(text)
