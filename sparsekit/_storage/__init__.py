"""Files that the package writes: whole or not at all, and arrays behind a header."""
