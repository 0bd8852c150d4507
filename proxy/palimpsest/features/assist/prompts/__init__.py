"""
What language models are asked: a file for each question, with its instructions and the schema of its answer.
"""
