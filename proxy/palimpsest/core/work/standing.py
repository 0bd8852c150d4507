"""
Statements that hold for all things of a kind: what these need, where they are, which form they have.

"deploy/ needs Jana's sign-off before ...", "commit messages imperative, max 60 chars", "use pnpm, not npm": they say
neither "always" nor "never". Unlike orders and reports they begin with the subject, without an article, and hold no
word of now. A wrong one is worse than one that is missed.
"""

import re

_OPENS = (  # what opens an order for once, or is about no kind of thing
    "the an? that this accept add address all also and at be build but call can catch change check clean complete"
    " consider continue convert create delete do does drop ensure even every explain export finish fix for from get"
    " give go handle implement import improve install its make merge move my need neither no none not of ok okay only"
    " open or our push put read refactor remove rename replace rerun restart review rewrite run search seems set show"
    " since skip so some split start still stop take thanks translate try update upgrade upload use verify we which"
    " with work write yes your"
).replace(" ", "|")
_KIND = rf"(?:our )?(?!(?:{_OPENS}|\w+ing)\b)(?:(?!(?:the|an?|that|this|of|on|if|no|is|are)\b)[\w.+#/<>-]+ ){{0,3}}?"
_AT = "(?:in|as|at|by|on|to|under|with|without|from|through|via|before|after|next to|for)"
_MANY = r"(?:\w+s|copy|code|text|format)"
_CASE = "(?:upper|lower|camel|snake|kebab|pascal|title)[ _-]?case|singular|plural|imperative|(?:past|present) tense"
_FORMS = (
    rf"{_KIND}\w+s (?:must|have to|need|require|use|have|contain|follow|include|match|do not|don't) ",
    rf"{_KIND}\w+s (?:only |never |always )?\w+ {_AT} ",  # unit tests live next to the code
    rf"{_KIND}\w+ (?:uses(?! \d)|needs(?! the)|follows|has to|must|stays?|goes|comes|lives|belongs|ends"
    r"|is (?:\w+ed|kept)) ",
    rf"{_KIND}{_MANY} (?:are|is) (?:not |never |only |always )?[\w`/<.-]+(?:$|[ ,:.])",
    rf"{_KIND}{_MANY} (?:in|as|without|to|under|with) (?!the |this |that |these )"
    r"(?:[^\s:]+ ){0,5}[^\s:?]+(?<!\.\.)(?:, [^,:]{2,40})?$",  # timestamps in UTC
    rf"{_KIND}(?:length|width|size|limit|depth|coverage)(?: is|:)? (?:max\w*|at (?:most|least)) \d+",
    rf"{_KIND}line (?:length|width)(?: is|:)? \d+",
    r"any\w*\b[^,;]{2,60}? (?:needs?|requires?|must|should) ",
    r"(?:every|each|all)\b[^,;]{2,60}? (?:has|have|needs?|requires?|gets?|includes?|go|goes|ends?"
    r"|lives?|belongs?|owns?|must|should|may|in|is (?:frozen|off|read)) ",
    r"only (?:the )?\w+(?: team)? may |[^,;]{2,40}? must (?:\w+ ){1,4}(?:any|every|each|all) ",
    r"[^,;]{2,60}? (?:needs?|requires?) (?:an? )?(?:\w+['\u2019]s? )?[\w -]{2,30}?\b(?:before|first|from|of|by) ",
    r"(?:the|our) [^,;]{2,40}? (?:(?:is|are) (?:only |never )?(?:kept|stored|read-only|frozen)|stays? [\w ]+ until)\b",
    r"no (?!idea|problem|change|need|way|worr|rush|error|tests? )[\w-]+ (?:\w+ )?(?:on|in|across|outside|without) ",
    r"we (?:(?:only|always|never|do not|don't) (?:deploy|ship|release|write|target)"
    r"|(?:only |always |never |do not |don't )?(?:use|support|squash|rebase|pin|prefer|follow|format|name))"
    r" (?!the |that |this |these |an? |next |to |in |if |when |(?:it|them)\b|\d)",
    r"(?:use|prefer) (?!the )[^,;]{2,40}, (?:not|never) (?!the )",
    rf"[^,;:]{{2,60}}?(?:[,:]| are| is|s)? (?:{_CASE})\b(?:,|\.?$)|[^:]{{2,40}}: one (?:sentence|line|word)\b",
    r"[^;]{2,80}?(?:[,:]|\b(?:are|is)) ?(?:max\w*\.?|at most|up to|at least) \w+ (?:char|word|line|col|sent)\w*",
    r"[^;]{2,80}, so (?:no|nothing (?:that|there|here)|only) (?:\w+ ?){1,4}\.?$",
)
_STANDS = re.compile(f"(?:{'|'.join(_FORMS)})", re.IGNORECASE)
_PASSES = re.compile(  # what one tells of now or of once, or of somebody
    r"^(?:I|it|this|that|there|they|s?he|you|looks?|in|if|when|where|why|how|what|let|then|we (?:need|did)|please|last"
    r"|first|next|two|three|lines|\d+)\b|^(?-i:[A-Z][a-z]+) needs\b|\b(?:now|today|yesterday|tonight|tomorrow|currently"
    r"|already|yet|was|were|had|did|at the moment|for once|twice|again|fail(?:s|ed)?|passe[sd]|broken|wrong|green"
    r"|missing|too|empty|gone|fine|ready|stuck|down|sent|took|ran|found|said|got|went|came|made|set|red|stale|slow(?:er)?|late"
    r"|error(?! (?:messages?|codes?|handling|format))|bugs?|minutes|second|below|undefined|(?:is|are) off|flake|die"
    r"|hangs?|crash(?:es)?|complain(?:s|ed)?|from you|\d+ %)\b",
    re.IGNORECASE,
)


def stands(sentence: str) -> bool:
    """Whether a sentence tells what things of a kind need or look like, at its beginning or behind "for later: "."""
    parts = (sentence, sentence.partition(": ")[2])
    return any(_STANDS.match(part) and not _PASSES.search(part) for part in parts)
