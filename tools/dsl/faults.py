"""Faults that compare.py plants in the PTX of kernels.py, one at a time.

Rows: kernel, size, name of the fault, pattern of the PTX, occurrence (from 0),
text in its place, kinds of reports that are right for the first fault, and
texts of lines in kernels.py, one of which the first report must name.
"""
# SPDX-License-Identifier: MIT
import re

FAULTS = []


def plant(text, row):
    """Replaces an occurrence of a row's pattern; raises if there is none."""
    _, _, _, pattern, nth, new = row[:6]
    found = list(re.finditer(pattern, text))
    if nth >= len(found):
        raise ValueError(f"{len(found)} places match {pattern!r}")
    m = found[nth]
    return text[:m.start()] + m.expand(new) + text[m.end():]


def judge(row, report, source):
    """Returns what is wrong with the report of a planted fault, or None."""
    kinds, lines = row[6:]
    heads = re.findall(r"kernels\.py:(\d+): [^\n]*\[([\w-]+)\]", report)
    if not heads:
        return "no report"
    line, kind = heads[0]
    if kind not in kinds:
        return "kind " + kind
    if any(text in source[int(line) - 1] for text in lines):
        return None
    return "line " + line
