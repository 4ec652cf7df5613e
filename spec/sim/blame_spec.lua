-- What is told first of a fault is its cause: the line, the words and what is
-- lacking, of barriers, waits, parities, counts, bytes and stages that are
-- missing or wrong; what follows from it is folded.
local blamed = require "spec.blamed"

-- {what, kernel, {{from, to, nth}, ...}, "kind lack", "line other", message up
-- to its element}; lines by the names that they have in the text, ? for others.
local FAULTS = {
  {"no wait", "box", {
     {"arch.mbarrier_wait(full, 0)", ""}},
   "async-in-flight wait", "use copy",
   "read of shared memory while a bulk copy to it is in flight (wait "
   .. "missing: mbarrier 'full'[0])"},
  {"wrong parity", "box", {
     {"mbarrier_wait(full, 0)", "mbarrier_wait(full, 1)"}},
   "async-in-flight parity", "use copy",
   "read of shared memory while a bulk copy to it is in flight (the "
   .. "wait at mbarrier 'full'[0] passed before the end of phase 0: wrong "
   .. "parity)"},
  {"few bytes", "box", {
     {"load.tx_bytes", "load.tx_bytes // 2"}},
   "deadlock bytes", "wait ?",
   "no warp can go on: 4 warps wait (warp 0, 1, 2, 3) at mbarrier "
   .. "'full'[0] for the end of phase 0 (parity 0), which lacks nothing; "
   .. "1024 bytes came that nobody expected"},
  {"many bytes", "box", {
     {"load.tx_bytes", "load.tx_bytes * 2"}},
   "deadlock bytes", "wait ?",
   "no warp can go on: 4 warps wait (warp 0, 1, 2, 3) at mbarrier "
   .. "'full'[0] for the end of phase 0 (parity 0), which lacks 2048 bytes"},
  {"no expect", "box", {
     {"arrive_and_expect_tx(full, load.tx_bytes)", "arrive(full)"}},
   "async-in-flight bytes", "use copy",
   "read of shared memory while a bulk copy to it is in flight "
   .. "(mbarrier 'full'[0] expects 0 of 2048 bytes in phase 1)"},
  {"expect only", "box", {
     {"arch.mbarrier_arrive_and_expect_tx", "arch.mbarrier_expect_tx"}},
   "deadlock nobody", "wait init",
   "no warp can go on: 4 warps wait (warp 0, 1, 2, 3) at mbarrier "
   .. "'full'[0] for the end of phase 0 (parity 0), which lacks 1 of 1 "
   .. "arrival"},
  {"count 128", "box", {
     {"mbarrier_init(full, 1)", "mbarrier_init(full, 128)"}},
   "deadlock count", "wait init",
   "no warp can go on: 4 warps wait (warp 0, 1, 2, 3) at mbarrier "
   .. "'full'[0] for the end of phase 0 (parity 0), which lacks 127 of 128 "
   .. "arrivals"},
  {"no init fence", "box", {
     {"arch.mbarrier_init_fence()", ""}},
   "mbarrier", "copy init",
   "mbarrier 'full'[0] is handed to a bulk copy with no "
   .. "mbarrier_init_fence() after its mbarrier_init"},
  {"no proxy fence", "box", {
     {"arch.fence_view_async_shared()", ""}},
   "race", "store use",
   "read by a bulk copy after a thread's write, with no "
   .. "fence_proxy(\"async\") and barrier in between"},
  {"no sync filled", "box", {
     {"arch.sync_threads()  -- filled", ""}},
   "race", "store use",
   "read by a bulk copy after a thread's write, with no "
   .. "fence_proxy(\"async\") and barrier in between"},
  {"no commit", "box", {
     {"arch.cp_async_bulk_commit_group()", ""}},
   "exited-block", "store",
   "block (0,0,0) may end before what is copied to or from its shared "
   .. "memory: none of its threads waits for it"},
  {"no bulk wait", "box", {
     {"arch.cp_async_bulk_wait_group(0, true)", ""}},
   "exited-block", "store",
   "block (0,0,0) may end before what is copied to or from its shared "
   .. "memory: none of its threads waits for it"},
  {"wait one group early", "box", {
     {"cp_async_bulk_wait_group(0, true)",
      "cp_async_bulk_wait_group(1, true)"}},
   "exited-block", "store",
   "block (0,0,0) may end before what is copied to or from its shared "
   .. "memory: none of its threads waits for it"},
  {"no copy", "box", {
     {"cute.copy(load, tg(_, 0), ts, {tma_bar_ptr = full})", ""}},
   "deadlock bytes", "wait ?",
   "no warp can go on: 4 warps wait (warp 0, 1, 2, 3) at mbarrier "
   .. "'full'[0] for the end of phase 0 (parity 0), which lacks 2048 bytes"},
  {"no wait", "ring", {
     {"arch.mbarrier_wait(full + i, turn)", ""}},
   "uninitialised wait", "use copy",
   "read of uninitialised memory"},
  {"no ask", "ring", {
     {"arch.mbarrier_wait(empty + i, 1 - turn)", ""}},
   "mbarrier", "expect full",
   "mbarrier 'full'[0] takes 1 arrival a phase; 1 arrival comes where 0 "
   .. "are lacking (but 4096 bytes)"},
  {"no release", "ring", {
     {"arch.mbarrier_arrive(empty + i)", "arch.lane_idx()"}},
   "deadlock nobody", "ask empty",
   "no warp can go on: 1 warp waits (warp 4) at mbarrier 'empty'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 4 of 4 arrivals"},
  {"ask parity", "ring", {
     {"empty + i, 1 - turn", "empty + i, turn"}},
   "deadlock first", "ask",
   "no warp can go on: 1 warp waits (warp 4) at mbarrier 'empty'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 4 of 4 arrivals"},
  {"wait parity", "ring", {
     {"full + i, turn", "full + i, 1 - turn"}},
   "uninitialised parity", "use copy",
   "read of uninitialised memory (the wait at mbarrier 'full'[0] passed "
   .. "before the end of phase 0: wrong parity)"},
  {"wait parity const", "ring", {
     {"full + i, turn", "full + i, 0"}},
   "async-in-flight parity", "use copy",
   "read of shared memory while a bulk copy to it is in flight (the "
   .. "wait at mbarrier 'full'[0] passed before the end of phase 1: wrong "
   .. "parity)"},
  {"ask const", "ring", {
     {"empty + i, 1 - turn", "empty + i, 1"}},
   "mbarrier", "expect full",
   "mbarrier 'full'[0] takes 1 arrival a phase; 1 arrival comes where 0 "
   .. "are lacking (but 4096 bytes)"},
  {"empty 3", "ring", {
     {"mbarrier_init(empty + i, 4)", "mbarrier_init(empty + i, 3)"}},
   "mbarrier", "release empty",
   "mbarrier 'empty'[0] takes 3 arrivals a phase; nothing orders this "
   .. "one behind the end of phase 0: it may be counted there, in place of "
   .. "another"},
  {"empty 5", "ring", {
     {"mbarrier_init(empty + i, 4)", "mbarrier_init(empty + i, 5)"}},
   "deadlock count", "ask empty",
   "no warp can go on: 1 warp waits (warp 4) at mbarrier 'empty'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 1 of 5 arrivals"},
  {"empty 128", "ring", {
     {"mbarrier_init(empty + i, 4)", "mbarrier_init(empty + i, 128)"}},
   "deadlock count", "ask empty",
   "no warp can go on: 1 warp waits (warp 4) at mbarrier 'empty'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 124 of 128 arrivals"},
  {"full 2", "ring", {
     {"mbarrier_init(full + i, 1)", "mbarrier_init(full + i, 2)"}},
   "deadlock count", "wait full",
   "no warp can go on: 4 warps wait (warp 0, 1, 2, 3) at mbarrier "
   .. "'full'[0] for the end of phase 0 (parity 0), which lacks 1 of 2 "
   .. "arrivals"},
  {"few bytes", "ring", {
     {"load.tx_bytes", "load.tx_bytes // 2"}},
   "deadlock bytes", "wait expect",
   "no warp can go on: 4 warps wait (warp 0, 1, 2, 3) at mbarrier "
   .. "'full'[0] for the end of phase 0 (parity 0), which lacks nothing; "
   .. "1024 bytes came that nobody expected"},
  {"many bytes", "ring", {
     {"load.tx_bytes", "load.tx_bytes + 16"}},
   "deadlock bytes", "wait expect",
   "no warp can go on: 4 warps wait (warp 0, 1, 2, 3) at mbarrier "
   .. "'full'[0] for the end of phase 0 (parity 0), which lacks 16 bytes"},
  {"no expect", "ring", {
     {"arrive_and_expect_tx(full + i, load.tx_bytes)", "arrive(full + i)"}},
   "async-in-flight bytes", "use copy",
   "read of shared memory while a bulk copy to it is in flight "
   .. "(mbarrier 'full'[0] expects 0 of 2048 bytes in phase 1)"},
  {"expect only", "ring", {
     {"mbarrier_arrive_and_expect_tx", "mbarrier_expect_tx"}},
   "deadlock nobody", "wait full",
   "no warp can go on: 4 warps wait (warp 0, 1, 2, 3) at mbarrier "
   .. "'full'[0] for the end of phase 0 (parity 0), which lacks 1 of 1 "
   .. "arrival"},
  {"wrong full stage", "ring", {
     {"tma_bar_ptr = full + i", "tma_bar_ptr = full"}},
   "async-in-flight bytes", "use copy",
   "read of shared memory while a bulk copy to it is in flight "
   .. "(mbarrier 'full'[0] ended phase 0 with 2048 of 6144 bytes)"},
  {"wrong dest stage", "ring", {
     {"ts(_, i)", "ts(_, (i + 1) % STAGES)"}},
   "async-in-flight wait", "use copy",
   "read of shared memory while a bulk copy to it is in flight (wait "
   .. "missing: mbarrier 'full'[2])"},
  {"wrong wait stage", "ring", {
     {"mbarrier_wait(full + i", "mbarrier_wait(full + 0"}},
   "race wait", "use copy",
   "read after a write by a bulk copy whose end was not waited for"},
  {"wrong read stage", "ring", {
     {"row, at, i}]", "row, at, (i + 1) % STAGES}]"}},
   "async-in-flight wait", "use copy",
   "read of shared memory while a bulk copy to it is in flight (wait "
   .. "missing: mbarrier 'full'[1])"},
  {"no sync warp", "ring", {
     {"arch.sync_warp()", ""}},
   "race turn", "copy use",
   "write after a read by another warp with no barrier in between"},
  {"tiles - 1", "ring", {
     {"for t in cute.range(TILES) do",
      "for t in cute.range(TILES - 1) do"}},
   "deadlock nobody", "wait full",
   "no warp can go on: 4 warps wait (warp 0, 1, 2, 3) at mbarrier "
   .. "'full'[1] for the end of phase 2 (parity 0), which lacks 1 of 1 "
   .. "arrival; 1 warp ended without coming"},
  {"consumer tiles - 1", "ring", {
     {"for t in cute.range(TILES) do",
      "for t in cute.range(TILES - 1) do", 2}},
   "exited-block", "copy",
   "block (0,0,0) may end before what is copied to or from its shared "
   .. "memory: none of its threads waits for it"},
  {"no init sync", "ring", {
     {"arch.sync_threads()  -- made", ""}},
   "mbarrier", "wait full",
   "mbarrier 'full'[0] is used with nothing that orders its "
   .. "mbarrier_init before: sync_threads() for the block, "
   .. "mbarrier_init_fence() and the cluster's barrier for a cluster"},
  {"no wait", "roles", {
     {"arch.mbarrier_wait(full + i, turn)", ""}},
   "race roles", "use fill",
   "read after a write by another warp with no barrier in between"},
  {"no ask", "roles", {
     {"arch.mbarrier_wait(empty + i, 1 - turn)", ""}},
   "race turn", "fill use",
   "write after a read by another warp with no barrier in between"},
  {"no filled", "roles", {
     {"arch.mbarrier_arrive(full + i)", ""}},
   "deadlock nobody", "wait full",
   "no warp can go on: 1 warp waits (warp 1) at mbarrier 'full'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 32 of 32 arrivals"},
  {"no release", "roles", {
     {"arch.mbarrier_arrive(empty + i)", "arch.lane_idx()"}},
   "deadlock nobody", "ask empty",
   "no warp can go on: 1 warp waits (warp 0) at mbarrier 'empty'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 32 of 32 arrivals"},
  {"ask parity", "roles", {
     {"empty + i, 1 - turn", "empty + i, turn"}},
   "deadlock first", "ask",
   "no warp can go on: 1 warp waits (warp 0) at mbarrier 'empty'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 32 of 32 arrivals"},
  {"wait parity", "roles", {
     {"full + i, turn", "full + i, 1 - turn"}},
   "deadlock", "ask",
   "no warp can go on: 1 warp waits (warp 0) at mbarrier 'empty'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 32 of 32 arrivals"},
  {"full 64", "roles", {
     {"mbarrier_init(full + i, 32)", "mbarrier_init(full + i, 64)"}},
   "deadlock count", "wait full",
   "no warp can go on: 1 warp waits (warp 1) at mbarrier 'full'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 32 of 64 arrivals"},
  {"full 1", "roles", {
     {"mbarrier_init(full + i, 32)", "mbarrier_init(full + i, 1)"}},
   "mbarrier", "filled full",
   "mbarrier 'full'[0] takes 1 arrival a phase; 32 arrivals come at "
   .. "once where 1 is lacking"},
  {"empty 33", "roles", {
     {"mbarrier_init(empty + i, 32)", "mbarrier_init(empty + i, 33)"}},
   "deadlock count", "ask empty",
   "no warp can go on: 1 warp waits (warp 0) at mbarrier 'empty'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 1 of 33 arrivals"},
  {"arrive early", "roles", {
     {"arch.mbarrier_wait(empty + i, 1 - turn)",
      "arch.mbarrier_wait(empty + i, 1 - turn) arch.mbarrier_arrive(full + i)"},
     {"      arch.mbarrier_arrive(full + i)  --@filled",
      "      --@filled"}},
   "uninitialised roles", "use fill",
   "read of uninitialised memory"},
  {"wrong stage", "roles", {
     {"s[{31 - lane, i}]", "s[{31 - lane, 1 - i}]"}},
   "uninitialised roles", "use fill",
   "read of uninitialised memory"},
  {"sync in role", "roles", {
     {"local v = s[{31", "arch.sync_threads() local v = s[{31"}},
   "deadlock nobody", "use",
   "no warp can go on: 1 warp waits (warp 1) at barrier 0, where 32 "
   .. "threads came and 64 are needed"},
  {"wait weak", "named", {
     {"arch.barrier(2, 128)", "arch.barrier(3, 128)"}},
   "deadlock nobody", "wait",
   "no warp can go on: 2 warps wait (warp 2, 3) at barrier 3, where 64 "
   .. "threads came and 128 are needed"},
  {"no filled", "named", {
     {"arch.barrier_arrive(2, 128)", ""}},
   "deadlock nobody", "wait",
   "no warp can go on: 2 warps wait (warp 2, 3) at barrier 2, where 64 "
   .. "threads came and 128 are needed"},
  {"count", "named", {
     {"arch.barrier(2, 128)", "arch.barrier(2, 64)"}},
   "barrier-mismatch", "wait filled",
   "a barrier for 64 threads that others use for 128"},
  {"same id", "named", {
     {"arch.barrier(1, 128)", "arch.barrier(2, 128)"},
     {"arch.barrier_arrive(1, 128)", "arch.barrier_arrive(2, 128)"}},
   "barrier-mismatch", "ask filled",
   "the same warp arrives twice at barrier 2 before it is complete"},
  {"all rounds", "named", {
     {"r:lt(ROUNDS - 1)", "r:lt(ROUNDS)"}},
   "barrier-mismatch", "release",
   "the block ends with 64 of 128 threads at barrier 1: nobody waits "
   .. "for those who arrived"},
  {"no wait", "groups", {
     {"arch.cp_async_wait_group(STAGES - 2)", ""}},
   "async-in-flight", "use copy",
   "read of shared memory while a cp.async to it is in flight (wait "
   .. "missing)"},
  {"weak wait", "groups", {
     {"arch.cp_async_wait_group(STAGES - 2)",
      "arch.cp_async_wait_group(STAGES - 1)"}},
   "async-in-flight pending", "use copy",
   "read of shared memory while a cp.async to it is in flight (the wait "
   .. "before left 2 groups pending)"},
  {"no sync", "groups", {
     {"arch.sync_threads()", ""}},
   "async-in-flight barrier", "use copy",
   "read of shared memory while a cp.async to it is in flight (no "
   .. "barrier behind its wait)"},
  {"no commit", "groups", {
     {"arch.cp_async_commit_group()", ""}},
   "async-in-flight", "use copy",
   "read of shared memory while a cp.async to it is in flight (it is in "
   .. "no group: commit missing)"},
  {"sync first", "groups", {
     {"arch.sync_threads()  --@meet", "--@meet"},
     {"arch.cp_async_wait_group",
      "arch.sync_threads() arch.cp_async_wait_group"}},
   "async-in-flight barrier", "use copy",
   "read of shared memory while a cp.async to it is in flight (no barrier "
   .. "behind its wait)"},
  {"stage", "groups", {
     {"s[{127 - tid, t % STAGES}]", "s[{127 - tid, (t + 1) % STAGES}]"}},
   "async-in-flight pending", "use copy",
   "read of shared memory while a cp.async to it is in flight (the wait "
   .. "before left 1 group pending)"},
  {"conditional commit", "groups", {
     {"end)\n    arch.cp_async_commit_group()",
      "arch.cp_async_commit_group() end)"}},
   "async-in-flight pending", "use copy",
   "read of shared memory while a cp.async to it is in flight (the wait "
   .. "before left 1 group pending)"},
  {"no wait", "arrivals", {
     {"pipe:consumer_wait(read)", ""}},
   "async-in-flight wait", "use copy",
   "read of shared memory while a cp.async to it is in flight (wait "
   .. "missing: mbarrier 'pipe_full'[0])"},
  {"no commit", "arrivals", {
     {"pipe:producer_commit(write)", ""}},
   "deadlock nobody", "wait ?",
   "no warp can go on: 1 warp waits (warp 1) at mbarrier 'pipe_full'[0] "
   .. "for the end of phase 0 (parity 0), which lacks 32 of 32 arrivals"},
  {"plain arrive", "arrivals", {
     {"pipe:producer_commit(write)", "pipe.full:arrive(write.index)"}},
   "async-in-flight", "use copy",
   "read of shared memory while a cp.async to it is in flight (it is in "
   .. "no group: commit missing)"},
  {"no ask", "arrivals", {
     {"pipe:producer_acquire(write)", ""}},
   "warp-race", "copy copy",
   "write after a write by a cp.async that is in flight"},
  {"no release", "arrivals", {
     {"pipe:consumer_release(read)", ""}},
   "deadlock nobody", "ask ?",
   "no warp can go on: 1 warp waits (warp 0) at mbarrier "
   .. "'pipe_empty'[0] for the end of phase 0 (parity 0), which lacks 32 "
   .. "of 32 arrivals"},
  {"group 64", "arrivals", {
     {"producer_group = Group(Agent.Thread, 32)",
      "producer_group = Group(Agent.Thread, 64)"}},
   "deadlock count", "wait ?",
   "no warp can go on: 1 warp waits (warp 1) at mbarrier 'pipe_full'[0] "
   .. "for the end of phase 0 (parity 0), which lacks 32 of 64 arrivals"},
  {"no advance", "arrivals", {
     {"write:advance()", ""}},
   "warp-race", "copy copy",
   "write after a write by a cp.async that is in flight"},
  {"no wait", "letters", {
     {"arch.mbarrier_wait(came, 0)", ""}},
   "async-in-flight wait", "use send",
   "read of shared memory while a st.async to it is in flight (wait "
   .. "missing: mbarrier 'came'[0])"},
  {"few bytes", "letters", {
     {"expect_tx(came, 256)", "expect_tx(came, 128)"}},
   "async-in-flight bytes", "use send",
   "read of shared memory while a st.async to it is in flight (mbarrier "
   .. "'came'[0] ended phase 0 with 128 of 256 bytes)"},
  {"many bytes", "letters", {
     {"expect_tx(came, 256)", "expect_tx(came, 512)"}},
   "deadlock bytes", "wait expect",
   "no warp can go on: 2 warps wait (warp 0, 1) at mbarrier 'came'[0] "
   .. "for the end of phase 0 (parity 0), which lacks 256 bytes"},
  {"no expect", "letters", {
     {"arch.mbarrier_arrive_and_expect_tx(came, 256)",
      "arch.mbarrier_arrive(came)"}},
   "async-in-flight bytes", "use send",
   "read of shared memory while a st.async to it is in flight (mbarrier "
   .. "'came'[0] expects 0 of 128 bytes in phase 1)"},
  {"parity", "letters", {
     {"mbarrier_wait(came, 0)", "mbarrier_wait(came, 1)"}},
   "async-in-flight parity", "use send",
   "read of shared memory while a st.async to it is in flight (the wait "
   .. "at mbarrier 'came'[0] passed before the end of phase 0: wrong "
   .. "parity)"},
  {"no filled", "sum", {
     {"arch.sync_threads()  -- filled", ""}},
   "race", "add fill",
   "read of what another warp writes, without a barrier between the lines"},
  {"no added", "sum", {
     {"arch.sync_threads()  -- added", ""}},
   "race", "step add",
   "read of what another warp writes, without a barrier between the lines"},
  {"no warp read", "sum", {
     {"arch.sync_warp()  -- read", ""}},
   "warp-race", "put step",
   "write after a read by another lane of the warp with no __syncwarp "
   .. "in between"},
  {"no warp put", "sum", {
     {"arch.sync_warp()  -- put", ""}},
   "warp-race", "step put",
   "read of what another lane of the warp writes, without a __syncwarp between "
   .. "the lines"},
  {"no done", "sum", {
     {"arch.sync_threads()  -- done", ""}},
   "race", "out put",
   "read of what another warp writes, without a barrier between the lines"},
  {"two warps write", "sum", {
     {"tid:eq(127), function() y[0] = s[0]",
      "tid:ge(64), function() s[3] = tid:to(cute.f32) y[0] = s[3]"}},
   "race", "out out",
   "two warps write one element with no barrier in between"},
  {"lanes write", "sum", {
     {"tid:eq(127), function() y[0] = s[0]",
      "tid:lt(32), function() s[3] = tid:to(cute.f32) y[0] = s[3]"}},
   "warp-race", "out out",
   "two lanes of a warp write one element with no __syncwarp in between"},
  {"no wait", "multicast", {
     {"arch.mbarrier_wait(full, t % 2)", ""}},
   "uninitialised wait", "use copy",
   "read of uninitialised memory"},
  {"no ask", "multicast", {
     {"mbarrier_wait(empty, 1 - t % 2, {scope = \"cluster\"})",
      "lane_idx()"}},
   "mbarrier", "expect full",
   "mbarrier 'full'[0] takes 1 arrival a phase; 1 arrival comes where 0 "
   .. "are lacking (but 4096 bytes)"},
  {"ask parity", "multicast", {
     {"1 - t % 2", "t % 2"}},
   "deadlock first", "ask",
   "no warp can go on: 1 warp waits (warp 2) at mbarrier 'empty'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 4 of 4 arrivals"},
  {"empty 2", "multicast", {
     {"mbarrier_init(empty, 4)", "mbarrier_init(empty, 2)"}},
   "mbarrier", "expect full",
   "mbarrier 'full'[0] takes 1 arrival a phase; 1 arrival comes where 0 "
   .. "are lacking (but 4096 bytes)"},
  {"empty 5", "multicast", {
     {"mbarrier_init(empty, 4)", "mbarrier_init(empty, 5)"}},
   "deadlock count", "ask empty",
   "no warp can go on: 1 warp waits (warp 2) at mbarrier 'empty'[0] for "
   .. "the end of phase 0 (parity 0), which lacks 1 of 5 arrivals"},
  {"mask", "multicast", {
     {"mcast_mask = 3", "mcast_mask = 1"}},
   "deadlock bytes", "wait expect",
   "no warp can go on: 2 warps wait (warp 0, 1) at mbarrier 'full'[0] "
   .. "for the end of phase 0 (parity 0), which lacks 2048 bytes"},
  {"no made", "multicast", {
     {"arch.cluster_arrive()  -- made", "arch.sync_threads()"},
     {"arch.cluster_wait()  -- made", ""}},
   "mbarrier", "copy full",
   "mbarrier 'full'[0] is used with nothing that orders its "
   .. "mbarrier_init before: sync_threads() for the block, "
   .. "mbarrier_init_fence() and the cluster's barrier for a cluster"},
  {"no done", "multicast", {
     {"arch.cluster_arrive()  -- done", ""},
     {"arch.cluster_wait()  -- done", ""}},
   "exited-block", "?",
   "shared memory of block (0,0,0), which may have ended: none of its "
   .. "threads waits for this"},
  {"no scope", "multicast", {
     {"{scope = \"cluster\"})  --@release", "{})  --@release"}},
   "race turn", "copy use",
   "write after a read by a thread of another block with nothing that "
   .. "orders them for the cluster"},
}

-- Advice, by what is lacking.
local ADVICE = {
  ["async-in-flight wait"] = "wait for its mbarrier before the read",
  ["async-in-flight parity"] = "wait for the parity of this phase: 0 for the "
    .. "first, then 1, 0, ...",
  ["async-in-flight bytes"] = "expect the bytes of all that is copied: a TMA "
    .. "load brings the tx_bytes of its atom",
  ["async-in-flight barrier"] = "put sync_threads() behind the "
    .. "cp_async_wait_group(n) of the threads that copy, before the read",
  ["race roles"] = "arrive at an mbarrier, or a named barrier, behind the "
    .. "write, and wait there before the read: these threads have no "
    .. "sync_threads() in common",
  ["deadlock first"] = "nobody has read what was never filled: who fills waits "
    .. "for parity 1 in the first round, then 0, 1, ...",
  ["deadlock count"] = "mbarrier_init counts the arrivals of a phase: make it "
    .. "for as many as come, or let the others come",
  ["deadlock nobody"] = "no thread that is left comes there: make it for those "
    .. "that do, or let the others come",
  ["race"] = "put sync_threads() between the two lines",
}

local function names_of(fault, at)
  local name = {}
  for k, line in pairs(at) do name[line] = k end
  return (name[fault.line] or "?")
    .. (fault.line2 and " " .. (name[fault.line2] or "?") or "")
end

describe("a traced argument", function()
  it("is shown by its name, not by a line that it has not", function()
    local cute, text = require "cute", nil
    local k = cute.kernel("k", function(n, t, x)
      text = tostring(n) .. ", " .. tostring(t.bits)
      x[0] = n + t.bits
    end)
    k(3, {bits = 5}, cute.zeros({1}, cute.i32)):launch {grid = 1, block = 1,
      device = "sim"}
    assert.equal("traced i32 (argument n), traced i32 (argument t.bits)", text)
  end)
end)

describe("what is told first of a kernel", function()
  it("that is right is nothing", function()
    for name in pairs(blamed.KERNELS) do
      for seed = 1, 3 do
        local r = blamed.run(name, {}, seed)
        assert.is_true(r.ok, tostring(r))
      end
    end
  end)

  for _, f in ipairs(FAULTS) do
    it(("'%s' with: %s"):format(f[2], f[1]), function()
      local r, at = blamed.run(f[2], f[3], 1)
      local first = r.reports[1]
      assert.equal(f[4], first.kind
        .. (first.lack and " " .. first.lack or ""), tostring(r))
      assert.equal(f[5], names_of(first, at), tostring(r))
      assert.equal(f[6], (first.message:gsub(": element %d+ of .*", "")))
      for i = 2, #r.reports do assert.equal(1, r.reports[i].leads) end
      local more = #r.reports > 1
      assert.equal(more, tostring(r):find(
        ("%d more may follow from it"):format(#r.reports - 1), 1, true) ~= nil)
    end)
  end
end)

describe("a report", function()
  local WAIT = {{"arch.mbarrier_wait(full, 0)", ""}}

  it("says what to do of each thing that is lacking", function()
    local left = {}
    for kind in pairs(ADVICE) do left[kind] = true end
    for _, f in ipairs(FAULTS) do
      if left[f[4]] and not f[6]:find "^two" and not f[6]:find "proxy" then
        left[f[4]] = nil
        local text = tostring((blamed.run(f[2], f[3], 1)))
        assert.truthy(text:find("\n    " .. ADVICE[f[4]], 1, true), text)
      end
    end
    assert.are.same({}, left)
  end)

  it("folds what may follow, and says a piece of advice once", function()
    local r = blamed.run("box", WAIT, 1)
    local text, all = tostring(r), r:details()
    assert.equal("simulator: kernel box: 1 fault", text:match "^[^\n]*")
    assert.equal("    3 more may follow from it", text:match "[^\n]*$")
    assert.is_nil(text:find "\n      ")
    assert.equal(3, select(2, all:gsub("\n      box%.lua:%d+: ", "")))
    for line in all:gmatch "\n +(put [^\n]*)" do
      assert.is_nil(select(2, all:find(line, 1, true)) ~= nil
        and all:find(line, select(2, all:find(line, 1, true)), true) or nil)
    end
  end)

  it("names a tensor that is stored by its map alone", function()
    local r = blamed.run("box", {{"grid = 1", "grid = 2"},
      {"* 2.0", "+ arch.block_idx():to(cute.f32)"}}, 1)
    local text = tostring(r)
    assert.equal("block-race", r.reports[1].kind, text)
    assert.truthy(text:find("element 0 of global tensor 'store' [block-race]",
                            1, true), text)
    assert.is_nil(text:find(" nil", 1, true))
  end)

  it("shows the line of a race with itself once", function()
    local text = tostring((blamed.run("sum", {{
      "tid:eq(127), function() y[0] = s[0]",
      "tid:ge(64), function() s[3] = tid:to(cute.f32) y[0] = s[3]"}}, 1)))
    assert.equal(1, select(2, text:gsub("sum%.lua:%d+", "")), text)
    assert.truthy(text:find("\n    the other: thread %d+\n"), text)
  end)
end)
