--- The table of all kinds of findings. It has a row for each kind of fault that
-- the simulator reports (core/faults/kinds.h), with its sentence, cure, code
-- and example. It also has a row for each kind of error (core/base/errors.h)
-- and other result. cutelua.text.notes has the rows of notes, findings about
-- likely mistakes.
--
-- The simulator describes a fault r by facts: its kind, the lines of both
-- accesses, coordinates and values. r.facts has the values that a sentence
-- names (core/faults/facts.c). Codes are stable: they are never renamed. If
-- some faults of a code need a different repair, these faults get a new code.
--
-- The row of a fault has these fields:
-- kind, about: the name of the kind, and a phrase that describes it.
-- example: the script in spec/faults/ with the example of docs/errors.md.
--   `fault` sets it to KIND/report.
-- code: race/SPACE/missing-barrier, for example. SPACE becomes the memory of
--   the fault's tensor: smem or gmem.
-- sent: the code of a race with an st.async that is in flight.
-- barrier: the call that orders both accesses of a race.
-- cure: advice that fits every fault of the kind.
-- other: a phrase that describes the fault's second line.
-- own: for a race, the name of the reported access. `other` is then the name of
--   the other access.
-- [i]: case i, {sentence, how =, when =, cure =, code =, other =}. The first
--   case that fits a fault gives its sentence. It fits if `how` equals
--   facts.how and when(facts, r) returns true; an absent field always fits.
--   cure, code and other replace those of the row. writers: whether both
--   accesses are writes in one line. far: whether the sentence names a thread
--   of another block. overlap: whether both are writes in one line by threads
--   of two blocks.
--   waited: what happened in line r.wait, if it is no wait.
-- lacks: {[r.lack] = {cure =, code =, other =, late =}}, where r.lack names the
--   operation that is missing, if known. These fields replace those of the
--   case. late: a phrase that says why the wait for an operation in flight did
--   not suffice.
--
-- In a sentence, {name} is replaced by a fact or by a word of WORDS, and
-- {name:noun} by a number with its noun.
local kinds = {}

-- Returns a number with its noun: "1 arrival", "2 arrivals".
local function plural(n, noun)
  return ("%d %s%s"):format(n, noun, n == 1 and "" or "s")
end

-- Returns a list of extents or indices as the text of a coordinate. Negative
-- entries are unknown.
local function tuple(list)
  local text = {}
  for i, n in ipairs(list) do text[i] = n < 0 and "?" or tostring(n) end
  return "(" .. table.concat(text, ",") .. ")"
end

-- Returns the number of lanes or warps in a mask.
local function count(mask)
  local n = 0
  while mask ~= 0 do n, mask = n + 1, mask & mask - 1 end
  return n
end

-- Returns the name of a memory object, such as "shared tensor 'sA'". PTX has no
-- tensors, only memory.
local function object(m)
  if not m then return "" end
  if m.raw then return "memory at a raw address" end
  if m.ptx and m.space ~= "global" then return m.space .. " memory" end
  return ("%s tensor%s"):format(m.space, m.name and (" '%s'"):format(m.name)
    or "")
end

-- Returns the text that names an mbarrier: by its array and index or, in PTX,
-- by its byte in memory.
local function mbarrier(m, at)
  if m.ptx then return ("mbarrier at byte %d of %s"):format(at, object(m)) end
  return ("mbarrier %s[%d]"):format(m.name and ("'%s'"):format(m.name) or "",
    at)
end

-- The articles of agents (asynchronous operations) in sentences: "by a
-- cp.async". Other agents, such as wgmma, have none.
local ARTICLES = {["cp.async"] = "a", ["st.async"] = "an", ["bulk copy"] = "a"}
local CLASHES = {["write after write"] = "write after a write",
                 ["write after read"] = "write after a read",
                 ["read after write"] = "read after a write"}

--- Reports whether both accesses of a fault are on one line.
---@param r table an element of report.reports
---@return boolean
function kinds.one_line(r) return r.line == r.line2 and r.file == r.file2 end

-- Returns the value of field v of a row: v itself or, if v is a function, its
-- result for the facts of fault r.
local function value(v, r)
  if type(v) == "function" then return v(r.facts, r) end
  return v
end

-- The words in braces that are not facts. Each function returns the text that
-- replaces its word.
local WORDS = {
  mem = function(r) return object(r.facts.memory) end,
  mbar = function(r) return mbarrier(r.facts.memory, r.offset) end,
  late_mbar = function(r)
    return mbarrier(r.facts.late, r.facts.late_element)
  end,
  late_next = function(r) return mbarrier(r.facts.late, r.facts.late_other) end,
  unit = function(r)
    return r.facts.memory and r.facts.memory.ptx and "byte" or "element"
  end,
  element = function(r)
    return kinds.fill(r, "{unit} {offset} of {mem}")
  end,
  space = function(r) return r.facts.memory.space end,
  offset = function(r) return r.offset end,
  last = function(r) return r.offset + r.facts.size - 1 end,
  address = function(r) return ("0x%x"):format(r.offset) end,
  pointer = function(r) return ("0x%x"):format(r.facts.which) end,
  coord = function(r) return r.coord end,
  block = function(r) return r.block end,
  verb = function(r) return r.facts.write and "write" or "read" end,
  by = function(r)
    local agent = r.facts.agent
    return ARTICLES[agent] and ARTICLES[agent] .. " " .. agent or agent
  end,
  clash = function(r) return CLASHES[r.facts.how] end,
  late_reason = function(r) return kinds.fill(r, kinds.late(r)) end,
}

--- Replaces the words in braces of a sentence.
---@param r table an element of report.reports
---@param text string
---@return string
function kinds.fill(r, text)
  return (text:gsub("{([%l_]+):?([%l]*)}", function(name, noun)
    local v = r.facts[name]
    if v == nil then v = WORDS[name](r) end
    if type(v) == "table" then return tuple(v) end
    if math.type(v) == "float" then return ("%g"):format(v) end
    return noun ~= "" and plural(v, noun) or tostring(v)
  end))
end

---------------------------------------------------------------------------
-- Advice of several rows
---------------------------------------------------------------------------

local STAY = "advance after each stage: state:advance() of a pipeline, or the "
  .. "next index and parity, so that the waits go around the ring"
local STAGE = "wait at the mbarrier of this copy: do the copy, its mbarrier, "
  .. "the wait and this read use the same stage?"
local LANES = "let all threads that read wait there, outside of the branch, or "
  .. "put a barrier (sync_threads(), or sync_warp() within a warp) between the "
  .. "wait and the read"
local PARITY = "wait for the parity of this phase: 0 for the first, then 1, 0, "
  .. "..."
local HASTY = "the wait passed before its phase ended: change its parity after "
  .. "each round; readers begin with 0, and a producer that waits for an empty "
  .. "stage begins with 1"
local ISSUER = "a wait counts only for the threads that started the copy: let "
  .. "them wait, then synchronize with the others at a barrier"
local BYTES = "a TMA load transfers the tx_bytes of its atom, whole boxes, "
  .. "including elements outside the tensor: expect all of these bytes"
local CP_ASYNC = "wait for it first: cp_async_wait_group(n), or the mbarrier "
  .. "that all readers arrive at"
local INITIALIZED = "its mbarrier_init"
-- Advice for races between blocks of a cluster. %s: where the calls belong.
kinds.FAR = "put cluster_arrive() and cluster_wait() %s, or use an mbarrier "
  .. "with scope = \"cluster\" for both sides (PipelineTmaAsync {scope = "
  .. "\"cluster\"})"

---------------------------------------------------------------------------
-- Memory
---------------------------------------------------------------------------

local FAULTS = {}
--- The rows of faults, by kind and in the order of docs/errors.md.
kinds.FAULTS = FAULTS

local function fault(row)
  row.example = row.kind .. "/report"
  FAULTS[#FAULTS + 1], FAULTS[row.kind] = row, row
end

fault {kind = "out-of-bounds", about = "access outside a memory object",
  code = "memory/SPACE/out-of-bounds",
  cure = "predicate the access, or check that the tile divides the tensor's "
    .. "shape",
  {"{verb} at address {address}, which belongs to a different tensor than the "
    .. "pointer {pointer} that it was computed from", when = function(f)
      return f.wild and f.which ~= 0
    end},
  {"{verb} at address {address}, which belongs to no argument and to no "
    .. "tensor whose address was taken", when = function(f) return f.wild end},
  {"{verb} of a TMA box that begins at a negative coordinate: {coord} of "
    .. "{mem}, {extent}", when = function(f) return f.box end,
    cure = "only loads may begin at a negative coordinate: store whole tiles "
      .. "of the tensor, or the part of the tile that is inside of it"},
  {"{verb} outside {mem}: coordinate {coord} of {extent}",
    when = function(f) return f.extent end},
  {"{verb} outside {mem}: block {rank} of a cluster of {ranks}",
    when = function(f) return f.ranks ~= 0 end},
  {"{verb} outside {mem}: index {which} of {most}",
    when = function(f) return f.most ~= 0 end},
  {"{verb} outside {mem}: {unit} {offset} to {last} of {count}",
    when = function(f) return f.size > 1 end},
  {"{verb} outside {mem}: {unit} {offset} of {count}"}}

fault {kind = "misaligned",
  about = "vector access or TMA box at an address that is not a multiple of "
    .. "its width",
  code = "memory/SPACE/misaligned",
  cure = "use a narrower copy, or pad the layout so that every vector starts "
    .. "at a multiple of its size",
  {"{verb} at address {address}, which is not a multiple of {size} bytes",
    when = function(f) return f.wild end},
  {"{verb} of a TMA box that does not begin at a multiple of {size} bytes: "
    .. "{coord} of {mem}", when = function(f) return f.box end,
    cure = "let the box begin at a multiple of 16 bytes of the contiguous "
      .. "mode, the first one of this coordinate; a wider box can contain the "
      .. "elements before and after a tile"},
  {"{verb} of {size} bytes not aligned to its width: {element}"}}

fault {kind = "uninitialised", about = "read of memory that was never written",
  code = "memory/SPACE/uninitialised",
  cure = "nothing wrote this before: is an initialisation, a copy or a barrier "
    .. "missing?",
  other = "taken from the register in",
  {function(f)
    return ("%s is used, but nothing wrote it"):format(f.memory.name
      and "register " .. f.memory.name
      or "a register of a matrix instruction")
  end, when = function(f)
    return f.memory.ptx and f.memory.space == "register"
  end},
  {"read of uninitialised memory ({late_reason}): {element}",
    when = function(_, r) return r.lack == "parity" end},
  {"read of uninitialised memory: {element}", cure = function(_, r)
    return r.filled and ("only the first %d of its %d elements are written, %d "
      .. "by each of the block's %d threads: does the launch have too few "
      .. "threads, or a loop too few iterations?"):format(r.filled, r.elements,
      r.filled // r.threads, r.threads) or nil
  end},
  lacks = {
    wait = {other = "the copy",
      cure = function(_, r)
        return r.before and "the copy has not written this element: wait at "
          .. "its mbarrier, for its stage and parity; if that wait is there, "
          .. "do the copy's source, destination and rank (tma_partition) leave "
          .. "out a part of the tile?"
          or "a copy writes it: wait at its mbarrier before the read, for its "
          .. "stage and parity"
      end},
    parity = {other = "the write", cure = PARITY},
    roles = {other = "the write",
      cure = "other threads write it: let them arrive at an mbarrier after the "
        .. "write, and let the readers wait there for the same stage and its "
        .. "parity"}}}

fault {kind = "unwritten", about = "a part of an output is never written",
  code = "memory/gmem/unwritten",
  cure = "is a tile, a remainder or a branch missing? If these elements are "
    .. "written elsewhere, pass only the part that is written here, or call "
    .. "cute.undefined_ok(tensor)",
  {"{none} of {all} {unit}s of {mem}, an output, were not written: {unit} "
    .. "{offset}"}}

fault {kind = "async-in-flight",
  about = "read of memory that an asynchronous copy is still writing",
  code = "async/SPACE/missing-wait",
  other = function(f) return "the " .. f.agent end,
  cure = "add cp_async_wait_group(n) with a smaller n, and sync_threads(), "
    .. "before the read and after cp_async_commit_group()",
  {"read of {space} memory while {by} to it is in flight (it is in no group: "
    .. "commit missing): {element}", when = function(f) return f.open end,
    code = "async/SPACE/missing-commit",
    cure = "call cp_async_commit_group() after the copy, then "
      .. "cp_async_wait_group(n); or let it arrive at an mbarrier "
      .. "(PipelineAsync {cp_async = true})"},
  {"read of {space} memory while {by} to it is in flight ({late_reason}): "
    .. "{element}",
    when = function(f) return f.memory.space == "global" end,
    other = "the store",
    cure = "call cp_async_bulk_wait_group(n), without `read`, in the thread "
      .. "that stores, then a barrier"},
  {"read of {space} memory while {by} to it is in flight ({late_reason}): "
    .. "{element}", when = function(f) return f.agent == "bulk copy" end,
    cure = "wait for its mbarrier before the read"},
  {"read of {space} memory while {by} to it is in flight ({late_reason}): "
    .. "{element}"},
  lacks = {
    barrier = {late = "no barrier after its wait",
      code = "async/SPACE/missing-barrier",
      cure = "put sync_threads() after the cp_async_wait_group(n) of the "
        .. "threads that copy, before the read"},
    ahead = {late = "threads that are an iteration ahead started it",
      cure = "put sync_threads() after the reads of a stage, before the copy "
        .. "that fills it again; or fill one stage less before the loop"},
    wait = {late = "wait missing: {late_mbar}",
      cure = function(_, r)
        return "wait for its mbarrier before the read" .. (r.before and "; if "
          .. "that wait is there, the copy begins before all threads have read "
          .. "the old data: put sync_threads() between the reads and the copy"
          or "")
      end},
    parity = {code = "async/SPACE/wrong-parity", cure = PARITY,
      late = "the wait at {late_mbar} passed before the end of phase "
        .. "{late_phase}: wrong parity"},
    stage = {cure = STAGE,
      late = "wait missing: {late_mbar}; the last wait was at {late_next}"},
    stay = {cure = STAY,
      late = "the waits are all at {late_mbar}, and none is at {late_next}"},
    lanes = {late = "other lanes waited for it", cure = LANES},
    bytes = {code = "async/SPACE/missing-bytes",
      late = function(f)
        return f.late_open and "{late_mbar} expects {late_came} of {late_all} "
          .. "bytes in phase {late_phase}" or "{late_mbar} ended phase "
          .. "{late_phase} with {late_came} of {late_all} bytes"
      end,
      cure = "expect the bytes of all copies: a TMA load transfers the "
        .. "tx_bytes of its atom"},
    turn = {late = "it began before all threads had read the old data",
      code = "async/SPACE/early-refill",
      cure = "before the copy, wait until all threads have read: use an "
        .. "mbarrier that counts all of them and that they arrive at"},
    issuer = {late = "the waiting threads are not the copying threads",
      code = "async/SPACE/wait-by-other-thread", cure = ISSUER},
    pending = {late = "the preceding wait left {pending:group} pending"},
    read = {late = "the wait covered only its reads", other = "the store",
      code = "async/SPACE/unfinished-store",
      cure = "call cp_async_bulk_wait_group(n) without `read`: "
        .. "cp_async_bulk_wait_group(n, true) waits only until the source is "
        .. "read, not until the copy is written"}}}

fault {kind = "in-flight",
  about = "registers of a warpgroup's MMA are used before it is complete",
  code = "async/registers/missing-wait", other = "the MMA",
  cure = "commit the MMA with wgmma.commit_group, and before the use wait with "
    .. "wgmma.wait_group 0, or N with the N groups committed since",
  {"no wgmma.fence is between this MMA and an earlier use of its registers",
    when = function(f) return f.how == "fence" and f.used end,
    code = "async/registers/missing-fence", other = "the use",
    cure = "put wgmma.fence before the first MMA, after every other use of its "
      .. "registers"},
  {"no wgmma.fence precedes this MMA", how = "fence",
    code = "async/registers/missing-fence", other = "the use",
    cure = "put wgmma.fence before the first MMA, after every other use of its "
      .. "registers"},
  {"a register of an MMA is used while the MMA is still in flight",
    how = "read"},
  {"a register of an MMA is written while the MMA is still in flight",
    how = "write"},
  {"a register of an MMA is accumulated into by an MMA of another shape while "
    .. "the MMA is still in flight", how = "shape"},
  {"a register is used before the load from tensor memory has completed",
    how = "load", other = "the load",
    cure = "put tcgen05.wait::ld between the load and the use"}}

---------------------------------------------------------------------------
-- Races
---------------------------------------------------------------------------

local function writers(f, r)
  return f.how == "write after write" and kinds.one_line(r) and not f.agent
    and not f.far
end
local function cp_async(f) return f.flying and f.agent == "cp.async" end
local function unfinished(f)
  return f.agent and not (f.flying and f.agent == "st.async")
end
local function read_on_the_way(f, r)
  return f.how == "read after write" and r.way
end

-- Returns the end of a race's sentence: the element, and whether the st.async
-- that wrote it is still in flight.
local function raced(f)
  return f.flying and f.agent == "st.async"
    and "{element} ({by} to it is in flight)" or "{element}"
end

-- Returns a case (a sentence and its condition) for races in which another warp
-- or lane writes an element that this one reads. `writes` is a part of the
-- sentence, such as "warp writes, with no barrier".
local function read_while(writes)
  return {function(f, r)
    return ("read of %s that another %s %s: %s"):format(
      f.memory and f.memory.ptx and "a byte" or "an element", writes,
      (r.way == "loop" or kinds.one_line(r)) and "in between"
        or "between the two lines", raced(f))
  end, when = read_on_the_way}
end

-- Reports whether a thread executed a proxy fence after its write, but no
-- barrier orders the fence before an access by asynchronous hardware.
local function no_barrier(f) return f.fenced and not f.ordered end

local function by_another_block(f)
  return "{clash} by a thread of another block with nothing that orders them "
    .. "at cluster scope: " .. raced(f)
end

fault {kind = "race",
  about = "two warps access one element, one of them writes, with no barrier "
    .. "between",
  code = "race/SPACE/missing-barrier", sent = "race/SPACE/missing-wait",
  cure = "put sync_threads() between the two lines", barrier = "sync_threads()",
  own = "second access", other = "first access",
  {"two warps write one {unit} with no barrier in between: {element}",
    when = writers, writers = true, code = "race/SPACE/two-writers",
    cure = "let one thread write it, or use an atomic; if one write must "
      .. "follow the other, put sync_threads() in between"},
  {"{clash} by a cp.async that is in flight: {element}", when = cp_async,
    code = "race/SPACE/missing-wait", cure = CP_ASYNC},
  {"write by {by} after a thread's read, with no fence_proxy(\"async\") in "
    .. "between: {element}",
    when = function(f) return f.proxy and f.how == "write after read" end,
    code = "race/SPACE/missing-proxy-fence",
    cure = "PTX needs a fence between accesses through two proxies: call "
      .. "fence_view_async_shared() in the threads that read, before they "
      .. "arrive, or in the thread that copies, after its wait"},
  {function(f)
    return (f.how == "read after write" and "read" or "write") .. " by {by} "
      .. "after a thread's write, with no " .. (no_barrier(f)
        and "barrier after its fence_proxy(\"async\")"
        or f.ordered and not f.fenced and "fence_proxy(\"async\") in between"
        or "fence_proxy(\"async\") and barrier in between") .. ": {element}"
  end, when = function(f) return f.proxy end,
    code = "race/SPACE/missing-proxy-fence",
    cure = function(f)
      return f.memory and f.memory.space == "global"
        and "call fence_proxy(\"async.global\") in the threads that wrote, "
          .. "before they release it, or in the thread that copies, after its "
          .. "acquire"
        or no_barrier(f) and "synchronize at a barrier between the fence and "
          .. "this access"
        or "call fence_view_async_shared() in the threads that wrote, then "
          .. "synchronize at a barrier"
    end},
  {function(f)
    return ("write after a read by wgmma, ordered after one warp's wait_group "
      .. "but not after that of warp %d: {element}"):format(f.alone - 1)
  end, when = function(f) return f.alone ~= 0 end,
    code = "race/SPACE/missing-wait",
    cure = "PTX orders only this warp's reads; wait for the other warps' reads "
      .. "with a barrier or an mbarrier"},
  {"{clash} by {by} whose completion was not waited for: {element}",
    when = unfinished, code = "race/SPACE/missing-wait",
    cure = function(f)
      return f.agent:find "^tcgen05" and "let tcgen05.commit arrive at an "
        .. "mbarrier after it, and wait there before the memory is written "
        .. "again"
        or f.agent == "wgmma" and "call warpgroup.wait_group(n) before the "
        .. "stage is released, and let the producer wait for the release"
        or "wait for it (at its mbarrier, or with cp_async_bulk_wait_group or "
          .. "warpgroup.wait_group), then at a barrier"
    end},
  {function(f)
    return ("read of %s that a thread of another block writes, with nothing "
      .. "that orders them at cluster scope: %s"):format(
      f.memory and f.memory.ptx and "a byte" or "an element", raced(f))
  end, when = function(f, r) return f.far and read_on_the_way(f, r) end,
    far = true, code = "race/SPACE/missing-cluster-barrier",
    cure = kinds.FAR:format "between the two lines"},
  read_while("warp writes, with no barrier"),
  {by_another_block, when = function(f, r)
    return f.far and f.how == "write after write" and kinds.one_line(r)
  end, overlap = true, code = "race/SPACE/two-writers",
    cure = "let one block write it, or use an atomic; do the tiles of the "
      .. "blocks overlap?"},
  {by_another_block, when = function(f) return f.far end, far = true,
    code = "race/SPACE/missing-cluster-barrier",
    cure = kinds.FAR:format "between the two lines"},
  {function(f)
    return "{clash} by another warp with no barrier in between: " .. raced(f)
  end},
  lacks = {
    stage = {cure = STAGE}, stay = {cure = STAY}, lanes = {cure = LANES},
    pending = {code = "race/SPACE/missing-wait"},
    wait = {code = "race/SPACE/missing-wait",
      cure = function(_, r)
        return "before the read, wait at the mbarrier of the copy"
          .. (r.before and "; if that wait is there, does the mbarrier expect "
          .. "the bytes of all copies, so that the wait does not pass early?"
          or "")
      end},
    parity = {code = "race/SPACE/wrong-parity",
      cure = "the wait at the mbarrier of the copy passed too early: wait for "
        .. "the parity of this phase"},
    roles = {code = "race/SPACE/missing-arrival",
      cure = "arrive at an mbarrier, or a named barrier, after the write, and "
        .. "wait there before the read: these threads have no common "
        .. "sync_threads(); a pipeline does this in producer_commit(state) and "
        .. "consumer_wait(state)"},
    barrier = {cure = "the threads that issued it have waited for it; put "
      .. "sync_threads(), or an mbarrier that they arrive at, between their "
      .. "wait and this line"},
    issuer = {code = "race/SPACE/wait-by-other-thread", cure = ISSUER},
    turn = {code = "race/SPACE/early-refill",
      cure = function(f, r)
        if unfinished(f) and f.agent == "bulk copy" then
          return "before it is refilled, " .. (f.how == "write after write"
            and "wait at the mbarrier of the first copy; if that wait is "
            .. "there, does the mbarrier expect the bytes of all copies, so "
            .. "that the wait does not pass early?"
            or "let the thread that started the copy wait until it has read: "
            .. "cp_async_bulk_wait_group(n, true)")
        end
        return "before it is refilled, wait until all threads have read: use "
          .. "an mbarrier that " .. (kinds.case(r).far and "the readers of all "
          .. "these blocks arrive at, with scope = \"cluster\" for both sides "
          .. "(PipelineTmaAsync {scope = \"cluster\"})"
          or "counts the readers, each of which arrives after its read; if one "
          .. "lane arrives for its warp, call sync_warp() before it does; a "
          .. "pipeline does this in consumer_release(state) and "
          .. "producer_acquire(state)")
      end}}}

fault {kind = "warp-race",
  about = "two lanes of a warp access one element with no sync_warp between",
  code = "race/SPACE/missing-sync-warp", sent = "race/SPACE/missing-wait",
  cure = "put cute.arch.sync_warp() between the two lines",
  barrier = "cute.arch.sync_warp()",
  own = "second access", other = "first access",
  {"two lanes of a warp write one {unit} with no __syncwarp in between: "
    .. "{element}", when = writers, writers = true,
    code = "race/SPACE/two-writers",
    cure = "let one lane write it, or use an atomic; if one write must follow "
      .. "the other, put cute.arch.sync_warp() in between"},
  {"{clash} by a cp.async that is in flight: {element}", when = cp_async,
    code = "race/SPACE/missing-wait", cure = CP_ASYNC},
  {"{clash} by {by} whose completion was not waited for: {element}",
    when = unfinished, code = "race/SPACE/missing-wait",
    cure = "let one lane start it, cute.when(tid:eq(0), ...), or wait between "
      .. "the two copies"},
  read_while("lane of the warp writes, with no __syncwarp"),
  {function(f)
    return "{clash} by another lane of the warp with no __syncwarp in between: "
      .. raced(f)
  end, code = nil},
  lacks = {lanes = {cure = LANES}}}

fault {kind = "block-race",
  about = "two blocks access one element of global memory with nothing to "
    .. "order them",
  code = "race/gmem/unordered-blocks",
  cure = "let one block access it, use atomics, or synchronize with a release "
    .. "and an acquire of gpu scope; a thread that releases for its block must "
    .. "come after a sync_threads()",
  own = "first access", other = "second access",
  {"block {block} takes a number from a counter that block {cta} resets, with "
    .. "nothing to order the reset after every take: {element}",
    when = function(f) return f.draws end,
    cure = "let the block that draws the last number reset the counter: it "
      .. "counts all tiles, plus one for each block that draws"},
  {"{mine} by block {block} and {its} by block {cta} with nothing to order "
    .. "them: {element}"},
  lacks = {scope = {cure = "an access or a fence of the kernel has a scope "
      .. "that does not reach other blocks, cta or cluster: give it scope = "
      .. "\"gpu\", or use fence_acq_rel_gpu()"},
    read = {code = "race/gmem/unfinished-store",
    cure = "cp_async_bulk_wait_group(n, true) waits only until the source is "
      .. "read: before you signal other threads, wait without `read`"}}}

---------------------------------------------------------------------------
-- Barriers and warps
---------------------------------------------------------------------------

fault {kind = "divergent",
  about = "only some lanes of a warp reach an operation that needs all of them",
  code = "sync/warp/divergent",
  cure = "move it out of the branch, so that all threads execute it, or, if it "
    .. "has a mask, name only the threads that execute it",
  {function(f)
    local gone = count(f.gone)
    local left = gone > 0 and ("; %d ha%s returned"):format(gone,
      gone == 1 and "s" or "ve") or ""
    if f.mask then
      return ("lanes 0x%08x execute an operation whose mask names lanes 0x%08x")
        :format(f.here, f.named) .. left
    end
    if f.named & ~f.there ~= 0 then
      return ("an operation needs %d threads, but its warp has %d"):format(
        count(f.named), count(f.there)) .. left
    end
    return ("only %d of the warp's %d threads reach an operation that all of "
      .. "them must execute together"):format(count(f.here), count(f.named))
      .. left
  end, cure = function(f)
    return count(f.gone) > 1 and "let all threads reach it: put cute.when "
      .. "around the work in place of cute.return_if before it" or nil
  end}}

fault {kind = "barrier-mismatch",
  about = "threads at a barrier disagree about its thread count or its "
    .. "participants",
  code = "sync/block/barrier-mismatch",
  cure = "all threads that use a barrier must name the same number of threads "
    .. "and arrive once",
  {"a barrier for {n} threads in a block of {threads}",
    when = function(f) return f.how == "odd" and f.n > f.threads end},
  {"a barrier for {n} threads, which is not a whole number of warps of the "
    .. "block", how = "odd"},
  {"the same warp arrives twice at barrier {id} before the barrier completes",
    how = "twice"},
  {"the block exits with {n} of {others} threads arrived at barrier {id}, "
    .. "where no thread waits for them", how = "left"},
  {"nothing orders this arrival at barrier {id} after the barrier's previous "
    .. "phase: that phase may count it instead of another arrival",
    how = "early", cure = function(f)
      return f.n > f.others and ("at least %d threads arrive at barrier %d, "
        .. "which counts %d: name the number of all of them, or give each "
        .. "role, such as producers, a barrier of its own"):format(f.n, f.id,
        f.others) or "let the arriving threads wait for the end of that phase; "
        .. "give each role, such as producers, a barrier of its own"
    end},
  {"a thread arrives twice at the cluster's barrier with no cluster_wait in "
    .. "between", how = "cluster twice"},
  {"a thread waits at the cluster's barrier without having arrived",
    how = "cluster wait"},
  {"barrier {id} does not exist: a block has barriers 0 to 15", how = "range"},
  {"lanes of a warp are at barriers {id} and {n}", how = "lanes"},
  {"lanes of a warp name different thread counts for a barrier: {others} and "
    .. "{n}", how = "lanes' counts"},
  {"a barrier for {n} threads that other warps use for {others} (barrier 0 is "
    .. "the barrier of sync_threads)", when = function(f)
      return f.how == "differs" and f.id == 0
    end},
  {"a barrier for {n} threads that other warps use for {others}",
    how = "differs"}}

fault {kind = "bad-metadata",
  about = "metadata of a sparse A that does not select two different elements",
  code = "layout/operand/bad-metadata",
  cure = "create the metadata of a matrix with cute.nvgpu.sparse.compress and "
    .. "partition it with partition_E; for tensor memory, give it the layout "
    .. "of make_sparse_smem_layout_e",
  {function(f)
    return ("the metadata of a sparse A has 0x%x for a group of %d elements, "
      .. "%s"):format(f.four, f.group, f.group == 2
      and "but only 0x4 (the first element is kept) and 0xe (the second) are "
        .. "valid"
      or f.four & 3 ~= f.four >> 2 and "whose elements are not in order"
      or ("which selects element %d twice: it must select two different "
        .. "elements of four"):format(f.four & 3))
  end}}

fault {kind = "warpgroup-mismatch",
  about = "the four warps of a warpgroup disagree about an MMA",
  code = "sync/warpgroup/mismatch",
  cure = "all 128 threads of a warpgroup must execute each of its MMAs with "
    .. "the same operands: pass descriptors through make_warp_uniform",
  {"lanes of a warp name different operands of a warpgroup's MMA: descriptors "
    .. "and ACCUMULATE must be the same for all 128 threads", how = "lanes"},
  {"warp {warp} issues a different MMA than the rest of its warpgroup (warps "
    .. "{group}), or uses different descriptors or ACCUMULATE",
    how = "differs"},
  {"warp {warp} issues a warpgroup's MMA in a block of {warps} warps, but "
    .. "warps {group} must issue it together", how = "short"},
  {"warp {warp} exited without issuing the MMA that other warps of its "
    .. "warpgroup (warps {group}) issued", how = "lacks"}}

-- Returns the first and last warp of a warp's warpgroup.
function WORDS.group(r)
  local first = r.facts.warp & ~3
  return ("%d to %d"):format(first, first + 3)
end

-- Returns the last part of a deadlock's sentence, for threads that wait forever
-- at an mbarrier. It says which arrivals or bytes are missing.
local function lacking(f)
  local text = {"{mbar} for the end of phase {barrier} (parity {parity}), "
    .. "which lacks "}
  if f.came ~= 0 or f.bytes == 0 then
    text[2] = "{came} of {needed:arrival}"
  end
  if f.bytes > 0 then
    text[#text + 1] = (f.came ~= 0 and " and " or "") .. plural(f.bytes, "byte")
  elseif f.bytes < 0 then
    text[#text + 1] = ("%s; %s arrived that no expect_tx announced"):format(
      f.came ~= 0 and "" or "nothing", plural(-f.bytes, "byte"))
  end
  if f.bytes > 0 and f.twin > 0 then
    text[#text + 1] = "; {twin:byte} that no expect_tx announced arrived at "
      .. "the mbarrier of block {cta}"
  end
  if f.needed > f.threads then
    text[#text + 1] = " (there are {threads} threads; mbarrier_init counts "
      .. "arrivals, expect_tx bytes)"
  end
  return table.concat(text)
end

function WORDS.parity(r) return r.facts.barrier & 1 end

-- Sets the sentence of a deadlock's case. `at` says what the warps wait for; it
-- is a text, or a function of the facts that returns a text.
local function stuck(at, case)
  case[1] = function(f, r)
    local list, n, ended = {}, count(f.waiting), count(f.ended)
    for w = 0, 31 do
      if f.waiting >> w & 1 == 1 then list[#list + 1] = tostring(w) end
    end
    local single = n == 1 and f.lanes or 0
    local who = single > 0 and ("%s of warp %s wait%s"):format(
      plural(single, "thread"), list[1], single == 1 and "s" or "")
      or ("%s wait%s (warp %s)"):format(plural(n, "warp"), n == 1 and "s" or "",
      table.concat(list, ", "))
    return ("no warp can go on: %s at %s%s"):format(who,
      type(at) == "function" and at(f, r) or at,
      ended > 0 and ("; %s exited without arriving"):format(
        plural(ended, "warp")) or "")
  end
  return case
end

---------------------------------------------------------------------------
-- Tensor memory
---------------------------------------------------------------------------

local OPS = {["tcgen05.mma"] = "a tcgen05.mma", ["tcgen05.ld"] = "a load",
             ["tcgen05.st"] = "a store", ["tcgen05.cp"] = "a tcgen05.cp",
             ["tcgen05.shift"] = "a tcgen05.shift"}
function WORDS.op_name(r) return OPS[r.facts.op] end
function WORDS.tensor_clash(r) return CLASHES[r.facts.clash_of] end

-- The advice for a load if an MMA to other columns is complete and unread. %d:
-- the first of these columns.
local READY = "the wait completed the MMA to column %d, which no thread has "
  .. "read: do the MMA, the wait and this load use the same stage?"

-- The advice for a race in which the threads waited for different stages.
local STRAYS = "the MMA follows a wait for stage %d, and the other access a "
  .. "wait for stage %d: does each use the columns of its stage?"

-- Returns a function that tests whether a fault's field `lacks` has this value.
local function lacking_order(lacks)
  return lacks and function(f) return f.lacks == lacks end or nil
end

-- Returns a case (a sentence, its condition and cure) for accesses that are
-- unordered because `lacks` is missing. Without `lacks`, the case fits all
-- other unordered accesses. waited: the label of the line r.wait.
local function unordered(lacks, why, cure, code, waited)
  return {function(f)
    return ("%s of column {column} of tensor memory by {op_name}, %s"):format(
      (f.clash_of == "read after write" and "read after the write"
       or f.clash_of == "write after read" and "write after the read"
       or "write after the write"), why)
  end, how = "race", when = lacking_order(lacks), cure = function(f, r)
    return f.ready and READY:format(f.n)
      or f.strays and STRAYS:format(f.mma_stage, f.stage)
      or value(cure, r)
  end, code = code, other = "first access", waited = waited}
end

-- Returns a case for a race in tensor memory that a tcgen05.fence would
-- prevent. lacks: the value of the fault's field `lacks`.
local function unfenced(fence, lacks, side)
  return {"{tensor_clash} of column {column} of tensor memory by {op_name}: "
    .. "PTX requires tcgen05.fence::" .. fence .. " " .. side,
    how = "fence", when = lacking_order(lacks),
    cure = ("call cute.arch.tcgen05_%s() there"):format(fence),
    code = "race/tmem/missing-fence", other = "first access"}
end

fault {kind = "tensor-memory",
  about = "misuse of tensor memory, or accesses to it without order",
  code = "memory/tmem/misuse",
  {"{n} columns of tensor memory are allocated", how = "columns",
    code = "memory/tmem/columns",
    cure = "an allocation has 32, 64, 128, 256 or 512 columns"},
  {"columns of tensor memory are allocated after "
    .. "relinquish_tmem_alloc_permit", how = "given up", other = "given up",
    code = "memory/tmem/columns",
    cure = "allocate all columns before relinquish_tmem_alloc_permit()"},
  {"{n:column} of tensor memory are allocated, but the other block of the pair "
    .. "allocates {most}", how = "pair", other = "the other allocation",
    code = "memory/tmem/columns",
    cure = "pass the same number of columns to alloc_tmem in both blocks"},
  {"only one block of the pair calls relinquish_tmem_alloc_permit",
    how = "half", code = "memory/tmem/columns",
    cure = "call relinquish_tmem_alloc_permit(true) in a warp of both blocks"},
  {"{n} more columns of tensor memory are allocated while the block has "
    .. "{most}: {other} blocks on an SM, which share 512, may wait for each "
    .. "other",
    how = "residents", other = "the first allocation",
    code = "memory/tmem/columns", cure = "allocate all columns at once"},
  {"tensor memory is freed that is not allocated, or no longer", how = "free",
    other = "freed", code = "memory/tmem/free",
    cure = "free each allocation once, with the pointer to its first column"},
  {"{n:column} of tensor memory are freed, but {most} were allocated",
    how = "part", other = "allocated", code = "memory/tmem/free",
    cure = "pass the same number of columns to alloc_tmem and dealloc_tmem"},
  {"warp {warp} frees tensor memory that warp {other} allocated",
    how = "owner", other = "allocated", code = "memory/tmem/free",
    cure = "let one warp allocate and free"},
  {"{n:column} of tensor memory are never freed", how = "left",
    code = "memory/tmem/not-freed",
    cure = "call dealloc_tmem in the warp that allocated, after a barrier that "
      .. "follows all accesses"},
  {"columns {column} to {last_column} of tensor memory are no longer allocated "
    .. "in the other block of the pair", how = "freed",
    when = function(f) return f.peer end,
    other = "freed", code = "memory/tmem/free",
    cure = "free the columns of a pair after both blocks have used them: let "
      .. "the blocks synchronize before dealloc_tmem"},
  {"columns {column} to {last_column} of tensor memory are used after they "
    .. "were freed", how = "freed", other = "freed", code = "memory/tmem/free",
    cure = "before dealloc_tmem, let all warps that use the columns "
      .. "synchronize; do the waits before it use the right stage and phase?"},
  {function(f)
    return f.most == 0 and "columns {column} to {last_column} of tensor memory "
      .. "are not allocated" or "columns {column} to {last_column} of tensor "
      .. "memory go beyond the allocation, which ends before column {most}"
  end, how = "outside", other = "allocated", code = "memory/tmem/out-of-bounds",
    cure = "allocate as many columns as the accumulators have, and start at "
      .. "the pointer of retrieve_tmem_ptr"},
  {"column {column} of tensor memory is read, but nothing wrote it",
    how = "unwritten", other = "allocated", code = "memory/tmem/uninitialised",
    cure = function(f)
      return f.op == "factors" and "copy the scale factors of A and of B to "
        .. "tensor memory by tcgen05.cp, before the MMA"
        or f.op == "metadata" and "copy the metadata of A to tensor memory by "
        .. "tcgen05.cp, before the MMA"
        or f.op == "tcgen05.mma" and "the first MMA of a tile must not "
        .. "accumulate: set(Field.ACCUMULATE, false)"
        or f.ready and READY:format(f.n)
        or "wait at the mbarrier of the commit before the load, and load only "
          .. "columns that an MMA or a store writes"
    end},
  {"warp {warp} accesses lanes from {n} on of tensor memory, but only lanes "
    .. "{most} to {last_lane} are open to it", how = "window",
    code = "memory/tmem/lanes",
    cure = "warp w of a warpgroup accesses lanes 32 w to 32 w + 31: partition "
      .. "with the tiled copy of make_tmem_copy, whose 128 threads are a "
      .. "warpgroup"},
  {"an operand of {op_name} starts at lane {n} of tensor memory",
    how = "lane", code = "memory/tmem/lanes",
    cure = function(f)
      return f.op == "tcgen05.shift"
        and "a shift starts at lane 0, 32, 64 or 96"
        or "operands start at lane 0, accumulators with M = 64 also at 16"
    end},
  {"lanes of warp {warp} name different places or sizes in tensor memory",
    how = "differs", code = "memory/tmem/lanes",
    cure = "all threads of a warp must pass the same pointer and number"},
  {"{n} threads issue a tcgen05 operation that one thread must issue",
    how = "threads", code = "sync/warp/one-thread",
    cure = "put it into a branch of one thread: cute.when("
      .. "cute.arch.elect_one(), ...) in one warp"},
  {"a descriptor of shared memory has a form that the simulator does not model",
    how = "descriptor", code = "memory/smem/descriptor",
    cure = "make operands with make_fragment_A and make_fragment_B of a layout "
      .. "from tcgen05.make_smem_layout_atom"},
  {"a commit is for the blocks of mask {n}, but the cluster has {most:block}",
    how = "ctas", code = "sync/cluster/mask",
    cure = "set bits of the mask for ranks of blocks in the cluster"},
  {"scale factors of a tcgen05.mma start at byte {n} of a column of tensor "
    .. "memory", how = "byte", code = "memory/tmem/scales",
    cure = "factors of 1, 2 or 4 blocks start at a multiple of as many bytes: "
      .. "index the modes of the layout from make_tmem_layout_sfa"},
  {"an operand of a tcgen05.mma shares column {column} of its accumulators "
    .. "in tensor memory", how = "overlap", code = "memory/tmem/overlap",
    cure = "place each tensor in columns of its own: add the columns of those "
      .. "before it to the pointer"},
  {function(f)
    return ("the scale factors of row %d of %s differ in lanes %d and %d of "
      .. "tensor memory"):format(f.n, f.op, f.n % 32, f.most * 32 + f.n % 32)
  end, how = "copies", code = "memory/tmem/scales",
    cure = "each window of 32 lanes needs the same factors: copy them with "
      .. "tcgen05.Cp4x32x128bOp"},
  {"no tcgen05.commit follows {op_name}", how = "open",
    code = "async/tmem/missing-commit",
    cure = "call tcgen05.commit(mbarrier) in the same thread, and wait at the "
      .. "mbarrier before the accumulators are loaded"},
  unordered("commit", "whose completion was not waited for",
    "let tcgen05.commit arrive at an mbarrier after it, and wait there",
    "race/tmem/missing-wait"),
  unordered("load", "for which its warp did not wait",
    "call cute.arch.fence_view_async_tmem_load() after the load, then "
      .. "synchronize", "race/tmem/missing-wait"),
  unordered("store", "for which its warp did not wait",
    "call cute.arch.fence_view_async_tmem_store() after the store, then "
      .. "synchronize", "race/tmem/missing-wait"),
  unordered("arrival", "which an earlier arrival does not cover", function(f)
    return ("arrive after the last access to the columns and after "
      .. "cute.arch.fence_view_async_tmem_%s()"):format(
      f.op == "tcgen05.ld" and "load" or "store")
  end, "race/tmem/missing-barrier", "arrival"),
  unordered(nil, "with no barrier in between",
    "synchronize between the two accesses, at a barrier or an mbarrier",
    "race/tmem/missing-barrier"),
  unfenced("before_thread_sync", "before",
    "between the first access and the synchronization"),
  unfenced("after_thread_sync", nil,
    "between the synchronization and the second access"),
  lacks = {
    stay = {cure = STAY, other = "first access"},
    turn = {other = "first access", cure = "no thread waits at the mbarrier of "
      .. "the readers: wait there before the MMAs of a stage, as "
      .. "pipe:producer_acquire(state) does"}}}

function WORDS.last_column(r) return r.facts.column + r.facts.n - 1 end
function WORDS.last_lane(r) return r.facts.most + 31 end

fault {kind = "deadlock",
  about = "no warp can go on", code = "sync/block/deadlock",
  cure = "some threads or bytes never arrive at the barrier that other threads "
    .. "wait at",
  stuck("barrier {barrier}, where {came} threads arrived and {needed} are "
    .. "needed", {how = "barrier"}),
  stuck(lacking, {how = "mbarrier", cure = function(f)
    return (f.bytes ~= 0 or f.needed > f.threads) and BYTES or nil
  end}),
  stuck("the cluster barrier, where {came} of {needed} threads did not arrive",
    {how = "cluster"}),
  stuck("setmaxnreg for {needed} registers a thread: these threads have "
    .. "{bytes}, and other warps released {came} a thread",
    {how = "registers"}),
  stuck(function(f)
    return "{element}, which is {value} and was " .. (f.written
      and "last written by block {cta}" or "never written")
      .. (f.needed ~= 0 and "; {needed} blocks cannot start before others "
        .. "exit: all SMs are full" or "")
  end, {how = "flag", other = function(f)
    return f.written and "the last store" or nil
  end, cure = "which thread should store the value that this loop waits for?"}),
  stuck("an MMA of their warpgroup that warp {came} has not issued",
    {how = "team"}),
  stuck("alloc_tmem of a pair of blocks, which the other block does not call",
    {how = "tensor memory", when = function(f) return f.needed ~= 0 end,
      cure = "both blocks of a pair must call alloc_tmem with is_two_cta = "
        .. "true"}),
  stuck("alloc_tmem, for which {came:column} of tensor memory are free",
    {how = "tensor memory", cure = "allocate all columns once, or free columns "
      .. "with dealloc_tmem before more are allocated: a block has 512"}),
  lacks = {
    stay = {cure = STAY},
    commit = {code = "async/tmem/missing-commit", other = "the MMA",
      cure = function(_, r)
        local ring = r.ring or ""
        return "no tcgen05.commit follows the MMA: let the thread that issued "
          .. "it call commit(mbarrier), which arrives there"
          .. (ring:find "empty" and "; in a pipeline, consumer_release(state)"
            or ring:find "full" and "; in a pipeline, producer_commit(state)"
            or "")
      end},
    first = {code = "sync/block/wrong-parity",
      cure = "an empty stage needs no reader in the first round: let the "
        .. "producer wait for parity 1 first, then 0, 1, ..."},
    parity = {code = "sync/block/wrong-parity",
      cure = "this wait is for a phase that is not next for these threads: let "
        .. "the readers wait for parity 0 first, then 1, 0, ..."},
    count = {other = "made",
      cure = "initialize the mbarrier with the number of threads that arrive "
        .. "in a phase, or let the missing threads arrive"},
    nobody = {other = "made", cure = function(f, r)
      return r.wait and HASTY or f.mmas and "no instruction arrives there: if "
        .. "it signals the end of MMAs, let the thread that issued them call "
        .. "tcgen05.commit(mbarrier)"
        or "no running thread arrives there: initialize the mbarrier with the "
        .. "number of threads that do, or let the missing threads arrive"
    end},
    bytes = {code = "sync/block/missing-bytes", other = "expected",
      cure = function(f, r)
        if f.twin > 0 and r.pair then
          return "in a pair, the loads of both blocks complete at the mbarrier "
            .. "of the first block: CopyBulkTensorTileG2SOp(CtaGroup.TWO)"
        end
        return r.multicast and BYTES .. "; a multicast brings bytes only to "
          .. "the blocks whose bits are set in mcast_mask" or BYTES
      end}}}

fault {kind = "mbarrier",
  about = "misuse of an mbarrier", code = "sync/block/mbarrier",
  {"{mbar} is used, but was never initialized with mbarrier_init",
    how = "none"},
  {"{mbar} is used with nothing that orders its mbarrier_init before the use",
    how = "unordered", other = INITIALIZED,
    cure = "put sync_threads() between mbarrier_init and the first use; in a "
      .. "cluster, mbarrier_init_fence() and the cluster barrier "
      .. "(cluster_arrive, cluster_wait)"},
  {"{mbar} is passed to a bulk copy with no mbarrier_init_fence() after its "
    .. "mbarrier_init", how = "unfenced", other = INITIALIZED,
    cure = "call mbarrier_init_fence() between mbarrier_init and the barrier"},
  {"{mbar} is initialized a second time, for {n:arrival}, with no "
    .. "mbarrier_inval between", how = "twice",
    cure = function(_, r)
      return r.line2 == r.line and "let one thread initialize it, "
        .. "cute.when(tid:eq(0), function() ... end), then call "
        .. "sync_threads()" or nil
    end},
  {"{mbar} is initialized for {n} arrivals; the count must be 1 to 1048575",
    how = "count"},
  {"{mbar} exceeds the simulator's limit of {n} mbarriers a cluster",
    how = "many"},
  {function(f)
    return ("{mbar} counts {n:arrival} a phase; {came:arrival} come%s when "
      .. "{missing} %s missing%s"):format(f.came == 1 and "s" or " at once",
      f.missing == 1 and "is" or "are", f.missing == 0 and f.bytes ~= 0
      and (" (but {bytes:byte} %s)"):format(f.bytes == 1 and "is" or "are")
      or "")
  end, how = "over", cure = function(f)
    if f.came ~= 1 and f.missing > 0 then
      return "initialize the mbarrier with the number of threads that arrive "
        .. "in a phase, or let one lane arrive"
    elseif f.far and f.n == 1 then
      return "another block of the cluster has arrived in this phase: should "
        .. "only one block arrive, such as that of rank 0?"
    end
    return "this arrival is one too many, or belongs to the next phase: wait "
      .. "for the end of this phase (for a stage, until it is empty)"
      .. (f.missing == 0 and f.bytes ~= 0 and ", and advance the producer's "
        .. "state after each stage, as by state:advance()" or "")
  end},
  {"{mbar} expects {bytes} bytes; the maximum is 1048575", how = "bytes",
    cure = "one thread should expect the bytes of a stage; do several threads "
      .. "of a warp run this line? Use cute.when(arch.elect_one(), ...) or a "
      .. "condition on one thread"},
  {"{mbar} is used after its mbarrier_inval", how = "gone"},
  {"{mbar} is invalidated while threads wait for it or bytes are in flight",
    how = "busy"},
  {"{mbar} is initialized again with nothing that orders its mbarrier_inval "
    .. "before that", how = "again"},
  {function(f)
    return "this " .. (f.n ~= 0 and "stores" or "reads")
      .. " data in memory where {mbar} is in use"
  end, how = "data",
    cure = "an mbarrier's memory cannot hold data before mbarrier_inval: is "
      .. "this index too large, or is the memory used twice?"},
  {"{mbar} counts {n:arrival} a phase; nothing orders this arrival after "
    .. "the end of phase {came}: that phase may count it instead of another "
    .. "arrival", how = "early",
    cure = "initialize the mbarrier with the number of all arrivals in a phase "
      .. "(in a pipeline, producer_group or consumer_group); a thread must "
      .. "wait for the end of the phase before it arrives again (for a stage, "
      .. "until it is empty)"},
  {"{mbar} is waited on with a token of phase {n} while phase {came} is "
    .. "current: a token is valid in the phase of its arrival and in the next "
    .. "one", how = "token"},
  {"{mbar} is waited on with a token that none of its arrivals returned: a "
    .. "token is valid only for its own mbarrier", how = "foreign"},
  {"{mbar} is still in phase {n} at the end of the kernel: {missing} of "
    .. "{came:arrival} are missing, so its phases get fewer or more arrivals "
    .. "than it counts", how = "left"},
  {"{mbar} is invalidated with nothing that orders an earlier use before the "
    .. "mbarrier_inval", how = "still"},
  {function(f)
    return ("{mbar}: nothing orders this wait for the end of phase %d before "
      .. "the end of phase %d; after that it would wait for phase %d, which "
      .. "never ends"):format(f.n, f.n + 1, f.n + 2)
  end, how = "missed",
    cure = "wait with the state that advances around the ring (in "
      .. "producer_tail, the producer's), or let other threads arrive after "
      .. "this wait"},
  lacks = {stay = {cure = STAY}}}

fault {kind = "unstarted-block",
  about = "shared memory of a block that may not have started is used",
  code = "sync/cluster/unstarted-block",
  cure = "use a cluster barrier first (cluster_arrive, cluster_wait): after "
    .. "it, all blocks of the cluster are running",
  {"{element} of block {cta}, which may not have started: no cluster barrier "
    .. "comes before this access"}}

fault {kind = "exited-block",
  about = "shared memory of a block that may have exited is used",
  code = "sync/cluster/exited-block",
  cure = "let the block wait for it, or add a cluster barrier (cluster_arrive, "
    .. "cluster_wait) before the block exits",
  {"block {cta} may exit before a commit arrives at its mbarrier: none of its "
    .. "threads waits for the arrival",
    when = function(f) return f.commit end,
    cure = "wait at the mbarrier before the block exits, as producer_tail of a "
      .. "pipeline does"},
  {"block {cta} may exit before a copy to or from its shared memory completes: "
    .. "none of its threads waits for the copy",
    when = function(f) return f.landed end,
    cure = "wait before the block exits: for a load, at its mbarrier; for a "
      .. "store, with cp_async_bulk_commit_group() and "
      .. "cp_async_bulk_wait_group(0) in its thread"},
  {"access to shared memory of block {cta}, which may have exited: none of its "
    .. "threads waits for this access"}}

fault {kind = "registers",
  about = "setmaxregister with a wrong register count, or by only some warps",
  code = "sync/warpgroup/registers",
  cure = "setmaxregister_decrease releases registers, setmaxregister_increase "
    .. "requests them",
  {function(f)
    return ("setmaxnreg.%s cannot change {had} registers a thread to {wanted}")
      :format(f.had < f.wanted and "dec" or "inc")
  end, how = "count"},
  {"warp {warp} executes setmaxnreg for {wanted} registers and warp {other} "
    .. "another one, for {theirs}: all warps of a warpgroup ({group}) must "
    .. "execute the same one", how = "differs",
    cure = "all four warps of a warpgroup must execute the same setmaxnreg: "
      .. "put it outside the branch, or branch by warpgroup (warp_idx() // 4)"},
  {"warp {warp} executes its next setmaxnreg with nothing that orders it after "
    .. "warp {other}'s previous one: warps of a warpgroup ({group}) must "
    .. "synchronize in between", how = "apart",
    cure = "put a barrier for the 128 threads of the warpgroup, or "
      .. "sync_threads(), between the two"},
  {"warp {warp} exited without executing the setmaxnreg for {wanted} registers "
    .. "that warp {other} executed: all warps of a warpgroup ({group}) must "
    .. "execute it", how = "lacks",
    cure = "all four warps of a warpgroup must execute the same setmaxnreg: "
      .. "put it outside the branch, or branch by warpgroup (warp_idx() // 4)"}}

---------------------------------------------------------------------------
-- Launches, maps and values
---------------------------------------------------------------------------

-- Returns a case of the fault tensor-map. The fact `drained` means that threads
-- waited for a bulk load with wait_group, which does not wait for loads.
local function map(how, text, cure)
  return {function(f)
    return text .. (f.drained and ", and its mbarrier was not waited for "
      .. "(commit_group and wait_group do not wait for bulk loads)" or "")
      .. ": {element}"
  end, how = how, cure = function(f)
    return f.drained and "in PTX only its mbarrier signals the end of a bulk "
      .. "load: wait there before the map changes" or cure
  end}
end

fault {kind = "tensor-map",
  about = "a tensor map that the kernel changes is not ready, or changes while "
    .. "in use",
  code = "async/map/tensor-map",
  map("none", "the memory holds no valid tensor map",
    "call copy_tensormap() of this atom first"),
  map("beyond", "this tensor map describes more elements than its tensor has",
    "the tensor passed to update_tma_descriptor must lie within its buffer"),
  map("unreleased", "this tensor map was changed but not released afterwards",
    "call fence_tma_desc_release() in the thread that changed it, or "
      .. "cp_fence_tma_desc_release() from shared memory"),
  map("unacquired", "this tensor map was changed but not acquired afterwards",
    "call fence_tma_desc_acquire() in the thread that copies, after a barrier"),
  map("other", "the simulator models no tensor maps by im2col, with an "
    .. "interleave or with an element stride of mode 0"),
  map("changed", "this tensor map is changed while a copy that uses it is in "
    .. "flight", "wait for the copies that use the map, then change it")}

-- The fact `before` says whether earlier launches read or write the memory, as
-- bits SIM_READ and SIM_WRITTEN. The lowest FAR_BITS bits describe the previous
-- launch. The bits above describe launches that the previous launch had not
-- waited for. WRITTEN is SIM_WRITTEN.
local WRITTEN, FAR_BITS = 2, 2

fault {kind = "dependent-launch",
  about = "memory shared with an earlier launch is used before the wait for "
    .. "that launch",
  code = "sync/grid/dependent-launch",
  cure = "call cute.arch.griddepcontrol_wait() before the first access to "
    .. "memory that the launches share",
  {function(f)
    local before = f.before or 0
    local near = before % (1 << FAR_BITS)
    -- A read conflicts only with writes of earlier launches.
    if not f.write then near = near & WRITTEN end
    local how = near ~= 0 and near or before >> FAR_BITS
    return ("{verb} of memory that %s %s, with no griddepcontrol_wait() in "
      .. "between: {element}"):format((near ~= 0 or not f.before)
      and "the previous launch" or "an earlier launch, which the previous "
        .. "launch had not waited for when it let this launch start,",
      how & WRITTEN ~= 0 and "writes" or "reads")
  end}}

fault {kind = "index-overflow",
  about = "an index uses a product that overflows 32 bits",
  code = "arithmetic/integer/index-overflow", other = "the product",
  cure = "compute it in i64: x:to(cute.i64) * y",
  {"an index uses a product that overflows 32 bits: the access reaches "
    .. "{element}"}}

fault {kind = "signed-overflow",
  about = "a sum or product that overflows 32 bits is compared or divided",
  code = "arithmetic/integer/signed-overflow", other = "the result",
  cure = "compute it in i64, x:to(cute.i64) + y, or in u32, which wraps: "
    .. "x:to(cute.u32) + y",
  {"a result that overflows 32 bits is compared, divided or shifted: compilers "
    .. "assume that signed integers do not overflow"}}

fault {kind = "division-by-zero",
  about = "the result of an integer division by zero is used",
  code = "arithmetic/integer/division-by-zero", other = "the division",
  cure = "make sure that the divisor is not 0, or select a safe divisor with "
    .. "cute.where",
  {"the result of an integer division by zero is used"}}

fault {kind = "wrong-layout",
  about = "a traced layout differs from the layout for this launch's extents",
  code = "layout/tensor/wrong-layout",
  cure = "make the extents multiples of the tile, keep the layout static, or "
    .. "partition it mode by mode",
  {"{why}"}}

fault {kind = "inactive-lane",
  about = "a shuffle reads from a lane that does not take part",
  code = "sync/warp/inactive-lane",
  cure = "read only from lanes in the mask: use a narrower width, or a mask "
    .. "with more lanes",
  {"shuffle reads lane {lane}, which does not take part in it"}}

fault {kind = "runaway",
  about = "the instruction budget is exhausted", code = "run/kernel/runaway",
  cure = "check that the loop ends; if it does, raise the budget option",
  {"a loop makes no progress: {executed} instructions since any memory changed",
    when = function(f) return f.quiet end},
  {"a warp executed {executed} instructions without finishing"}}

fault {kind = "assertion",
  about = "an assertion of the kernel failed", code = "run/kernel/assertion",
  {"get_slice gets the negative thread index {value}",
    when = function(f) return f.assumed and f.slice end,
    cure = "let only the threads of the tile slice it: tid - n belongs into "
      .. "cute.when(tid:ge(n), function() ... end)"},
  {"a value that was assumed to lie in [{lo},{hi}] is {value}",
    when = function(f)
      return f.assumed and (f.value < f.lo or f.value > f.hi)
    end},
  {"a value that was assumed to be divisible by {div} is {value}",
    when = function(f) return f.assumed end},
  {"assertion failed: {said}", when = function(f) return f.said end},
  {"assertion failed"}}

---------------------------------------------------------------------------
-- Errors
---------------------------------------------------------------------------

local ERRORS = {}
--- The rows of errors, by kind and in the order of core/base/errors.h. They
-- have no sentence, because the function that raises an error makes it. The
-- example is KIND/example in spec/faults/. An example that is a command is only
-- in docs/errors.md.
kinds.ERRORS = ERRORS

local function err(row)
  row.example = row.example or row.kind .. "/example"
  ERRORS[#ERRORS + 1], ERRORS[row.kind] = row, row
end

err {kind = "bad-argument", about = "an argument has the wrong type or value"}
err {kind = "bad-notation", about = "a string is not CuTe notation",
  cure = "write shapes as (2,(4,8)) and layouts as shape:stride"}
err {kind = "bad-ptx",
  about = "PTX is malformed, or has an unsupported instruction",
  cure = "docs/ptx.md lists the supported opcodes and modifiers"}
err {kind = "inadmissible",
  about = "operands violate a condition of the operation",
  cure = "print both operands, or run the call in cute.explain(function() "
    .. "... end)"}
err {kind = "overflow", about = "a number does not fit in 64 bits"}
err {kind = "limit", about = "a stated limit was exceeded"}
err {kind = "unknown-name", about = "no such atom, type, option or field"}
err {kind = "type-mismatch",
  about = "element or value types do not fit together"}
err {kind = "shape-mismatch", about = "shapes or extents do not fit together"}
err {kind = "misaligned",
  about = "an address or layout lacks the required alignment",
  cure = "use a narrower copy, or pad the layout so that every vector starts "
    .. "at a multiple of its size"}
err {kind = "smem-budget",
  about = "the kernel needs more shared memory than the architecture has",
  cure = "use fewer stages or a smaller tile"}
err {kind = "register-index",
  about = "a register fragment needs constant indices",
  cure = "index fragments with the variable of a plain `for i = 0, n do`, "
    .. "which unrolls"}
err {kind = "in-flight",
  about = "registers of a warpgroup's MMA are used while it is in flight",
  cure = "call warpgroup.fence(), the MMAs, commit_group(), wait_group(0); "
    .. "use their registers only after that"}
err {kind = "wrong-arch", example = "docs/errors.md",
  about = "the target architecture does not support the operation",
  cure = "choose another atom, or another target: the launch's `device`, or "
    .. "--arch"}
err {kind = "needs-static", about = "a value must be known while tracing"}
err {kind = "traced-in-lua",
  about = "Lua used a traced value as if it were a number",
  cure = "use the cute function: a:lt(b), cute.when(cond, f), cute.range(n), "
    .. "cute.min(a, b)"}
err {kind = "unused-boolean", about = "a traced boolean was never consumed",
  cure = "Lua's `if` cannot test a traced value: use cute.when(cond, "
    .. "function() ... end)"}
err {kind = "loop-type-changed",
  about = "a loop-carried local changed its type",
  cure = "convert in the loop, so that the local or field keeps the type "
    .. "that it had before the loop"}
err {kind = "loop-table-changed",
  about = "a table gained or lost a field in a traced loop",
  cure = "make the table with all its fields before the loop or branch"}
err {kind = "loop-exit", about = "break or return out of a traced loop",
  cure = "use cute.loop(cond, body), or cute.when around the rest of the body"}
err {kind = "runaway-trace", about = "one line traced too many instructions",
  cure = "a traced condition never ends a Lua `while`: use cute.loop(cond, "
    .. "body)"}
err {kind = "out-of-region", about = "a value was used outside its region",
  cure = "give the variable a value before the loop or branch, and assign it "
    .. "inside"}
err {kind = "foreign-value", about = "a value was used in another kernel",
  cure = "pass it as an argument of the kernel"}
err {kind = "not-tracing", about = "only meaningful inside a kernel",
  cure = "call it inside cute.kernel(name, function(...) ... end)"}
err {kind = "inside-kernel", about = "not possible inside a kernel",
  cure = "do it before the kernel and use the result inside"}
err {kind = "bad-launch", about = "launch parameters do not fit the kernel"}
err {kind = "in-graph", about = "not possible while a graph is captured",
  cure = "wait, and read results, after graph:launch()"}
err {kind = "closed", about = "the object was closed",
  cure = "use it before its close() or the end of its block"}
err {kind = "kernel-fault", about = "the simulator found a fault in the kernel",
  cure = "--traceback shows all details of each fault"}
err {kind = "lua",
  about = "an error of Lua itself, or one that the script raised"}
err {kind = "io", example = "docs/errors.md",
  about = "a file could not be read or written"}
err {kind = "no-gpu", example = "docs/errors.md",
  about = "no usable GPU or driver"}
err {kind = "no-nvrtc", example = "docs/errors.md",
  about = "the NVRTC library was not found"}
err {kind = "compile-failed", about = "NVRTC rejected the generated source"}
err {kind = "driver-error", example = "docs/errors.md",
  about = "the CUDA driver or cuBLAS reported an error"}
err {kind = "out-of-memory", example = "docs/errors.md",
  about = "memory ran out"}
err {kind = "internal", example = "docs/errors.md",
  about = "a defect of cutelua itself; please report it",
  cure = "please report this with the script"}

---------------------------------------------------------------------------
-- Results
---------------------------------------------------------------------------

--- Rows of findings that are neither faults, errors nor notes: {code, the
-- section of docs/errors.md or the page that explains the finding, meaning}.
kinds.OTHERS = {
  {"result/reference/wrong", "kernel-fault",
    "results differ from a reference"},
  {"result/gpu/wrong", "kernel-fault", "results differ from the GPU's"},
  {"error/script/interrupted", "lua", "the user interrupted the script"},
  {"performance/smem/bank-conflict", "profile.md",
    "lanes of a warp are served one after the other"},
}

---------------------------------------------------------------------------
-- Functions
---------------------------------------------------------------------------

--- Returns the case (sentence, condition, cure) of a fault: the first case of
-- its kind that fits the fault.
---@param r table an element of report.reports
---@return table
function kinds.case(r)
  local f = r.facts
  for _, case in ipairs(FAULTS[r.kind]) do
    if (not case.how or case.how == f.how)
        and (not case.when or case.when(f, r)) then
      return case
    end
  end
  error(("no sentence for a fault of kind %s, %s"):format(r.kind, f.how))
end

-- Returns the advice for the operation that is missing at a fault (r.lack): an
-- entry of the row's field `lacks`, or an empty table.
local function lack(r)
  local lacks = FAULTS[r.kind].lacks
  return lacks and lacks[r.lack] or {}
end

--- Returns a phrase that says why the wait for an operation in flight did not
-- suffice. It contains words in braces, for kinds.fill.
---@param r table an element of report.reports
---@return string
function kinds.late(r)
  local row = FAULTS["async-in-flight"].lacks[r.lack] or {}
  return value(row.late, r) or "wait missing"
end

--- Returns the sentence of a fault.
---@param r table an element of report.reports
---@return string
function kinds.sentence(r)
  return kinds.fill(r, value(kinds.case(r)[1], r))
end

--- Returns the advice for the operation that is missing at a fault, or nil if
-- there is none. The second value is the label of the fault's other source
-- line, r.line2.
---@param r table an element of report.reports
---@return string? cure
---@return string? other
function kinds.lack(r)
  local row = lack(r)
  return value(row.cure, r), row.other or value(FAULTS[r.kind].other, r)
end

--- Returns the advice for a fault's case, or nil if the case has none. The
-- second value is the label of the fault's other source line, r.line2.
---@param r table an element of report.reports
---@return string? cure
---@return string? other
function kinds.cure(r)
  local case, _, other = kinds.case(r), kinds.lack(r)
  return value(case.cure, r), value(case.other, r) or other
end

--- Returns what happened in line r.wait of a fault: "wait" or "arrival".
---@param r table an element of report.reports
---@return string
function kinds.waited(r) return kinds.case(r).waited or "wait" end

--- Returns the stable code of a fault.
---@param r table an element of report.reports
---@return string
function kinds.code(r)
  local row, f = FAULTS[r.kind], r.facts
  local m = f.memory
  local text = lack(r).code or f.flying and f.agent == "st.async" and row.sent
    or kinds.case(r).code or row.code
  return (text:gsub("SPACE", m and m.space:find "shared" and "smem" or "gmem"))
end

--- Calls add(code, kind) for each code that a fault can have.
---@param add fun(code: string, kind: string)
function kinds.each_code(add)
  for _, row in ipairs(FAULTS) do
    local list = {row.code}
    for _, case in ipairs(row) do list[#list + 1] = case.code end
    for _, missing in pairs(row.lacks or {}) do
      list[#list + 1] = missing.code
    end
    for _, text in ipairs(list) do
      for _, space in ipairs(text:find "SPACE" and {"smem", "gmem"} or {""}) do
        add((text:gsub("SPACE", space)), row.kind)
      end
    end
  end
end

return kinds
-- SPDX-License-Identifier: MIT
