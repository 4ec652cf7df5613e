--- Searches for the words of a query in kinds of errors and reports, public
-- names, atoms, environment variables and the embedded documents. A word is
-- found only at the beginning of a word of the text: "race" is found in "races"
-- and "block-race", but not in "trace".
local comments = require "cutelua.doc.comments"
local core = require "cute.core"
local environment = require "cutelua.doc.environment"
local kinds = require "cute.lang.kinds"
local names = require "cutelua.doc.names"

local has_sys, sys = pcall(require, "cute.sys")

local search = {}

-- WIDTH: columns of a line of results. MOST: the largest number of results
-- below one title.
local WIDTH, MOST = 79, 12
-- Width of the column with the names of the results.
local LEFT = 30
-- The least number of letters in a search word.
local SHORTEST = 3
-- The largest number of characters in a query.
local LONGEST = 200

-- ---- texts and words ----

local function cut(text, width)
  if utf8.len(text) and utf8.len(text) > width then
    return text:sub(1, utf8.offset(text, width - 2) - 1) .. "..."
  end
  return text
end

-- Returns a list of the words of a query, or nil if the query has none. Each
-- entry has the word as plain text, and a pattern that matches it only at the
-- beginning of a word.
local function words_of(question)
  local list = {}
  for word in question:lower():gmatch "[%w\128-\255]+" do
    list[#list + 1] = {word, "%f[%w\128-\255]" .. word}
  end
  return list[1] and list
end

-- Reports whether each word of a query occurs in the text at the beginning of
-- a word. In PipelineTma, words also begin at capital letters, so the query
-- "tma" matches it.
local function has(text, words)
  local small, apart = text:lower(), nil
  for _, word in ipairs(words) do
    if not small:find(word[1], 1, true) then return false end
  end
  for _, word in ipairs(words) do
    if not small:find(word[2]) then
      apart = apart or text:gsub("(%l)(%u)", "%1 %2"):lower()
      if not apart:find(word[2]) then return false end
    end
  end
  return true
end

-- ---- documents ----

-- Returns the sections of the documents: {page = "simulator", path =, line =,
-- title =, text = the section with its heading}.
local function sections()
  if search.list then return search.list end
  local list = {}
  search.list = list
  for _, path in ipairs(has_sys and sys.documents() or {}) do
    local page, code, number, lines = path:match "([^/]+)%.md$", false, 0, nil
    for line in (sys.embedded("=[" .. path .. "]") .. "\n"):gmatch "(.-)\n" do
      number = number + 1
      if line:find "^```" then code = not code end
      local title = not code and line:match "^#+ (.*)"
      if title then
        lines = {}
        list[#list + 1] = {page = page, path = path, line = number,
          title = title:gsub("`", ""), lines = lines}
      end
      if lines then lines[#lines + 1] = line end
    end
  end
  for _, s in ipairs(list) do
    s.text = table.concat(s.lines, "\n"):gsub("%s+$", "")
    s.lines = nil
  end
  return list
end

-- ---- search ----

local function find_kinds(words, add)
  local list = {}
  for _, row in ipairs(kinds.ERRORS) do list[#list + 1] = row end
  for _, row in ipairs(kinds.FAULTS) do
    if not kinds.ERRORS[row.kind] then list[#list + 1] = row end
  end
  table.sort(list, function(a, b) return a.kind < b.kind end)
  for _, row in ipairs(list) do
    local fault, err = kinds.FAULTS[row.kind], kinds.ERRORS[row.kind]
    add("[" .. row.kind .. "]", row.about, has(row.kind, words),
        (fault and fault.about .. " " .. (fault.cure or "") or "")
        .. (err and err.cure or ""))
  end
end

local function find_names(_, add)
  for _, item in ipairs(names.all()) do
    -- skip aliases, and functions that create objects of a class
    if not item.same and not item.maker then
      add(item.name, item.doc and comments.summary(item.doc) or "", nil,
          item.doc and table.concat(item.doc.text, " "))
    end
  end
end

-- Finds copy atoms by name. Finds MMA atoms only by architecture and shape,
-- such as "SM80_16x8x8_", because there are 35000 of them.
local function find_atoms(words, add)
  for i = 0, math.huge do
    local name = core.atom_name("copy", i)
    if not name then break end
    add(name:match "^[^<,]*", "cute.make_copy_atom")
  end
  for _, arch in ipairs(has_sys and sys.atoms("mma", "") or {}) do
    for _, shape in ipairs(sys.atoms("mma", arch)) do
      if has(shape, words) then add(shape, "cute.make_mma_atom") end
    end
  end
end

local function find_variables(_, add)
  for _, row in ipairs(environment) do add(row[1], row[2]) end
end

local function find_sections(words, add)
  for _, s in ipairs(sections()) do
    add(("%s:%d"):format(s.path, s.line), s.title, has(s.title, words), s.text)
  end
end

local PLACES = {
  {"Errors and reports", find_kinds}, {"Names", find_names},
  {"Atoms", find_atoms}, {"Environment", find_variables},
  {"Documents: ask for a place to read it", find_sections},
}

-- Returns the search results of one kind, such as sections of documents.
-- Results whose name contains all words come first; results whose description
-- contains them follow.
local function rows_of(find, words)
  local named, told, seen = {}, {}, {}
  find(words, function(name, about, own, more)
    if seen[name] then return end
    if own == nil then own = has(name, words) end
    local list = own and named
      or has(("%s %s %s"):format(name, about, more or ""), words) and told
    if list then
      seen[name] = true
      list[#list + 1] = {name, about}
    end
  end)
  return table.move(told, 1, #told, #named + 1, named)
end

local function put(out, title, rows)
  local width = 0
  for i = 1, math.min(#rows, MOST) do
    width = math.max(width, math.min(#rows[i][1], LEFT))
  end
  out[#out + 1] = ""
  out[#out + 1] = title
  for i = 1, math.min(#rows, MOST) do
    local head = ("  %-" .. width .. "s  "):format(rows[i][1])
    out[#out + 1] = head .. cut(rows[i][2], WIDTH - #head)
  end
  if #rows > MOST then
    out[#out + 1] = ("  ... %d more"):format(#rows - MOST)
  end
end

--- Returns the names and sections that contain all words of a query, as text.
-- Returns nil if there are none, or if the query is too short or too long.
---@param question string
---@return string?
function search.text(question)
  local words = #question <= LONGEST and #question >= SHORTEST
    and words_of(question)
  if not words then return nil end
  local out = {("What has '%s':"):format(core.visible(question))}
  for _, place in ipairs(PLACES) do
    local rows = rows_of(place[2], words)
    if #rows > 0 then put(out, place[1], rows) end
  end
  return out[2] and table.concat(out, "\n")
end

-- ---- single results ----

local function kind_text(kind)
  local fault, err = kinds.FAULTS[kind], kinds.ERRORS[kind]
  local out = {("[%s]: %s"):format(kind, (fault or err).about)}
  out[2] = err and err.cure or fault and fault.cure
  for _, s in ipairs(sections()) do
    if s.page == "errors" and s.title == kind then
      out[#out + 1] = "\n" .. s.text:gsub("^[^\n]*\n+", "")
    end
  end
  local alike = {}
  for _, row in ipairs(rows_of(find_kinds, words_of(kind))) do
    if row[1] ~= "[" .. kind .. "]" and has(row[1], words_of(kind)) then
      alike[#alike + 1] = row[1]
    end
  end
  if alike[1] then
    out[#out + 1] = "\nSee also " .. table.concat(alike, ", ") .. "."
  end
  return table.concat(out, "\n")
end

-- Returns the text of the section whose heading, or whose position such as
-- "docs/ops.md:105", equals the question. If the question names a document,
-- returns the document's headings.
local function section_text(question)
  local asked, heads, text = question:lower(), {}, nil
  local page = asked:gsub("^docs/", ""):gsub("%.md$", "")
  for _, s in ipairs(sections()) do
    local place = ("%s:%d"):format(s.path, s.line)
    if place == asked or s.title:lower() == asked and not text then
      text = place .. "\n\n" .. s.text
    end
    if s.page == page then heads[#heads + 1] = place .. " " .. s.title end
  end
  return text or heads[1] and table.concat(heads, "\n") or nil
end

--- Returns the text for a question that is not a public name. It may name a
-- kind of error or report, "[race]" or "race"; a document, "ops"; or a section
-- of a document, "epilogues" or "docs/ops.md:105". Returns nil for other
-- questions.
---@param question string
---@return string?
function search.one(question)
  local kind = question:match "^%[(.*)%]$" or question
  if kinds.FAULTS[kind] or kinds.ERRORS[kind] then
    return kind_text(kind)
  end
  return section_text(question)
end

--- Returns the indexed word that is nearest to the query.
---@param question string
---@return string?
function search.nearest(question)
  local set, list = {}, {}
  for _, place in ipairs(PLACES) do
    if place[2] ~= find_atoms then
      place[2]({}, function(name, about)
        local text = name .. " " .. about
        for word in text:gmatch "%a%w+" do set[word:lower()] = true end
      end)
    end
  end
  for word in pairs(set) do list[#list + 1] = word end
  table.sort(list)
  return #question <= LONGEST and core.nearest(question:lower(), list) or nil
end

return search
-- SPDX-License-Identifier: MIT
