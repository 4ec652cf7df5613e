--- The names that a user of the Python DSL looks for: which exist here, and
-- why the others do not. `make names` prints it.
--
-- The list (lines "when namespace name") is read from CUTELUA_NAMES_FILE,
-- ../shared/dsl-names.txt when that is not set.
local cute = require "cute"

local names = {}

--- Names that are left out, and what to do instead.
names.LEFT_OUT = {
  ["cute.prefetch"] = "prefetches by TMA: comes with Hopper's copies",
  ["cute.sym_int"] = "extents become dynamic by t:mark_layout_dynamic{...}, "
    .. "which states their divisibility; no call takes symbols",
  ["cute.sym_int32"] = "as cute.sym_int",
  ["cute.sym_int64"] = "as cute.sym_int",
  ["cute.testing.CuptiProfiler"] = "cute.testing.benchmark times by events, "
    .. "the simulator counts; no profiler library is opened",
  ["utils.compute_smem_layout"] = "of Blackwell's mixed-input GEMM (tensor "
    .. "memory): comes with it",
}

local function field(t, name) return t[name] end

--- What a namespace's name stands for: the value, or nil.
---@param namespace string "cute", "cute.arch", "pipeline", "utils" ...
---@param name string
function names.find(namespace, name)
  local ok, v = true, cute
  for part in (namespace .. "." .. name):gmatch "[^.]+" do
    if part ~= "cute" then ok, v = pcall(field, v, part) end
    if not ok then return nil end
  end
  return v
end

--- Entries {when =, namespace =, name =, full =} of a list file.
---@param path string
---@return table[]|nil
---@return string|nil message
function names.read(path)
  local f <close> = io.open(path)
  if not f then return nil, ("cannot read %s [io]"):format(path) end
  local list = {}
  for line in f:lines() do
    local when, namespace, name = line:match "^(%w+) (%S+) (%S+)$"
    if when then
      list[#list + 1] = {when = when, namespace = namespace, name = name,
                         full = namespace .. "." .. name}
    end
  end
  return list
end

--- Counts by namespace: {[namespace] = {total =, have =, missing = {full}}},
-- and their sum.
---@param list table[]
---@param when string "core"
---@return table<string, table>, table
function names.count(list, when)
  local by, all = {}, {total = 0, have = 0, missing = {}}
  for _, e in ipairs(list) do
    if e.when == when then
      local c = by[e.namespace] or {total = 0, have = 0, missing = {}}
      by[e.namespace] = c
      local have = names.find(e.namespace, e.name) ~= nil
      for _, t in ipairs {c, all} do
        t.total = t.total + 1
        if have then t.have = t.have + 1
        else t.missing[#t.missing + 1] = e.full end
      end
    end
  end
  return by, all
end

--- Prints the coverage; the exit code is 1 below 95%, or when a name is
-- missing without a reason.
function names.main()
  local path = os.getenv "CUTELUA_NAMES_FILE" or "../shared/dsl-names.txt"
  local list, message = names.read(path)
  if not list then
    io.stderr:write("names: ", message, "\n")
    os.exit(1, true)
  end
  local by, all = names.count(list, "core")
  local spaces = {}
  for space in pairs(by) do spaces[#spaces + 1] = space end
  table.sort(spaces)
  for _, space in ipairs(spaces) do
    print(("%-14s %3d of %3d"):format(space, by[space].have, by[space].total))
  end
  local unexplained = 0
  for _, full in ipairs(all.missing) do
    local why = names.LEFT_OUT[full]
    if not why then unexplained = unexplained + 1 end
    print(("  left out: %s: %s"):format(full, why or "NO REASON GIVEN"))
  end
  print(("%d of %d names (%.1f%%)"):format(all.have, all.total,
    100 * all.have / all.total))
  os.exit(all.have >= 0.95 * all.total and unexplained == 0, true)
end

return names
