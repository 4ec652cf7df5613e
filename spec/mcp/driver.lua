-- Drives `cutelua mcp`: sends messages to the program's standard input and
-- collects its answers, one JSON text a line.
local dkjson = require "dkjson"
local support = require "spec.support"

local driver = {}

local Driver = {}
Driver.__index = Driver

-- Seconds after which a missing answer is a failure.
local PATIENCE = 60

--- Starts the program.
---@param ... string options of `cutelua mcp`
function driver.start(...)
  local out = os.tmpname()
  local words = {support.program, "mcp", ...}
  local d = setmetatable({out = out, id = 0, answers = {}, notes = {},
                          odd = {}}, Driver)
  d.input = assert(io.popen(("exec %s >%s 2>&1"):format(
    table.concat(words, " "), out), "w"))
  d.reader = assert(io.open(out, "rb"))
  d.rest = ""
  return d
end

--- Sends a line as it is.
---@param text string
function Driver:line(text)
  self.input:write(text, "\n")
  self.input:flush()
end

-- Takes the answers that have arrived.
local function take(d)
  d.rest = d.rest .. (d.reader:read "a" or "")
  while true do
    local line, after = d.rest:match "^([^\n]*)\n()"
    if not line then return end
    d.rest = d.rest:sub(after)
    local m, _, why = dkjson.decode(line, 1, nil)
    assert(m and m.jsonrpc == "2.0", ("no message: %s %s"):format(line:sub(1,
      200), why or ""))
    if m.id ~= nil then
      assert(d.answers[m.id] == nil, "two answers to one request")
      d.answers[m.id] = m
    elseif m.method then
      d.notes[#d.notes + 1] = m
    else
      d.odd[#d.odd + 1] = m
    end
  end
end

-- Calls done() until it returns a true value, and returns that.
local function wait_for(d, done, what)
  local stop = os.time() + PATIENCE
  while true do
    take(d)
    local found = done()
    if found then return found end
    assert(os.time() < stop, "no answer: " .. what)
    os.execute "sleep 0.01"
  end
end

--- Sends a request; returns its id.
---@param method string
---@param params table?
function Driver:send(method, params)
  self.id = self.id + 1
  self:line(dkjson.encode {jsonrpc = "2.0", id = self.id, method = method,
                           params = params})
  return self.id
end

--- Waits for the answer to a request.
---@param id any
function Driver:wait(id)
  return wait_for(self, function() return self.answers[id] end, tostring(id))
end

--- Waits for the next error that answers no known request.
function Driver:wait_odd()
  return wait_for(self, function() return table.remove(self.odd, 1) end,
                  "an error without id")
end

--- Sends a request and returns its answer.
function Driver:ask(method, params)
  return self:wait(self:send(method, params))
end

--- Agrees on a revision of the protocol with a handshake.
---@param version? string
function Driver:initialize(version)
  return self:ask("initialize", {protocolVersion = version or "2025-11-25",
    capabilities = {roots = {}}, clientInfo = {name = "spec", version = "1"}})
end

--- Calls a tool; returns the result.
---@param name string
---@param args table?
function Driver:call(name, args)
  local answer = self:ask("tools/call", {name = name, arguments = args})
  assert(answer.result, answer.error and answer.error.message)
  return answer.result
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
