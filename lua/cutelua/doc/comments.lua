--- Reads doc comments from Lua text: the `---` comments above definitions.
--
-- A comment consists of prose, followed by `---@param` and `---@return` lines.
-- A paragraph indented by four spaces is an example. In an example, a line
-- `EXPR --> TEXT` shows the output of EXPR at the prompt. Lines `--> TEXT`
-- after it show further lines of the output.
local core = require "cute.core"
local source = require "cute.lang.source"

local comments = {}

---------------------------------------------------------------------------
-- One comment
---------------------------------------------------------------------------

-- Splits the text after a tag into a type and a description. The type may
-- contain blanks inside brackets and after `fun():`.
local function split_type(text)
  local at, depth = 1, 0
  while at <= #text do
    local c = text:sub(at, at)
    if c:find "[%(%{%[<]" then
      depth = depth + 1
    elseif c:find "[%)%}%]>]" then
      depth = depth - 1
    elseif c == " " and depth == 0 and not text:sub(1, at - 1):find "[:|,]$"
    then
      break
    end
    at = at + 1
  end
  return text:sub(1, at - 1), (text:sub(at):gsub("^%s*#?%s*", ""))
end

local readers = {}

function readers.param(doc, rest)
  local name, optional, typed = rest:match "^([%w_.]+)(%??)%s*(.*)$"
  if not name then return end
  local item = {name = name, optional = optional == "?"}
  item.type, item.text = split_type(typed)
  table.insert(doc.params, item)
end

function readers.field(doc, rest)
  readers.param({params = doc.fields}, rest)
end

readers["return"] = function(doc, rest)
  local item = {}
  item.type, item.text = split_type(rest)
  table.insert(doc.returns, item)
end

function readers.type(doc, rest) doc.type = rest end

-- Parses the lines of a comment, without their dashes. Returns a doc: {text =
-- paragraphs, example = lines, body = paragraphs and examples in order ({text
-- =} or {code = lines}), params =, returns =, fields =, class =}.
local function parse(lines)
  local doc = {text = {}, example = {}, body = {}, params = {}, returns = {},
    fields = {}}
  -- `open` is the tag or text that the next line may continue.
  local tags, open = {}, {}
  for _, line in ipairs(lines) do
    local tag, rest = line:match "^@(%w+)%s*(.*)$"
    if tag then
      tags[#tags + 1] = {tag, rest}
    elseif #tags > 0 then
      tags[#tags][2] = tags[#tags][2] .. " " .. line:match "^%s*(.-)%s*$"
    elseif line:find "^    " then
      if not open.code then
        open = {code = {}}
        table.insert(doc.body, open)
      end
      table.insert(open.code, line:sub(5))
    elseif not line:find "%S" then
      if open.code then table.insert(open.code, "") else open = {} end
    elseif open.text then
      open.text = open.text .. " " .. line
    else
      open = {text = line}
      table.insert(doc.body, open)
    end
  end
  for _, part in ipairs(doc.body) do
    if part.text then
      table.insert(doc.text, part.text)
    else
      while part.code[#part.code] == "" do table.remove(part.code) end
      table.move(part.code, 1, #part.code, #doc.example + 1, doc.example)
    end
  end
  for _, tag in ipairs(tags) do
    if readers[tag[1]] then readers[tag[1]](doc, tag[2]) end
  end
  return doc
end

--- Returns the first sentence of a doc. A sentence also ends at a semicolon
-- outside of brackets.
---@param doc table
---@return string
function comments.summary(doc)
  local text = doc.text[1] or ""
  local at = 1
  while true do
    local stop = text:find("[.?!;]%f[%s\0]", at)
    if not stop then return (text:gsub(":$", ".")) end
    local before = text:sub(1, stop)
    local _, open = before:gsub("%(", "")
    local _, shut = before:gsub("%)", "")
    if open <= shut and not before:find "%f[%w]e%.g%.$" then
      return (before:gsub(";$", "."))
    end
    at = stop + 1
  end
end

---------------------------------------------------------------------------
-- Comments of a text
---------------------------------------------------------------------------

-- Returns the name that a line of code defines: "arch.smid", "Layout:size",
-- "f". If the name is an alias, also returns the original name.
local function defined(code)
  local name, params = code:match "^%s*function%s+([%w_.:]+)%s*(%b())"
  if not name then
    name, params = code:match "^%s*local%s+function%s+([%w_]+)%s*(%b())"
  end
  if name then return name, nil, params end
  local left, right = code:match "^%s*([%a_][%w_.]*)%s*=%s*(.-)%s*$"
  if not left then
    return code:match "^%s*local%s+([%a_][%w_]*)%s*=%s*{}"
  end
  return left, right:match "^[%a_][%w_.]*$" and right or nil
end

-- Class of the entries that comments.read returns. A comment is parsed on first
-- use, because most are never read.
local Entry = {}

function Entry.__index(entry, key)
  if key ~= "doc" or not entry.block then return nil end
  entry.doc = parse(entry.block)
  return entry.doc
end

--- Returns the comments of a text in order, as entries {name =, line = line of
-- the code below, topic = the title between dashed lines above, doc =, class =,
-- same = the original name if `name` is an alias}. Code without a comment has
-- an entry only if it defines an alias.
---@param text string
---@return table[]
function comments.read(text)
  local list, block, topic, number = {}, nil, nil, 0
  -- banner: the lines after a dashed line; they are a title if a second dashed
  -- line follows them.
  local banner
  local class
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do
    number = number + 1
    local dashes, rest = line:match "^%s*(%-%-%-?) ?(.*)$"
    if line:find "^%-%-%-%-%-%-%-%-%-%-" then
      topic = banner and table.concat(banner, " ") or topic
      banner, block = not banner and {} or nil, nil
    elseif banner and dashes then
      banner[#banner + 1] = rest
    elseif dashes and (block or dashes == "---") then
      block = block or {}
      block[#block + 1] = rest
      class = class or rest:match "^@class%s+([%w_.]+)"
    else
      -- This line is not dashed, so the lines in `banner` are not a title.
      banner = nil
      local name, same, params = defined(line)
      if block or same then
        list[#list + 1] = setmetatable({name = name, line = number,
          topic = topic, same = same, block = block, params = params,
          class = class}, Entry)
      end
      block, class = nil, nil
    end
  end
  return list
end

---------------------------------------------------------------------------
-- By chunk
---------------------------------------------------------------------------

local chunks = {}

--- Returns the comments of a chunk in three tables. `list` has all comments in
-- order. `lines` maps the line of the code below a comment to the comment.
-- `names` maps the last part of a defined name to its comments.
---@param chunk string "=[cute.arch]", "@lua/cute/arch/init.lua"
---@return table {lines =, names =, list =}
function comments.of_chunk(chunk)
  if chunks[chunk] then return chunks[chunk] end
  local found = {lines = {}, names = {}, list = {}}
  local text = source.text(chunk)
  if text then found.list = comments.read(text) end
  for _, entry in ipairs(found.list) do
    found.lines[entry.line] = entry
    local last = entry.name and entry.name:match "[%w_]+$"
    if last and entry.block and not found.names[last] then
      found.names[last] = entry
    end
  end
  if core.own_source(chunk) then chunks[chunk] = found end
  return found
end

--- Returns the chunk name that a module has when it is loaded, or nil if the
-- module is not found.
---@param name string "cute.meta.layout"
---@return string?
function comments.chunk(name)
  local ok, sys = pcall(require, "cute.sys")
  for _, own in ipairs {"=[" .. name .. "]", "=[" .. name .. ".init]"} do
    if ok and sys.embedded(own) then return own end
  end
  local path = package.searchpath(name, package.path)
  return path and "@" .. path
end

return comments
-- SPDX-License-Identifier: MIT
