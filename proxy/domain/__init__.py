"""
Value types that every part shares; each file holds those of one subject.

Plain frozen values, without behaviour beyond derived properties. `proxy.domain` gathers all of them.
"""

from proxy.domain.archive import (
    TURN_PREFIX,
    Answer,
    Bare,
    Ending,
    Entry,
    Heard,
    NewMessage,
    Passage,
    Record,
    SetAside,
    Turn,
    Whole,
)
from proxy.domain.assist import ASSIST_ROLES, AssistRole
from proxy.domain.blocks import BLOCK_CLOSE, BLOCK_OPEN, Added, Block, BlockKind, Budget, StoredBlock
from proxy.domain.decisions import Diagnosis, Generosity, Mode, Note, Pressure, Tier
from proxy.domain.facts import (
    PROJECT_SUBJECT,
    USER_SUBJECT,
    Fact,
    FactCategory,
    FactOrigin,
    FactProposal,
    FactScope,
    FactSource,
    ToldFact,
)
from proxy.domain.growing import Growing
from proxy.domain.history import (
    Clues,
    Continuation,
    Event,
    Follows,
    Head,
    HeadFlag,
    Lineage,
    Link,
    LinkKind,
    Role,
    Seen,
    Shape,
    Speaker,
)
from proxy.domain.items import Item, SourceMessage, Span
from proxy.domain.keys import ProxyKey
from proxy.domain.memories import Candidate, Memory, Plan, Query, Reach, Recalled, Teller
from proxy.domain.requests import (
    REQUEST_HEADER,
    Chat,
    Completion,
    Fingerprint,
    Insertion,
    Json,
    Layout,
    Message,
    RawHeaders,
    ToolCall,
    TooLong,
)
from proxy.domain.standing import FactQuery, StandingFact, StandingFacts, Stated
