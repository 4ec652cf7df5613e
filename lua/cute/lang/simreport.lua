--- Formats the simulator's findings.
--
-- A report is the table that a launch on the simulator returns:
--   ok            no fault was found
--   reports       faults: {kind=, message=, file=, line=, line2=, tensor=,
--                 offset=, coord=, layout=, thread=, block=, count=,
--                 lack= (the missing operation, where known), leads= (number of
--                 the fault that this one may follow from),
--                 way= (of a race: the path through the program from the other
--                 access to this one: "straight", "again", to a line of an
--                 unrolled loop, or "loop", through its end), loop_file=, loop=
--                 (that loop; else one that leads back with no barrier),
--                 outside= (the barrier has to be outside of a branch)}
--   lines         memory traffic by source line: {file=, line=, op=, shared=,
--                 global=, out= (from shared memory to global), count=,
--                 wavefronts=, conflicts=, requests=, sectors=,
--                 least_sectors=, bytes=}
--   instructions, mmas, ctas, seconds, output (of printf), stopped
--   requests      with record = true: recorded accesses to shared memory
--   granules      the most granules of memory whose users a cluster tracked
--   relies        behaviour of GPUs that PTX does not guarantee; form of faults
--   few           a grid that seems too small for an output (core/sim/left.c)
--   notes()       sentences on behaviour that is no fault but hardly intended
-- tostring(report) prints the leading faults, report:details() all of them,
-- report:traffic() the table of lines, report:json() everything for programs.
local core = require "cute.core"
local sign = require "cute.lang.signature"
local source = require "cute.lang.source"
local words = require "cute.lang.report"

local plural = words.plural

local simreport = {}

local Report = {}
Report.__index = Report
simreport.Report = sign.extensible("report", Report,
  "conflicts find_swizzle json total traffic")

--- Advice by kind of fault.
simreport.ADVICE = {
  ["out-of-bounds"] = "predicate the access, or see whether the tile and "
    .. "the tensor's shape fit",
  ["misaligned"] = "use a narrower copy, or pad the layout so that every "
    .. "vector starts on its own size, and boxes of TMA on 16 bytes",
  ["uninitialised"] = "nobody wrote this before: is an initialisation, a "
    .. "copy or a barrier missing?",
  ["unwritten"] = "is a tile, a rest or a branch missing? Where others are to "
    .. "write them: hand over the part, or say cute.undefined_ok(tensor)",
  ["async-in-flight"] = "put cp_async_wait_group(n) with a smaller n, and "
    .. "sync_threads(), before the read",
  ["race"] = "put sync_threads() between the two lines",
  ["warp-race"] = "put cute.arch.sync_warp() between the two lines",
  ["block-race"] = "let one block do it, use atomics, or hand over with a "
    .. "release and an acquire for the gpu",
  ["divergent"] = "move it out of the branch, so that all threads come, or "
    .. "name those that come in its mask, where it has one",
  ["inactive-lane"] = "read lanes of the mask only: a narrower width, or a "
    .. "mask with more lanes",
  ["unstarted-block"] = "meet the cluster before (cluster_arrive, "
    .. "cluster_wait): then all of its blocks run",
  ["exited-block"] = "let the block wait for it, or meet the cluster once more "
    .. "(cluster_arrive, cluster_wait) before it ends",
  ["index-overflow"] = "compute it in i64: x:to(cute.i64) * y",
  ["signed-overflow"] = "compute it in i64, x:to(cute.i64) + y, or in u32, "
    .. "which wraps: x:to(cute.u32) + y",
  ["wrong-layout"] = "make the extents multiples of the tile, keep the layout "
    .. "static, or divide it mode by mode",
  ["registers"] = "setmaxregister_decrease gives registers back, "
    .. "setmaxregister_increase takes them",
  ["barrier-mismatch"] = "all that use a barrier must name the same number "
    .. "of threads and come once",
  ["bad-metadata"] = "cute.nvgpu.sparse.compress makes metadata of a matrix, "
    .. "partition_E deals it out",
  ["warpgroup-mismatch"] = "all 128 threads of a warpgroup come to each of "
    .. "its MMAs, with the same operands: descriptors by make_warp_uniform",
  ["deadlock"] = "some threads, or bytes, never come to the barrier that "
    .. "others wait at",
  ["dependent-launch"] = "cute.arch.griddepcontrol_wait() before the first "
    .. "access to memory that the launches share",
  ["division-by-zero"] = "keep the divisor from being 0, or choose with "
    .. "cute.where what is used",
  ["runaway"] = "does the loop end? otherwise raise the budget option",
}

--- Advice for certain messages: kind, pattern of the message, advice, and a
-- phrase for the fault's second line.
local SPECIAL = {
  {"block-race", "takes a number", "let who draws the last number of all put "
    .. "it back: the tiles and one more for each that draws"},
  {"race", "thread's read, with no", "PTX orders accesses through two proxies "
    .. "by a fence between them: fence_view_async_shared() in the threads that "
    .. "read, before they arrive, or in the one that copies, behind its wait"},
  {"race", "one warp's wait_group", "PTX orders only this warp's reads; wait "
    .. "for the others by a barrier or an mbarrier"},
  {"race", "fence_proxy.*global", "fence_proxy(\"async.global\") in the "
    .. "threads that wrote, before they hand it over, or in the one that "
    .. "copies, behind its acquire"},
  {"race", "fence_proxy", "call fence_view_async_shared() in the threads that "
    .. "wrote, then meet at a barrier"},
  {"race", "two warps write", "let one thread write it, or use an atomic; "
    .. "where one comes after the other, sync_threads() in between"},
  {"warp-race", "two lanes", "let one lane write it, or use an atomic; where "
    .. "one comes after the other, cute.arch.sync_warp() in between"},
  {"race", "cp.async that is in flight", "wait for it before: "
    .. "cp_async_wait_group(n), or the mbarrier that tells that all have read"},
  {"warp-race", "cp.async that is in flight", "wait for it before: "
    .. "cp_async_wait_group(n), or the mbarrier that tells that all have read"},
  {"exited-block", "copy to or from", "wait before the end: for a load at "
    .. "its mbarrier, for a store cp_async_bulk_commit_group() and "
    .. "cp_async_bulk_wait_group(0) in its thread"},
  {"mbarrier", "at once when [1-9]", "mbarrier_init counts the threads that "
    .. "arrive in a phase: make it for as many, or let one lane arrive"},
  {"race", "by wgmma", "warpgroup.wait_group(n) before the stage is handed "
    .. "back, and whoever fills it waits until it is"},
  {"race", "not waited for", "wait for it (by its mbarrier, "
    .. "cp_async_bulk_wait_group or warpgroup.wait_group), then at a barrier"},
  {"race", "another block", "cluster_arrive() and cluster_wait() between the "
    .. "two lines, or an mbarrier with scope = \"cluster\" for both sides "
    .. "(PipelineTmaAsync {scope = \"cluster\"})"},
  {"warp-race", "not waited for", "let one lane start it, "
    .. "cute.when(tid:eq(0), ...), or wait between the two"},
  {"async-in-flight", "no group", "cp_async_commit_group() behind the copy, "
    .. "then cp_async_wait_group(n); or let it arrive at an mbarrier "
    .. "(PipelineAsync {cp_async = true})"},
  {"async-in-flight", "global memory", "cp_async_bulk_wait_group(n), not read "
    .. "alone, in the thread that stores, then a barrier", "the store"},
  {"async-in-flight", "bulk copy", "wait for its mbarrier before the read"},
  {"tensor-map", "not released", "fence_tma_desc_release() in the thread that "
    .. "changed it, or cp_fence_tma_desc_release() from shared memory"},
  {"tensor-map", "not acquired", "fence_tma_desc_acquire() in the thread that "
    .. "copies, behind a barrier"},
  {"tensor-map", "wait for bulk loads", "by PTX a bulk load ends at its "
    .. "mbarrier alone: wait there before the map changes"},
  {"tensor-map", "in flight", "wait for the copies by it, then change it"},
  {"tensor-map", "more elements",
    "the tensor that update_tma_descriptor was given "
    .. "must lie in its buffer"},
  {"tensor-map", "no valid", "copy_tensormap() of this atom first"},
  {"mbarrier", "in use in the memory",
    "an mbarrier's memory holds no data before "
    .. "mbarrier_inval: is this index too large, or the memory used twice?"},
  {"mbarrier", "which never ends", "wait with the state that goes round the "
    .. "ring (producer_tail: the producer's), or let others arrive behind it"},
  {"mbarrier", "instead of another", "mbarrier_init counts all that arrive "
    .. "in a phase (of a pipeline: its producer_group, its consumer_group), "
    .. "and who arrives again waits for its end before (for a stage: until it "
    .. "is empty)"},
  {"mbarrier", "counts %d+ arrival", "an arrival too many, or one of the next "
    .. "phase: wait for the end of this one (for a stage: until it is empty)"},
  {"registers", "all warps", "all four warps of a warpgroup execute one "
    .. "setmaxnreg: outside of the branch, or in one for whole warpgroups "
    .. "(warp_idx() // 4)"},
  {"registers", "next setmaxnreg", "a barrier for the 128 threads of the "
    .. "warpgroup, or sync_threads(), between the two"},
  {"barrier-mismatch", "previous phase",
    "let those who come wait for it, or for "
    .. "who waited there; roles have barriers of their own"},
  {"deadlock", "last written", "who was to store what this waits for?",
    "the last store"},
  {"deadlock", "never written", "who was to store what this waits for?"},
  {"deadlock", "bytes", "a TMA load brings the tx_bytes of its atom, whole "
    .. "boxes, whatever of them lies outside: expect all that come"},
}

-- Advice for a race of a source line with itself, when it reads and writes the
-- same element.
local ONE_LINE = {
  ["race"] = "many add to one element by an atomic (cute.arch.atomic_add); "
    .. "else read, sync_threads(), then write",
  ["warp-race"] = "many add to one element by an atomic "
    .. "(cute.arch.atomic_add); else read, cute.arch.sync_warp(), then write",
}

local function at(file, line)
  if not line then return nil end
  return ("%s:%d"):format(source.short(file or "?"), line)
end
simreport.at = at

local BARRIERS = {["race"] = "sync_threads()",
                  ["warp-race"] = "cute.arch.sync_warp()"}
local ATOMIC = "many add to one element by an atomic (cute.arch.atomic_add); "
  .. "else "
local FAR = "cluster_arrive() and cluster_wait() %s, or an mbarrier with scope "
  .. "= \"cluster\" for both sides (PipelineTmaAsync {scope = \"cluster\"})"

-- Returns the place where the missing barrier belongs, as text.
local function place_on(r, same, loop)
  local where = "between the two lines"
  if r.way == "loop" then return loop end
  if r.way == "again" and same then
    where = "behind the line, before it runs again"
  elseif r.way == "again" then
    where = ("behind %s, before %s runs again"):format(at(r.file2, r.line2),
      at(r.file, r.line))
  elseif same then
    where = "between the write and the read"
  end
  return r.outside and where .. ", outside of the branch" or where
end

-- Returns advice on a race if the path through the program from one access to
-- the other is known.
local function on_the_way(r)
  local same = r.line2 == r.line and r.file2 == r.file
  local barrier, loop = BARRIERS[r.kind], r.loop
    and "at the end of the loop of " .. at(r.loop_file, r.loop)
  local where = place_on(r, same, loop)
  if r.message:find "write one element" then
    return ("let one %s write it, or use an atomic; where one comes after the "
      .. "other, %s %s"):format(r.kind == "race" and "thread" or "lane",
      barrier, r.way == "straight" and "in between" or where)
  end
  local reads = r.message:find "^read" ~= nil
  if same and r.way == "straight" and not reads then
    where = ("read, %s, then write"):format(barrier)
  elseif r.message:find "another block" then
    where = FAR:format(where)
  else
    where = ("put %s %s"):format(barrier, where)
  end
  if loop and r.way ~= "loop" then
    where = ("%s; and one %s, where its steps use the same elements"):format(
      where, loop)
  end
  -- A line that reads, then writes.
  local adds = same and not reads == (r.way == "straight")
  return adds and ATOMIC .. where or where
end

-- Advice by kind of fault and by its field `lack`, the missing operation.
local LACKS = {
  ["async-in-flight barrier"] = "put sync_threads() behind the "
    .. "cp_async_wait_group(n) of the threads that copy, before the read",
  ["async-in-flight wait"] = "wait for its mbarrier before the read",
  ["async-in-flight parity"] = "wait for the parity of this phase: 0 for the "
    .. "first, then 1, 0, ...",
  ["async-in-flight bytes"] = "expect the bytes of all that is copied: a TMA "
    .. "load brings the tx_bytes of its atom",
  ["async-in-flight turn"] = "before the copy wait until all have read: an "
    .. "mbarrier that they arrive at, of their number",
  ["uninitialised wait"] = "a copy brings it: wait at its mbarrier before the "
    .. "read, for its stage and parity",
  ["uninitialised parity"] = "wait for the parity of this phase: 0 for the "
    .. "first, then 1, 0, ...",
  ["uninitialised roles"] = "other threads write it: they arrive at an "
    .. "mbarrier behind the write, who reads waits there, for the same stage "
    .. "and its parity",
  ["race wait"] = "wait at the mbarrier that it completes before the read",
  ["race parity"] = "the wait at the mbarrier that it completes passed too "
    .. "early: wait for the parity of this phase",
  ["race roles"] = "arrive at an mbarrier, or a named barrier, behind the "
    .. "write, and wait there before the read: these threads have no "
    .. "sync_threads() in common",
  ["race barrier"] = "its own threads waited for it; put sync_threads(), or an "
    .. "mbarrier that they arrive at, between their wait and this line",
  ["race issuer"] = "a wait counts for the threads alone that started it: let "
    .. "those wait, then meet the others at a barrier",
  ["async-in-flight read"] = "cp_async_bulk_wait_group(n), not read alone: "
    .. "cp_async_bulk_wait_group(n, true) waits until the source was read, not "
    .. "for what is written",
  ["block-race read"] = "cp_async_bulk_wait_group(n, true) waits until the "
    .. "source was read: before others are told, wait without `read`",
  ["race turn"] = "before it is filled anew, wait until all have read: an "
    .. "mbarrier that each reader arrives at behind its read, made for as many",
  ["race turn far"] = "before it is filled anew, wait until all have read: an "
    .. "mbarrier that the readers of all these blocks arrive at, with scope = "
    .. "\"cluster\" for both sides (PipelineTmaAsync {scope = \"cluster\"})",
  ["deadlock first"] = "nobody has read what was never filled: who fills "
    .. "waits for parity 1 in the first round, then 0, 1, ...",
  ["deadlock parity"] = "a wait here passed for a phase that was not over: who "
    .. "reads waits for parity 0 first, then 1, 0, ...",
  ["deadlock count"] = "mbarrier_init counts the arrivals of a phase: make it "
    .. "for as many as come, or let the others come",
  ["deadlock nobody"] = "no thread that is left comes there: make it for "
    .. "those that do, or let the others come",
  ["deadlock bytes"] = "a TMA load brings the tx_bytes of its atom, whole "
    .. "boxes, whatever of them lies outside: expect all that come",
}
LACKS["async-in-flight issuer"] = LACKS["race issuer"]

local SECOND = {
  ["deadlock count"] = "made", ["deadlock nobody"] = "made",
  ["deadlock bytes"] = "expected", ["async-in-flight read"] = "the store",
  ["uninitialised wait"] = "the copy",
  ["uninitialised parity"] = "the copy",
  ["uninitialised roles"] = "the write",
}

-- The function that waits for groups of asynchronous operations, by a phrase in
-- a message.
local GROUPS = {["by wgmma"] = "warpgroup.wait_group",
                ["bulk copy"] = "cp_async_bulk_wait_group",
                ["cp.async"] = "cp_async_wait_group"}

-- Returns advice if a wait for groups left too many groups pending.
local function fewer(r)
  for agent, call in pairs(GROUPS) do
    if r.message:find(agent, 1, true) then
      return ("the wait left its group pending: %s(%d) waits for it, too")
        :format(call, r.most)
    end
  end
end

-- Phrases in a message that also describe its second line: the asynchronous
-- operation.
local AGENTS = {"a cp.async", "an st.async", "a bulk copy"}

local function agent_of(r)
  for _, name in ipairs(AGENTS) do
    if r.message:find("while " .. name, 1, true) then
      return "the" .. name:match " .*"
    end
  end
end

-- Returns the advice for a fault, and a phrase that describes its second line.
function simreport.words_on(r)
  local key = ("%s %s"):format(r.kind, r.lack or "")
  local second = SECOND[key]
    or r.kind == "async-in-flight" and agent_of(r)
  if key == "race turn" and r.message:find "another block" then
    key = "race turn far"
  end
  if r.lack == "pending" then return fewer(r), second end
  if LACKS[key] then return LACKS[key], second end
  if r.way then return on_the_way(r), second end
  for _, s in ipairs(SPECIAL) do
    if r.kind == s[1] and r.message:find(s[2]) then
      return s[3], s[4] or second
    end
  end
  if ONE_LINE[r.kind] and r.line2 == r.line and r.file2 == r.file then
    return ONE_LINE[r.kind], second
  end
  return simreport.ADVICE[r.kind], second
end

--- A phrase that describes the second line of a fault, by kind.
local OTHER = {["index-overflow"] = "the product",
               ["signed-overflow"] = "the result",
               ["uninitialised"] = "taken from the register in",
               ["division-by-zero"] = "the division"}

local function triple(t)
  return ("(%d,%d,%d)"):format(t[1], t[2], t[3])
end

--- Returns one fault as text.
---@param r table an element of report.reports
---@param known? table<string, boolean> advice already given, not to be repeated
---@return string
function simreport.fault(r, known)
  local place = at(r.file, r.line)
  local advice, second = simreport.words_on(r)
  if known and advice then
    if known[advice] then advice = nil else known[advice] = true end
  end
  local text = {("%s%s [%s]"):format(place and place .. ": " or "", r.message,
                                     r.kind)}
  if r.coord and not r.message:find "coordinate" then
    text[#text + 1] = ("    coordinate %s%s"):format(r.coord, r.layout
      and " of " .. r.layout or "")
  end
  local other = at(r.file2, r.line2)
  if other then
    local what, thread = second or OTHER[r.kind] or "the other",
      r.other and ("thread %d"):format(r.other)
    if other == place then other = thread or "the same line"
    elseif thread then other = other .. ", " .. thread end
    text[#text + 1] = ("    %s: %s"):format(what, other)
  end
  local times = r.count > 1 and (", %d times"):format(r.count) or ""
  if r.kind ~= "unwritten" then
    text[#text + 1] = ("    first in block %s, thread %s%s")
      :format(triple(r.block), triple(r.thread), times)
  end
  if advice then text[#text + 1] = "    " .. advice end
  return core.visible(table.concat(text, "\n"), true)
end

--- Returns for each leading fault, by its number, how many other faults may
-- follow from it; and the number of leading faults.
---@param report table
---@return integer[] followers
---@return integer leaders
function simreport.followers(report)
  local count, leaders = {}, 0
  for _, r in ipairs(report.reports) do
    if r.leads then count[r.leads] = (count[r.leads] or 0) + 1
    else leaders = leaders + 1 end
  end
  return count, leaders
end

Report.followers = simreport.followers

-- Adds notes on lines whose TMA stores wrote nothing, because all their boxes
-- are outside of the tensor.
local function stores_outside(lines, add)
  local known, list = {}, {}
  for _, s in ipairs(lines) do
    if s.op == "tma.store" then
      local place = at(s.file, s.line)
      local one = known[place or "?"]
      if not one then
        one = {place = place, tensor = s.global, count = 0, sectors = 0}
        known[place or "?"], list[#list + 1] = one, one
      end
      one.count, one.sectors = one.count + s.count, one.sectors + s.sectors
    end
  end
  for _, one in ipairs(list) do
    if one.count > 0 and one.sectors == 0 then
      add(one.place, ("no box that this TMA store writes has an element "
        .. "inside of tensor '%s': nothing is stored"):format(one.tensor))
    end
  end
end

--- Returns a sentence with source lines about behaviour that the program relies
-- on but PTX does not guarantee.
---@param r table an element of report.relies
---@return string
function simreport.reliance(r)
  local place, other = at(r.file, r.line), at(r.file2, r.line2)
  local text = ("%s: %s"):format(place or "?", r.message)
  if other then text = ("%s (the other: %s)"):format(text, other) end
  return core.visible(("%s; relies on the card: %s"):format(text,
    (simreport.words_on(r))))
end

--- Returns notes on a run without faults. They are sentences about behaviour
-- that was probably not intended, with source lines.
---@return string[]
function Report:notes()
  local list = {}
  local function add(place, text)
    list[#list + 1] = core.visible(("%s: %s"):format(place or "?", text))
  end
  local program = self.program
  if not self.ok or self.stopped or not program then return list end
  for i, r in ipairs(self.relies or {}) do list[i] = simreport.reliance(r) end
  stores_outside(self.lines, add)
  program.unread = program.unread or core.sim_unread(program.fn)
  for _, o in ipairs(program.unread) do
    add(at(o.file, o.line), ("shared tensor '%s' is filled here and never "
      .. "read"):format(o.name))
  end
  local f = self.few
  if f then
    add(at(f.file, f.line), ("%d of %d elements of global tensor '%s' were "
      .. "never stored to: mode %d ends at %d of %d, each block stores %d "
      .. "there; is the grid too small?"):format(f.none, f.all, f.tensor,
      f.mode, f.from, f.extent, f.each))
  end
  return list
end

--- Returns the note of a kernel in printed form and marks it as written.
-- Returns nil if it was already written.
---@param kernel string
---@param text string
---@return string? note as printed
function simreport.new_note(kernel, text)
  return words.new_note(("kernel %s: %s"):format(kernel, text))
end

--- Writes the notes of a run to standard error, each once.
function Report:tell_notes()
  for _, text in ipairs(self:notes()) do
    words.note(("kernel %s: %s"):format(self.kernel, text))
  end
end

local function told(self, all)
  local head = ("simulator: kernel %s: "):format(self.kernel or "?")
  if #self.reports == 0 then
    local text = {head .. (self.stopped and "stopped" or "nothing to report")}
    for _, note in ipairs(self:notes()) do
      text[#text + 1] = "note: " .. note
    end
    return core.visible(table.concat(text, "\n"), true)
  end
  local followers, leaders = self:followers()
  local text, known = {head .. plural(leaders, "fault")
    .. (self.stopped and ", then stopped" or "")}, {}
  for i, r in ipairs(self.reports) do
    local lines = (not r.leads or all) and simreport.fault(r, known)
    if lines and r.leads then lines = lines:gsub("%f[^\n\0]", "      ") end
    text[#text + 1] = lines or nil
    if followers[i] then
      text[#text + 1] = ("    %d more may follow from it%s"):format(
        followers[i], all and ":" or "")
    end
  end
  return core.visible(table.concat(text, "\n"), true)
end

function Report:__tostring() return told(self, false) end

--- Returns the text of all faults, including those that may follow from another
-- one.
---@return string
function Report:details() return told(self, true) end

--- Converts the table that core.sim_run returns to a report of a program.
function simreport.attach(report, program)
  report.kernel = report.kernel or (program and program.info.name)
  report.program = program
  return setmetatable(report, Report)
end

return simreport
-- SPDX-License-Identifier: MIT
