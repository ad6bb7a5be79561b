"""The agent with a model: it reads, searches, edits and runs commands with the turn's tools until it has an answer.

`agent` is what the gateway knows; everything it needs of the model libraries is imported when the first turn runs.
"""
