--- Formats the faults that the simulator found, with advice.
local core = require "cute.core"
local outside = require "cutelua.text.outside"
local source = require "cute.lang.source"
local words = require "cute.lang.report"
local simreport = require "cute.lang.simreport"
local unused = require "cute.lang.unused"
local at = simreport.at

-- These modules are loaded when they are first needed, because most reports
-- have no fault.
local function kinds() return require "cute.lang.kinds" end
local function notes() return require "cutelua.text.notes" end

local faults = {}

local function triple(t)
  return ("(%d,%d,%d)"):format(t[1], t[2], t[3])
end

local ATOMIC = "to add to one element from many threads, use an atomic "
  .. "(cute.arch.atomic_add); otherwise "

-- Returns text that says where a barrier would prevent race r. `same` is true
-- if both accesses are in one line. `loop` describes the end of the loop in
-- r.loop.
local function place_on(r, same, loop)
  local where = "between the two lines"
  if r.way == "loop" then return loop end
  if r.way == "again" and same then
    where = "after the line, before it runs again"
  elseif r.way == "again" then
    where = ("after %s, before %s runs again"):format(at(r.file2, r.line2),
      at(r.file, r.line))
  elseif same then
    where = "between the write and the read"
  end
  return r.outside and where .. ", outside of the branch" or where
end

-- Returns advice on a race. It depends on how the program gets from one access
-- to the other (r.way).
local function on_the_way(r)
  local same = kinds().one_line(r)
  local barrier, case = kinds().FAULTS[r.kind].barrier, kinds().case(r)
  local loop = r.loop
    and "at the end of the loop of " .. at(r.loop_file, r.loop)
  local where = place_on(r, same, loop)
  if case.overlap then return case.cure end
  if case.writers then
    return ("let one %s write it, or use an atomic; if one write must follow "
      .. "the other, put %s %s"):format(r.kind == "race" and "thread" or "lane",
      barrier, r.way == "straight" and "in between" or where)
  end
  local reads = r.facts.how == "read after write"
  if same and r.way == "straight" and not reads then
    where = ("read, %s, then write"):format(barrier)
  elseif case.far then
    where = kinds().FAR:format(where)
  else
    where = ("put %s %s"):format(barrier, where)
  end
  if loop and r.way ~= "loop" then
    where = ("%s; and one %s, if its iterations use the same elements"):format(
      where, loop)
  end
  -- True if the line reads an element before it writes it, as an addition to
  -- shared memory does.
  local adds = same and not reads == (r.way == "straight")
  if r.refill then
    where = where .. "; or fill one stage less before the loop, so that the "
      .. "copy fills another stage than the one that was just read"
  end
  local both = r.facts.how == "write after write" and not same
  if both and r.way == "straight" then
    where = "both lines store to this element: is an index wrong? If both "
      .. "stores are meant, " .. where
  end
  return adds and ATOMIC .. where or where
end

local IN_WHERE = "cute.where(c, x, y) computes both x and y, also where c is "
  .. "false: read in cute.when(c, function() return x end, function() return y "
  .. "end), or clamp the index"
local REFILL = "the stage is filled again while its previous copy is in "
  .. "flight: acquire it before the copy, pipe:producer_acquire(state), with a "
  .. "state that advances, or wait at the mbarrier of its readers"
-- The largest number of lines between a read and the cute.where that uses its
-- value.
local NEAR_LINES = 8

-- The functions that wait for groups of asynchronous operations. The keys name
-- the agent, which is the hardware that executes the operations.
local GROUPS = {["wgmma"] = "warpgroup.wait_group",
                ["bulk copy"] = "cp_async_bulk_wait_group",
                ["cp.async"] = "cp_async_wait_group"}

-- Returns advice if a wait left so many groups pending that it did not wait for
-- the access in fault r; else nil.
local function fewer(r)
  local call = GROUPS[r.facts.agent]
  return call and ("the wait leaves its group pending: %s(%d) waits for that "
    .. "group too"):format(call, r.most)
end

-- Values of a fault's field `lack` that suggest that the thread used the wrong
-- stage of a ring. The field says what was missing.
local STAGE_LACKS = {pending = true, wait = true, stage = true, bytes = true,
                     parity = true}

-- Returns advice for a fault in one stage of a ring if the report describes
-- another stage that may be the right one; else nil.
local function other_stage(r)
  local late = r.lack and not STAGE_LACKS[r.lack]
  if r.strays == "released" then
    return "the thread that read had released the stage before this read: "
      .. "does the read use the index of its wait, and does the release come "
      .. "after the read?"
  elseif r.strays then
    return ("the last wait before the %s was for another stage, that of "
      .. "coordinate %s: do the wait and the %s use the same index?"):format(
      r.strays, r.elsewhere, r.strays)
  elseif r.ready and not late then
    return ("the wait completed the copy to coordinate %s, which no thread has "
      .. "read: do the copy, the wait and this read use the same stage?")
      :format(r.elsewhere)
  elseif r.ready and r.lack == "barrier" then
    return ("%s; or does the read use another stage than the wait, which "
      .. "completed the copy to coordinate %s?"):format(
      kinds().FAULTS["async-in-flight"].lacks.barrier.cure, r.elsewhere)
  elseif r.same then
    return ("its group also copies to coordinate %s, in another stage: call "
      .. "cp_async_commit_group() after the copies of each stage")
      :format(r.elsewhere)
  elseif r.open then
    return ("the copy to coordinate %s, in another stage, is in no group, so "
      .. "that the wait counts one group less: call cp_async_commit_group() "
      .. "after it, before the wait"):format(r.elsewhere)
  elseif r.idle and r.facts.agent == "cp.async" then
    return "no group was committed since the wait before this one: call "
      .. "cp_async_commit_group() in every iteration, also where nothing is "
      .. "copied, or end with cp_async_wait_group(0)"
  elseif r.elsewhere and r.kind == "uninitialised" then
    return ("a copy fills coordinate %s, in another stage, but not this one: "
      .. "do the copies before the loop fill the first stages, and is the "
      .. "index of the stage right?"):format(r.elsewhere)
  end
end

-- Kinds of faults that overlapping elements of a layout may cause.
local OVERLAPS = {["race"] = true, ["warp-race"] = true,
                  ["async-in-flight"] = true}

-- Returns the names of two arrays of mbarriers: the one that signals full
-- stages, and the one that signals empty stages. `name` is one of them. Returns
-- nothing if `name` contains neither "full" nor "empty".
local function other_side(name)
  if name:find "empty" then return (name:gsub("empty", "full")), name end
  if name:find "full" then return name, (name:gsub("full", "empty")) end
end

-- Returns advice if a ring's stages were filled more often than released, or
-- the other way round. Then one side waits, and the other side has ended or
-- waits, too.
local function uneven(r)
  if r.wait then return end
  local full, empty = other_side(r.ring or "")
  local filled, released = (r.rounds or {})[full], (r.rounds or {})[empty]
  local alone = r.kind == "deadlock" and r.lack == "nobody"
  local ended = alone and r.facts.ended ~= 0
  -- If the barrier has completed a phase, its number of expected arrivals is
  -- right.
  if alone and not ended and r.ring == full and (filled or 0) > 0
    and r.facts.barrier > 0 then
    return ("filled %d stages, and this waits for one more, which no running "
      .. "thread fills: do the copies before and in the loop fill a stage for "
      .. "each wait?"):format(filled)
  end
  if math.min(filled or 0, released or 0) < 1 then return end
  -- A reader that waits for a full stage holds at most one other stage.
  if ended and (r.ring == empty or filled - released < 2)
    or r.kind == "exited-block" and filled > released then
    return ("filled %d stages, released %d%s: do both loops count alike?")
      :format(filled, released, ended and ", and this waits for one more" or "")
  end
end

-- Returns advice if threads arrive at an mbarrier of the other block of a pair,
-- but not at the one of this block.
local function other_block(r)
  local f = r.facts
  if r.kind ~= "deadlock" or not r.pair or r.lack ~= "nobody" then return end
  if f.twin == 1 then
    return ("threads arrive at this mbarrier of block %s, but not of this "
      .. "block: should only that block of the pair wait here, as "
      .. "pipe.is_leader_cta selects?"):format(triple(f.cta))
  elseif f.twin == 2 then
    return ("the commit arrives at this mbarrier of block %s, but not of this "
      .. "block: commit(mbarrier, 3, CtaGroup.TWO) arrives in both blocks")
      :format(triple(f.cta))
  end
end

-- Returns advice if no thread arrives at an mbarrier of a pipeline. The class
-- of the pipeline is in the script's line that made the mbarrier.
local function unsignalled(r)
  local made = r.kind == "deadlock" and r.lack == "nobody" and r.line2
    and source.line(r.file2, r.line2) or ""
  local class = made:match "%f[%w]Pipeline(%a+)"
  local full, empty = other_side(r.ring or "")
  -- A round also counts as begun if bytes arrive that no thread expected.
  if not class or ((r.rounds or {})[r.ring] ~= 0 and r.facts.bytes >= 0) then
    return
  end
  if r.ring == empty then
    return "no thread releases the stage: does each reader call "
      .. "pipe:consumer_release(state) after its reads?"
  elseif r.ring == full and (class:find "^Tma" or class:find "^Clc") then
    return ("no thread fills the stage: does the producer call "
      .. "pipe:producer_acquire(state) before its %s, for each stage?"):format(
      class:find "^Tma" and "copies" or "query")
  elseif r.ring == full then
    return "no thread fills the stage: does the producer call "
      .. "pipe:producer_commit(state) after its writes?"
  end
end

-- Reports whether fault r consists of two overlapping copies into shared memory
-- that one thread started at one line.
local function is_refill(r)
  local f = r.facts
  return f.how == "write after write" and not f.proxy
    and (f.agent == "cp.async" or f.agent == "bulk copy")
    and kinds().one_line(r) and r.other == r.thread[1]
    and r.thread[2] == 0 and r.thread[3] == 0
end

-- Reports whether the value read in fault r is an argument of cute.where, in
-- the same line or, through a local, in one of the next lines. cute.where
-- computes both of its values, whatever the condition.
local function is_in_where(r)
  local line = r.file and source.line(r.file, r.line)
  if not line or r.facts.write then return false end
  if line:find "%f[%w_]where%s*%(" then return true end
  local name = line:match "^%s*local%s+([%a_][%w_]*)%s*=[^=]"
  for n = r.line + 1, name and r.line + NEAR_LINES or 0 do
    local next_line = source.line(r.file, n)
    if next_line and next_line:find("%f[%w_]where%s*%(.*%f[%w_]" .. name
      .. "%f[^%w_]") then return true end
  end
  return false
end

-- Returns advice for a deadlock at barrier `id`, at which no running thread can
-- arrive.
local function absent_arrivals(id)
  if id == 0 then
    return "all threads of the block must execute sync_threads() equally "
      .. "often: move it out of branches, and out of loops whose trip count "
      .. "differs, or use cute.arch.barrier(id, n) for some warps"
  end
  return ("no running thread arrives there: let the missing threads call "
    .. "cute.arch.barrier_arrive(%s, n), or name the number n of the threads "
    .. "that arrive"):format(id)
end

-- Adds a question to the advice for a fault with two lines: does one of the
-- lines use the wrong stage of a ring?
local function or_stage(r, advice)
  if not r.stages or r.refill or r.line2 == r.line then return advice end
  return ("%s; or does one of the lines use the wrong stage? This is stage %d "
    .. "of %d"):format(advice, r.stage, r.stages)
end

-- Returns the advice for a fault. Also returns a label for its other source
-- line, r.line2, or nil for the usual label.
function faults.advice(r)
  local f, missing, second = r.facts, kinds().lack(r)
  if r.twins and OVERLAPS[r.kind] then
    return ("layout %s maps %s and %s to one element: is a stride too small?")
      :format(r.layout, r.twins[1], r.twins[2]), second
  end
  local stage = other_stage(r)
  if stage then return stage, second end
  if r.lack == "pending" then
    local wait = fewer(r)
    return r.refill and wait .. "; or does the copy fill the stage that was "
      .. "just read instead of another one?" or wait, second
  end
  local loops = other_block(r) or uneven(r) or unsignalled(r)
  if loops then return loops, second end
  if is_refill(r) then
    return r.refill and REFILL .. "; or fill one stage less before the loop"
      or REFILL, second
  end
  if r.refill and f.how == "write after write" and not f.proxy
      and not kinds().case(r).writers then
    return "the stage is filled again before its data was read: do the copies "
      .. "before the loop and the loop's first copy use different stages, and "
      .. "does the loop begin with the first tile?", second
  end
  if r.kind == "deadlock" and r.lack == "nobody" and f.how == "barrier" then
    return absent_arrivals(f.barrier)
  end
  if missing then return missing, second end
  local row = kinds().FAULTS[r.kind]
  if r.counter and not f.draws then
    return ("element %d of the counter '%s' is %d when the launch begins: does "
      .. "the kernel count from 0? Otherwise %s"):format(r.counter_at,
      r.counter, r.counter_value, row.cure), second
  end
  if r.shared then
    return ("parameters '%s' and '%s' get the same memory: should one of them "
      .. "be another tensor, so that no block writes what another block reads?")
      :format(r.shared[1], r.shared[2]), second
  end
  if r.way then return or_stage(r, on_the_way(r)), second end
  if r.kind == "out-of-bounds" then
    local why = is_in_where(r) and IN_WHERE or outside.advice(r)
    if why then return why end
  end
  local cure, other = kinds().cure(r)
  if cure then return cure, other end
  if row.barrier and kinds().one_line(r) then
    return ("%sread, %s, then write"):format(ATOMIC, row.barrier), second
  end
  return r.kind == "async-in-flight" and or_stage(r, row.cure) or row.cure,
    second
end

-- Adds the lines and threads of a fault to its text. `second` is the label of
-- the fault's other line, r.line2.
local function add_places(text, r, second)
  local other = at(r.file2, r.line2)
  local own, thread = other and kinds().FAULTS[r.kind].own,
    r.other and ("thread %d"):format(r.other)
  local where = ("block %s, thread %s%s"):format(triple(r.block),
    triple(r.thread), r.count > 1 and (", %d times"):format(r.count) or "")
  if other and other == at(r.file, r.line) then
    other = thread or "the same line"
  elseif other and thread then
    other = other .. ", " .. thread
  end
  local lines = {other and ("    %s: %s"):format(second or "the other", other)}
  if own then
    lines[2] = ("    %s: %s"):format(own, where)
    -- alphabetical order puts "first access" before "second access"
    table.sort(lines)
  end
  table.move(lines, 1, #lines, #text + 1, text)
  local wait = at(r.wait_file, r.wait)
  if wait then
    text[#text + 1] = ("    the %s: %s"):format(kinds().waited(r), wait)
  end
  if not own and r.kind ~= "unwritten" and r.kind ~= "in-flight" then
    text[#text + 1] = "    first in " .. where
  end
end

--- Returns the text of one fault.
---@param r table an element of report.reports
---@param known? table<string, boolean> advice already given, not to be repeated
---@return string
function faults.text(r, known)
  local place = at(r.file, r.line)
  local advice, second = faults.advice(r)
  if known and advice then
    if known[advice] then advice = nil else known[advice] = true end
  end
  local text = {("%s%s [%s]"):format(place and place .. ": " or "", r.message,
                                     r.kind)}
  if r.coord and not r.facts.extent then
    text[#text + 1] = ("    coordinate %s%s"):format(r.coord, r.layout
      and " of " .. r.layout or "")
  end
  add_places(text, r, second)
  if advice then text[#text + 1] = "    " .. advice end
  return core.visible(table.concat(text, "\n"), true)
end

--- Returns a sentence, with source lines, about behaviour on which the program
-- relies although PTX does not guarantee it.
---@param r table an element of report.relies
---@return string
function faults.reliance(r)
  local place, other = at(r.file, r.line), at(r.file2, r.line2)
  local text = ("%s: %s"):format(place or "?", r.message)
  local advice, second = faults.advice(r)
  if other then
    text = ("%s (%s: %s)"):format(text, second or "the other", other)
  end
  return core.visible(("%s; PTX does not guarantee this: %s"):format(text,
    advice))
end

-- Adds a note for each line whose TMA stores wrote nothing because all their
-- boxes were outside of the tensor. Reports whether there is such a line.
local function stores_outside(lines, add)
  local known, list = {}, {}
  for _, s in ipairs(lines) do
    if s.op == "tma.store" then
      local place = at(s.file, s.line) or "?"
      local one = known[place]
      if not one then
        one = {file = s.file, line = s.line, tensor = s.global, count = 0,
               sectors = 0}
        known[place], list[#list + 1] = one, one
      end
      one.count, one.sectors = one.count + s.count, one.sectors + s.sectors
    end
  end
  local some = false
  for _, one in ipairs(list) do
    if one.count > 0 and one.sectors == 0 then
      some = true
      add("outside", one)
    end
  end
  return some
end

-- Returns text for the coordinates of a gap (elements that were never accessed)
-- in mode m, such as "rows 8 to 15". Also returns whether it is a single
-- coordinate.
local function coordinates(gap, m)
  local noun, tail = "elements", ""
  if gap.rank == 2 and not gap.map then
    noun = m.mode == 0 and "rows" or "columns"
  elseif gap.rank > 1 then
    noun, tail = "coordinates", (" of mode %d"):format(m.mode)
  end
  local list = {}
  for k, r in ipairs(m.ranges) do
    list[k] = r[1] == r[2] and tostring(r[1]) or ("%d to %d"):format(r[1], r[2])
  end
  local only = m.n == 1 and m.ranges[1]
  local each = m.period and m.n > #list and m.ranges[1]
  local one = only and only[1] == only[2]
  if one or (each and each[1] == each[2]) then noun = noun:sub(1, -2) end
  if m.n > #list and m.period then
    local rest = m.tail and (" and %d to %d"):format(m.tail, m.extent - 1) or ""
    return ("%s %s of every %d%s%s"):format(noun, list[1], m.period, rest,
      tail), each and each[1] == each[2] and not m.tail
  end
  local last = #list > 1 and table.remove(list)
  local text = table.concat(list, ", ")
  if last then text = text .. " and " .. last end
  return ("%s %s%s"):format(noun, text, tail), one
end

-- Reports whether too few blocks explain a gap (elements that were never
-- accessed). In this case, the blocks do not reach the end of a mode of an
-- output. The gap is that end, or has the same coordinates in a mode of equal
-- extent, for example of an input.
local function explained(gap, gaps)
  for _, other in ipairs(gaps) do
    for _, m in ipairs(other.stored and other.few and other.modes or {}) do
      local own = gap.modes[1]
      if own.extent == m.extent and own.ranges[1][1] == m.ranges[1][1] then
        return true
      end
    end
  end
  return false
end

-- Returns a sentence on a gap: a part of a tensor that the launch did not read
-- or store. Also returns whether the gap is a single coordinate in its last
-- mode.
local function untouched(gap)
  local parts, one = {}, nil
  for k, m in ipairs(gap.modes) do parts[k], one = coordinates(gap, m) end
  return ("%s of %s'%s' %s never %s (%d of %d elements)"):format(
    table.concat(parts, gap.all and " in " or ", and "),
    gap.map and "the tensor map of " or "", gap.tensor,
    one and #parts == 1 and "was" or "were",
    gap.stored and "stored" or "read", gap.none, gap.size), one
end

-- Returns a note on a gap.
local function missing_part(gap, gaps)
  if not gap.modes[1] then
    return ("no element of '%s' was stored (0 of %d); is the condition of the "
      .. "store ever true? cute.partial_ok says that this is intended"):format(
      gap.tensor, gap.size)
  end
  local text, one = untouched(gap)
  local ask = gap.stored and "does the copy cover the whole tile"
    or "is the tile's coordinate right"
  for _, m in ipairs(gap.modes) do
    if m.period then ask = "does each step cover a whole tile"
    elseif m.n == 1 and m.ranges[1][1] == 0 then
      ask = "does the loop begin with the first tile"
    end
  end
  if gap.size - gap.none == 1 then
    ask = "does the address lack the thread's index"
  elseif explained(gap, gaps) or gap.blocks and not gap.stored then
    ask = one and "is a guard or the grid too small by one"
      or "is the grid too small, or a coordinate wrong"
  end
  return ("%s; %s? cute.partial_ok says that this is intended"):format(text,
                                                                       ask)
end

local MOST_SKIPPED = 3  -- sentences

--- Appends sentences on the parts of inputs that launches never read
-- (unused.skipped), which may explain a wrong result.
---@param sentences string[]
function faults.add_skipped(sentences)
  local list = {}
  for kernel, gaps in pairs(unused.skipped) do
    for _, gap in ipairs(gaps) do
      list[#list + 1] = core.visible(("kernel %s: %s: %s"):format(kernel,
        at(gap.file, gap.line) or "?", (untouched(gap))))
    end
  end
  table.sort(list)
  table.move(list, 1, MOST_SKIPPED, #sentences + 1, sentences)
end

-- Returns a set of lanes as text: "lanes 0 to 3, 16", or only their number if
-- the text would have too many ranges.
local function lanes_text(mask)
  local list, n, k = {}, 0, 0
  while k < 32 do
    local first = k
    while k < 32 and mask >> k & 1 == 1 do k = k + 1 end
    n = n + k - first
    if k > first then
      list[#list + 1] = k == first + 1 and tostring(first)
        or ("%d to %d"):format(first, k - 1)
    end
    k = k + 1
  end
  if #list > 3 then
    return ("%d lanes (lane %s is the first)"):format(n, list[1]:match "%d+")
  end
  return (n == 1 and "lane " or "lanes ") .. table.concat(list, ", ")
end

-- Returns the shuffle distances in a mask as text: "1, 4".
local function distances(mask)
  local list = {}
  for k = 0, 4 do
    if mask >> k & 1 == 1 then list[#list + 1] = 1 << k end
  end
  return table.concat(list, ", ")
end

-- Returns a note on a warp's sum by shuffles that is wrong in some lanes.
local function lost_lanes(o)
  if o.gap then
    return ("the shuffles exchange lanes at the distances %s, but not %s; do "
      .. "the steps leave one out?"):format(distances(o.lanes),
      distances(o.gap))
  end
  local lanes = lanes_text(o.lanes)
  if o.warps then
    lanes = lanes:gsub("lane", "warp")
    return ("%s %s a sum here that nothing uses; does the block add the sums "
      .. "of its warps, through shared memory or atomics?"):format(lanes,
      lanes:find "^warp " and "computes" or "compute")
  end
  if o.extreme then
    return ("%s %s this maximum or minimum although it lacks the values of "
      .. "other lanes, because %s brings no value where no lane is at its "
      .. "distance; warp_reduction_max and warp_reduction_min give it to all")
      :format(lanes, lanes:find "^lane " and "uses" or "use", o.op)
  end
  if o.selects then
    return ("each lane selects this value by elements of its own, but nothing "
      .. "uses the values of %s: should the lanes exchange it, too, where they "
      .. "exchange the elements?"):format(lanes)
  end
  if not o.op then
    return ("each lane adds elements of its own to this sum, but nothing uses "
      .. "the sums of %s: is a reduction missing, such as "
      .. "warp_reduction_sum?"):format(lanes)
  end
  if o.scan then
    return ("the sum of the last lane lacks the values of %s; does each step "
      .. "of the scan add its shuffle in all lanes from its distance on, as in "
      .. "lane:ge(d)?"):format(lanes)
  end
  if not o.twice then
    return ("no sum contains the values of %s; do the distances of the "
      .. "shuffles cover all lanes, and does the lane that uses the sum hold "
      .. "it?"):format(lanes)
  end
  local up = o.op == "shfl.up"
  return ("the sum counts values twice in %s: no lane is %d %s, so %s returns "
    .. "the lane's own value; %s"):format(lanes, o.distance,
    up and "before" or "after", o.op, up
    and ("add it only where lane:ge(%d)"):format(o.distance)
    or "only the first lanes hold the sum; warp_reduction_sum gives it to all")
end

-- Returns the number of lanes whose indices differ only in the bits of a mask.
local function lanes_of(mask)
  local n = 1
  for k = 0, 4 do n = n << (mask >> k & 1) end
  return n
end

-- Reports whether a launch never read a part of an input.
local function unread_input(report)
  for _, gap in ipairs(report.gaps or {}) do
    if not gap.stored then return true end
  end
  return false
end

-- Adds a note for each line with a sum to which the same value is added several
-- times.
local function repeated_sums(report, add)
  local list, by = {}, {}
  for _, o in ipairs(report.program.repeated) do
    local place = at(o.file, o.line) .. (o.apart and " apart" or "")
    local one = by[place]
    if not one then
      one = {file = o.file, line = o.line, op = o.op, lanes = 0,
             apart = o.apart, name = o.name}
      by[place], list[#list + 1] = one, one
    end
    one.lanes, one.warps = one.lanes | o.lanes, one.warps or o.warps
    one.blocks = one.blocks or o.blocks
  end
  -- Unread parts of an input have the same cause, and the note on them says
  -- more, so no note on equal elements is added.
  local twins = not unread_input(report) and report.twins
  for _, o in ipairs(list) do
    o.n = lanes_of(o.lanes)
    if o.name then
      add("repeated_elements", o)
    elseif o.apart then
      o.who = o.n > 1 and "lanes" or o.warps and "warps"
        or report.ctas > 1 and "blocks"
      if o.who then add("stored_apart", o) end
    elseif o.op == "atomic" and (o.n > 1 or o.warps) then
      o.who = o.n == 32 and (o.warps and "all threads of the block"
          or "all lanes of a warp")
        or o.n > 1 and ("%d lanes of a warp"):format(o.n) or "all warps"
      add("repeated_atomic", o)
    elseif o.n > 1 then
      add("repeated_lanes", o)
    elseif o.blocks and report.ctas > 1 then
      o.verb = o.op == "atomic" and "adds" or "stores"
      add("repeated_blocks", o)
      twins = nil
    end
  end
  if twins then
    twins.both = ("blocks %s and %s"):format(triple(twins.block),
                                             triple(twins.other))
    add("twin_blocks", twins)
  end
end

-- Adds a note on a block of elements that is multiplied by another block's
-- scale factor.
local function add_wrong_scale(s, add)
  if not s then return end
  local of = ("the elements at byte %d of %s"):format(s.block_at, s.block)
  if not s.factor then
    s.wrong = of .. " have a scale factor outside the tensor of factors, which "
      .. "is 0"
  elseif s.block_at == s.other_at and s.block == s.other then
    s.wrong = ("%s have two scale factors, at bytes %d of %s and %d of %s")
      :format(of, s.factor_at, s.factor, s.other_factor_at, s.other_factor)
  else
    s.wrong = ("one scale factor, at byte %d of %s, scales %s and at byte %d "
      .. "of %s"):format(s.factor_at, s.factor, of, s.other_at, s.other)
  end
  s.more = s.n > 1 and (" (%d cases)"):format(s.n) or ""
  add("wrong_scale", s)
end

-- Returns text for operation n with its operands and its result.
local function made(n)
  local function digits(x, form)
    local whole = x // 1 == x and math.abs(x) < 2.0 ^ 32
    return (whole and "%.0f" or form):format(x)
  end
  local v = {}
  for i, x in ipairs(n) do v[i] = digits(x, "%.7g") end
  local text = ("%s(%s)"):format(n.op, table.concat(v, ", "))
  if n.op == "mma" then
    text = ("the sum of an MMA (accumulator %s, largest product %s * %s)")
      :format(v[1], v[2], v[3])
  elseif n.op == "cvt" then
    text = ("the conversion of %s to %s"):format(v[1], n.to)
  elseif n.op == "fma" then
    text = ("%s * %s + %s"):format(v[1], v[2], v[3])
  elseif n.op:find "^%p$" then
    text = ("%s %s %s"):format(v[1], n.op, v[2])
  end
  return ("%s is %s"):format(text, n.nan and "NaN"
    or n.result == math.huge and "inf" or n.result == -math.huge and "-inf"
    or digits(n.result, "%.9g"))
end

-- Adds the note `what` on operation n, unless n is nil.
local function add_operation(what, n, add)
  if not n then return end
  n.made = made(n)
  n.where = ("in block %s, thread %s%s"):format(triple(n.block),
    triple(n.thread), n.count > 1 and (", %d times in all"):format(n.count)
      or "")
  add(what, n)
end

-- Adds a note on a sum with a wrong initial value, or on a maximum, minimum or
-- product that starts at 0. A maximum or minimum gets a note only if the signs
-- of its elements make the initial value matter.
local function add_start(o, signs, add)
  if o.op == "add" then
    o.start = ("%.6g"):format(o.start)
    return add("sum_start", o)
  end
  local max = o.op == "max"
  local matters = o.name or o.op == "mul" or signs[max and "below" or "above"]
  if not matters then return end
  o.what = max and "maximum" or "minimum"
  o.sign = max and "below" or "above"
  o.start = max and "-math.huge" or "math.huge"
  add(o.name and "kept_start" or o.op == "mul" and "zero_product"
    or o.masked and "zero_mask" or "zero_start", o)
end

-- Adds notes on sums of exponentials from which no maximum was subtracted, and
-- on sums that lack a reduction.
local function softmax_sums(program, add)
  local before
  for _, o in ipairs(program.unscaled) do
    local place = at(o.file, o.line)
    if place ~= before then add(o.kind, o) end
    before = place
  end
  for _, o in ipairs(program.partial) do
    o.what = o.extreme and "maximum" or "sum"
    o.who = o.warps and "warp" or "lane"
    o.cure = o.warps and "one through shared memory"
      or o.extreme and "warp_reduction_max" or "warp_reduction_sum"
    add(o.lanes > 1 and not o.warps and "partial_width" or "partial_sum", o)
  end
end

-- Calls add(what, about, text) for each note on values that a program computes
-- but never uses, or that it computes wrongly.
local function add_losses(report, add)
  local program, unread, known = report.program, report.unread, {}
  for _, o in ipairs(program.unread) do
    known[o.name] = true
    add("unread", o)
  end
  for _, o in ipairs(unread or {}) do
    if o.stale then add("unread_copy", o)
    elseif not o.whole then add("unread_part", o)
    elseif not known[o.name] then add("unread_whole", o) end
  end
  for _, o in ipairs(program.parts) do add("unread_fragment", o) end
  for _, o in ipairs(program.results) do
    o.what = o.name == "" and "its fragment" or ("'%s'"):format(o.name)
    add(o.variable and "unread_variable" or o.load and "unread_load"
      or o.some and "late_sum" or "unread_sum", o)
  end
  for i, o in ipairs(program.starts) do
    add_start(o, report.signs and report.signs[i] or {}, add)
  end
  softmax_sums(program, add)
  for _, o in ipairs(program.overlaps) do add("overlapping_step", o) end
  for _, o in ipairs(program.blocks) do
    if report.ctas > 1 then add("block_step", o) end
  end
  local before
  for _, o in ipairs(program.steps) do
    local place = at(o.file, o.line)
    if place ~= before then
      add(o.lost and "lost_element" or "omitted_element", o)
    end
    before = place
  end
  for _, o in ipairs(program.tails) do
    o.rest = o.extent - o.n
    add("lost_tail", o)
  end
  for _, o in ipairs(program.lost) do
    add(o.reset and "reset_sum" or "overwritten_sum", o)
  end
  for _, o in ipairs(program.lost[1] and {} or program.iterations) do
    add("lost_iteration", o)
  end
  for _, o in ipairs(program.loads) do add("unused_loads", o) end
  before = nil
  for _, o in ipairs(program.lanes) do
    local place = at(o.file, o.line)
    if place ~= before then add("lost_lanes", o, lost_lanes(o)) end
    before = place
  end
end

-- Adds a note on a wrong output. The shapes suggest that the output is a sum or
-- product of inputs, or a copy.
local function add_wrong(w, add)
  local function number(x) return ("%.6g"):format(x) end
  local factor = w.scaled and " times a factor" or ""
  local what = w.b and ("the product of '%s' and '%s'"):format(w.a, w.b)
    or (w.copies and "a copy of '%s'" or "a sum of '%s'"):format(w.a)
  w.result = ("'%s' is not %s%s: element %s is %s"):format(w.out, what, factor,
    w.at, number(w.got))
  w.right = w.b and ("%s%s times %s%s"):format(w.a, w.a_at, w.b, w.b_at)
    or (w.copies and "%s%s" or "the sum of %s%s"):format(w.a, w.a_at)
  local shift = w.got - w.want
  w.advice = w.shifted and ("all elements are %s too %s: does the sum start "
      .. "at %s?"):format(number(math.abs(shift)),
      shift > 0 and "large" or "small", number(shift))
    or w.tile > 0 and ("the elements have the values that belong to the tile "
      .. "on the other side of the diagonal: are two coordinates of a tile "
      .. "swapped?")
    or "does each step of each loop read the right elements, and does each "
      .. "sum reach the right element?"
  w.want = number(w.want)
  add("wrong_sum", w)
end

--- Returns notes on a run without faults: sentences, with source lines, about
-- behaviour that was probably not intended.
---@param report table
---@return string[] notes
---@return string[] codes of the notes
function faults.notes(report)
  local list, codes = {}, {}
  local function add(what, o, text)
    text = text or notes().sentence(what, o)
    list[#list + 1] = core.visible(("%s: %s"):format(at(o.file, o.line) or "?",
                                                     text))
    codes[#list] = notes().ROWS[what][1]
  end
  local program = report.program
  if not report.ok or report.stopped or not program then return list, codes end
  if report.empty then add("empty", report) end
  local no_store = stores_outside(report.lines, add)
  simreport.find_losses(program)
  add_losses(report, add)
  repeated_sums(report, add)
  add_wrong_scale(report.scale, add)
  add_operation("nonfinite", report.nonfinite, add)
  add_operation(report.inexact and report.inexact.key, report.inexact, add)
  for _, gap in ipairs(report.gaps or {}) do
    if gap.modes[1] or not no_store then
      add("left_out", gap, missing_part(gap, report.gaps))
    end
  end
  -- Add this note only if there are no others, except notes on PTX's
  -- guarantees: other notes say more about the cause of wrong outputs.
  if report.wrong and not list[1] then add_wrong(report.wrong, add) end
  for _, r in ipairs(report.relies or {}) do
    list[#list + 1] = faults.reliance(r)
    codes[#list] = notes().ROWS.relies[1]
  end
  return list, codes
end

--- Returns a note on a kernel as it is printed, and records it as written.
-- Returns nil if it was written before.
---@param kernel string
---@param text string
---@return string? note as printed
function faults.new_note(kernel, text)
  return words.new_note(("kernel %s: %s"):format(kernel, text))
end

--- Returns two values. The first maps the index of each fault that may have
-- caused others to their number. The second is the number of faults that follow
-- from no other fault.
---@return integer[] followers
---@return integer leaders
function faults.followers(report)
  local count, leaders = {}, 0
  for _, r in ipairs(report.reports) do
    if r.leads then count[r.leads] = (count[r.leads] or 0) + 1
    else leaders = leaders + 1 end
  end
  return count, leaders
end

--- Returns the text of a report with faults. Faults that may follow from other
-- faults are included only if `all` is true.
---@param found table
---@param all boolean
---@return string
function faults.faults(found, all)
  local followers, leaders = faults.followers(found)
  local text, known = {("simulator: kernel %s: %s%s"):format(
    found.kernel or "?", words.plural(leaders, "fault"),
    found.stopped and ", then stopped" or "")}, {}
  for i, r in ipairs(found.reports) do
    local lines = (not r.leads or all) and faults.text(r, known)
    if lines and r.leads then lines = lines:gsub("%f[^\n\0]", "      ") end
    text[#text + 1] = lines or nil
    if followers[i] then
      text[#text + 1] = ("    %d more may follow from it%s"):format(
        followers[i], all and ":" or "")
    end
  end
  return core.visible(table.concat(text, "\n"), true)
end

return faults
-- SPDX-License-Identifier: MIT
