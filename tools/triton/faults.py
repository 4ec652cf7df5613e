"""Faults that compare.py plants in the PTX of kernels.py, one at a time.

Rows: kernel, size, pattern of the PTX, occurrence (from 0), text in its place,
kinds of reports that are right, and patterns of lines in kernels.py, one of
which a report must name. The instruction whose line counts is marked by the
text of its line.
"""
# SPDX-License-Identifier: MIT
import re

BAR = r"\tbar\.sync[^\n]*\n"
RACE = ("race", "async-in-flight")
OUT = ("out-of-bounds",)
DOT = ("tl.dot",)
LOADS = ("tl.load", "tl.dot")
WAIT = r"\tcp\.async\.wait_group[^\n]*\n"

FAULTS = [
    ("softmax_sm80", (3, 1000), BAR, 0, "", RACE, ("tl.max", "tl.sum")),
    ("softmax_sm80", (3, 1000), BAR, 1, "", RACE, ("tl.max", "tl.sum")),
    ("softmax_sm80", (3, 1000), BAR, 2, "", RACE, ("tl.max", "tl.sum")),
    ("layer_norm_sm80", (3, 1000), BAR, 0, "", RACE, ("tl.sum",)),
    ("layer_norm_sm90", (3, 1000), BAR, 1, "", RACE, ("tl.sum",)),
    ("add_sm80", (1001,), r"%rd1 \+ 4 ", 0, "%rd1 + 8192 ", OUT,
     ("tl.load(x",)),
    ("add_sm90", (1001,), r"%rd3 \+ 0 ", 0, "%rd3 + 4096 ", OUT,
     ("tl.store(out",)),
    ("matmul_sm80", (130, 144, 112), WAIT, 0, "", RACE, LOADS),
    ("matmul_sm80", (130, 144, 112), BAR, 0, "", RACE, LOADS),
    ("matmul_sm80", (130, 144, 112), r"(cp\.async\.wait_group[ \t]+)(\d)", 0,
     r"\g<1>6", RACE, LOADS),
    ("matmul_sm90", (130, 144, 112), WAIT, 0, "", RACE, LOADS),
    ("matmul_sm90", (130, 144, 112),
     r"\twgmma\.wait_group\.sync\.aligned[^\n]*\n", 0, "",
     ("registers", "race"), ("tl.dot", "tl.load")),
    ("matmul_persistent_sm80", (130, 144, 48), WAIT, 0, "", RACE, LOADS),
    ("attention_sm80", (1, 100), WAIT, 0, "", RACE, ("tl.load", "tl.dot")),
    ("attention_sm90", (1, 100), BAR, 2, "", RACE + ("warp-race",),
     ("tl.store", "acc")),
    ("matmul_host_maps_sm90", (100, 80, 112), r"(expect_tx[^\n]*, )16384", 0,
     r"\g<1>8192", ("mbarrier", "race"), ("load([", "tl.dot")),
    ("matmul_host_maps_sm90", (100, 80, 112),
     r"\tfence\.proxy\.async[^\n]*\n", 0, "", ("race", "async-race"),
     ("c.store",)),
    ("matmul_device_maps_sm90", (100, 80, 112),
     r"\t@%p1 tensormap\.cp_fenceproxy[^\n]*\n", 0, "", None,
     ("make_tensor_descriptor", ".load([")),
    ("matmul_device_maps_sm90", (100, 80, 112),
     r"\t@%p1 fence\.proxy\.tensormap[^\n]*\n", 0, "", None,
     ("make_tensor_descriptor", ".load([")),
    ("matmul_warps_sm90", (100, 80, 600),
     r"\t@%p\d+ mbarrier\.arrive\.shared[^\n]*, 128;\n", 0, "",
     None, ("tl.dot", ".load([", "range(0, K", "def ")),
    ("matmul_warps_sm90", (100, 80, 112), r"(expect_tx[^\n]*, )8192;", 0,
     r"\g<1>4096;", None, (".load([", "tl.dot", "def ", "@triton")),
    ("matmul_warps_sm90", (100, 80, 112),
     r"\tfence\.proxy\.async[^\n]*\n", 0, "", None, ("dc.store",)),
    ("matmul_warps_sm90", (100, 80, 112),
     r"\tcp\.async\.bulk\.wait_group \t0;\n", 0, "", None, ("dc.store",)),
    ("matmul_warps_sm90", (100, 80, 112),
     r"\twgmma\.wait_group\.sync\.aligned[^\n]*\n", 0, "", None,
     ("tl.dot", ".load([")),
]


def edit(row):
    """Returns a row's title, pattern, first and last occurrence, and text."""
    _, _, pattern, nth, new = row[:5]
    return f"{pattern[:34]!r}", pattern, nth, nth, new


def judge(row, report, source):
    """Returns what is wrong with the report of a planted fault, or None."""
    _, _, _, _, _, kinds, lines = row
    heads = re.findall(r"kernels\.py:(\d+): [^\n]*\[([\w-]+)\]", report)
    if not heads:
        return "no report"
    if kinds and not any(kind in kinds for _, kind in heads):
        return "kind " + heads[0][1]
    for line in re.findall(r"kernels\.py:(\d+)", report):
        if any(text in source[int(line) - 1] for text in lines):
            return None
    return "line " + heads[0][0]
