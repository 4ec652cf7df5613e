--- The stable codes of findings, such as race/smem/missing-barrier. A code
-- belongs to one of the kinds of docs/errors.md, whose section explains it.
--
-- Codes are never renamed. A new code is added when a fault of an old code
-- needs another repair.
local core = require "cute.core"
local report = require "cute.lang.report"

local codes = {}

-- Rows of faults that the simulator reports: {kind, condition, code}. The first
-- row that fits a fault gives its code. A condition is the fault's `lack`, or a
-- pattern of its message if it begins with "~"; "" fits every fault. SPACE is
-- the memory of the fault's tensor: smem or gmem.
local FAULTS = {
  {"race", "wait", "race/SPACE/missing-wait"},
  {"race", "pending", "race/SPACE/missing-wait"},
  {"race", "parity", "race/SPACE/wrong-parity"},
  {"race", "roles", "race/SPACE/missing-arrival"},
  {"race", "issuer", "race/SPACE/wait-by-other-thread"},
  {"race", "turn", "race/SPACE/early-refill"},
  {"race", "~fence_proxy", "race/SPACE/missing-proxy-fence"},
  {"race", "~not waited for", "race/SPACE/missing-wait"},
  {"race", "~in flight", "race/SPACE/missing-wait"},
  {"race", "~by wgmma", "race/SPACE/missing-wait"},
  {"race", "~another block", "race/SPACE/missing-cluster-barrier"},
  {"race", "~two warps write", "race/SPACE/two-writers"},
  {"race", "", "race/SPACE/missing-barrier"},
  {"warp-race", "~two lanes", "race/SPACE/two-writers"},
  {"warp-race", "~not waited for", "race/SPACE/missing-wait"},
  {"warp-race", "~in flight", "race/SPACE/missing-wait"},
  {"warp-race", "", "race/SPACE/missing-sync-warp"},
  {"block-race", "read", "race/gmem/unfinished-store"},
  {"block-race", "", "race/gmem/unordered-blocks"},
  {"async-in-flight", "barrier", "async/SPACE/missing-barrier"},
  {"async-in-flight", "parity", "async/SPACE/wrong-parity"},
  {"async-in-flight", "bytes", "async/SPACE/missing-bytes"},
  {"async-in-flight", "turn", "async/SPACE/early-refill"},
  {"async-in-flight", "issuer", "async/SPACE/wait-by-other-thread"},
  {"async-in-flight", "read", "async/SPACE/unfinished-store"},
  {"async-in-flight", "~no group", "async/SPACE/missing-commit"},
  {"async-in-flight", "", "async/SPACE/missing-wait"},
  {"in-flight", "~no wgmma.fence", "async/registers/missing-fence"},
  {"in-flight", "", "async/registers/missing-wait"},
  {"uninitialised", "", "memory/SPACE/uninitialised"},
  {"unwritten", "", "memory/gmem/unwritten"},
  {"out-of-bounds", "", "memory/SPACE/out-of-bounds"},
  {"misaligned", "", "memory/SPACE/misaligned"},
  {"divergent", "", "sync/warp/divergent"},
  {"inactive-lane", "", "sync/warp/inactive-lane"},
  {"barrier-mismatch", "", "sync/block/barrier-mismatch"},
  {"deadlock", "parity", "sync/block/wrong-parity"},
  {"deadlock", "first", "sync/block/wrong-parity"},
  {"deadlock", "bytes", "sync/block/missing-bytes"},
  {"deadlock", "", "sync/block/deadlock"},
  {"mbarrier", "", "sync/block/mbarrier"},
  {"warpgroup-mismatch", "", "sync/warpgroup/mismatch"},
  {"registers", "", "sync/warpgroup/registers"},
  {"unstarted-block", "", "sync/cluster/unstarted-block"},
  {"exited-block", "", "sync/cluster/exited-block"},
  {"dependent-launch", "", "sync/grid/dependent-launch"},
  {"tensor-map", "", "async/map/tensor-map"},
  {"index-overflow", "", "arithmetic/integer/index-overflow"},
  {"signed-overflow", "", "arithmetic/integer/signed-overflow"},
  {"division-by-zero", "", "arithmetic/integer/division-by-zero"},
  {"wrong-layout", "", "layout/tensor/wrong-layout"},
  {"bad-metadata", "", "layout/operand/bad-metadata"},
  {"assertion", "", "run/kernel/assertion"},
  {"runaway", "", "run/kernel/runaway"},
}

-- Rows of findings that are neither faults nor errors: {code, section of
-- docs/errors.md or a page, meaning}.
local OTHERS = {
  {"result/reference/wrong", "kernel-fault",
    "results differ from a reference"},
  {"result/gpu/wrong", "kernel-fault", "results differ from the GPU's"},
  {"error/script/interrupted", "lua", "the user interrupted the script"},
  {"performance/smem/bank-conflict", "profile.md",
    "lanes of a warp are served one after the other"},
}

-- Rows of notes on runs without faults: {pattern of the note, code, meaning}.
-- The first row that fits a note gives its code.
local NOTES = {
  {"PTX does not guarantee", "note/run/unguaranteed",
    "the run relies on behaviour that PTX does not guarantee"},
  {"NaN or infinity", "note/run/nonfinite",
    "a NaN or infinity was made from finite inputs"},
  {"TMA store lie outside", "note/run/stored-outside",
    "a TMA store stores nothing"},
  {"written here but never read", "note/run/never-read",
    "shared memory is written and never read"},
  {"were never", "note/run/left-out",
    "a part of a tensor was never read or stored"},
  {"sum", "note/run/lost-sum", "a part of a sum is lost or counted twice"},
  {"", "note/run/unlikely", "behaviour that is no fault but hardly meant"},
}

-- Returns the memory of the tensor that a fault is about.
local function space_of(r)
  return r.message:find "shared" and "smem" or "gmem"
end

local function fits(row, r)
  local condition = row[2]
  if row[1] ~= r.kind then return false end
  if condition:byte() == 126 then
    return r.message:find(condition:sub(2)) ~= nil
  end
  return condition == "" or condition == r.lack
end

--- Returns the code of a fault of the simulator.
---@param r {kind: string, message: string, lack: string?}
---@return string
function codes.of_fault(r)
  for _, row in ipairs(FAULTS) do
    if fits(row, r) then return (row[3]:gsub("SPACE", space_of(r))) end
  end
  return "run/kernel/" .. r.kind
end

--- Returns the code of a note on a run without faults.
---@param text string
---@return string
function codes.of_note(text)
  for _, row in ipairs(NOTES) do
    if text:find(row[1]) then return row[2] end
  end
end

--- Returns the code of an error by its kind.
---@param kind string? nil if the user interrupted the run
---@return string
function codes.of_error(kind)
  local family = report.world[kind] and "environment" or "script"
  return ("error/%s/%s"):format(family, kind or "interrupted")
end

-- Adds a code once.
local function add(list, known, code, kind, about)
  if known[code] then return end
  known[code] = true
  list[#list + 1] = {code = code, kind = kind, about = about}
end

--- Returns all codes, sorted: {code =, kind = section of docs/errors.md, about
-- = meaning, of errors and notes}.
---@return table[]
function codes.list()
  local list, known = {}, {}
  for _, row in ipairs(FAULTS) do
    if row[3]:find "SPACE" then
      add(list, known, (row[3]:gsub("SPACE", "smem")), row[1])
      add(list, known, (row[3]:gsub("SPACE", "gmem")), row[1])
    else
      add(list, known, row[3], row[1])
    end
  end
  for kind, about in pairs(core.error_kinds) do
    add(list, known, codes.of_error(kind), kind, about)
  end
  for _, row in ipairs(NOTES) do
    add(list, known, row[2], "json-reports", row[3])
  end
  for _, row in ipairs(OTHERS) do add(list, known, table.unpack(row)) end
  table.sort(list, function(a, b) return a.code < b.code end)
  return list
end

--- Returns the address, within the documentation, that explains a code's kind:
-- a section of docs/errors.md, or a page.
---@param kind string
---@return string
function codes.page(kind)
  if kind:find "%.md$" then return "docs/" .. kind end
  return "docs/errors.md#" .. kind
end

return codes
-- SPDX-License-Identifier: MIT
