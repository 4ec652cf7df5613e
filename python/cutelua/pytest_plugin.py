"""Options of pytest: --cutelua-checked runs all tests under all checks, and
--cutelua-findings FILE also writes what the checks found.

A test is also checked if it has the mark `cutelua_checked`, whose keywords are
the options of cutelua.checked.
"""
import os
import tempfile

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("cutelua")
    group.addoption("--cutelua-checked", action="store_true",
                    help="run each launch of cutelua under all checks")
    group.addoption("--cutelua-findings", metavar="FILE",
                    help="as --cutelua-checked, and write the findings to "
                    "FILE: SARIF if it ends in .sarif, else the record that "
                    "`cutelua ci --add` reads")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "cutelua_checked(seconds, orders): run each launch of "
        "cutelua under all checks")
    parallel = getattr(config.option, "numprocesses", None)
    if config.getoption("--cutelua-findings") and parallel:
        raise pytest.UsageError("--cutelua-findings: the tests must run in "
                                "one process, without -n")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    mark = item.get_closest_marker("cutelua_checked")
    collects = bool(item.config.getoption("--cutelua-findings"))
    if not (mark or collects or item.config.getoption("--cutelua-checked")):
        yield
        return
    from .check import checked
    options = {"seconds": 10.0, **(mark.kwargs if mark else {})}
    guard = checked(mend=collects or None, **options)
    guard.__enter__()
    outcome = yield
    failed = outcome.excinfo
    try:
        guard.__exit__(failed and failed[0], None, None)
    except AssertionError as e:
        outcome.force_exception(e)
    if collects and failed:
        add_error(failed[1])


def add_error(error):
    """Adds an error of a script that ended a test to the findings."""
    from ._core import Error, default
    if not isinstance(error, Error):
        return
    place = (error.file, error.line) if error.file and error.line else ()
    default()._run("add_error", error.text, *place)


def pytest_sessionfinish(session, exitstatus):
    path = session.config.getoption("--cutelua-findings")
    if not path:
        return
    from ._core import default
    form = "sarif" if path.endswith(".sarif") else "json"
    text = default()._run("findings", form, int(exitstatus), os.getcwd())
    # Write a temporary file and rename it, so a failure keeps the old file.
    folder = os.path.dirname(os.path.abspath(path))
    number, aside = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise
