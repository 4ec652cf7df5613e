--- `cutelua lsp`: a server of the Language Server Protocol on standard input
-- and output, for editors. docs/lsp.md is the user's guide.
local calls = require "cutelua.mcp.calls"
local rpc = require "cutelua.mcp.rpc"
local session = require "cutelua.lsp.session"

local lsp = {}

local SPEC = {
  name = "lsp", script = "lsp",
  about = "Serves the Language Server Protocol on standard input and output: "
    .. "an editor shows findings while you type, types, layouts, completions "
    .. "and repairs (docs/lsp.md).",
  options = {
    rpc.OPTIONS.allow,
    {"--seconds", "number", min = 0.1, max = 86400, default = 10,
     help = "the longest check"},
    rpc.OPTIONS.memory, rpc.OPTIONS.output, rpc.OPTIONS.jobs,
    -- The client library vscode-languageclient adds this option.
    {"--stdio", "flag", help = "has no effect: there is no other transport"}},
}

--- Runs `cutelua lsp` with these words; returns its exit code.
---@param words string[]
---@return integer
function lsp.main(words)
  local server, jobs = rpc.settings(words, SPEC)
  local all = calls.new(jobs)
  local own = session.new(server, all)
  local code = rpc.main(own, all, "headed")
  return own.ended and not own.stopped and 1 or code
end

return lsp
-- SPDX-License-Identifier: MIT
