"""Answers for people: text for a terminal or a pipe, one module a command.

What is computed belongs in ``pipeline/query``; here an answer only gets words, units and columns.
"""
