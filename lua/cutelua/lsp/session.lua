--- Handles the messages of `cutelua lsp`: the Language Server Protocol 3.17.
local checks = require "cutelua.lsp.checks"
local complete = require "cutelua.program.complete"
local core = require "cute.core"
local doc = require "cutelua.doc"
local document = require "cutelua.lsp.document"
local files = require "cute.lang.files"
local json = require "cutelua.text.json"
local names = require "cutelua.lsp.names"
local namelist = require "cutelua.doc.names"
local rpc = require "cutelua.mcp.rpc"
local sys = require "cute.sys"
local tokens = require "cutelua.text.tokens"
local uris = require "cutelua.text.uri"

local session = {}

local NOT_INITIALIZED = -32002
-- - MOST_OPEN: largest number of open documents.
-- - MOST_ITEMS: largest number of candidates of a completion.
-- - MOST_DESCRIBED: largest number of candidates with a description.
-- - BEFORE: number of bytes before the cursor that a completion reads.
local MOST_OPEN, MOST_ITEMS, MOST_DESCRIBED, BEFORE = 1000, 1000, 100, 32768

local Session = {}
Session.__index = Session

local notifications, methods = {}, {}

--- Returns a new session: a table with the fields that cutelua.mcp.rpc
-- requires.
---@param server table {io =, seconds =, memory =, output =}
---@param calls table of cutelua.mcp.calls
---@return table
function session.new(server, calls)
  return setmetatable({name = "lsp", server = server, calls = calls, open = {},
    documents = {}, count = 0, due = {}, asked = 0,
    notifications = notifications}, Session)
end

--- Sends a notification.
---@param method string
---@param params table
function Session:notify(method, params)
  rpc.send(self, {method = method, params = params})
end

--- Asks the client to request the inlay hints again, if the client supports
-- that.
function Session:refresh()
  if not self.refreshes then return end
  self.asked = self.asked + 1
  rpc.send(self, {id = self.asked, method = "workspace/inlayHint/refresh"})
end

Session.tick, Session.patience = checks.tick, checks.patience

---------------------------------------------------------------------------
-- Parameters
---------------------------------------------------------------------------

-- Raises an error that rpc.try returns. The client gets it as "wrong
-- parameters".
local wrong = rpc.wrong

local function object(t, name)
  if not json.is_object(t[name]) then wrong("%s must be an object", name) end
  return t[name]
end

local function string_of(t, name)
  if type(t[name]) ~= "string" then wrong("%s must be a string", name) end
  return t[name]
end

local function position_of(p)
  for _, name in ipairs {"line", "character"} do
    if math.type(p[name]) ~= "integer" or p[name] < 0 then
      wrong("a position's %s must be an integer of at least 0", name)
    end
  end
  return p
end

local function range_of(t)
  local range = object(t, "range")
  position_of(object(range, "start"))
  position_of(object(range, "end"))
  return range
end

-- Returns the open document that the parameters name.
local function open_document(self, params)
  local uri = string_of(object(params, "textDocument"), "uri")
  local found = self.documents[uri]
  if not found then wrong("'%s' is not open", core.visible(uri)) end
  return found
end

-- Returns the open document that a request's parameters name, and the offset of
-- their position in it.
local function place_of(self, params)
  local at = open_document(self, params)
  return at, at:offset(position_of(object(params, "position")))
end

-- Returns the known values of a document's local variables.
local function environment(at)
  at.env = at.env or names.environment(#at.text <= checks.MOST and at.text
    or "", at.facts)
  return at.env
end

---------------------------------------------------------------------------
-- Documents
---------------------------------------------------------------------------

notifications["textDocument/didOpen"] = function(self, params)
  local item = object(params, "textDocument")
  local uri, text = string_of(item, "uri"), string_of(item, "text")
  local old = self.documents[uri]
  if old then
    checks.stop(self, old)
  elseif self.count >= MOST_OPEN then
    return self:notify("window/logMessage", {type = 1,
      message = ("%d documents are open already"):format(MOST_OPEN)})
  else
    self.count = self.count + 1
  end
  local version = math.type(item.version) == "integer" and item.version or 0
  local at = document.new(uri, version, text)
  at.found, at.facts = {}, {}
  self.documents[uri] = at
  checks.plan(self, at)
end

notifications["textDocument/didChange"] = function(self, params)
  local at = open_document(self, params)
  if type(params.contentChanges) ~= "table" then
    wrong "contentChanges must be an array"
  end
  for _, c in ipairs(params.contentChanges) do
    if not json.is_object(c) then wrong "a change must be an object" end
    at:change(c.range ~= nil and range_of(c) or nil, string_of(c, "text"))
  end
  local version = params.textDocument.version
  at.version = math.type(version) == "integer" and version or at.version + 1
  at.env = nil
  checks.plan(self, at)
end

notifications["textDocument/didClose"] = function(self, params)
  local at = open_document(self, params)
  self.documents[at.uri] = nil
  self.count = self.count - 1
  checks.clear(self, at)
end

---------------------------------------------------------------------------
-- Requests about names
---------------------------------------------------------------------------

-- Returns the tensor or layout that a name holds at a line. Lines count from 1.
-- If several objects have this name, returns the last one that is declared at
-- or above the line, or else the first one.
local function fact_of(at, name, line)
  local best
  for _, fact in ipairs(at.facts) do
    if fact.name == name then
      local above = (fact.line or 0) <= line
      if not best or above and (fact.line or 0) >= (best.line or 0) then
        best = fact
      end
    end
  end
  return best
end

local function told(fact)
  local text = fact.kind
  if fact.space then text = text .. " " .. fact.space end
  return ("%s: %s\n%s"):format(fact.name, text, fact.layout)
end

-- Returns the documentation of a path of names, such as x.y:z, in document
-- `at`; nil if there is none. The path stands for a value or a method.
local function documentation(at, path)
  local value = complete.value(path, environment(at))
  local text
  if value ~= nil then text = doc.lookup(value) end
  if type(value) == "string" or text then return text end
  local method = path:match ":([%w_]+)$"
  local item = method and namelist.find(method)
  if item and item.kind == "method" then return doc.text(item) end
end

methods["textDocument/hover"] = function(self, params)
  local at, offset = place_of(self, params)
  local path, from, to = names.at(at.text, offset)
  if not path then return json.null end
  local fact = fact_of(at, path, at:position(offset).line + 1)
  local text = fact and told(fact) or documentation(at, path)
  if not text then return json.null end
  return {contents = {kind = "markdown", value = "```text\n" .. text
    .. "\n```"}, range = {start = at:position(from),
    ["end"] = at:position(to)}}
end

-- Kinds of completion items.
local METHOD, FIELD, VARIABLE, OPTION, VALUE, KEYWORD = 2, 5, 6, 10, 12, 14
local KINDS = {option = OPTION, string = VALUE}

methods["textDocument/completion"] = function(self, params)
  local at, offset = place_of(self, params)
  if #at.text > checks.MOST then return {isIncomplete = false, items = {}} end
  local before = at.text:sub(math.max(1, offset - BEFORE), offset - 1)
  -- The text before the cursor is cut so that it begins with a whole line.
  if offset > BEFORE then before = before:gsub("^[^\n]*\n", "", 1) end
  local list, word, place, about = complete.find(before, environment(at))
  local range = {start = at:position(offset - #word),
                 ["end"] = at:position(offset)}
  local mark = before:sub(-#word - 1, -#word - 1)
  local kind = KINDS[place] or mark == ":" and METHOD or mark == "." and FIELD
  local items = {}
  for i = 1, math.min(#list, MOST_ITEMS) do
    local name = list[i]
    items[i] = {label = name, kind = kind
        or tokens.KEYWORDS[name] and KEYWORD or VARIABLE,
      detail = about and #list <= MOST_DESCRIBED and about(name) or nil,
      textEdit = {range = range,
        newText = place == "option" and name .. " = " or name}}
  end
  return {isIncomplete = #list > MOST_ITEMS, items = items}
end

-- Returns the file of module `name` as a document; nil if the folder of
-- document `at` has no such file.
local function module_of(self, at, name)
  local path = uris.path(at.uri)
  local folder = path and path:match "^(.*/)"
  if not folder then return nil end
  for _, pattern in ipairs {"%s%s.lua", "%s%s/init.lua"} do
    local file = pattern:format(folder, name:gsub("%.", "/"))
    local uri = uris.of_path(file)
    local found = self.documents[uri]
    local text = found and found.text or files.read(file, checks.MOST, "plain")
    if text then return document.new(uri, 0, text) end
  end
end

local function location(at, offset)
  local p = at:position(offset)
  return {uri = at.uri, range = {start = p, ["end"] = p}}
end

methods["textDocument/definition"] = function(self, params)
  local at, offset = place_of(self, params)
  if #at.text > checks.MOST then return json.null end
  local found, module, field = names.definition(at.text, offset)
  if found then return location(at, found) end
  local other = module and module_of(self, at, module)
  if not other then return json.null end
  local there = field and names.field(other.text, field)
  if field and not there then return json.null end
  return location(other, there or 1)
end

---------------------------------------------------------------------------
-- Repairs and hints
---------------------------------------------------------------------------

methods["textDocument/codeAction"] = function(self, params)
  local at, range = open_document(self, params), range_of(params)
  local list, context = {}, params.context
  local only = json.is_object(context) and context.only
  local wanted = type(only) ~= "table" or #only == 0
  for _, kind in ipairs(wanted and {} or only) do
    wanted = wanted or kind == "quickfix" or kind == ""
  end
  if not wanted or at.checked ~= at.version then return list end
  for _, one in ipairs(at.found) do
    local r = one.diagnostic.range
    local meets = r.start.line <= range["end"].line
      and r["end"].line >= range.start.line
    for i, edit in ipairs(meets and one.edits or {}) do
      local changes = checks.changes(at, edit)
      list[#list + 1] = changes and {title = edit.description,
        kind = "quickfix", diagnostics = {one.diagnostic}, isPreferred = i == 1,
        edit = {changes = changes}}
    end
  end
  return list
end

methods["textDocument/inlayHint"] = function(self, params)
  local at, range = open_document(self, params), range_of(params)
  local list, known = {}, {}
  for _, hint in ipairs(at.weighed == at.version and at.traffic or {}) do
    local n = hint.line - 1
    local line, from = at:line(n)
    if line and n >= range.start.line and n <= range["end"].line
      and not known[n .. hint.label] then
      known[n .. hint.label] = true
      list[#list + 1] = {position = at:position(from + #line),
        label = hint.label, tooltip = hint.tooltip, paddingLeft = true}
    end
  end
  if at.known ~= at.version then return list end
  local path = uris.path(at.uri) or "untitled.lua"
  for _, fact in ipairs(at.facts) do
    local n = (fact.line or 0) - 1
    local line, from = at:line(n)
    local stop = line and fact.file == path and line:match(
      "%f[%w_]" .. fact.name:gsub("%p", "%%%0") .. "()%f[^%w_]")
    if stop and n >= range.start.line and n <= range["end"].line
      and fact.layout ~= "" and not known[from + stop] then
      known[from + stop] = true
      list[#list + 1] = {position = at:position(from + stop - 1), kind = 1,
        label = ": " .. fact.layout, tooltip = told(fact), paddingRight = true}
    end
  end
  return list
end

---------------------------------------------------------------------------
-- Start and end of a session
---------------------------------------------------------------------------

function methods.initialize(self, params)
  local all = params.capabilities
  local workspace = json.is_object(all) and all.workspace
  local hints = json.is_object(workspace) and workspace.inlayHint
  self.refreshes = json.is_object(hints) and hints.refreshSupport == true
  self.initialized = true
  return {serverInfo = {name = "cutelua", version = sys.version},
    capabilities = {positionEncoding = "utf-16",
      textDocumentSync = {openClose = true, change = 2},
      hoverProvider = true, definitionProvider = true,
      completionProvider = {triggerCharacters = {".", ":", "\"", "{"}},
      codeActionProvider = {codeActionKinds = {"quickfix"}},
      inlayHintProvider = true}}
end

function methods.shutdown(self)
  self.stopped = true
  for _, at in pairs(self.documents) do checks.stop(self, at) end
  return json.null
end

function notifications.exit(self)
  self.deaf, self.ended = true, true
end

for name, f in pairs(notifications) do
  if name ~= "exit" then
    -- Notifications get no answer, so invalid ones are ignored.
    notifications[name] = function(self, params)
      if not self.initialized or self.stopped then return end
      rpc.try(f, self, params)
    end
  end
end

--- Answers a request.
---@param request table of cutelua.mcp.rpc
function Session:serve(request)
  local method, id = methods[request.method], request.id
  if not self.initialized and request.method ~= "initialize" then
    return rpc.failed(self, id, NOT_INITIALIZED, "initialize comes first")
  elseif self.stopped or self.initialized and request.method == "initialize"
  then
    return rpc.failed(self, id, rpc.REQUEST, self.stopped
      and "the server was shut down" or "initialize comes only once")
  elseif not method then
    return rpc.failed(self, id, rpc.METHOD, ("there is no method '%s'"):format(
      core.visible(request.method)))
  end
  local result, why = rpc.try(method, self, request.params)
  if why then return rpc.failed(self, id, rpc.PARAMS, why) end
  rpc.send(self, {id = id, result = result})
end

return session
-- SPDX-License-Identifier: MIT
