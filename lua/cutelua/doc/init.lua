--- `cute.doc`, `?name` at the prompt and `cutelua doc` show the comments of a
-- public name as text. tools/reference.lua makes the reference from the same
-- items.
local comments = require "cutelua.doc.comments"
local core = require "cute.core"
local environment = require "cutelua.doc.environment"
local names = require "cutelua.doc.names"

local doc = {}

local WIDTH = 79

---------------------------------------------------------------------------
-- Parts of a text
---------------------------------------------------------------------------

-- Appends text to the lines `out`, wrapped at WIDTH columns. The first line
-- begins with the text `first`. Later lines are indented by the width of
-- `rest` or, when absent, of `first`.
local function wrap(out, text, first, rest)
  local line, indent = first, (" "):rep(#(rest or first))
  local bare = true
  for word in text:gmatch "%S+" do
    if not bare and #line + 1 + #word > WIDTH then
      out[#out + 1] = line
      line, bare = indent, true
    end
    line = bare and line .. word or line .. " " .. word
    bare = false
  end
  out[#out + 1] = line
end

local function cut(text, width)
  if #text <= width then return text end
  return text:sub(1, math.max(width - 3, 0)) .. "..."
end

--- Returns a public name with its parameters, as written in code: "cute.size(x,
-- modes...)" for a function, "layout:size(modes...)" for a method.
---@param item table
---@param typed? boolean true to include the parameters' types
---@return string
function doc.usage(item, typed)
  local signature = item.signature
  local params = signature and signature:match "%b()$"
    or item.kind == "function" and item.params
  if not params then return item.name end
  local list = {}
  for param in params:sub(2, -2):gmatch "[^,]+" do
    list[#list + 1] = param:match "^%s*(.-)%s*$"
  end
  if item.method_of_function then table.remove(list, 1) end
  if not typed then
    for i, param in ipairs(list) do list[i] = param:gsub(":.*", "") end
  end
  return ("%s(%s)"):format(item.name, table.concat(list, ", "))
end

--- Returns the position of the comment of an item (a public name):
-- "cute.arch.bits:20".
---@param item table
---@return string?
function doc.place(item)
  if not item.chunk then return nil end
  local name = item.chunk:match "^=%[(.*)%]$"
    or item.chunk:gsub("^@", "")
  return item.line and ("%s:%d"):format(name, item.line) or name
end

--- Returns the parameters and the results of an item (a public name): lists of
-- {name, type or nil, text}.
---@param item table
---@return table[]
function doc.rows(item)
  local rows = {}
  local function row(name, type, text)
    rows[#rows + 1] = {name, type ~= "" and type ~= "any" and type or nil, text}
  end
  for i, p in ipairs(item.doc and item.doc.params or {}) do
    if not (i == 1 and item.method_of_function) then
      row(p.name .. (p.optional and "?" or ""), p.type, p.text)
    end
  end
  for _, r in ipairs(item.doc and item.doc.returns or {}) do
    row("returns", r.type, r.text)
  end
  return rows
end

local function put_params(out, item)
  local rows, width = doc.rows(item), 0
  for _, r in ipairs(rows) do width = math.max(width, #r[1]) end
  if #rows > 0 then out[#out + 1] = "" end
  for _, r in ipairs(rows) do
    local text = r[2] and r[3] ~= "" and r[2] .. ", " .. r[3] or r[2] or r[3]
    local first = ("  %-" .. width .. "s  "):format(r[1])
    wrap(out, text, first, first)
  end
end

local function put_code(out, lines)
  for _, line in ipairs(lines or {}) do
    out[#out + 1] = line == "" and "" or "    " .. line
  end
end

-- The width of the column of names, in the list of a module's names.
local NAMES = 30

-- Adds a row of a module's list: a name with its parameters, and the first
-- sentence of its comment. A name wider than its column is printed on a
-- separate line.
local function put_row(out, usage, text)
  if #usage > NAMES then
    out[#out + 1] = "  " .. cut(usage, WIDTH - 2)
    usage = ""
  end
  local head = ("  %-" .. NAMES .. "s  "):format(usage)
  local line = (head .. cut(text, WIDTH - #head)):gsub("%s+$", "")
  if line ~= "" then out[#out + 1] = line end
end

local function put_inside(out, item)
  local by_topic, order = {}, {}
  for _, one in ipairs(names.inside(item)) do
    local topic = item.kind == "class" and "" or one.topic or ""
    if not by_topic[topic] then
      by_topic[topic], order[#order + 1] = {}, topic
    end
    table.insert(by_topic[topic], one)
  end
  local rank = {}
  for i, title in ipairs(names.topics()) do rank[title] = i end
  table.sort(order, function(a, b)
    return (rank[a] or 0) < (rank[b] or 0)
  end)
  for _, topic in ipairs(order) do
    out[#out + 1] = ""
    if topic ~= "" and topic ~= item.name then out[#out + 1] = topic end
    for _, one in ipairs(by_topic[topic]) do
      local usage = doc.usage(one):sub(#item.name + 2)
      put_row(out, usage, one.doc and comments.summary(one.doc) or "")
    end
  end
end

---------------------------------------------------------------------------
-- Texts
---------------------------------------------------------------------------

-- Reports whether a part of a comment introduces its example, by a colon.
local function introduces(body)
  for _, part in ipairs(body or {}) do
    if part.text and part.text:find ":%s*$" then return true end
  end
  return false
end

--- Returns the whole documentation of an item (a public name). Examples are at
-- the end, or after the text that introduces them.
---@param item table of cutelua.doc.names
---@return string
function doc.text(item)
  local out = {}
  wrap(out, doc.usage(item, true), "", "  ")
  local said = item.doc
  if item.same then
    out[#out + 1] = ""
    out[#out + 1] = (item.method_of_function and "  %s as a method."
      or "  The same as %s."):format(item.same)
  end
  local inline = item.kind == "module" or introduces(said and said.body)
  for _, part in ipairs(said and said.body or {}) do
    if part.text or inline then out[#out + 1] = "" end
    if part.text then wrap(out, part.text, "  ", "  ") end
    if inline then put_code(out, part.code) end
  end
  if said then put_params(out, item) end
  if said and not inline and #said.example > 0 then
    out[#out + 1] = ""
    put_code(out, said.example)
  end
  if item.kind == "constants" then
    for _, field in ipairs(said.fields) do
      wrap(out, field.text, ("  %-16s"):format(field.name))
    end
  end
  put_inside(out, item)
  local place = doc.place(item)
  if place then
    out[#out + 1] = ""
    out[#out + 1] = "  " .. place
  end
  return table.concat(out, "\n")
end

local function variables()
  local out = {"Variables of the environment"}
  for _, row in ipairs(environment) do
    out[#out + 1] = ""
    out[#out + 1] = "  " .. row[1] .. (row["for"] and " (" .. row["for"] .. ")"
      or "")
    wrap(out, row[2], "    ")
  end
  return table.concat(out, "\n")
end

--- Returns the documentation of a name or a value; nil and a message where
-- there is none.
---@param x any
---@return string? text
---@return string? message
function doc.lookup(x)
  if type(x) ~= "string" then
    local item = names.of(x)
    if not item then
      return nil, "no documentation of a " .. require "cute.core".typename(x)
    end
    return doc.text(item)
  end
  if x == "environment" then return variables() end
  for _, row in ipairs(environment) do
    if row[1] == x then
      local out = {x}
      wrap(out, row[2], "  ")
      return table.concat(out, "\n")
    end
  end
  local item, near = names.find(x)
  if item then return doc.text(item) end
  return nil, ("no public name '%s'%s"):format(core.visible(x), near[1]
    and "; nearest: "
    .. table.concat(near, ", ") or "")
end

--- Returns the documentation of a name or a value. For an unknown name, it
-- searches for a kind of error or report, then for a section of the documents.
-- If there is none, it returns everything that contains the words.
---@param x any
---@return string? text
---@return string? message
function doc.find(x)
  local text, message = doc.lookup(x)
  if text or type(x) ~= "string" then return text, message end
  local search = require "cutelua.doc.search"
  text = search.one(x) or search.text(x)
  if text then return text end
  local near = search.nearest(x)
  return nil, near and ("%s; a word that is known: %s"):format(message, near)
    or message
end

---------------------------------------------------------------------------
-- Entry points
---------------------------------------------------------------------------

--- Prints the documentation of a name or a value: signature, meaning,
-- parameters, an example. For a module it prints the module's names by topic,
-- and for "environment" the environment variables. For any other word it prints
-- the errors, names and documents that contain the word. At the prompt,
-- `?make_layout` does the same.
--
--     cute.doc "make_layout"
--     cute.doc(cute.arch.popc)
--     cute.doc "tensor:fill"
---@param x? any a name, or a function, a module, an object; cute when absent
function doc.doc(x)
  if x == nil then x = "cute" end
  local text, message = doc.find(x)
  print(text or message)
end

--- Parses a line of the prompt that asks for documentation of a name or words
-- (`?NAME`, `NAME?`), or for a function's source (`NAME??`, `??NAME`). Returns
-- nil for other lines.
---@param line string
---@return string? name
---@return boolean? code true if the line asks for the source
function doc.asked(line)
  local name = line:match "^%s*%?%?%s*([%a_][%w_.:]*)%s*$"
    or line:match "^%s*([%a_][%w_.:]*)%s*%?%?%s*$"
  if name then return name, true end
  name = line:match "^%s*%?%s*(.-)%s*$"
    or line:match "^%s*([%a_][%w_.:]*)%s*%?%s*$"
  return name == "" and "cute" or name
end

-- Prints the source of a name's value, or the reason why it has none. Returns
-- nil if there is no source. Otherwise returns whether nothing else has to be
-- printed: the source includes the name's comment, or the name has no
-- documentation.
local function print_source(name, v, item)
  if type(v) ~= "function" and (item or v == nil) then
    item = item or names.find(name)
    v = item and item.value
  end
  local text, message = require "cutelua.doc.code".text(v)
  print(text or ("%s: %s"):format(core.visible(name), message))
  return text and (type(v) ~= "function" or text:find("\n---", 1, true)
    or not names.of(v))
end

--- Answers a line of the prompt that asks for a name. A variable of the prompt
-- has priority over a public name.
---@param name string
---@param v any the name's value at the prompt
---@param code? boolean true to print the source
function doc.answer(name, v, code)
  local item = name:find "[.:]" and names.exact(name)
  if code and print_source(name, v, item) then return end
  local text, message = item and doc.text(item), nil
  if not text and v ~= nil and type(v) ~= "string" then text = doc.lookup(v) end
  if not text and type(v) == "function" and not code then
    text = debug.getinfo(v, "S").what == "C"
      and name .. " is a function of Lua itself"
      or ("%s is a function of yours: %s?? shows it"):format(name, name)
  elseif not text and not code then
    text, message = doc.find(name)
  end
  if text or message then print(text or message) end
end

local HELP = [[
usage: cutelua doc [NAME...]
Prints the reference of public names: "make_layout", "tcgen05.commit",
"tensor:fill", a module such as "cute.pipeline", or "environment" for the
environment variables. Without a name it lists all of `require "cute"`. For
another word ("race", "ldmatrix", "shared memory") it lists the errors, names
and documents that contain it.

  --names        prints the names, one a line
  --help         prints this text and stops
]]

--- Runs `cutelua doc ...`; returns an exit code.
---@param words string[]
---@return integer
function doc.main(words)
  for _, word in ipairs(words) do
    if word == "--help" or word == "-h" then
      io.write(HELP)
      return 0
    elseif word == "--names" then
      for _, item in ipairs(names.all()) do print(item.name) end
      return 0
    elseif word:sub(1, 1) == "-" then
      io.stderr:write(("cutelua doc: unknown option '%s'; --help lists them\n")
        :format(core.message(core.visible(word))))
      return 2
    end
  end
  if #words == 0 then words = {"cute"} end
  local code = 0
  for i, word in ipairs(words) do
    local text, message = doc.find(word)
    if i > 1 then print() end
    if text then
      print(text)
    else
      io.stderr:write("cutelua doc: ", core.message(message), "\n")
      code = 1
    end
  end
  return code
end

return doc
-- SPDX-License-Identifier: MIT
