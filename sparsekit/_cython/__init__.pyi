from typing import Any

# one extension module for each .pyx file
def __getattr__(name: str) -> Any: ...
