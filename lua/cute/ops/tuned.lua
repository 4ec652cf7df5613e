--- Tables of measured choices, one file per GPU model. The tuner writes them
-- (docs/tuning.md) and ops.gemm reads them for each new problem.
--
--     return {
--       format = 1, card = "NVIDIA H200", arch = "sm_90a", sms = 132,
--       gemm = {
--         ["bf16 bf16 bf16 tn row"] = {
--           -- M, N, K, microseconds hot and cold, the choice
--           {4096, 4096, 4096, 201.3, 208.1,
--            "gemm_sm90 128x256x64 cluster=2x1"},
--         },
--       },
--     }
--
-- A class names the types of A, B and D, then the contiguous modes of A and B
-- in BLAS notation ("tn": K of both), then "row" or "column" for D. "C:bf16"
-- follows if the product adds a C of that type, and "NAME:FINGERPRINT" if there
-- is an epilogue (see cute.ops.fingerprint), whose name is only informative. A
-- choice is a name from cute.ops.choose. A name that is not among a problem's
-- candidates is ignored, so a table may be outdated or from another GPU, but
-- never causes an error.
local core = require "cute.core"
local files = require "cute.lang.files"
local folders = require "cute.lang.folders"
local literal = require "cute.lang.literal"

local tuned = {FORMAT = 1}

---------------------------------------------------------------------------
-- Names
---------------------------------------------------------------------------

-- Returns the letter for the contiguous mode of a matrix: `second` or `first`;
-- nil if neither mode is contiguous.
local function contiguous(t, second, first)
  if t.stride[2] == 1 then return second end
  return t.stride[1] == 1 and first or nil
end

--- Returns the class of a problem, the key under which tables hold its choices;
-- nil if tables have no such key (batches, factors per block, packed weights).
---@param p table
---@param name? string the epilogue's name; "epilogue" when absent
---@return string?
function tuned.class(p, name)
  if p.batches > 1 or p.group or p.zeros ~= nil then return nil end
  local a, b = contiguous(p.A, "t", "n"), contiguous(p.B, "n", "t")
  local d = contiguous(p.D, "row", "column")
  if not (a and b and d) then return nil end
  local function of(t) return p.tf32 and t.name == "f32" and "tf32" or t.name
  end
  return ("%s %s %s %s%s %s%s%s"):format(of(p.a), of(p.b), p.d.name, a, b, d,
    p.c and " C:" .. p.sources[1].element_type.name or "",
    p.fused and (" %s:%s"):format(name or "epilogue", p.fingerprint) or "")
end

-- Returns the name of a class (see the head of this file) with "epilogue" in
-- place of the epilogue's name.
local function nameless(class)
  return (class:gsub("[%w_]+:(%x+)$", function(digits)
    return #digits == 16 and "epilogue:" .. digits or nil
  end))
end

--- Returns the part of a file's name that stands for a GPU model: "h200" for
-- "NVIDIA H200".
---@param name string
---@return string
function tuned.card(name)
  return (name:lower():gsub("^nvidia ", ""):gsub("[^%w]+", "-"))
end

--- Returns the user's folder of tables, or nil if there is no home folder.
---@return string?
function tuned.folder()
  local data = folders.data()
  return data and data .. "/tuned"
end

---------------------------------------------------------------------------
-- Files
---------------------------------------------------------------------------

-- The largest size of a table in bytes.
local LARGEST = 16 << 20

-- Reports whether x is a list whose first elements have these types, in this
-- order.
local function has_types(x, ...)
  if type(x) ~= "table" then return false end
  for i, t in ipairs {...} do
    if (math.type(x[i]) or type(x[i])) ~= t and type(x[i]) ~= t then
      return false
    end
  end
  return true
end

-- Returns a sentence about the first error in the contents of a table file, or
-- nil if there is none.
local function fault(t)
  if type(t) ~= "table" then return "it does not return a table" end
  if t.format ~= tuned.FORMAT then
    return ("its format is %s, not %d"):format(core.show(t.format),
                                               tuned.FORMAT)
  end
  if type(t.card) ~= "string" or type(t.arch) ~= "string"
    or math.type(t.sms) ~= "integer" or type(t.gemm) ~= "table" then
    return "card, arch, sms or gemm is missing"
  end
  for class, rows in pairs(t.gemm) do
    if type(class) ~= "string" or type(rows) ~= "table" then
      return ("gemm[%s] is not a list"):format(core.show(class))
    end
    for i, row in ipairs(rows) do
      if not has_types(row, "integer", "integer", "integer", "number", "number",
                       "string") or row[4] + row[5] == math.huge then
        return ("row %d of %q is not {M, N, K, hot, cold, choice}"):format(i,
          class)
      end
    end
  end
end

--- Parses a file's text as data, without running it.
---@param text string
---@return table? t
---@return string? why
function tuned.parse(text)
  local t, why = literal.read(text)
  why = why or fault(t)
  if why then return nil, why end
  return t
end

--- Returns the table in a file. Returns nil if there is no file, or nil and the
-- reason if it is invalid.
---@param path string
function tuned.read(path)
  local kind = core.file_kind(path)
  if not kind then return nil end
  local text, t, why
  if kind ~= "file" then why = "it is not a file"
  else text, why = files.read(path, LARGEST, "plain") end
  if text then t, why = tuned.parse(text) end
  if why then return nil, ("%s is not used: %s"):format(path, why) end
  return t
end

--- Returns the text of a file that holds the table.
---@param t table
---@return string
function tuned.text(t)
  local out = {"-- What `cutelua tune` measured: the best choice of each "
    .. "product\n-- (docs/tuning.md). M, N, K, microseconds hot and cold, the "
    .. "choice.\n", "return {\n", ("  format = %d, card = %q, arch = %q, "
    .. "sms = %d,\n  gemm = {\n"):format(tuned.FORMAT, t.card, t.arch, t.sms)}
  local classes = {}
  for class in pairs(t.gemm) do classes[#classes + 1] = class end
  table.sort(classes)
  for _, class in ipairs(classes) do
    local rows = table.move(t.gemm[class], 1, #t.gemm[class], 1, {})
    table.sort(rows, function(a, b)
      if a[2] ~= b[2] then return a[2] < b[2] end
      if a[3] ~= b[3] then return a[3] < b[3] end
      return a[1] < b[1]
    end)
    out[#out + 1] = ("    [%q] = {\n"):format(class)
    for _, r in ipairs(rows) do
      out[#out + 1] = ("      {%d, %d, %d, %.2f, %.2f,\n      %q},\n"):format(
        table.unpack(r))
    end
    out[#out + 1] = "    },\n"
  end
  out[#out + 1] = "  },\n}\n"
  return table.concat(out)
end

--- Merges the rows of `more` into table t. A row of `more` replaces the row of
-- t for the same sizes.
---@param t table
---@param more table<string, table[]> by class
function tuned.merge(t, more)
  -- The full name of each class in t, by the class without its epilogue's name.
  local known = {}
  for class in pairs(t.gemm) do known[nameless(class)] = class end
  for class, rows in pairs(more) do
    class = known[nameless(class)] or class
    local at, all = {}, t.gemm[class] or {}
    local function key(r) return ("%d %d %d"):format(r[1], r[2], r[3]) end
    for i, r in ipairs(all) do at[key(r)] = i end
    for _, r in ipairs(rows) do
      local i = at[key(r)] or #all + 1
      all[i], at[key(r)] = r, i
    end
    t.gemm[class] = all
  end
end

---------------------------------------------------------------------------
-- Looking up
---------------------------------------------------------------------------

local said = {}

-- Prints a sentence on standard error, once per process.
local function say(text)
  if said[text] then return end
  said[text] = true
  io.stderr:write("cutelua: warning: ", core.visible(text), "\n")
end

-- Returns the choices of a table as out[class][sizes], where sizes is "M N K".
local function index(t, place)
  local out = {place = place}
  for class, rows in pairs(t.gemm) do
    local key = nameless(class)
    out[key] = out[key] or {}
    for _, r in ipairs(rows) do
      out[key][("%d %d %d"):format(r[1], r[2], r[3])] = r[6]
    end
  end
  return out
end

-- Reports whether a table is valid for a GPU. On a GPU of another architecture
-- or with fewer multiprocessors, the candidates differ or fill the GPU
-- differently.
local function fits(t, device, place)
  local info = device.info
  if t.arch ~= device.arch then
    return say(("%s was measured on %s (%s) and is not used on "
      .. "%s"):format(place, t.card,
      t.arch, device.name))
  elseif info and info.name ~= t.card then
    if info.sms ~= t.sms then
      return say(("%s was measured on %s with %d multiprocessors and is not "
        .. "used on %s with "
        .. "%d"):format(place, t.card, t.sms, info.name, info.sms))
    end
    say(("%s was measured on %s; it is used on %s, which has the same number "
      .. "of multiprocessors"):format(place, t.card, info.name))
  end
  return true
end

-- The tables that come with cutelua: the file's name by architecture.
local OURS = {sm_90a = "h200"}

-- Returns the tables for a device, first the user's, then the repository's.
local function tables_of(device)
  local list = {}
  local name = device.info and device.info.name
  local folder = name and tuned.folder()
  local path = folder and ("%s/%s.lua"):format(folder, tuned.card(name))
  if path then
    local t, why = tuned.read(path)
    if why then say(why) end
    if t and fits(t, device, path) then list[1] = index(t, path) end
  end
  local module = OURS[device.arch] and "kernels.tuned." .. OURS[device.arch]
  local t = module and require(module)
  if t and (not device.info or device.info.sms == t.sms)
    and fits(t, device, module) then
    list[#list + 1] = index(t, module)
  end
  return list
end

-- The tables that apply to a device, by the device's name.
local known = {}

--- Returns the index of the candidate that a table names for a problem, or nil
-- if no table names one.
---@param p table
---@param list table[] from choose.list
---@param name_of fun(c: table): string
---@return integer?
function tuned.find(p, list, name_of)
  local class = tuned.class(p)
  if not class or not p.device then return nil end
  local device = p.device.name
  known[device] = known[device] or tables_of(p.device)
  local size = ("%d %d %d"):format(p.m, p.n, p.k)
  -- A product of f16 operands uses the choices for bf16 operands.
  local like = class:gsub("%f[%w]f16%f[%W]", "bf16")
  for _, t in ipairs(known[device]) do
    local name = t[class] and t[class][size] or t[like] and t[like][size]
    local family, here = name and name:match "%S+", false
    for i, c in ipairs(name and list or {}) do
      if name_of(c) == name then return i end
      here = here or c.base == family
    end
    -- If p.order is set, candidates with another accumulation order were left
    -- out, so a missing configuration is no reason for this message.
    if here and not p.order then
      say(("%s has configurations that no longer exist, such as '%s': run "
        .. "cutelua tune again"):format(t.place, name))
    end
  end
end

return tuned
-- SPDX-License-Identifier: MIT
