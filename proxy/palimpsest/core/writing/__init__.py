"""
Writers of memory without a model: what is kept of a conversation within a budget of tokens, by rule.

    writers        all of them, by name
    epc            questions that may be asked, and the least evidence of each (WhenLoss)
    lightmem3      compression, topics, two buffers, one summary a topic (LightMem, "lightweight and efficient")
    compact_items  a few short items after each turn (LightMem, "small language models")
    grounding      the span check: whether a text says nothing but what was said
    clauses cues   what they quote: clauses, and the answers that stand in them
    information    what a word tells, by the tenant's own terms
"""
