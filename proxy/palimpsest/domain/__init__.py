"""
Value types that every part shares; each file holds those of one subject.

Plain frozen values, without behaviour beyond derived properties. `palimpsest.domain` gathers all of them.
"""

from palimpsest.domain.archive import (
    TURN_PREFIX,
    Answer,
    AnswerRecord,
    Ending,
    Entry,
    NewMessage,
    ParentListing,
    Passage,
    Quarantined,
    Record,
    ResentTurn,
    Turn,
)
from palimpsest.domain.blocks import (
    BLOCK_CLOSE,
    BLOCK_OPEN,
    COMPACTED_ROLE,
    Added,
    Block,
    BlockKind,
    Budget,
    Compacted,
    StoredBlock,
)
from palimpsest.domain.costs import AssistRole, Cost, Rebuild, Usage
from palimpsest.domain.decisions import Diagnosis, Generosity, Mode, Note, Pressure, Tier
from palimpsest.domain.facts import (
    NO_LONGER,
    NO_LONGER_ANY,
    PROJECT_SUBJECT,
    USER_SUBJECT,
    CurrentFact,
    CurrentFacts,
    Fact,
    FactCategory,
    FactOrigin,
    FactProposal,
    FactQuery,
    FactScope,
    FactSource,
    Stated,
)
from palimpsest.domain.frozen import frozen
from palimpsest.domain.history import (
    Clues,
    Continuation,
    Event,
    Follows,
    Head,
    HeadFlag,
    KnownHistory,
    Lineage,
    Link,
    LinkKind,
    Role,
    Shape,
    Speaker,
)
from palimpsest.domain.memories import (
    Account,
    AccountLine,
    Candidate,
    Item,
    Memory,
    Plan,
    Query,
    Reach,
    Recalled,
    SourceMessage,
    Span,
    Teller,
)
from palimpsest.domain.overflow import Cut, NewCut, Omission, Trim
from palimpsest.domain.persistent_list import PersistentList
from palimpsest.domain.requests import (
    REQUEST_HEADER,
    TOOL_ROLES,
    Api,
    Chat,
    Completion,
    Fingerprint,
    Insertion,
    Json,
    Layout,
    Message,
    ProxyKey,
    RawHeaders,
    ToolCall,
    TooLong,
)
