"""The shared store: where things lie, how objects, refs, indexes, ledgers and journals are kept."""
