--- Lists which names of the Python DSL and of CuTe exist here, and why the
-- others do not. `make names` prints the list.
--
-- The DSL's list (lines "when namespace name") is read from
-- CUTELUA_NAMES_FILE, by default ../shared/dsl-names.txt. The list of CuTe's
-- atoms, with families as {a|b} in their names, is tools/atom-names.txt.
local core = require "cute.core"
local cute = require "cute"

local names = {}

local ANNOTATION = "an annotation of Python types: rnd is a word such as \"rz\""
local ROUNDINGS = "no documentation says how often it rounds"
local UNDOCUMENTED = "no documentation says what it computes"

--- Names of the DSL that do not exist here, and the replacement for each.
names.LEFT_OUT = {
  ["pipeline.compute_k_tile"] = UNDOCUMENTED,
  ["pipeline.PerStagePipelineState"] = UNDOCUMENTED,
  ["cute.testing.CuptiProfiler"] = "cute.testing.benchmark times by events, "
    .. "the simulator counts; no profiler library is opened",
  ["pipeline.PipelineTmaMultiConsumersAsync"] = "its consumers are products "
    .. "in tensor memory: comes with Blackwell's",
  ["cute.arch.PackedAddRounding"] = ANNOTATION,
  ["cute.arch.PackedSubRounding"] = ANNOTATION,
  ["cute.arch.HalfFmaRounding"] = ANNOTATION,
  ["cute.arch.calc_packed_f32x2_op"] = "calls a function of NVVM; here each "
    .. "operation such as add_packed_f32x2 has its options",
  ["cute.arch.add_packed_bf16x2_f32x2_f32x2"] = ROUNDINGS,
  ["cute.arch.add_packed_f16x2_f32x2_f32x2"] = ROUNDINGS,
  ["cute.arch.sub_packed_bf16x2_f32x2_f32x2"] = ROUNDINGS,
  ["cute.arch.sub_packed_f16x2_f32x2_f32x2"] = ROUNDINGS,
  ["cute.arch.cvt_f32x4_to_fnv8e5m3x4"] = UNDOCUMENTED,
  ["utils.compute_smem_layout"] = "three calls: blackwell_helpers' "
    .. "make_smem_layout_a for A and for the converted A, make_smem_layout_b",
}

local function field(t, name) return t[name] end

--- Returns the value of a name in a namespace of cute, or nil.
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

--- Returns the entries {when =, namespace =, name =, full =} of a list file.
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

--- Returns counts by namespace, {[namespace] = {total =, have =, missing =
-- {full}}}, and the counts of all namespaces together.
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

---------------------------------------------------------------------------
-- Atoms
---------------------------------------------------------------------------

--- Patterns of atom families that have no row in the tables, each with the
-- reason.
names.NO_ATOM = {
  {"::PREFETCH$", "prefetches: cute.prefetch of a load's atom"},
  {"^SM90_TMA_.*IM2COL", "TMA that unfolds images: "
    .. "cpasync.make_im2col_tma_atom"},
  {"^SM90_TMA_STORE_PTR$", "a store by a map in memory: SM90_TMA_STORE with "
    .. "tma_desc_ptr"},
  {"^SM100_TMA_", "TMA of two SMs: cpasync.CopyBulkTensorTileG2SOp with "
    .. "CtaGroup.TWO"},
  {"^SM100_TMA_.*4", "TMA of rows: cpasync.CopyBulkTensor2DGather4G2SOp and "
    .. "CopyBulkTensor2DScatter4S2GOp"},
  {"^SM100_MMA_.*_SCALED$", "products that scale C: come with Blackwell's"},
  {"_INTERLEAVED_", "complex products in tensor memory: come with Blackwell's"},
  {"^SM120::BLOCKSCALED::SPARSE::SM120_SPARSE_16x8x64_", "sparse products of "
    .. "8-bit blocks with scales: come with GeForce Blackwell's"},
}

local function expand(family, out)
  local head, body, tail = family:match "^([^{]*){([^}]*)}(.*)$"
  if not head then
    out[#out + 1] = family
    return out
  end
  for part in (body .. "|"):gmatch "([^|]*)|" do
    local a, b, step = part:match "^(%d+)%.%.(%d+)/(%d+)$"
    if a then
      for n = math.tointeger(a), math.tointeger(b), math.tointeger(step) do
        expand(head .. n .. tail, out)
      end
    else
      expand(head .. part .. tail, out)
    end
  end
  return out
end

--- Returns the names of a list of atoms, and the families in the list.
---@param path string
---@return string[]|nil names
---@return string message
function names.read_atoms(path)
  local f <close> = io.open(path)
  if not f then return nil, ("cannot read %s [io]"):format(path) end
  local list = {}
  for line in f:lines() do
    if line:find "^%u" then expand(line, list) end
  end
  return list, ""
end

--- Counts the atoms of a list that have a row in the tables. Groups the other
-- atoms by reason; atoms without a reason are in the group "".
---@param list string[]
---@return integer have
---@return table<string, string[]> missing
function names.count_atoms(list)
  local rows, have, missing = {}, 0, {}
  for _, kind in ipairs {"mma", "copy"} do
    local i = 0
    for name in function() i = i + 1 return core.atom_name(kind, i - 1) end do
      rows[name:match "^[^<,]*"] = true
    end
  end
  for _, name in ipairs(list) do
    local why = ""
    for _, family in ipairs(names.NO_ATOM) do
      if name:find(family[1]) then why = family[2] end
    end
    if rows[name] then have = have + 1 else
      missing[why] = missing[why] or {}
      table.insert(missing[why], name)
    end
  end
  return have, missing
end

local function print_atoms()
  local list, message = names.read_atoms "tools/atom-names.txt"
  if not list then
    io.stderr:write("names: ", message, "\n")
    return false
  end
  local have, missing = names.count_atoms(list)
  local reasons = {}
  for why in pairs(missing) do reasons[#reasons + 1] = why end
  table.sort(reasons)
  for _, why in ipairs(reasons) do
    local of = missing[why]
    print(("  no row: %s%s: %s"):format(of[1],
      #of > 1 and (" and %d more"):format(#of - 1) or "",
      why == "" and "NO REASON GIVEN" or why))
  end
  print(("%d of %d names of atoms (%.1f%%)"):format(have, #list,
    100 * have / #list))
  return missing[""] == nil
end

-- Prints the coverage by namespace, and the missing names with their reasons.
-- Returns the total, and the number of missing names without a reason. partial:
-- does not print names without a reason.
local function print_names(list, when, partial)
  local by, all = names.count(list, when)
  local spaces, unexplained = {}, 0
  for space in pairs(by) do spaces[#spaces + 1] = space end
  table.sort(spaces)
  for _, space in ipairs(spaces) do
    print(("%-22s %3d of %3d"):format(space, by[space].have, by[space].total))
  end
  for _, full in ipairs(all.missing) do
    local why = names.LEFT_OUT[full]
    if not why then unexplained = unexplained + 1 end
    if why or not partial then
      print(("  left out: %s: %s"):format(full, why or "NO REASON GIVEN"))
    end
  end
  return all, unexplained
end

--- Prints the coverage. The exit code is 1 if less than 95% of the DSL's names
-- exist, or if a name is missing without a reason.
function names.main()
  local path = os.getenv "CUTELUA_NAMES_FILE" or "../shared/dsl-names.txt"
  local list, message = names.read(path)
  if not list then
    io.stderr:write("names: ", message, "\n")
    os.exit(1, true)
  end
  local core_all, unexplained = print_names(list, "core")
  local hopper_all, unexplained_too = print_names(list, "hopper")
  local blackwell_all, later = print_names(list, "blackwell", true)
  print(("%d of %d names (%.1f%%)"):format(core_all.have, core_all.total,
    100 * core_all.have / core_all.total))
  print(("%d of %d names of Hopper"):format(hopper_all.have,
                                            hopper_all.total))
  print(("%d of %d names of Blackwell, %d to come"):format(blackwell_all.have,
    blackwell_all.total, later))
  local atoms = print_atoms()
  os.exit(core_all.have >= 0.95 * core_all.total and unexplained == 0
          and unexplained_too == 0 and atoms, true)
end
return names
-- SPDX-License-Identifier: MIT
