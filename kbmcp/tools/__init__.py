"""The tools: their arguments, how a call is carried out on a branch, and what it answers.

Each module that is called like a tool carries that one out; the others are what they share.
"""
