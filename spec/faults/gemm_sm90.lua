-- Faults that spec/planted.lua plants in the text of kernels/gemm_sm90 and of
-- its pipelines. Each changes one or two lines.
local SOME = {"whole", "2x1", "1x2", "2x2", "turns", "turns 2x1"}
local ALL = {"dynamic", "stream", table.unpack(SOME)}
local CLUSTERS = {"2x1", "1x2", "2x2", "turns 2x1"}

-- Parts of lines of the kernel and its pipelines, which the faults replace.
local COPY = "cute.copy(X.atom, from[i]"
local WAIT, GEMM = "pipe:consumer_wait(read)", "cute.gemm(mma, acc"
local ASK = "pipe:producer_acquire(write)"
-- ASKED also matches calls with further arguments.
local ASKED = "pipe:producer_acquire(write"
local PUT, STORE = "cute.copy(out.r2s", "cute.copy(atom, tma("
local MEET = "barrier:arrive_and_wait()"
local EXPECT = "self.full:arrive_and_expect_tx(state.index, "
local BYTES = "tx_count or self.tx_count)"

local TOO_EARLY = {"uninitialised: read of", "async%-in%-flight: read of "
  .. "shared memory while a bulk copy", "race: read after a write by a bulk "
  .. "copy whose completion"}
local OVERWRITTEN = "race: write after a read by wgmma whose completion was "
  .. "not waited for: element %d+ of shared tensor 's[AB]'"
local UNORDERED = "mbarrier: mbarrier '%a[%a_]*'%[%d%] is used with nothing "
  .. "that orders its mbarrier_init before the use"
local UNMADE = "mbarrier: mbarrier '%a[%a_]*'%[%d%] is used, but was never "
  .. "initialized"
local TWICE = "mbarrier: mbarrier 'pipe_full'%[%d%] counts 1 arrival a phase; "
  .. "1 arrival comes when 0 are missing %(but %d+ bytes are%)"
local EARLY = "mbarrier: mbarrier 'pipe_%a+'%[%d%] counts %d+ arrivals? a "
  .. "phase; nothing orders this arrival after the end of phase %d+: that "
  .. "phase may count it instead of another arrival$"
local AGAIN = "race: write after a write by a bulk copy whose completion was "
  .. "not"

-- Replaces the call producer_acquire: for the last step along K, the full
-- mbarrier expects only the bytes that lie inside the tensor.
local CLAMPED = "pipe.empty:wait(write.index, write.phase) "
  .. "pipe.full:arrive_and_expect_tx(write.index, cute.where(cute.eq(k, k_tiles"
  .. " - 1), (o.tile[1] + o.tile[2]) * 16, (o.tile[1] + o.tile[2]) * 128))"

-- Each fault: {its title, {edits of the text}, configurations, {patterns of the
-- first report}, {the report's line, its second line}}. Lines are given only if
-- they are the same under every schedule.
local FAULTS = {
  {"too many bytes are expected", {{"stages", BYTES,
     "self.tx_count + 128)"}}, ALL,
   "deadlock: .* at mbarrier 'pipe_full'%[0%] for the end of phase 0 %(parity "
   .. "0%), which lacks 128 bytes$", {WAIT}},
  {"too few bytes are expected", {{"stages", BYTES,
     "self.tx_count - 128)"}}, ALL,
   "deadlock: .* at mbarrier 'pipe_full'%[0%] for the end of phase 0 %(parity "
   .. "0%), which lacks nothing; 128 bytes arrived that no expect_tx "
   .. "announced$", {WAIT}},
  {"A's bytes are expected, B's are not", {{"kernel",
     "tma_a.tx_bytes + tma_b.tx_bytes", "tma_a.tx_bytes"}}, ALL,
   {TOO_EARLY[1], TOO_EARLY[2], TOO_EARLY[3],
    "deadlock: .*'pipe_full'.*lacks nothing; 8192 bytes arrived that no "
    .. "expect_tx"}},
  {"the bytes of a clamped box are expected", {{"producer", ASK, CLAMPED}},
   {"whole", "2x1", "turns"},
   "deadlock: .* at mbarrier 'pipe_full'%[%d%] for the end of phase %d .*, "
   .. "which lacks nothing; %d+ bytes arrived that no expect_tx announced$",
   {WAIT}},
  {"nothing is expected", {{"stages", EXPECT .. BYTES,
     "self.full:arrive(state.index)"}}, ALL, TOO_EARLY, {GEMM}},

  {"consumers begin with the wrong parity", {{"state",
     'type == "producer" and 1 or 0', "1"}}, ALL, TOO_EARLY, {GEMM}},
  {"the producer begins with the wrong parity", {{"state",
     'type == "producer" and 1 or 0', "0"}}, ALL,
   "deadlock: .* at mbarrier 'pipe_empty'%[0%] for the end of phase 0 %(parity "
   .. "0%), which lacks %d+ of %d+ arrivals$", {ASKED}},
  {"the parity never changes", {{"state",
     "s.phase = core.where(wraps, phase ~ 1, phase)", ""}}, ALL,
   {TWICE, AGAIN, OVERWRITTEN, EARLY}},
  {"all wait for the first stage", {{"mainloop", WAIT, "pipe.full:wait(0, 0)"}},
   ALL, TOO_EARLY, {GEMM}},
  {"nobody waits for what is full", {{"mainloop", WAIT, ""}}, ALL, TOO_EARLY,
   {GEMM}},
  {"nobody waits for what is empty", {{"stages",
     'arch.range("producer_acquire", wait_unless, token, self.empty, state,\n'
     .. "             self.scope)\n", "\n"}}, ALL,
   {TWICE, AGAIN, OVERWRITTEN}},

  {"bytes are taken for the count", {{"stages", "arrivals = from.size",
     "arrivals = opts.tx_count"}}, {"whole", "2x1"},
   "'pipe_full'%[0%] for the end of phase 0 %(parity 0%), which lacks 24575 of "
   .. "24576 arrivals %(there are %d+ threads; mbarrier_init counts arrivals, "
   .. "expect_tx bytes%)$", {WAIT}},
  {"other blocks' readers are not counted", {{"stages",
     "to.size * peers_of(cluster)", "to.size"}}, CLUSTERS,
   {TWICE, AGAIN, OVERWRITTEN, "race: write after a read by wgmma"}},
  {"one arrival too many is counted", {{"stages",
     "to.size * peers_of(cluster)", "to.size * peers_of(cluster) + 1"}},
   {"whole", "2x2"}, "deadlock: .*'pipe_empty'.*which lacks 1 of %d+ arrivals$",
   {ASKED}},
  {"barriers are not fenced", {{"sync", "arch.mbarrier_init_fence()", ""}},
     SOME,
   {UNORDERED, "mbarrier: mbarrier 'pipe_full'%[%d%] is passed to a bulk copy "
    .. "with no mbarrier_init_fence%(%) after its mbarrier_init"}},
  {"nobody meets behind their making", {
     {"kernel", "if made then made:arrive_and_wait() end", ""},
     {"kernel", "if not made then pipeline.agent_sync(true, true) end", ""}},
   ALL, {UNORDERED, UNMADE}},
  {"only the block meets there", {{"kernel", "pipeline.agent_sync(true, true)",
     "pipeline.agent_sync()"}}, CLUSTERS, {UNORDERED, UNMADE}},
  {"the cluster arrives there, and does not wait", {{"sync",
     "if clustered(cluster) then arch.cluster_wait() else",
     "if clustered(cluster) then else"}},
   CLUSTERS, {UNORDERED, UNMADE}},

  {"a store is not fenced", {{"store_tile",
     "cute.arch.fence_view_async_shared()", ""}},
   {"whole", "2x2", "turns", "halves"},
   "race: read by a bulk copy after a thread's write, with no "
   .. "fence_proxy%(\"async\"%) in between: element %d+ of shared "
   .. "tensor 'sD'", {STORE, PUT}},
  {"one thread fences for all", {{"store_tile",
     "cute.arch.fence_view_async_shared()", "cute.when(out.leader, "
     .. "function() cute.arch.fence_view_async_shared() end)"}},
   {"whole", "2x1", "turns", "halves"},
   "race: read by a bulk copy after a thread's write, with no fence_proxy",
   {STORE, PUT}},
  {"nobody meets in front of a store", {{"store_tile",
     MEET, "", 2}}, ALL,
   {"race: read after a write by another warp with no barrier",
    "race: read by a bulk copy after a thread's write",
    "race: write after a read by a bulk copy whose completion was not waited",
    "uninitialised: read of uninitialised memory: .* 'sD'"}},
  {"nobody meets behind it, before the next", {{"store_tile", MEET, ""}}, ALL,
   "race: write after a read by a bulk copy whose completion was not waited "
   .. "for: element %d+ of shared tensor 'sD'", {PUT, STORE}},
  {"a buffer is filled while it is stored", {{"store_tile",
     "cute.when(leader, function() pipe:producer_acquire() end)", ""}},
   ALL, "race: write after a read by a bulk copy whose completion was not "
   .. "waited for: element %d+ of shared tensor 'sD'", {PUT, STORE}},
  {"blocks end while they store", {{"kernel",
     "cute.when(out.leader, function() out.pipe:producer_tail() end)", ""}},
   ALL, "exited%-block: block %(%d,%d,%d%) may exit before a copy to or "
   .. "from its shared memory completes", {STORE}},

  {"products are waited for a stage too late", {{"mainloop",
     "warpgroup.wait_group(1)", "warpgroup.wait_group(2)"}},
   ALL, OVERWRITTEN, {COPY, GEMM}},
  {"a stage is handed back before products have read it", {{"mainloop",
     "warpgroup.wait_group(0)", "pipe:consumer_release(before)"},
     {"mainloop", "pipe:consumer_release(before)", "warpgroup.wait_group(0)",
      3}}, ALL, OVERWRITTEN, {COPY, GEMM}},
  {"a stage is handed back twice", {{"mainloop",
     "pipe:consumer_release(before) end)", "pipe:consumer_release(before) "
     .. "pipe:consumer_release(before) end)"}}, {"whole", "2x1"},
   {OVERWRITTEN, AGAIN, TWICE, EARLY, "deadlock: "}},
  {"the last stage is never handed back", {{"mainloop",
     "pipe:consumer_release(before)", "", 2}}, {"whole", "2x1", "2x2"},
   "deadlock: .*'pipe_empty'%[%d%].*which lacks %d+ of %d+ arrivals$", {ASKED}},
  {"blocks end while others hand back", {{"producer",
     "pipe:producer_tail(write)", ""}}, CLUSTERS,
   "exited%-block: access to shared memory of block "
   .. "%(%d,%d,%d%), which may have exited"},

  {"a multicast is for the first block only", {{"producer",
     "0}, mode)", "0}, mode) * 0 + 1"}},
   {"2x1", "1x2", "turns 2x1"},
   "deadlock: .*'pipe_full'%[0%] for the end of phase 0 .* lacks %d+ bytes$",
   {WAIT}},
  {"A's mask is B's", {{"producer", "0}, mode)", "0}, 3 - mode)"}},
   {"2x1", "1x2"},
   "deadlock: .*'pipe_full'%[0%] for the end of phase 0 .* lacks %d+ bytes$",
   {WAIT}},
  {"a mask names a block that is not there", {{"producer",
     "0}, mode)", "0}, mode) | 8"}}, {"2x1", "1x2"},
   "out%-of%-bounds: write outside shared tensor 's[AB]': block 3 of a "
   .. "cluster of 2", {COPY}},

  {"a named barrier is for twice as many", {{"store_tile",
     "num_threads = WARPGROUP}", "num_threads = 2 * WARPGROUP}"}}, SOME,
   "deadlock: .* at barrier 1, where 128 threads arrived and 256 are needed",
   {MEET}},
  {"a named barrier is for half as many", {{"store_tile",
     "num_threads = WARPGROUP}", "num_threads = WARPGROUP // 2}"}},
   {"whole", "2x1", "turns"},
   {"barrier%-mismatch: nothing orders this arrival at barrier %d after "
    .. "the barrier's previous phase", "race: ", "uninitialised: .* 'sD'"}},
  {"both warpgroups have one named barrier", {{"store_tile",
     "barrier_id = x.group + 1", "barrier_id = 1"}}, ALL,
   "barrier%-mismatch: nothing orders this arrival at barrier 1 after the "
   .. "barrier's previous phase: that phase may count it instead of another "
   .. "arrival"},
  {"nobody passes on the turn", {{"kernel",
     "if order then order:arrive() end", "", 1}}, {"turns", "turns 2x1"},
   {"deadlock: ", TOO_EARLY[2], TOO_EARLY[3], OVERWRITTEN}},
  {"nobody waits for his turn", {{"kernel", "if order then order:wait() end",
     ""}}, {"turns", "turns 2x1"}, {TOO_EARLY[1], TOO_EARLY[2], TOO_EARLY[3],
    OVERWRITTEN, TWICE, "deadlock: "}},

  {"half of the other's sums are expected", {{"cluster_splitk",
     "came, cluster_splitk.bytes(o))", "came, cluster_splitk.bytes(o) // 2)"}},
   {"halves"}, "async%-in%-flight: read of shared memory while an st.async to "
   .. "it is in flight"},
  {"nobody waits for the other's sums", {{"cluster_splitk",
     "cute.arch.mbarrier_wait(mail.came, 0)", ""}}, {"halves"},
   {"exited%-block: ", "async%-in%-flight", "uninitialised: .* 'mail'",
    "race: "}},
  {"the halves do not meet first", {{"kernel",
     "pipeline.pipeline_init_wait(true)", ""}}, {"halves"},
   "mbarrier: mbarrier 'came'%[0%] is used with nothing"},

  {"producers keep their registers", {{"kernel",
     "cute.arch.setmaxregister_decrease(o.registers.producer)", ""}},
   {"registers"}, "deadlock: .* at setmaxnreg for 240 registers a thread: "
   .. "these threads have 168, and other warps released 0 a thread",
   {"cute.arch.setmaxregister_increase"}},
  {"consumers take more than there are", {{"options", "producer = 24",
     "producer = 56"}}, {"registers"}, "deadlock: .* at setmaxnreg for 240 "
   .. "registers a thread: these threads have 168, and other warps released "
   .. "%d+ a thread"},
}

return {FAULTS = FAULTS, EARLY = EARLY}
