--- Faults planted in PTX, one at a time. An entry: {kernel, what is wrong,
-- change, kinds of the first report, patterns of its lines for plant.right}.
-- The entries were written before the first run. Afterwards one line and six
-- kinds were added, because the first report was another true effect of the
-- fault.
--
-- Some changes are not planted, because they cause no fault:
-- removing a producer's wait for the end of a ring without a cluster (all
-- blocks may exit);
-- removing one of two adjacent fence.mbarrier_init;
-- removing a producer's first waits, when the ring is empty;
-- removing the last cluster barrier of arrival_at_another_block (each block
-- waits for the other anyway).
local plant = require "spec.ptx.plant"
local drop, sub, before = plant.drop, plant.sub, plant.before
local unwait, all = plant.unwait, plant.all

local list = {}
local kernel

local function add(what, change, kinds, lines)
  list[#list + 1] = {kernel = kernel, what = what, change = change,
                     kinds = kinds, lines = lines}
end

local WAIT, LOAD, MMA = "try_wait", "shared::cluster%.global", "mma_async"
local STORE = "global%.shared::cta"
local OPERAND = ", %%r%d+;"

-- A GEMM with specialised warps: TMA, mbarriers, wgmma.
kernel = "script: gemm_ws --device sim --arch sm_90a --m 256 --n 128 --k 320"
add("no barrier after the mbarriers' initialisation", drop "bar%.sync",
    "mbarrier", "mbarrier%.arrive " .. WAIT .. " " .. LOAD)
add("full counts 2", sub("mbarrier%.init", 1, OPERAND, ", 2;"), "deadlock",
    WAIT)
add("empty counts 9", sub("mbarrier%.init", 5, OPERAND, ", 9;"), "deadlock",
    WAIT)
add("empty counts 7", sub("mbarrier%.init", 5, OPERAND, ", 7;"), "mbarrier",
    "mbarrier%.arrive%.shared")
add("no initialisation of one mbarrier", drop("mbarrier%.init", 2), "mbarrier",
    "mbarrier " .. LOAD)
add("no fence after the initialisation", all(drop "fence%.mbarrier_init",
    drop "fence%.mbarrier_init"), "mbarrier", LOAD)
add("16 bytes fewer expected", sub("expect_tx", 1, OPERAND, ", 49136;"),
    "deadlock", WAIT)
add("16 bytes more expected", sub("expect_tx", 1, OPERAND, ", 49168;"),
    "deadlock", WAIT)
add("no expect_tx", drop "expect_tx", "deadlock", WAIT)
add("no load of B", drop(LOAD, 2), "deadlock", WAIT)
add("a load counts at the next stage", sub(LOAD, 2, "%[(%%r%d+)%];",
    "[%1+8];"), "deadlock mbarrier race", WAIT .. " mbarrier here " .. LOAD)
add("consumers do not wait", unwait(3),
    "uninitialised async-in-flight race", MMA)
add("consumers wait for the other parity", sub(WAIT, 3, OPERAND, ", 1;"),
    "uninitialised async-in-flight race mbarrier deadlock", MMA .. " here")
add("the producer does not wait", unwait(1), "race mbarrier",
    LOAD .. " expect_tx")
add("the producer waits for the other parity", sub(WAIT, 1, OPERAND, ", 0;"),
    "deadlock", "here")
add("no arrive after a stage is read", drop "mbarrier%.arrive%.shared",
    "deadlock", WAIT)
add("no arrive after the last stage is read",
    drop("mbarrier%.arrive%.shared", 2), "deadlock", WAIT)
add("one arrive counts 2", sub("mbarrier%.arrive%.shared", 1, "%];", "], 2;"),
    "mbarrier", "here mbarrier%.arrive%.shared")
add("no wgmma.fence", drop "wgmma%.fence", "in-flight", MMA)
add("a sum is written after the fence", sub(MMA, 1,
    "^(wgmma%S+ {)(%%f%d+)", "cvt.rn.f32.u32 %2, %%r1; %1%2"), "in-flight",
    "here")
add("no wgmma.commit_group", drop "wgmma%.commit", "in-flight race",
    MMA .. " " .. LOAD)
add("no wait_group before a stage is released", drop "wgmma%.wait_group",
    "race", LOAD)
add("wait_group leaves 2 groups", sub("wgmma%.wait_group", 1, "1;", "2;"),
    "race", LOAD)
add("no wait_group before the sums are used", drop("wgmma%.wait_group", 2),
    "in-flight", MMA)
add("the last wait_group leaves 1 group",
    sub("wgmma%.wait_group", 2, "0;", "1;"), "in-flight", MMA)
add("the ring of the producer has 5 stages",
    sub("setp%.eq%.s32%s+%%p%d+, %%r%d+, 4;", 1, "4;", "5;"),
    "out-of-bounds mbarrier race deadlock", "mbarrier " .. LOAD)
add("a box is loaded to a misaligned address", sub(LOAD, 1, "%[(%%r%d+)%],",
    "[%1+16],"), "misaligned", "here")
add("a box is loaded outside of shared memory", sub(LOAD, 2, "%[(%%r%d+)%],",
    "[%1+262144],"), "out-of-bounds", "here")
add("the sums are stored outside of C", sub("st%.global", 3, "%[(%%rd%d+)",
    "[%1+1048576"), "out-of-bounds", "here")
add("the sums are stored at a misaligned address", sub("st%.global", 2,
    "(%d*)%]", "%12]"), "misaligned", "here")
add("a barrier in divergent code", before("mbarrier%.init", 3, "bar.sync 0;"),
    "divergent", "here")

-- A GEMM with specialised warps, an epilogue by stmatrix and TMA, and named
-- barriers.
kernel =
  "script: gemm_hopper --device sim --arch sm_90a --m 128 --n 64 --k 1280"
add("no proxy fence before the store", drop "fence%.proxy", "race", STORE)
add("no barrier before the store", drop("bar%.sync", 2),
    "race uninitialised", STORE)
add("no commit_group of the store", drop "bulk%.commit", "exited-block", STORE)
add("no wait_group of the store", drop "bulk%.wait_group", "exited-block",
    STORE)
add("no arrival at the named barrier", drop "bar%.arrive", "deadlock",
    "bar%.sync")
add("another named barrier is waited for", sub("bar%.sync", 1, "2,", "3,"),
    "deadlock barrier-mismatch", "here bar%.arrive")
add("the named barrier counts 128", sub("bar%.sync", 1, "160", "128"),
    "barrier-mismatch mbarrier", "here bar%.arrive " .. WAIT)
add("the epilogue's barrier counts 256", sub("bar%.sync", 2, "128", "256"),
    "barrier-mismatch deadlock", "here")
add("the epilogue's barrier counts 64", sub("bar%.sync", 2, "128", "64"),
    "barrier-mismatch race uninitialised", "here " .. STORE)
add("a misaligned stmatrix", sub("stmatrix", 1, "%+ 0%]", "+ 8]"),
    "misaligned", "here")
add("one lane less in the mask of bar.warp.sync", sub("bar%.warp", 1, "%-1",
    "0x7fffffff"), "divergent", "here")
add("no initialisation fence", all(drop "fence%.mbarrier_init",
    drop "fence%.mbarrier_init"), "mbarrier", LOAD)
add("one of four loads is missing", drop(LOAD, 3), "deadlock", WAIT)
add("half of the bytes are expected", sub("expect_tx", 1, OPERAND, ", 12288;"),
    "deadlock", WAIT)
add("the epilogue stores before the sums are complete",
    drop("wgmma%.wait_group", 2), "in-flight", MMA)
add("the release does not wait for wgmma", drop "wgmma%.wait_group", "race",
    LOAD)
add("the consumers do not wait", unwait(2),
    "uninitialised async-in-flight race", MMA)

-- A copy of one box by a TMA load and a TMA store.
kernel = "script: copy_tma --device sim --arch sm_90a --m 128 --n 128"
add("no initialisation", drop "mbarrier%.init", "mbarrier", "mbarrier " .. LOAD)
add("no initialisation fence", drop "fence%.mbarrier_init", "mbarrier", LOAD)
add("no expect_tx", drop "expect_tx", "mbarrier deadlock", WAIT)
add("no wait for the load", unwait(1), "uninitialised race async-in-flight",
    STORE .. " " .. LOAD)
add("no commit_group", drop "bulk%.commit", "exited-block", STORE)
add("no wait_group", drop "bulk%.wait_group", "exited-block", STORE)
add("the store reads a misaligned address", sub(STORE, 1, "%[(%%r%d+)%];",
    "[%1+64];"), "misaligned", "here")

-- A GEMM with a pipeline of cp.async.
kernel = "script: gemm3stage --device sim --arch sm_80 --m 128 --n 128 --k 320"
add("no wait before the loop", drop "cp%.async%.wait", "async-in-flight",
    "ldmatrix")
add("the wait before the loop leaves one more", sub("cp%.async%.wait", 1,
    "%d;", "2;"), "async-in-flight", "ldmatrix")
add("no barrier before the loop", drop "bar%.sync", "race warp-race "
    .. "async-in-flight", "ldmatrix")
add("no wait in the loop", drop("cp%.async%.wait", 2), "async-in-flight",
    "ldmatrix")
add("the wait in the loop leaves one more", sub("cp%.async%.wait", 2,
    "%d;", "2;"), "async-in-flight", "ldmatrix")
add("no barrier in the loop", drop("bar%.sync", 2),
    "race warp-race async-in-flight", "ldmatrix cp%.async")
add("no commit before the loop", drop "cp%.async%.commit", "async-in-flight",
    "ldmatrix")
add("no commit in the loop", drop("cp%.async%.commit", 3), "async-in-flight",
    "ldmatrix")
add("a copy to a misaligned address", sub("cp%.async%.c", 1, "%+ 0%],",
    "+ 2],"), "misaligned", "here")
add("a copy from outside of A", sub("cp%.async%.c", 2, "(, %[%%rd%d+) %+ %d+%]",
    "%1 + 1048576]"), "out-of-bounds", "here")
add("a misaligned ldmatrix", sub("ldmatrix", 3, "%[(%%r%d+)[^%]]*%]",
    "[%1+8]"), "misaligned", "here")
add("an ldmatrix outside of shared memory", sub("ldmatrix", 4,
    "%[(%%r%d+)[^%]]*%]", "[%1+131072]"), "out-of-bounds", "here")

-- A GEMM with one stage, which each step along K refills.
kernel = "script: gemm_base --device sim --arch sm_80 --m 128 --n 128 --k 192"
add("the stage is loaded again too early", drop("bar%.sync", 2),
    "race warp-race", "cp%.async ldmatrix")
add("no barrier after the loads", drop "bar%.sync",
    "race warp-race async-in-flight", "ldmatrix")
add("no wait", drop "cp%.async%.wait", "async-in-flight", "ldmatrix")
add("no commit", drop "cp%.async%.commit", "async-in-flight", "ldmatrix")

-- A GEMM whose wgmma reads data that cp.async wrote.
kernel = "script: gemm_wgmma --device sim --arch sm_90a --m 128 --n 128 --k 320"
add("no proxy fence before wgmma", drop "fence%.proxy", "race", MMA)
add("no wait of cp.async", drop "cp%.async%.wait", "async-in-flight race", MMA)
add("no barrier before wgmma", drop("bar%.sync", 1),
    "race warp-race async-in-flight uninitialised", MMA)
add("no wgmma.fence", drop "wgmma%.fence", "in-flight", MMA)
add("no wait_group before the stage is loaded again", drop "wgmma%.wait_group",
    "race in-flight", "cp%.async " .. MMA)

-- A sum that uses shared memory, shuffles, and an atomic counter by which the
-- last block is found.
kernel = "script: reduce --device sim --arch sm_80 --n 20000"
add("no barrier after the warps' sums", drop "bar%.sync", "race uninitialised",
    "ld%.shared")
add("no barrier after the last block is found", drop("bar%.sync", 2),
    "race uninitialised", "ld%.shared")
add("the atomic is relaxed", sub("atom", 1, "%.acq_rel", ".relaxed"),
    "block-race", "ld%.global st%.global")
add("a shuffle of half a warp", sub("shfl", 3, "%%r%d+;", "0xffff;"),
    "divergent", "here")
add("the partial sum is stored outside", sub("st%.global%.f32", 1,
    "%[(%%rd%d+)%]", "[%1+65536]"), "out-of-bounds", "here")
add("an undefined thread number", drop "mov.u32%s+%%r%d+, %%tid%.x",
    "uninitialised", "ld%.global setp st%.shared bra here")

kernel = "script: histogram --device sim --arch sm_80"
add("no barrier after the zeros", drop "bar%.sync", "race", "atom%.shared "
    .. "st%.shared")
add("no barrier before the sums", drop("bar%.sync", 2), "warp-race race",
    "ld%.shared")
add("a store in place of an atomic", sub("atom%.shared", 2,
    "atom%.shared%.add%.s32 %%r%d+, (%[.*)", "st.shared.u32 %1"),
    "warp-race race", "here")
add("a store in place of the global atomic", sub("atom%.global", 1,
    "atom%.global%.add%.u32%s+%%r%d+, (%[.*)", "st.global.u32 %1"),
    "block-race", "here")

kernel = "script: scan --device sim --arch sm_80"
add("no barrier between the warps' sums and their use", drop "bar%.sync",
    "race uninitialised", "ld%.shared")
add("a store outside of shared memory", sub("st%.shared", 1, "%[(%%r[d%d]+)%]",
    "[%1+65536]"), "out-of-bounds", "here")
add("a shuffle without lane 0", sub("shfl%.sync%.up", 2, "%%r%d+;",
    "0xfffffffe;"), "divergent", "here")

kernel = "script: transpose --device sim --arch sm_80"
add("no barrier", drop "bar%.sync", "race warp-race", "ld%.shared")
add("a misaligned store", sub("st%.shared", 1, "%[(%%rd%d+)%]", "[%1+4]"),
    "misaligned", "here")
add("a load outside of shared memory", sub("ld%.shared", 5,
    "%[(%%rd%d+)%+%d+%]", "[%1+65536]"), "out-of-bounds", "here")
add("a load outside of the matrix", sub("ld%.global", 1, "%[(%%rd%d+)%]",
    "[%1+1048576]"), "out-of-bounds", "here")
add("a store outside of the matrix", sub("st%.global", 2,
    "%[(%%rd%d+)%+%d+%]", "[%1+1048576]"), "out-of-bounds", "here")

-- Kernels of spec/ptx/kernels.lua
local ARRIVE, MEET = "cluster%.arrive", "cluster%.wait"
kernel = "neighbour_in_a_cluster"
add("no cluster barrier after the stores", all(drop(ARRIVE), drop(MEET)),
    "race uninitialised unstarted-block", "ld%.shared::cluster")
add("no arrival at the cluster barrier", drop(ARRIVE), "barrier-mismatch",
    MEET)
add("a block exits while the other one reads", all(drop(ARRIVE, 2),
    drop(MEET, 2)), "exited-block", "ld%.shared::cluster")
add("the arrival is relaxed", sub(ARRIVE, 1, "release", "relaxed"), "race",
    "ld%.shared::cluster")
add("the address has the rank of no block", sub("mapa", 1, "%%r%d+;", "7;"),
    "out-of-bounds", "ld%.shared::cluster here")

kernel = "arrival_at_another_block"
add("the mbarrier counts 65", sub("mbarrier%.init", 1, ", 64", ", 65"),
    "deadlock", WAIT)
add("the mbarrier counts 63", sub("mbarrier%.init", 1, ", 64", ", 63"),
    "mbarrier", "mbarrier%.arrive")
add("the arrival is relaxed", sub("mbarrier%.arrive", 1, "release", "relaxed"),
    "race uninitialised", "ld%.shared")
add("no wait", unwait(1), "race uninitialised", "ld%.shared")
add("the other parity", sub(WAIT, 1, "0;", "1;"), "race uninitialised",
    "ld%.shared")

kernel = "bulk_copy_of_bytes"
add("16 bytes more expected", sub("expect_tx", 1, "256", "272"), "deadlock",
    WAIT)
add("no wait for the load", unwait(1), "uninitialised async-in-flight race",
    "[ls][dt]%.shared")
add("no proxy fence", drop "fence%.proxy", "race", STORE)
add("no barrier before the store", drop("bar%.sync", 2), "race", STORE)
add("no wait_group", drop "bulk%.wait_group", "exited-block", STORE)
add("a load of 264 bytes", sub(LOAD, 1, "256", "264"), "misaligned error",
    "here")
add("a load to a misaligned address", sub(LOAD, 1, "%[(%%r%d+)%],",
    "[%1+8],"), "misaligned", "here")
add("a load outside of x", sub(LOAD, 1, "%[(%%rd%d+)%],", "[%1+512],"),
    "out-of-bounds", "here")

kernel = "st_async_to_another_block"
add("16 bytes more expected", sub("expect_tx", 1, "256", "272"), "deadlock",
    WAIT)
add("no wait for the stores", unwait(1), "uninitialised async-in-flight race",
    "ld%.shared")
add("the data and its mbarrier are in two blocks", sub("mapa", 2,
    "%%r%d+;", "0;"), "assertion deadlock", "st%.async " .. WAIT)

kernel = "bulk_copy_to_another_block"
add("no proxy fence", drop "fence%.proxy", "race", "bulk")
add("a copy of 128 bytes", sub("shared::cluster%.shared::cta", 1, "256",
    "128"), "deadlock", WAIT)
add("no wait for the copy", unwait(1), "uninitialised async-in-flight race",
    "ld%.shared")

kernel = "copies_by_cp_async"
add("no wait", drop "cp%.async%.wait", "async-in-flight", "ld%.shared")
add("no commit", drop "cp%.async%.commit", "async-in-flight", "ld%.shared")
add("no barrier", drop "bar%.sync", "async-in-flight race warp-race",
    "ld%.shared")
add("an undefined index", drop "mov.u32%s+%%r%d+, %%ctaid%.x",
    "uninitialised", "setp selp cp%.async st%.global")

kernel = "scan_in_dynamic_shared_memory"
add("no barrier before the loop", drop "bar%.sync", "race warp-race "
    .. "uninitialised", "ld%.shared st%.shared")
add("a barrier for some threads", sub("bar%.sync", 1, "bar", "@%%p1 bar"),
    "divergent barrier-mismatch deadlock", "here")

kernel = "last_block_adds_up"
add("no barrier before the flag is read", drop("bar%.sync", 2),
    "race warp-race uninitialised", "ld%.shared")

return list
-- SPDX-License-Identifier: MIT
