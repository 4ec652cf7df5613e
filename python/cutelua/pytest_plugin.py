"""Options of pytest: --cutelua-checked runs all tests under all checks.

A test is also checked if it has the mark `cutelua_checked`, whose keywords are
the options of cutelua.checked.
"""
import pytest


def pytest_addoption(parser):
    group = parser.getgroup("cutelua")
    group.addoption("--cutelua-checked", action="store_true",
                    help="run each launch of cutelua under all checks")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "cutelua_checked(seconds, orders): run each launch of "
        "cutelua under all checks")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    mark = item.get_closest_marker("cutelua_checked")
    if not mark and not item.config.getoption("--cutelua-checked"):
        yield
        return
    from .check import checked
    guard = checked(**(mark.kwargs if mark else {}))
    guard.__enter__()
    outcome = yield
    failed = outcome.excinfo
    try:
        guard.__exit__(failed and failed[0], None, None)
    except AssertionError as e:
        outcome.force_exception(e)
