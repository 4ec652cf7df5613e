-- ptxdoc.lua: writes the table of opcodes in docs/ptx.md from core/ptx/rows.c.
-- `make docs` calls it; tools/check.lua checks that the table is current.
local ptxdoc = {}

local function read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

-- Returns the text of an argument of a row: joins its literals and macros.
local function text_of(code, macros)
  local out = {}
  while code:find "%S" do
    local literal, rest = code:match '^%s*"([^"]*)"(.*)$'
    if not literal then
      local name
      name, rest = code:match "^%s*([%u_]+)(.*)$"
      literal = assert(macros[name], code)
    end
    out[#out + 1], code = literal, rest
  end
  return table.concat(out)
end

local function macros_of(text)
  local macros = {}
  for name, code in text:gsub("\\\n", " "):gmatch "#define ([%u_]+) ([^\n]*)" do
    macros[name] = text_of(code:gsub("//.*", ""), macros)
  end
  return macros
end

--- Returns the rows of core/ptx/rows.c: {family, name, takes, note, rejected}.
function ptxdoc.rows()
  local text = read "core/ptx/rows.c"
  local macros, list, family = macros_of(text), {}, nil
  local rows = text:match "rows%[%] = (%b{})":sub(2, -2)
  rows = rows:gsub("\n +// (%a+)\n", "\n{family %1}\n")
  for inside in rows:gmatch "%b{}" do
    inside = inside:sub(2, -2)
    family = inside:match "^family (%a+)" or family
    local name, emit, rest = inside:match
      '^"([^"]*)", %u+, %d, %a+, ([%w_]+),%s+(.*)$'
    if name then
      local takes, note = rest:match "^[^,]+,([^,]*),(.*)$"
      list[#list + 1] = {family = family, name = name,
        takes = text_of(takes, macros), note = text_of(note, macros),
        rejected = emit == "NULL"}
    end
  end
  return list
end

local function status(row)
  if row.rejected then return "rejected: " .. row.note end
  return row.note == "" and "exact" or "modelled: " .. row.note
end

local function table_lines()
  local out, family = {}, nil
  for _, row in ipairs(ptxdoc.rows()) do
    if row.family ~= family then
      family = row.family
      out[#out + 1] = ("\n### %s\n"):format(family:gsub("^%l", string.upper))
      out[#out + 1] = "| opcode | modifiers | status |\n|---|---|---|"
    end
    local takes = row.takes == "*" and "depend on the form"
      or row.takes == "" and "" or "`" .. row.takes:gsub("%s+", " ") .. "`"
    out[#out + 1] = ("| `%s` | %s | %s |"):format(row.name, takes, status(row))
  end
  return table.concat(out, "\n") .. "\n\n"
end

--- Returns the text of docs/ptx.md with an updated table of opcodes.
function ptxdoc.page()
  local text = read "docs/ptx.md"
  local _, from = text:find "<!%-%- opcodes: [^\n]*\n"
  local to = text:find("<!%-%- opcodes end", from)
  return text:sub(1, from) .. table_lines() .. text:sub(to)
end

if arg and arg[0] and arg[0]:find "ptxdoc%.lua$" then
  local text = ptxdoc.page()
  local f <close> = assert(io.open("docs/ptx.md", "wb"))
  assert(f:write(text))
end

return ptxdoc
-- SPDX-License-Identifier: MIT
