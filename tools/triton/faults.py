"""Faults that compare.py plants in the PTX of kernels.py, one at a time.

The rows are those of seeds.Compiler.
"""
# SPDX-License-Identifier: MIT

BAR = r"\tbar\.sync[^\n]*\n"
RACE = ("race", "async-in-flight")
OUT = ("out-of-bounds",)
DOT = ("tl.dot",)
LOADS = ("tl.load", "tl.dot")
WAIT = r"\tcp\.async\.wait_group[^\n]*\n"

FAULTS = [
    ("softmax_sm80", (3, 1000), "barrier of the maximum removed",
     BAR, (0, 0), "", RACE, ("tl.max", "tl.sum")),
    ("softmax_sm80", (3, 1000), "barrier of the maximum's result removed",
     BAR, (1, 1), "", RACE, ("tl.max", "tl.sum")),
    ("softmax_sm80", (3, 1000), "barrier of the sum removed",
     BAR, (2, 2), "", RACE, ("tl.max", "tl.sum")),
    ("layer_norm_sm80", (3, 1000), "barrier of the mean removed",
     BAR, (0, 0), "", RACE, ("tl.sum",)),
    ("layer_norm_sm90", (3, 1000), "second barrier of the mean removed",
     BAR, (1, 1), "", RACE, ("tl.sum",)),
    ("add_sm80", (1001,), "load far behind the tensor",
     r"%rd1 \+ 4 ", (0, 0), "%rd1 + 8192 ", OUT,
     ("tl.load(x",)),
    ("add_sm90", (1001,), "store far behind the tensor",
     r"%rd3 \+ 0 ", (0, 0), "%rd3 + 4096 ", OUT,
     ("tl.store(out",)),
    ("matmul_sm80", (130, 144, 112), "wait removed",
     WAIT, (0, 0), "", RACE, LOADS),
    ("matmul_sm80", (130, 144, 112), "barrier removed",
     BAR, (0, 0), "", RACE, LOADS),
    ("matmul_sm80", (130, 144, 112), "wait_group 6",
     r"(cp\.async\.wait_group[ \t]+)(\d)", (0, 0),
     r"\g<1>6", RACE, LOADS),
    ("matmul_sm90", (130, 144, 112), "wait removed",
     WAIT, (0, 0), "", RACE, LOADS),
    ("matmul_sm90", (130, 144, 112), "wgmma.wait_group removed",
     r"\twgmma\.wait_group\.sync\.aligned[^\n]*\n", (0, 0), "",
     ("registers", "race"), ("tl.dot", "tl.load")),
    ("matmul_persistent_sm80", (130, 144, 48), "wait removed",
     WAIT, (0, 0), "", RACE, LOADS),
    ("attention_sm80", (1, 100), "wait removed",
     WAIT, (0, 0), "", RACE, ("tl.load", "tl.dot")),
    ("attention_sm90", (1, 100), "barrier removed",
     BAR, (2, 2), "", RACE + ("warp-race",),
     ("tl.store", "acc")),
    ("matmul_host_maps_sm90", (100, 80, 112), "half of the bytes expected",
     r"(expect_tx[^\n]*, )16384", (0, 0),
     r"\g<1>8192", ("mbarrier", "race"), ("load([", "tl.dot")),
    ("matmul_host_maps_sm90", (100, 80, 112), "proxy fence removed",
     r"\tfence\.proxy\.async[^\n]*\n", (0, 0), "", ("race", "async-race"),
     ("c.store",)),
    ("matmul_device_maps_sm90", (100, 80, 112), "fence of the map's copy removed",
     r"\t@%p1 tensormap\.cp_fenceproxy[^\n]*\n", (0, 0), "", None,
     ("make_tensor_descriptor", ".load([")),
    ("matmul_device_maps_sm90", (100, 80, 112), "fence of the map's use removed",
     r"\t@%p1 fence\.proxy\.tensormap[^\n]*\n", (0, 0), "", None,
     ("make_tensor_descriptor", ".load([")),
    ("matmul_warps_sm90", (100, 80, 600), "arrival removed",
     r"\t@%p\d+ mbarrier\.arrive\.shared[^\n]*, 128;\n", (0, 0), "",
     None, ("tl.dot", ".load([", "range(0, K", "def ")),
    ("matmul_warps_sm90", (100, 80, 112), "half of the bytes expected",
     r"(expect_tx[^\n]*, )8192;", (0, 0),
     r"\g<1>4096;", None, (".load([", "tl.dot", "def ", "@triton")),
    ("matmul_warps_sm90", (100, 80, 112), "proxy fence removed",
     r"\tfence\.proxy\.async[^\n]*\n", (0, 0), "", None, ("dc.store",)),
    ("matmul_warps_sm90", (100, 80, 112), "wait for the store removed",
     r"\tcp\.async\.bulk\.wait_group \t0;\n", (0, 0), "", None, ("dc.store",)),
    ("matmul_warps_sm90", (100, 80, 112), "wgmma.wait_group removed",
     r"\twgmma\.wait_group\.sync\.aligned[^\n]*\n", (0, 0), "", None,
     ("tl.dot", ".load([")),
]

