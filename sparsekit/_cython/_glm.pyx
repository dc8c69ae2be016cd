"""Placeholder."""
def ok():
    return 1
