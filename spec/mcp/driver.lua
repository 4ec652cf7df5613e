-- Drives `cutelua mcp`: agrees on a revision of the protocol, and calls tools.
local rpc = require "spec.rpc"

local driver = {}

local Driver = rpc.class()

--- Starts the MCP server.
---@param ... string options of `cutelua mcp`
function driver.start(...) return rpc.start(Driver, "lines", "mcp", ...) end

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

return driver
-- SPDX-License-Identifier: MIT
