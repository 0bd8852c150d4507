"""
Writers of memory without a model: what is kept of a conversation within a budget of tokens, by rule.
"""
