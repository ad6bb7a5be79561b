"""Chat platforms behind one contract."""
