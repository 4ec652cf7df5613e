--- Handles the messages of `cutelua mcp`: the Model Context Protocol.
--
-- Two forms of the protocol are supported. From revision 2026-07-28 on there is
-- no handshake: the _meta of each request names the revision. Clients of
-- earlier revisions send `initialize` first. The server answers with the
-- revision that they request; if it does not know this revision, it answers
-- with the newest one that has a handshake.
local core = require "cute.core"
local json = require "cutelua.text.json"
local rpc = require "cutelua.mcp.rpc"
local sys = require "cute.sys"
local texts = require "cutelua.mcp.texts"
local tools = require "cutelua.mcp.tools"

local protocol = {}

local MODERN = {"2026-07-28"}
local LEGACY = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
local META = "io.modelcontextprotocol/"

-- Error codes of the protocol. FULL is outside of the range that JSON-RPC
-- reserves.
local METHOD, PARAMS, INTERNAL = rpc.METHOD, rpc.PARAMS, rpc.INTERNAL
local VERSION, NO_RESOURCE, FULL = -32022, -32002, 1001

local failed = rpc.failed

-- MOST_WAITING: largest number of waiting calls. KEEP: milliseconds for which a
-- client may keep the lists that it gets.
local MOST_WAITING, KEEP = 64, 3600000

local INSTRUCTIONS = [[
cutelua traces GPU kernels written in Lua (or reads PTX), and runs them on a
simulator that reports races, deadlocks and wrong accesses at the line. Check a
script with the tool `check` after each change. A verdict holds for the sizes
and inputs that the script launches; read `not_checked`. Codes of findings are
explained in cutelua://docs/errors.md.]]

local function has(list, x)
  for _, one in ipairs(list) do
    if one == x then return true end
  end
  return false
end

local notifications, serve = {}, nil

--- Returns a new session, as cutelua.mcp.rpc describes it.
---@param server table {root =, io =, seconds =, memory =, output =}
---@param calls table of cutelua.mcp.calls
---@return table
function protocol.new(server, calls)
  return {name = "mcp", server = server, calls = calls, open = {},
          notifications = notifications, serve = serve}
end

---------------------------------------------------------------------------
-- Sending
---------------------------------------------------------------------------

local function implementation()
  return {name = "cutelua", title = "cutelua", version = sys.version}
end

-- Sends the result of a request. In the newest revision, each result has a type
-- and names the server. If `lasting` is true, it also says how long the client
-- may keep it.
local function answer(self, request, result, lasting)
  if request.modern then
    result.resultType = "complete"
    result._meta = {[META .. "serverInfo"] = implementation()}
    if lasting then result.ttlMs, result.cacheScope = KEEP, "public" end
  end
  rpc.send(self, {id = request.id, result = result})
end

---------------------------------------------------------------------------
-- Methods
---------------------------------------------------------------------------

local methods = {}

local function capabilities()
  return {tools = json.object {}, resources = json.object {},
          prompts = json.object {}}
end

function methods.initialize(self, request)
  local wanted = request.params.protocolVersion
  if type(wanted) ~= "string" then
    return failed(self, request.id, PARAMS,
                  "initialize: protocolVersion must be a string")
  end
  self.version = has(LEGACY, wanted) and wanted or LEGACY[1]
  answer(self, request, {protocolVersion = self.version,
    capabilities = capabilities(), serverInfo = implementation(),
    instructions = INSTRUCTIONS})
end

function methods.ping(self, request) answer(self, request, json.object {}) end

methods["server/discover"] = function(self, request)
  answer(self, request, {supportedVersions = MODERN,
    capabilities = capabilities(), instructions = INSTRUCTIONS}, true)
end

-- Returns a method that sends a complete list. Cursors are rejected, because no
-- list has a second page.
local function lists(name, make)
  return function(self, request)
    if request.params.cursor ~= nil then
      return failed(self, request.id, PARAMS, "there is no such cursor")
    end
    answer(self, request, {[name] = make()}, true)
  end
end

methods["tools/list"] = lists("tools", tools.list)
methods["resources/list"] = lists("resources", texts.resources)
methods["resources/templates/list"] = lists("resourceTemplates",
                                            texts.templates)
methods["prompts/list"] = lists("prompts", texts.prompts)

methods["resources/read"] = function(self, request)
  local uri = request.params.uri
  if type(uri) ~= "string" then
    return failed(self, request.id, PARAMS, "uri must be a string")
  end
  local found = texts.read(uri)
  if found then return answer(self, request, {contents = {found}}, true) end
  failed(self, request.id, request.modern and PARAMS or NO_RESOURCE,
    "there is no such resource", {uri = core.visible(uri)})
end

methods["prompts/get"] = function(self, request)
  local name, args = request.params.name, request.params.arguments
  if type(name) ~= "string" or args ~= nil and not json.is_object(args) then
    return failed(self, request.id, PARAMS,
      "name must be a string, and arguments an object")
  end
  local found, why = texts.prompt(name, args or {})
  if not found then
    return failed(self, request.id, PARAMS, core.visible(why))
  end
  answer(self, request, found)
end

---------------------------------------------------------------------------
-- Calls of tools
---------------------------------------------------------------------------

local function told(text) return {type = "text", text = text} end

-- Returns the result of a call from its outcome. If the record exceeds the
-- limit of output, its `results` are removed; if it is still too large, the
-- result is an error.
local function result_of(outcome, most)
  local text = outcome.text
  if outcome.cut then
    text = text .. ("\n... more than %d bytes of output\n"):format(most)
  end
  if outcome.failed then text = text .. outcome.failed .. "\n" end
  local result = {content = {}, isError = outcome.failed ~= nil or nil}
  if text ~= "" then result.content[1] = told(text) end
  local record = outcome.record
  if record and not outcome.failed then
    local encoded = json.encode(record)
    if #encoded > most then
      record.results, record.truncated = nil, true
      encoded = json.encode(record)
    end
    if #encoded > most then
      return {isError = true, content = {told(("the record has %d bytes, but "
        .. "the limit is %d"):format(#encoded, most))}}
    end
    result.structuredContent = record
    table.insert(result.content, told(encoded))
  elseif not record and outcome.code ~= 0 then
    result.isError = true
  end
  if not result.content[1] then result.content[1] = told "" end
  return result
end

-- Returns a function that sends progress notifications; nil if the request does
-- not ask for them.
local function progress_of(self, request)
  local token = (request.params._meta or {}).progressToken
  if type(token) ~= "string" and math.type(token) ~= "integer" then return end
  local n = 0
  return function(message)
    n = n + 1
    rpc.send(self, {method = "notifications/progress",
      params = {progressToken = token, progress = n, message = message}})
  end
end

-- Returns an outcome with the path of the call's folder removed from all texts.
-- `folder` ends in a slash.
local function without(outcome, folder)
  local pattern = folder:gsub("%p", "%%%0")
  local function cut(v)
    if type(v) == "string" then return (v:gsub(pattern, "")) end
    if type(v) ~= "table" or v == json.null then return v end
    for k, x in pairs(v) do v[k] = cut(x) end
    return v
  end
  return cut(outcome)
end

methods["tools/call"] = function(self, request)
  local name, args = request.params.name, request.params.arguments
  if type(name) ~= "string" or args ~= nil and not json.is_object(args) then
    return failed(self, request.id, PARAMS,
      "name must be a string, and arguments an object")
  end
  local r, why = tools.request(name, args or {}, self.server)
  if not r and not why then
    return failed(self, request.id, PARAMS, ("there is no tool '%s'"):format(
      core.visible(name)))
  elseif not r then
    return answer(self, request, {content = {told(why)}, isError = true})
  elseif #self.calls.waiting >= MOST_WAITING then
    return failed(self, request.id, FULL, ("%d calls wait already"):format(
      MOST_WAITING))
  end
  local call = {request = r, seconds = r.seconds, grace = r.grace,
                output = self.server.output,
                progress = progress_of(self, request)}
  if r.folder then
    local ok, made = sys.mkdirs(r.folder)
    if not ok then
      return failed(self, request.id, INTERNAL, "no folder: " .. tostring(made))
    end
    call.temporary = {}
    for path in pairs(r.files) do table.insert(call.temporary, path) end
    table.insert(call.temporary, r.folder)
  end
  function call.done(outcome)
    self.open[request.id] = nil
    if r.folder then outcome = without(outcome, r.folder .. "/") end
    answer(self, request, result_of(outcome, self.server.output))
  end
  self.open[request.id] = call
  self.calls:add(call)
end

---------------------------------------------------------------------------
-- Receiving
---------------------------------------------------------------------------

notifications["notifications/cancelled"] = function(self, params)
  local id = params.requestId
  local call = id ~= nil and self.open[id]
  if not call then return end
  self.open[id] = nil
  self.calls:cancel(call)
end

-- Checks the _meta of a request of the newest revision. Returns code, message
-- and data of an error if it is wrong; else nil.
local function wrong_meta(meta)
  local version = meta[META .. "protocolVersion"]
  if type(version) ~= "string" then
    return PARAMS, META .. "protocolVersion must be a string"
  elseif not has(MODERN, version) then
    return VERSION, "Unsupported protocol version",
      {supported = MODERN, requested = core.visible(version)}
  elseif not json.is_object(meta[META .. "clientCapabilities"]) then
    return PARAMS, META .. "clientCapabilities must be an object"
  end
end

-- Methods that exist in only one form of the protocol, and the form.
local ONLY = {initialize = "legacy", ping = "legacy",
              ["server/discover"] = "modern"}

-- Answers a well-formed request.
function serve(self, request)
  local meta = request.params._meta
  if meta ~= nil and not json.is_object(meta) then
    return failed(self, request.id, PARAMS, "_meta must be an object")
  end
  request.modern = meta ~= nil and meta[META .. "protocolVersion"] ~= nil
  local method = methods[request.method]
  local only = ONLY[request.method]
  if request.modern then
    local code, message, data = wrong_meta(meta)
    if code then return failed(self, request.id, code, message, data) end
  elseif method and only ~= "legacy" and not self.version then
    return failed(self, request.id, PARAMS, META .. "protocolVersion is "
      .. "missing in _meta; clients of revision 2025-11-25 and earlier send "
      .. "initialize first")
  end
  if not method or only and (only == "modern") ~= request.modern then
    return failed(self, request.id, METHOD, ("there is no method '%s'"):format(
      core.visible(request.method)))
  end
  method(self, request)
end

return protocol
-- SPDX-License-Identifier: MIT
