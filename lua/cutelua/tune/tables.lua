--- Files with tables of measured choices, one per GPU model. The tuner writes
-- them (docs/tuning.md), and ops.gemm reads them (cute.ops.tuned).
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
-- cute.ops.tuned describes the names of classes, such as "bf16 bf16 bf16 tn
-- row". A choice is a name from cute.ops.choose. A name that is not among a
-- problem's candidates is ignored, so a table may be outdated or from another
-- GPU, but never causes an error.
local core = require "cute.core"
local files = require "cute.lang.files"
local folders = require "cutelua.program.folders"
local literal = require "cutelua.text.literal"
local tuned = require "cute.ops.tuned"

local tables = {FORMAT = 1}

--- Returns the part of a file's name that stands for a GPU model: "h200" for
-- "NVIDIA H200".
---@param name string
---@return string
function tables.card(name)
  return (name:lower():gsub("^nvidia ", ""):gsub("[^%w]+", "-"))
end

--- Returns the user's folder of tables, or nil if there is no home folder.
---@return string?
function tables.folder()
  local data = folders.data()
  return data and data .. "/tuned"
end

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
  if t.format ~= tables.FORMAT then
    return ("its format is %s, not %d"):format(core.show(t.format),
                                               tables.FORMAT)
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
function tables.parse(text)
  local t, why = literal.read(text)
  why = why or fault(t)
  if why then return nil, why end
  return t
end

--- Returns the table in a file. Returns nil if there is no file, or nil and the
-- reason if it is invalid.
---@param path string
function tables.read(path)
  local kind = core.file_kind(path)
  if not kind then return nil end
  local text, t, why
  if kind ~= "file" then why = "it is not a file"
  else text, why = files.read(path, LARGEST, "plain") end
  if text then t, why = tables.parse(text) end
  if why then return nil, ("%s is not used: %s"):format(path, why) end
  return t
end

--- Returns the user's table for a GPU and the file's name; or nil, the name,
-- and the reason if the file is invalid.
---@param card string the GPU's name
---@return table?
---@return string? path
---@return string? why
function tables.users_table(card)
  local folder = tables.folder()
  if not folder then return nil end
  local path = ("%s/%s.lua"):format(folder, tables.card(card))
  local t, why = tables.read(path)
  return t, path, why
end

--- Returns the text of a file that holds the table.
---@param t table
---@return string
function tables.text(t)
  local out = {"-- What `cutelua tune` measured: the best choice of each "
    .. "product\n-- (docs/tuning.md). M, N, K, microseconds hot and cold, the "
    .. "choice.\n", "return {\n", ("  format = %d, card = %q, arch = %q, "
    .. "sms = %d,\n  gemm = {\n"):format(tables.FORMAT, t.card, t.arch, t.sms)}
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
function tables.merge(t, more)
  -- The full name of each class in t, by the class without its epilogue's name.
  local known = {}
  for class in pairs(t.gemm) do known[tuned.nameless(class)] = class end
  for class, rows in pairs(more) do
    class = known[tuned.nameless(class)] or class
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

return tables
-- SPDX-License-Identifier: MIT
