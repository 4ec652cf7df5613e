-- Drives `cutelua lsp`: sends messages with headers to the program's standard
-- input and collects its answers.
local dkjson = require "dkjson"
local support = require "spec.support"

local driver = {}

local Driver = {}
Driver.__index = Driver

-- Seconds after which a missing answer is a failure.
local PATIENCE = 60

--- Starts the program.
---@param ... string options of `cutelua lsp`
function driver.start(...)
  local out = os.tmpname()
  local words = {support.program, "lsp", ...}
  local d = setmetatable({out = out, id = 0, answers = {}, notes = {}, odd = {},
                          rest = ""}, Driver)
  d.input = assert(io.popen(("exec %s >%s 2>&1"):format(
    table.concat(words, " "), out), "w"))
  d.reader = assert(io.open(out, "rb"))
  return d
end

--- Sends bytes as they are.
---@param bytes string
function Driver:raw(bytes)
  self.input:write(bytes)
  self.input:flush()
end

--- Sends a text as a message.
---@param text string
function Driver:body(text)
  self:raw(("Content-Length: %d\r\n\r\n%s"):format(#text, text))
end

-- Takes the messages that have arrived.
local function take(d)
  d.rest = d.rest .. (d.reader:read "a" or "")
  while true do
    local size, from = d.rest:match "^Content%-Length: (%d+)\r\n\r\n()"
    if not size or #d.rest < from + size - 1 then
      assert(size or not d.rest:find "\n", d.rest:sub(1, 400))
      return
    end
    local text = d.rest:sub(from, from + size - 1)
    d.rest = d.rest:sub(from + size)
    local m = assert(dkjson.decode(text, 1, dkjson.null))
    assert(m.jsonrpc == "2.0")
    if m.method then d.notes[#d.notes + 1] = m
    elseif m.id == dkjson.null then d.odd[#d.odd + 1] = m
    else
      assert(d.answers[m.id] == nil, "two answers to one request")
      d.answers[m.id] = m
    end
  end
end

--- Calls done() until it returns a true value, and returns that.
---@param done fun(): any
---@param what string
function Driver:wait_for(done, what)
  local stop = os.time() + PATIENCE
  while true do
    take(self)
    local found = done()
    if found then return found end
    assert(os.time() < stop, "no answer: " .. what)
    os.execute "sleep 0.01"
  end
end

--- Sends a notification.
function Driver:notify(method, params)
  self:body(dkjson.encode {jsonrpc = "2.0", method = method, params = params})
end

--- Sends a request and returns its answer.
---@param method string
---@param params table?
function Driver:ask(method, params)
  self.id = self.id + 1
  local id = self.id
  self:body(dkjson.encode {jsonrpc = "2.0", id = id, method = method,
                           params = params})
  return self:wait_for(function() return self.answers[id] end, method)
end

--- Waits for the next error that answers no known request; returns its code.
function Driver:wait_odd()
  return self:wait_for(function() return table.remove(self.odd, 1) end,
                       "an error without id").error.code
end

--- Begins the session.
function Driver:initialize()
  local r = self:ask("initialize", {processId = dkjson.null, capabilities = {
    workspace = {inlayHint = {refreshSupport = true}}}})
  self:notify("initialized", {[1] = nil, x = 1})
  return r.result
end

--- Opens a document.
---@param uri string
---@param text string
function Driver:open(uri, text)
  self:notify("textDocument/didOpen", {textDocument = {uri = uri, version = 1,
    languageId = "lua", text = text}})
end

--- Changes a document: by a range {line, from, line, to}, or as a whole.
function Driver:change(uri, version, text, range)
  local r = range and {start = {line = range[1], character = range[2]},
                       ["end"] = {line = range[3], character = range[4]}}
  self:notify("textDocument/didChange", {textDocument = {uri = uri,
    version = version}, contentChanges = {{range = r, text = text}}})
end

--- Waits for the diagnostics of a version of a document; nil: of none.
---@param uri string
---@param version integer?
function Driver:diagnostics(uri, version)
  return self:wait_for(function()
    for i, m in ipairs(self.notes) do
      if m.method == "textDocument/publishDiagnostics" and m.params.uri == uri
        and m.params.version == version then
        table.remove(self.notes, i)
        return m.params.diagnostics
      end
    end
  end, ("diagnostics of version %s"):format(version))
end

--- Waits until the facts of a check have arrived.
function Driver:facts()
  self:wait_for(function()
    for i, m in ipairs(self.notes) do
      if m.method == "workspace/inlayHint/refresh" then
        table.remove(self.notes, i)
        self:body(dkjson.encode {jsonrpc = "2.0", id = m.id,
                                 result = dkjson.null})
        return true
      end
    end
  end, "workspace/inlayHint/refresh")
end

--- Asks about a position.
function Driver:at(method, uri, line, character)
  local r = self:ask("textDocument/" .. method, {textDocument = {uri = uri},
    position = {line = line, character = character}})
  assert(r.result, r.error and r.error.message)
  return r.result ~= dkjson.null and r.result or nil
end

--- Closes the program's input; returns its exit code.
function Driver:close()
  local _, how, code = self.input:close()
  take(self)
  self.reader:close()
  os.remove(self.out)
  return how == "signal" and 128 + code or code
end

return driver
-- SPDX-License-Identifier: MIT
