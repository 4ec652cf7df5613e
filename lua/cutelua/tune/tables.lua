--- Tables of measured choices. There is one file per GPU model. `cutelua tune`
-- writes the files (docs/tuning.md), and ops.gemm and ops.attention read them
-- (cute.ops.tuned).
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
--       attention = {  -- may be missing
--         ["bf16 causal"] = {
--           -- B, S, T, H, G, D, microseconds hot and cold, the choice
--           {1, 4096, 4096, 32, 8, 128, 310.2, 321.7,
--            "attention_sm90 128x128"},
--         },
--       },
--     }
--
-- cute.ops.tuned describes class names such as "bf16 bf16 bf16 tn row". A
-- choice is a name from cute.ops.choose or tuned.tile_name. A name that is not
-- among a problem's candidates is ignored. So a table that is outdated, or from
-- another GPU, never causes an error.
local core = require "cute.core"
local files = require "cute.lang.files"
local folders = require "cutelua.program.folders"
local literal = require "cutelua.text.literal"
local tuned = require "cute.ops.tuned"

local tables = {FORMAT = 1}

--- Returns the part of a file name that identifies a GPU model: "h200" for
-- "NVIDIA H200".
---@param name string
---@return string
function tables.card(name)
  return (name:lower():gsub("^nvidia ", ""):gsub("[^%w]+", "-"))
end

--- Returns the user's folder of tables. Returns nil if there is no home folder.
---@return string?
function tables.folder()
  local data = folders.data()
  return data and data .. "/tuned"
end

-- The maximum size of a table's file in bytes.
local LARGEST = 16 << 20

-- Reports whether x is a list whose first elements have the given Lua types. A
-- type may also be "integer".
local function has_types(x, ...)
  if type(x) ~= "table" then return false end
  for i, t in ipairs {...} do
    if (math.type(x[i]) or type(x[i])) ~= t and type(x[i]) ~= t then
      return false
    end
  end
  return true
end

-- The sections of a table, one per subject of tuning. sizes: the names of the
-- sizes at the beginning of each row. order: the indices of the sizes in the
-- order in which they are compared when rows are sorted.
local SECTIONS = {
  {name = "gemm", sizes = {"M", "N", "K"}, order = {2, 3, 1}},
  {name = "attention", sizes = {"B", "S", "T", "H", "G", "D"},
   order = {6, 4, 5, 2, 3, 1}, optional = true},
}

-- Reports whether x is a valid row of a section.
local function is_row(section, x)
  local types, n = {}, #section.sizes
  for i = 1, n do types[i] = "integer" end
  table.move({"number", "number", "string"}, 1, 3, n + 1, types)
  return has_types(x, table.unpack(types)) and x[n + 1] + x[n + 2] ~= math.huge
end

-- Returns a message about the first error in a section of table t. Returns nil
-- if the section is valid.
local function fault_of(section, t)
  local name, classes = section.name, t[section.name]
  if classes == nil and section.optional then return nil end
  if type(classes) ~= "table" then return "card, arch, sms or gemm is missing"
  end
  for class, rows in pairs(classes) do
    if type(class) ~= "string" or type(rows) ~= "table" then
      return ("%s[%s] is not a list"):format(name, core.show(class))
    end
    for i, row in ipairs(rows) do
      if not is_row(section, row) then
        return ("row %d of %q is not {%s, hot, cold, choice}"):format(i, class,
          table.concat(section.sizes, ", "))
      end
    end
  end
end

-- Returns a message about the first error in a table. Returns nil if the table
-- is valid.
local function fault(t)
  if type(t) ~= "table" then return "it does not return a table" end
  if t.format ~= tables.FORMAT then
    return ("its format is %s, not %d"):format(core.show(t.format),
                                               tables.FORMAT)
  end
  if type(t.card) ~= "string" or type(t.arch) ~= "string"
    or math.type(t.sms) ~= "integer" then
    return "card, arch, sms or gemm is missing"
  end
  for _, section in ipairs(SECTIONS) do
    local why = fault_of(section, t)
    if why then return why end
  end
end

--- Parses the text of a table's file as data, without executing it.
---@param text string
---@return table? t
---@return string? why
function tables.parse(text)
  local t, why = literal.read(text)
  why = why or fault(t)
  if why then return nil, why end
  return t
end

--- Returns the table in a file. Returns nil if the file does not exist, or nil
-- and a reason if the file is invalid.
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

--- Returns the user's table for a GPU and the path of its file. Returns nil,
-- the path and a reason if the file is invalid.
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

-- Appends the lines of a section of table t to `out`.
local function add_section(out, section, t)
  if not t[section.name] then return end
  local classes, n, order = {}, #section.sizes, section.order
  for class in pairs(t[section.name]) do classes[#classes + 1] = class end
  table.sort(classes)
  out[#out + 1] = ("  %s = {\n"):format(section.name)
  for _, class in ipairs(classes) do
    local list = t[section.name][class]
    local rows = table.move(list, 1, #list, 1, {})
    table.sort(rows, function(a, b)
      for _, i in ipairs(order) do
        if a[i] ~= b[i] then return a[i] < b[i] end
      end
      return false
    end)
    out[#out + 1] = ("    [%q] = {\n"):format(class)
    for _, r in ipairs(rows) do
      out[#out + 1] = ("      {%s, %.2f, %.2f,\n      %q},\n"):format(
        table.concat(r, ", ", 1, n), table.unpack(r, n + 1))
    end
    out[#out + 1] = "    },\n"
  end
  out[#out + 1] = "  },\n"
end

--- Returns the text of a table's file.
---@param t table
---@return string
function tables.text(t)
  local out = {"-- Measurements of `cutelua tune`: the fastest configuration "
    .. "for each product\n-- (docs/tuning.md). The columns are M, N, K, "
    .. "microseconds hot and cold, and the\n-- configuration.\n", "return {\n",
    ("  format = %d, card = %q, arch = %q, sms = %d,\n"):format(tables.FORMAT,
      t.card, t.arch, t.sms)}
  for _, section in ipairs(SECTIONS) do add_section(out, section, t) end
  out[#out + 1] = "}\n"
  return table.concat(out)
end

--- Merges the rows of `more` into a section of table t. A row of `more`
-- replaces the row of t with the same sizes.
---@param t table
---@param more table<string, table[]> lists of rows by class
---@param name? string the section: "gemm" (by default) or "attention"
function tables.merge(t, more, name)
  name = name or "gemm"
  local count
  for _, section in ipairs(SECTIONS) do
    if section.name == name then count = #section.sizes end
  end
  local into = t[name] or {}
  t[name] = into
  -- Maps t's class names, without the epilogue's name, to full class names.
  local known = {}
  for class in pairs(into) do known[tuned.nameless(class)] = class end
  for class, rows in pairs(more) do
    class = known[tuned.nameless(class)] or class
    local at, all = {}, into[class] or {}
    local function key(r) return table.concat(r, " ", 1, count) end
    for i, r in ipairs(all) do at[key(r)] = i end
    for _, r in ipairs(rows) do
      local i = at[key(r)] or #all + 1
      all[i], at[key(r)] = r, i
    end
    into[class] = all
  end
end

return tables
-- SPDX-License-Identifier: MIT
