--- kernels/gemm_sm90 with faults planted in its text, or in that of the
-- pipelines that it is made of, on the simulator.
local assert = require "luassert"
local cute = require "cute"
local hopper = require "spec.hopper"
local support = require "spec.support"

local planted = {}

-- Files that faults are planted in, and all that are made of them.
local PIPES = {"state", "sync", "stages"}
local KERNEL = {"options", "smem", "option_rules", "choice", "tile_order",
                "producer", "mainloop", "store_tile", "split2", "block_scales",
                "stream", "kernel"}

--- Choices of the kernel, small ones: stages go round, tiles are many.
planted.CHOICES = {
  whole = {tile = {128, 64, 64}, stages = 3},
  ["2x1"] = {tile = {128, 64, 64}, stages = 3, cluster = {2, 1}},
  ["1x2"] = {tile = {128, 64, 64}, stages = 3, cluster = {1, 2}},
  ["2x2"] = {tile = {128, 64, 64}, stages = 2, cluster = {2, 2}},
  turns = {tile = {64, 64, 64}, stages = 3, schedule = "pingpong"},
  ["turns 2x1"] = {tile = {64, 64, 64}, stages = 3, schedule = "pingpong",
                   cluster = {2, 1}},
  halves = {tile = {128, 64, 64}, stages = 3, split = 2},
  registers = {tile = {256, 208, 64}, stages = 2, epi_stages = 1},
  overlap = {tile = {128, 64, 64}, stages = 3, pdl = true},
  dynamic = {tile = {128, 64, 64}, stages = 3, scheduler = "dynamic"},
  stream = {tile = {128, 64, 64}, stages = 3, split = "stream", least = 1},
}

local module = {gemm_sm90 = "kernels.gemm_sm90"}  -- of a file's short name
for _, part in ipairs(PIPES) do module[part] = "cute.pipe." .. part end
for _, part in ipairs(KERNEL) do module[part] = "kernels.gemm_sm90." .. part end

local function path_of(part)
  local path = module[part]:gsub("^cute", "lua/cute"):gsub("%.", "/")
  return path .. ".lua"
end

-- Modules of changed texts, in order: each finds those before it.
local function loaded(texts, parts)
  local out = {}
  for _, part in ipairs(parts) do
    local text = texts[part] or support.read(path_of(part))
    local it = assert(load(text, "@" .. path_of(part)))()
    package.loaded[module[part]], out[#out + 1] = it, it
  end
  return out
end

-- gemm_sm90 of changed texts.
local function gemm_of(texts)
  local pipe = {}
  for _, it in ipairs(loaded(texts, PIPES)) do
    for name, v in pairs(it) do pipe[name] = v end
  end
  rawset(cute, "pipeline", pipe)
  loaded(texts, KERNEL)
  return loaded(texts, {"gemm_sm90"})[1]
end

--- gemm_sm90 with these changes of its files, and what they became:
-- {{file, from, to, nth}, ...}, file one of PIPES or KERNEL.
---@param changes table[]
---@return function gemm, table<string, string> texts
function planted.kernel(changes)
  local texts, kept, own = {}, {}, cute.pipeline
  for _, name in pairs(module) do kept[name] = package.loaded[name] end
  for _, c in ipairs(changes) do
    local text = texts[c[1]] or support.read(path_of(c[1]))
    texts[c[1]] = support.change(text, c[2], c[4] or 1, c[3])
  end
  local ok, gemm = pcall(gemm_of, texts)
  rawset(cute, "pipeline", own)
  for _, name in pairs(module) do package.loaded[name] = kept[name] end
  assert(ok, gemm)
  return gemm, texts
end

--- The report of D = A B^T of (m,n,k) under a seed, and the operands; before:
-- operands of a launch in front, whose D is this one's A.
---@param g table what gemm_sm90 gives
---@return table report, table operands
function planted.run(g, size, seed, before)
  local m, n, k = table.unpack(size)
  local x = {A = before and before.D or hopper.matrix(m, k, 1),
             B = hopper.matrix(n, k, 2), D = hopper.matrix(m, n)}
  x.run = g.prepare(x.A, x.B, x.D, {device = "sim:sm_90a", sms = 4,
    seed = seed, output = false})
  return support.report(x.run:launch {faults = "return"}), x
end

--- What is wrong with the D of planted.run; nil: nothing.
function planted.differs(x)
  local want = hopper.product(x.A, x.B)
  return hopper.differs(x.D, function(i, j)
    return hopper.rounded(want(i, j))
  end)
end

local SOME = {"whole", "2x1", "1x2", "2x2", "turns", "turns 2x1"}
local ALL = {"dynamic", "stream", table.unpack(SOME)}
local CLUSTERS = {"2x1", "1x2", "2x2", "turns 2x1"}

-- Lines of the kernel.
local COPY = "cute.copy(X.atom, from[i]"
local WAIT, GEMM = "pipe:consumer_wait(read)", "cute.gemm(mma, acc"
local ASK = "pipe:producer_acquire(write)"
local ASKED = "pipe:producer_acquire(write"  -- with what it is asked for, too
local PUT, STORE = "cute.copy(out.r2s", "cute.copy(atom, tma("
local MEET = "barrier:arrive_and_wait()"
local EXPECT = "self.full:arrive_and_expect_tx(state.index, "
local BYTES = "tx_count or self.tx_count)"

local TOO_EARLY = {"uninitialised: read of", "async%-in%-flight: read of "
  .. "shared memory while a bulk copy", "race: read after a write by a bulk "
  .. "copy whose end"}
local OVERWRITTEN = "race: write after a read by wgmma whose end was not waited"
  .. " for: element %d+ of shared tensor 's[AB]'"
local UNORDERED = "mbarrier: mbarrier '%a[%a_]*'%[%d%] is used with nothing "
  .. "that orders its mbarrier_init before: sync_threads%(%) for the block"
local UNMADE = "mbarrier: mbarrier '%a[%a_]*'%[%d%] is used, but nobody made"
local TWICE = "mbarrier: mbarrier 'pipe_full'%[%d%] takes 1 arrival a phase; 1 "
  .. "arrival comes where 0 are lacking %(but %d+ bytes%)"
local EARLY = "mbarrier: mbarrier 'pipe_%a+'%[%d%] takes %d+ arrivals? a "
  .. "phase; nothing orders this one behind the end of phase %d+: it may be "
  .. "counted there, in place of another$"
local AGAIN = "race: write after a write by a bulk copy whose end was not"

-- Ends a stage's tail of the last box: what of it lies inside.
local CLAMPED = "pipe.empty:wait(write.index, write.phase) "
  .. "pipe.full:arrive_and_expect_tx(write.index, cute.where(cute.eq(k, k_tiles"
  .. " - 1), (o.tile[1] + o.tile[2]) * 16, (o.tile[1] + o.tile[2]) * 128))"

planted.EARLY = EARLY

--- {what was done, {changes}, where, {what is told first}, {its line, and the
-- other one}}: with lines, where those of what is told are the same always.
planted.FAULTS = {
  {"too many bytes are expected", {{"stages", BYTES,
     "self.tx_count + 128)"}}, ALL,
   "deadlock: .* at mbarrier 'pipe_full'%[0%] for the end of phase 0 %(parity "
   .. "0%), which lacks 128 bytes$", {WAIT}},
  {"too few bytes are expected", {{"stages", BYTES,
     "self.tx_count - 128)"}}, ALL,
   "deadlock: .* at mbarrier 'pipe_full'%[0%] for the end of phase 0 %(parity "
   .. "0%), which lacks nothing; 128 bytes came that nobody expected$", {WAIT}},
  {"A's bytes are expected, B's are not", {{"kernel",
     "tma_a.tx_bytes + tma_b.tx_bytes", "tma_a.tx_bytes"}}, ALL,
   {TOO_EARLY[1], TOO_EARLY[2], TOO_EARLY[3],
    "deadlock: .*'pipe_full'.*lacks nothing; 8192 bytes came that nobody"}},
  {"the bytes of a clamped box are expected", {{"producer", ASK, CLAMPED}},
   {"whole", "2x1", "turns"},
   "deadlock: .* at mbarrier 'pipe_full'%[%d%] for the end of phase %d .*, "
   .. "which lacks nothing; %d+ bytes came that nobody expected$", {WAIT}},
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
   {UNORDERED, "mbarrier: mbarrier 'pipe_full'%[%d%] is handed to a bulk copy "
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
   .. "fence_proxy%(\"async\"%) and barrier in between: element %d+ of shared "
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
    "race: write after a read by a bulk copy whose end was not waited",
    "uninitialised: read of uninitialised memory: .* 'sD'"}},
  {"nobody meets behind it, before the next", {{"store_tile", MEET, ""}}, ALL,
   "race: write after a read by a bulk copy whose end was not waited for: "
   .. "element %d+ of shared tensor 'sD'", {PUT, STORE}},
  {"a buffer is filled while it is stored", {{"store_tile",
     "cute.when(leader, function() pipe:producer_acquire() end)", ""}},
   ALL, "race: write after a read by a bulk copy whose end was not waited for: "
   .. "element %d+ of shared tensor 'sD'", {PUT, STORE}},
  {"blocks end while they store", {{"kernel",
     "cute.when(out.leader, function() out.pipe:producer_tail() end)", ""}},
   ALL, "exited%-block: block %(%d,%d,%d%) may end before what is copied to or "
   .. "from its shared memory", {STORE}},

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
   "exited%-block: shared memory of block %(%d,%d,%d%), which may have ended"},

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
   "out%-of%-bounds: write outside shared tensor 's[AB]': block 3 of a cluster "
   .. "of 2", {COPY}},

  {"a named barrier is for twice as many", {{"store_tile",
     "num_threads = WARPGROUP}", "num_threads = 2 * WARPGROUP}"}}, SOME,
   "deadlock: .* at barrier 1, where 128 threads came and 256 are needed",
   {MEET}},
  {"a named barrier is for half as many", {{"store_tile",
     "num_threads = WARPGROUP}", "num_threads = WARPGROUP // 2}"}},
   {"whole", "2x1", "turns"},
   {"barrier%-mismatch: nothing orders this arrival at barrier %d behind its "
    .. "last round", "race: ", "uninitialised: .* 'sD'"}},
  {"both warpgroups have one named barrier", {{"store_tile",
     "barrier_id = x.group + 1", "barrier_id = 1"}}, ALL,
   "barrier%-mismatch: nothing orders this arrival at barrier 1 behind its last"
   .. " round: it may be counted there, in place of another"},
  {"nobody passes on the turn", {{"kernel",
     "if order then order:arrive() end", "", 1}}, {"turns", "turns 2x1"},
   {"deadlock: ", TOO_EARLY[2], TOO_EARLY[3], OVERWRITTEN}},
  {"nobody waits for his turn", {{"kernel", "if order then order:wait() end",
     ""}}, {"turns", "turns 2x1"}, {TOO_EARLY[1], TOO_EARLY[2], TOO_EARLY[3],
    OVERWRITTEN, TWICE, "deadlock: "}},

  {"half of the other's sums are expected", {{"split2",
     "sums * o.acc.bits // 8)", "sums * o.acc.bits // 16)"}}, {"halves"},
   "async%-in%-flight: read of shared memory while a st.async to it is in "
   .. "flight"},
  {"nobody waits for the other's sums", {{"split2",
     "cute.arch.mbarrier_wait(mail.came, 0)", ""}}, {"halves"},
   {"exited%-block: ", "async%-in%-flight", "uninitialised: .* 'mail'",
    "race: "}},
  {"the halves do not meet first", {{"kernel",
     "pipeline.pipeline_init_wait(true)", ""}}, {"halves"},
   "mbarrier: mbarrier 'came'%[0%] is used with nothing"},

  {"producers keep their registers", {{"kernel",
     "cute.arch.setmaxregister_decrease(o.registers.producer)", ""}},
   {"registers"}, "deadlock: .* at setmaxnreg for 240 registers a thread: they "
   .. "have 168, and others gave back 0 a thread",
   {"cute.arch.setmaxregister_increase"}},
  {"consumers take more than there are", {{"options", "producer = 24",
     "producer = 56"}}, {"registers"}, "deadlock: .* at setmaxnreg for 240 "
   .. "registers a thread: they have 168, and others gave back %d+ a thread"},
}

-- The line that holds something, of the first file that does.
local function line(texts, what)
  for _, part in ipairs(KERNEL) do
    local text = texts[part] or support.read(path_of(part))
    local at = text:find(what, 1, true)
    if at then return select(2, text:sub(1, at):gsub("\n", "")) + 1 end
  end
  error(what)
end

--- Is a fault what one of the patterns says, "kind: message"?
---@param f table of a report
---@param patterns string|string[]
function planted.told(f, patterns)
  local text = f.kind .. ": " .. f.message
  for _, p in ipairs(type(patterns) == "table" and patterns or {patterns}) do
    if text:find(p) then return true end
  end
  return false
end

--- What is wrong with how a fault of FAULTS is told where it was planted; nil:
-- nothing.
---@param fault table
---@param r table the report
---@param texts table<string, string> of planted.kernel
function planted.untold(fault, r, texts)
  local first = r.reports[1]
  if not first then return "nothing is told" end
  if not planted.told(first, fault[4]) then return "other words" end
  for i, what in ipairs(fault[5] or {}) do
    local want, got = line(texts, what), i == 1 and first.line or first.line2
    if got ~= want then return ("line %d, not %d"):format(got or 0, want) end
  end
end

return planted
