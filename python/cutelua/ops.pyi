from typing import Any


class Operation:
    name: str
    def __call__(self, *args: Any, **options: Any) -> Any: ...


def __getattr__(name: str) -> Operation: ...
