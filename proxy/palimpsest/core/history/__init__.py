"""The history of a conversation: how a request continues what was seen before."""
