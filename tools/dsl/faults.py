"""Faults that compare.py plants in the PTX of its kernels, one at a time.

The rows are those of seeds.Compiler. The DSL unrolls loops, so that a line of
the source has several places in the PTX.
"""
# SPDX-License-Identifier: MIT

ALL = (0, None)
FIRST = (0, 0)
WAIT = r"\tmbarrier\.try_wait[^\n]*\n\t@P1 bra"
RACE = ("race", "async-in-flight", "async-race", "uninitialised")
ORDER = RACE + ("mbarrier", "deadlock")
TENSOR = ("tensor-memory",)
NVFP4 = (200, 100, 1056)
COMMIT = r"\ttcgen05\.commit[^\n]*\n"
MMA100 = ("cute.gemm", "consumer_", "producer_", "cute.copy(", "sums.", "loads.")
BAR = r"\tbar\.sync[^\n]*\n"
LOADS = ("cute.copy(plain", "load_k.", "cute.copy(trans", "load_v.", "load_q.",
         "cute.copy(copy")
RELU80, FLASH = (130, 136, 160), (1, 130, 200)
GEMM80, GEMM90 = (130, 70, 160), (200, 100, 320, 2)

FAULTS = [
    ("add", (127,), "bound one too high", r"setp\.ge\.s32", FIRST,
     "setp.gt.s32", ("out-of-bounds",), ("x[i] + y[i]",)),
    ("row_sum", (5, 77), "barrier removed", r"\tbar\.sync[^\n]*\n", FIRST, "",
     RACE, ("part[",)),
    ("gemm80", GEMM80, "wait_group 2 instead of 1",
     r"(cp\.async\.wait_group[ \t]+)1", FIRST, r"\g<1>2", RACE,
     ("cute.copy(load_", "cute.copy(copy")),
    ("gemm80", GEMM80, "wait_group removed", r"\tcp\.async\.wait_group[^\n]*\n",
     FIRST, "", RACE, ("cute.copy(load_", "cute.copy(copy")),
    ("gemm80", GEMM80, "barrier of the loop removed", r"\tbar\.sync[^\n]*\n",
     FIRST, "", RACE, ("cute.copy(load_", "cute.copy(copy")),
    ("gemm80", GEMM80, "commit_group removed", r"\tcp\.async\.commit_group;\n",
     (2, 2), "", RACE, ("cute.copy(load_", "cute.copy(copy")),
    ("gemm90", GEMM90, "consumer's wait removed", WAIT, (10, None), "\tbra",
     ORDER, ("cute.gemm", "cute.copy(atom_")),
    ("gemm90", GEMM90, "producer's wait removed", WAIT, (0, 6), "\tbra",
     ORDER, ("cute.gemm", "cute.copy(atom_", "producer_")),
    ("gemm90", GEMM90, "expect_tx halved", r"24576;", ALL, "12288;",
     ORDER, ("producer_", "cute.copy(atom_", "consumer_wait")),
    ("gemm90", GEMM90, "7 arrivals instead of 8", r"(mov\.b32 \t%r97, )8;",
     FIRST, r"\g<1>7;", ORDER, ("PipelineTmaAsync.create", "consumer_release")),
    ("gemm90", GEMM90, "release removed",
     r"\tmbarrier\.arrive\.shared\.b64 [^\n]*\n", ALL, "", ORDER,
     ("consumer_release", "producer_acquire", "PipelineTmaAsync.create")),
    ("gemm90", GEMM90, "fence of the mbarriers removed",
     r"fence\.mbarrier_init\.release\.cluster;", FIRST, "", ORDER,
     ("PipelineTmaAsync.create", "cute.copy(atom_", "producer_")),
    ("gemm90", GEMM90, "barrier behind init removed", r"\tbar\.sync[^\n]*\n",
     FIRST, "", ORDER, ("PipelineTmaAsync.create", "producer_", "consumer_")),
    ("gemm90", GEMM90, "wgmma.wait_group 1",
     r"(wgmma\.wait_group\.sync\.aligned[ \t]+)0", ALL, r"\g<1>1",
     RACE + ("in-flight",), ("tc[i] = acc[i]", "cute.copy(atom_", "cute.gemm")),
    ("gemm90", GEMM90, "registers over the pool",
     r"(setmaxnreg\.inc[^\n]*\t)232", FIRST, r"\g<1>248",
     ("registers", "deadlock"), ("setmaxregister_",)),
    ("blend", (1000,), "bound one vector too high", r"setp\.le\.s32", FIRST,
     "setp.lt.s32", ("out-of-bounds",), ("cute.autovec_copy",)),
    ("rms_norm", (3, 1000), "barrier removed", BAR, FIRST, "", RACE,
     ("part[",)),
    ("gemm80_relu", RELU80, "barrier after the product removed", BAR,
     (1, 1), "", RACE, ("tsc[i] =", "cute.copy(load_", "product80(")),
    ("gemm80_relu", RELU80, "barrier before the stores removed", BAR,
     (2, 2), "", RACE, ("tsc[i] =", "cute.autovec_copy", "local_tile(sc")),
    ("smooth", (1000, 3), "bound of the second kernel one too high",
     r"setp\.ge\.s32", (1, 1), "setp.gt.s32", ("out-of-bounds",),
     ("out[i] =", "x[i]")),
    ("flash80", FLASH, "wait_group 2 instead of 1",
     r"(cp\.async\.wait_group[ \t]+)1", FIRST, r"\g<1>2", RACE, LOADS),
    ("flash80", FLASH, "wait removed", r"\tcp\.async\.wait_group[^\n]*\n",
     FIRST, "", RACE, LOADS),
    ("flash80", FLASH, "barrier before the products removed", BAR, FIRST, "",
     RACE, LOADS),
    ("flash80", FLASH, "barrier after the products removed", BAR, (1, 1), "",
     RACE, LOADS),
    ("flash80", FLASH, "commit removed", r"\tcp\.async\.commit_group;\n",
     (1, 1), "", RACE, LOADS),
    ("flash90", FLASH, "half of the bytes expected", r"16384;", ALL, "8192;",
     ORDER, ("producer_", "cute.copy(atom_", "consumer_wait")),
    ("flash90", FLASH, "release removed",
     r"\tmbarrier\.arrive\.shared\.b64 [^\n]*\n", ALL, "", ORDER,
     ("consumer_release", "producer_", "PipelineTmaAsync.create")),
    ("flash90", FLASH, "fence of the mbarriers removed",
     r"fence\.mbarrier_init\.release\.cluster;", ALL, "", ORDER,
     ("PipelineTmaAsync.create", "cute.copy(atom_", "producer_")),
    ("flash90", FLASH, "wait_group of the scores 1",
     r"(wgmma\.wait_group\.sync\.aligned[ \t]+)0", FIRST, r"\g<1>1",
     RACE + ("in-flight",), ("online_softmax", "s[(c, r)", "cute.gemm")),
    ("flash90", FLASH, "wait_group of the output 1",
     r"(wgmma\.wait_group\.sync\.aligned[ \t]+)0", (1, 1), r"\g<1>1",
     RACE + ("in-flight",), ("o[(c, r)", "cute.copy(atom_", "cute.gemm",
                             "as_operand", "s.load()")),
    ("gemm100", (200, 100, 136), "commit of the sums removed",
     COMMIT, (3, 3), "", ORDER + TENSOR, MMA100),
    ("gemm100", (200, 100, 320), "commits of the stages removed",
     COMMIT, (0, 2), "", ORDER + TENSOR, MMA100),
    ("gemm100", (200, 100, 136), "half of the bytes expected", r"24576;", ALL,
     "12288;", ORDER, MMA100),
    ("gemm100", (200, 100, 136), "half of the columns", r"(%r52, )64;", FIRST,
     r"\g<1>32;", TENSOR, MMA100 + ("memory.",)),
    ("gemm100", (200, 100, 136), "columns not freed",
     r"\ttcgen05\.dealloc[^\n]*\n", FIRST, "", TENSOR, ("memory.",)),
    ("gemm100", (200, 100, 136), "barrier before the columns are freed removed",
     r"\tbar\.sync[ \t]+1;\n", FIRST,
     "", ORDER + TENSOR, ("memory.", "cute.copy(load")),
    ("gemm100_nvfp4", NVFP4, "factors of A not copied",
     r"\ttcgen05\.cp[^\n]*\n", FIRST, "", TENSOR + ("uninitialised",), MMA100),
    ("gemm100_nvfp4", NVFP4, "factors of B copied to the columns of A",
     r"(tcgen05\.cp\.[^\n]*\[)%r13", FIRST, r"\g<1>%r12", TENSOR
     + ("uninitialised",), MMA100),
    ("gemm100_nvfp4", NVFP4, "half of the bytes expected", r"36864;", ALL,
     "18432;", ORDER, MMA100),
    ("gemm100_nvfp4", NVFP4, "commits of the stages removed",
     COMMIT, FIRST, "", ORDER + TENSOR, MMA100),
    ("gemm100_nvfp4", NVFP4, "commit of the sums removed",
     COMMIT, (1, 1), "", ORDER + TENSOR, MMA100),
]
