-- docs.lua: checks that documents only name things that exist. tools/check.lua
-- runs the checks of links, paths and targets. `cutelua tools/docs.lua` (make
-- check) checks names such as `cute.copy`, which needs the program.
local docs = {}

local function read(path)
  local f <close> = io.open(path, "rb")
  return f and f:read "a"
end

--- Returns the sorted paths of the documents: those that git tracks or, without
-- git, all of them.
---@return string[]
function docs.files()
  local out = {}
  local p <close> = io.popen("git ls-files '*.md' 2>/dev/null || "
    .. "find * -name '*.md' -not -path 'build*'")
  for path in p:lines() do
    if read(path) then out[#out + 1] = path end
  end
  table.sort(out)
  return out
end

-- Calls f(line, number) for each line of a document outside of fenced code
-- blocks. `number` is the line's number, from 1 on.
local function each_line(text, f)
  local n, fenced = 0, false
  for line in (text .. "\n"):gmatch "(.-)\n" do
    n = n + 1
    if line:find "^%s*```" then
      fenced = not fenced
    elseif not fenced then
      f(line, n)
    end
  end
end

-- Calls f(code, number) with the text of each code span and the number of its
-- line.
local function each_span(text, f)
  each_line(text, function(line, n)
    for code in line:gmatch "`([^`]+)`" do f(code, n) end
  end)
end

-- Returns the set of anchors of a document's headings, in the form in which
-- links write them.
local function anchors(text)
  local set, seen = {}, {}
  each_line(text, function(line)
    local title = line:match "^#+%s+(.-)%s*$"
    if not title then return end
    local name = title:lower():gsub("[^%w _\x80-\xff-]", ""):gsub(" ", "-")
    seen[name] = (seen[name] or -1) + 1
    set[seen[name] > 0 and name .. "-" .. seen[name] or name] = true
  end)
  return set
end

-- Simplifies a path: "x/../y" becomes "y".
local function plain(path)
  local n
  repeat path, n = path:gsub("[^/]+/%.%./", "", 1) until n == 0
  return path
end

--- Complains about links to files or headings that do not exist.
---@param path string
---@param text string
---@param complain fun(line: integer, what: string)
function docs.links(path, text, complain)
  local room = path:match "^(.*/)" or ""
  each_line(text, function(line, n)
    line = line:gsub("`[^`]*`", "")
    for href in line:gmatch "%]%(([^()%s]+)%)" do
      local file, at = href:match "^([^#]*)#?(.*)$"
      if not href:find "^%a+:" then
        local target = file == "" and path or plain(room .. file)
        local page = target == path and text or read(target)
        if not page and not os.rename(target, target) then
          complain(n, href .. ": no such file")
        elseif at ~= "" and not anchors(page or "")[at] then
          complain(n, href .. ": no such heading")
        end
      end
    end
  end)
end

local ROOMS = {core = "", lua = "", kernels = "", scripts = "", spec = "",
  tools = "", docs = "", web = "", findings = "", cute = "lua/",
  cutelua = "lua/"}

--- Complains about paths in code spans that do not exist. Only paths that begin
-- with a top folder of the repository are checked. `x/NAME.lua` and `x/*.lua`
-- are patterns and are not checked.
---@param _ string
---@param text string
---@param complain fun(line: integer, what: string)
function docs.paths(_, text, complain)
  each_span(text, function(code, n)
    local path = code:match "^[%w_]+/[%w_./-]+$"
    local before = path and ROOMS[path:match "^[%w_]+"]
    if not before or path:find "%f[%w]%u%u+%f[%W]" then return end
    if before ~= "" and not path:find "%.%l+$" then return end
    path = before .. path:gsub("/$", "")
    if not os.rename(path, path) then complain(n, code .. ": no such file") end
  end)
end

-- Returns the set of targets of the Makefile.
local function make_targets()
  local set = {}
  for names in ("\n" .. read "Makefile"):gmatch "\n([%w_ -]+):[^=]" do
    for name in names:gmatch "%S+" do set[name] = true end
  end
  return set
end

--- Complains about `make TARGET` if the Makefile has no such target.
---@param _ string
---@param text string
---@param complain fun(line: integer, what: string)
function docs.targets(_, text, complain)
  local set = make_targets()
  local function look(code, n)
    local words = code:match "^[%u_%w=/. ]*%f[%w]make (.*)$"
    for word in (words or ""):gmatch "%S+" do
      if word:find "^#" then return end
      if word:find "^%l[%l-]*$" and not set[word] then
        complain(n, "make " .. word .. ": no such target")
      end
    end
  end
  each_span(text, function(code, n)
    if not code:find "luarocks" then look(code, n) end
  end)
  each_line(text, function(line, n)
    look(line:match "^    (make .*)$" or "", n)
  end)
end

-- Names that do not exist: docs/from-python-dsl.md mentions them as a rejected
-- design.
local REJECTED = {["cute.begin_if"] = true, ["cute.otherwise"] = true,
  ["cute.end_if"] = true, ["cute.endif"] = true}

--- Complains about `cute.NAME` in code spans if find(NAME) returns nothing.
-- Names of files, such as a/cute.cu, are ignored. The first column of tables in
-- docs/from-*.md is also ignored, because it has the names of other libraries.
---@param find fun(name: string): any
---@param path string
---@param text string
---@param complain fun(line: integer, what: string)
function docs.names(find, path, text, complain)
  if path:find "^docs/from%-" then
    text = ("\n" .. text):gsub("\n| [^|]+ |", "\n|"):sub(2)
  end
  each_span(text, function(code, n)
    if code:find '^require "[^"]*$' then return end
    for name, after in code:gmatch "%f[%w_./]cute(%.[%a_][%w_.]*)()" do
      name = "cute" .. name:gsub("%.+$", "")
      if not REJECTED[name] and code:sub(after, after) ~= "*"
        and not find(name) then
        complain(n, name .. ": no such name")
      end
    end
  end)
end

if arg and arg[0] and arg[0]:find "docs%.lua$" then
  local doc = require "cutelua.doc.names"
  local function find(name)
    return doc.find(name) or package.searchpath(name, package.path)
      or pcall(require, name)
  end
  local failed = false
  for _, path in ipairs(docs.files()) do
    docs.names(find, path, read(path), function(line, what)
      failed = true
      print(("%s:%d: %s"):format(path, line, what))
    end)
  end
  os.exit(not failed)
end

return docs
-- SPDX-License-Identifier: MIT
