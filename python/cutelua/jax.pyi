from typing import Any


def call(f: Any, *arrays: Any, result: Any = ..., **options: Any) -> Any: ...
