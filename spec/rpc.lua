-- Drives a server of the program that speaks JSON-RPC on its standard input and
-- output: sends messages and collects responses. spec/lsp/driver.lua and
-- spec/mcp/driver.lua add the requests of their protocols.
local dkjson = require "dkjson"
local support = require "spec.support"

local rpc = {}

-- Seconds after which a missing response is a failure.
local PATIENCE = 60

-- For each framing of messages, two functions. of(text) returns a message with
-- this text. first(bytes) returns the text of the first message and the offset
-- after the message, or nil if the bytes contain no complete message.
local FRAMINGS = {
  lines = {
    of = function(text) return text .. "\n" end,
    first = function(bytes) return bytes:match "^([^\n]*)\n()" end,
  },
  headed = {
    of = function(text)
      return ("Content-Length: %d\r\n\r\n%s"):format(#text, text)
    end,
    first = function(bytes)
      local size, from = bytes:match "^Content%-Length: (%d+)\r\n\r\n()"
      assert(size or not bytes:find "\n", bytes:sub(1, 400))
      if not size or #bytes < from + size - 1 then return nil end
      return bytes:sub(from, from + size - 1), from + size
    end,
  },
}

local Driver = {}
Driver.__index = Driver

--- Returns a new class of drivers, which has no methods of its own yet.
---@return table
function rpc.class()
  local class = setmetatable({}, Driver)
  class.__index = class
  return class
end

--- Starts the program. Fields of the driver: `answers` has the responses by id,
-- `notes` the server's requests and notifications, and `odd` the error
-- responses without an id.
---@param class table of rpc.class
---@param framing "lines"|"headed"
---@param ... string the program's command and its options
---@return table driver
function rpc.start(class, framing, ...)
  local out = os.tmpname()
  local words = {support.program, ...}
  local d = setmetatable({out = out, framing = FRAMINGS[framing], id = 0,
                          answers = {}, notes = {}, odd = {}, rest = ""}, class)
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
function Driver:body(text) self:raw(self.framing.of(text)) end

-- Parses the messages that have arrived, and stores them in the driver.
local function take(d)
  d.rest = d.rest .. (d.reader:read "a" or "")
  while true do
    local text, after = d.framing.first(d.rest)
    if not text then return end
    d.rest = d.rest:sub(after)
    local m, _, why = dkjson.decode(text, 1, dkjson.null)
    assert(m and m.jsonrpc == "2.0", ("no message: %s %s"):format(text:sub(1,
      200), why or ""))
    if m.method then d.notes[#d.notes + 1] = m
    elseif m.id == nil or m.id == dkjson.null then d.odd[#d.odd + 1] = m
    else
      assert(d.answers[m.id] == nil, "two answers to one request")
      d.answers[m.id] = m
    end
  end
end

--- Calls done() until it returns a true value, and returns that value.
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

--- Waits for the response to a request.
---@param id any
function Driver:wait(id)
  return self:wait_for(function() return self.answers[id] end, tostring(id))
end

--- Waits for the next error response without an id; returns its code.
function Driver:wait_odd()
  return self:wait_for(function() return table.remove(self.odd, 1) end,
                       "an error without id").error.code
end

--- Sends a notification.
---@param method string
---@param params table?
function Driver:notify(method, params)
  self:body(dkjson.encode {jsonrpc = "2.0", method = method, params = params})
end

--- Sends a request; returns its id.
---@param method string
---@param params table?
function Driver:send(method, params)
  self.id = self.id + 1
  self:body(dkjson.encode {jsonrpc = "2.0", id = self.id, method = method,
                           params = params})
  return self.id
end

--- Sends a request and returns its response.
---@param method string
---@param params table?
function Driver:ask(method, params)
  return self:wait(self:send(method, params))
end

--- Closes the program's input; returns its exit code.
function Driver:close()
  local _, how, code = self.input:close()
  take(self)
  self.reader:close()
  os.remove(self.out)
  return how == "signal" and 128 + code or code
end

return rpc
-- SPDX-License-Identifier: MIT
