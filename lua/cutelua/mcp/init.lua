--- `cutelua mcp`: a server of the Model Context Protocol on standard input and
-- output, for programs that write kernels. docs/mcp.md is the user's guide.
local calls = require "cutelua.mcp.calls"
local protocol = require "cutelua.mcp.protocol"
local rpc = require "cutelua.mcp.rpc"

local mcp = {}

local SPEC = {
  name = "mcp", script = "mcp",
  about = "Serves the Model Context Protocol on standard input and output, for "
    .. "programs that write kernels: check, run, explain, profile, estimate, "
    .. "diff, doc, draw, learn and tune are its tools (docs/mcp.md).",
  options = {
    {"--root", "string", default = ".", place = "FOLDER",
     help = "paths of clients are in this folder"},
    {"--allow", "choice", choices = {"io"}, help = "scripts may use io, os and "
      .. "all modules, and clients may tune"},
    rpc.OPTIONS.seconds, rpc.OPTIONS.memory, rpc.OPTIONS.output,
    rpc.OPTIONS.jobs},
}

--- Runs `cutelua mcp` with these words; returns its exit code.
---@param words string[]
---@return integer
function mcp.main(words)
  -- The server itself starts workers in this way.
  if words[1] == "--worker" then return require "cutelua.mcp.worker".main() end
  local server, jobs = rpc.settings(words, SPEC)
  local all = calls.new(jobs)
  return rpc.main(protocol.new(server, all), all, "lines")
end

return mcp
-- SPDX-License-Identifier: MIT
