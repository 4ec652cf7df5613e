"""Runs launches on the simulator under all checks."""
import functools

from ._core import default


class CheckFailed(AssertionError):
    """A check found a fault, or could not cover every schedule."""


class checked:
    """See cutelua.checked."""

    def __init__(self, **options):
        self.options = {k: v for k, v in options.items() if v is not None}

    def __enter__(self):
        default()._run("watch", self.options)
        return self

    def __exit__(self, kind, value, trace):
        found = default()._run("watch") or []
        if found and kind is None:
            raise CheckFailed("\n".join(found))

    def __call__(self, f):
        @functools.wraps(f)
        def run(*args, **options):
            with self:
                return f(*args, **options)
        return run
