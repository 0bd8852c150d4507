"""The record of work: what was done and named in the messages that a compaction took away, told in few words."""
