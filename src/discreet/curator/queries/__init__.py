"""The questions a curator answers, one file each: the question, its proof (``Privacy``) and its sums over records.

Every answer spends from the plan first, then draws its noise, then reads records. ``Curator`` calls these functions
while it holds the session's lock.
"""
