"""
Overflow: which old messages stay behind when a conversation is longer than its model's window, and how the rest reads.
"""
