"""
Words of orders and of what holds from now on, by language, for `core/recall/wishes.py`; folded as `languages` are.

Words that are common in another language of these tables for another thing are left out.
"""

from __future__ import annotations

# Verbs that give an order, in the form that addresses somebody.
ORDERS = {
    "en": "use write answer reply respond give suggest recommend avoid keep stick call speak talk address "
    "explain put ask tell add check convert round list include cite format treat assume prefer remember "
    "let leave skip spell say follow show refer mention propose limit stop quote pronounce bill book run "
    "commit squash test name document translate switch correct point provide pick stay be make start",
    "de": "antworte schreib schreibe benutze benutz verwende nimm gib nenn nenne sag sprich rede frage erklar "
    "erklare schlag empfiehl vermeide halte bleib lass duze sieze rechne zeig achte beantworte formuliere "
    "ubersetze setz",
    "fr": "reponds repondez ecris ecrivez utilise utilisez donne donnez propose proposez evite evitez parle "
    "parlez explique expliquez appelle tutoie vouvoie garde gardez demande demandez mets mettez indique "
    "cite traduis conseille rappelle pense fais faites convertis",
    "es": "responde contesta escribe usa utiliza dame pon ponle ponme propon evita habla explica explicame "
    "llamame manten pregunta preguntame recuerda sugiere recomienda cita traduce trata incluye convierte "
    "indica hablame respondeme contestame escribeme",
    "it": "rispondi rispondimi scrivi scrivimi usa utilizza dammi metti proponi evita parla parlami spiega "
    "spiegami chiamami tieni chiedi chiedimi ricorda ricordati suggerisci consiglia cita traduci includi "
    "converti indica",
    "pt": "responda responde escreva escreve use usa utilize coloque ponha sugira evite fale fala explique "
    "explica chame chama mantenha pergunte lembre recomende cite traduza trate inclua converta indique",
    "nl": "antwoord schrijf gebruik geef noem zeg spreek praat vraag stel vermijd houd hou blijf laat reken "
    "toon zet raad let vertaal maak",
    "pl": "odpowiadaj pisz uzywaj podawaj nazywaj mow pytaj wyjasniaj proponuj polecaj unikaj trzymaj zostaw "
    "pamietaj zwracaj przeliczaj pokazuj dodawaj tlumacz sprawdzaj stosuj",
    "ru": "отвечай отвечайте пиши пишите используй используйте давай предлагай предлагайте называй говори "
    "спрашивай объясняй советуй избегай обращайся обращайтесь помни переводи показывай указывай добавляй "
    "проверяй считай держи делай",
    "tr": "cevap yaz yazin kullan kullanin ver onerme oner soyle konus sor acikla cagir hitap unutma ekle "
    "kontrol cevir goster tut yapma kullanma yazma",
}

# Of these, those that say how to behave: a task for once hardly begins with one.
MANNERS = {
    "en": "answer reply respond stick avoid keep call talk speak address treat assume prefer remember limit "
    "round cite follow respect leave pronounce",
    "de": "antworte sprich rede vermeide halte bleib lass duze sieze achte nenn nenne beantworte",
    "fr": "reponds repondez evite evitez parle parlez appelle tutoie vouvoie garde gardez rappelle",
    "es": "responde contesta evita habla llamame manten recuerda trata hablame respondeme contestame",
    "it": "rispondi rispondimi evita parla parlami chiamami tieni ricorda ricordati",
    "pt": "responda responde evite fale fala chame chama mantenha lembre trate",
    "nl": "antwoord noem spreek praat vermijd houd hou blijf laat reken",
    "pl": "odpowiadaj nazywaj mow unikaj trzymaj pamietaj zwracaj stosuj",
    "ru": "отвечай отвечайте называй говори избегай обращайся обращайтесь помни считай",
    "tr": "cevap konus cagir unutma hitap",
}

# Words that say for how long.
LASTING = {
    "en": "always never whenever unless anytime everytime default",
    "de": "immer nie niemals stets jedes generell grundsatzlich kunftig zukunftig solange",
    "fr": "toujours jamais desormais dorenavant chaque systematiquement",
    "es": "siempre nunca jamas",
    "it": "sempre ogni",
    "pt": "sempre nunca jamais adiante diante",
    "nl": "altijd nooit voortaan telkens steeds",
    "pl": "zawsze nigdy odtad kazdym",
    "ru": "всегда никогда отныне впредь каждый",
    "tr": "asla hicbir artik",
}

# Words that open a condition or say of what an order holds.
CONDITIONS = {
    "en": "when whenever if before after unless for while in on with",
    "de": "wenn falls bevor bei fur sobald in",
    "fr": "quand si lorsque avant pour dans en",
    "es": "cuando si antes para en",
    "it": "quando se prima per nei nelle in",
    "pt": "quando se sempre antes para em nos nas",
    "nl": "als wanneer voordat voor bij in",
    "pl": "gdy kiedy jesli jezeli zanim w przy",
    "ru": "когда если перед в при для",
    "tr": "eger once",
}

# Words that open a clause which forbids, limits or begs.
DENIALS = {
    "en": "dont don't never always no only not nothing please just do",
    "de": "bitte nie niemals immer kein keine keinen nur nicht",
    "fr": "ne n jamais toujours pas merci",
    "es": "no nunca siempre nada solo",
    "it": "non mai sempre niente solo",
    "pt": "nao nunca sempre nada so",
    "nl": "nooit altijd geen niet alleen graag",
    "pl": "nie nigdy zawsze zadnych tylko prosze",
    "ru": "не никогда всегда никаких только пожалуйста",
    "tr": "lutfen asla hicbir her",
}

# Of all languages: before an order, and no part of it.
SOFTENERS = (
    "please also and so then but ok okay just hey btw oh well plus always never do bitte und aber s il te plait vous "
    "por favor per favore y e a i и а пожалуйста prosze lutfen graag alsjeblieft"
)

# As `languages.WISH`, without parts of phrases ("from now on") that stand in any text.
WISH_IN_ENGLISH = "only prefer rather avoid without instead every each keep any anything nothing must no please stick"
