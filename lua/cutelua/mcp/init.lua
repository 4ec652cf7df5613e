--- `cutelua mcp`: a server of the Model Context Protocol on standard input and
-- output, for programs that write kernels. docs/mcp.md is the user's guide.
local calls = require "cutelua.mcp.calls"
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local protocol = require "cutelua.mcp.protocol"
local report = require "cute.lang.report"
local sys = require "cute.sys"

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
    {"--seconds", "number", min = 0.1, max = 86400, default = 60,
     help = "the longest call"},
    {"--memory", "int", min = 64, max = 1 << 20, default = 2048, place = "MIB",
     help = "the most memory of a call"},
    {"--output", "int", min = 1, max = 1 << 20, default = 1024, place = "KIB",
     help = "the most output of a call, and the largest record"},
    {"--jobs", "int", min = 1, max = 64, default = 2,
     help = "calls that run at the same time"},
  },
}

-- The largest message in bytes; the longest wait for an event; seconds for
-- which calls may end after the client closed standard input.
local LARGEST, LONGEST, LAST = 16 << 20, 0.5, 1

-- Divides what arrives into lines. feed(bytes) calls `each` with each line, and
-- too_long() once for a line beyond the limit, which is skipped.
local function splitter(each, too_long)
  local pieces, size, skip = {}, 0, false
  return function(bytes)
    local at = 1
    while true do
      local stop = bytes:find("\n", at, true)
      local piece = bytes:sub(at, (stop or 0) - 1)
      size = size + #piece
      if size > LARGEST then
        if not skip then too_long(LARGEST) end
        pieces, skip = {}, true
      else
        pieces[#pieces + 1] = piece
      end
      if not stop then return end
      local line = table.concat(pieces)
      if not skip and line:find "%S" then each(line) end
      pieces, size, skip, at = {}, 0, false, stop + 1
    end
  end
end

-- Waits for an event: input of the client, or something of a worker. Returns
-- false at the end of the input, or if the client no longer reads.
local function step(input, all, feed)
  local list = {}
  for i, call in ipairs(all.running) do list[i] = call.process end
  list[#list + 1] = input
  local i = sys.poll(list, all:patience(LONGEST))
  local call = i and all.running[i]
  if call then
    all:receive(call)
  elseif i then
    local bytes = input:receive()
    if not bytes then return false end
    feed(bytes)
  end
  all:expire()
  all:prepare()
  return not all.deaf
end

-- Lets the calls in progress end.
local function drain(all)
  local stop = core.clock() + LAST
  while all.running[1] and core.clock() < stop do
    local list = {}
    for i, call in ipairs(all.running) do list[i] = call.process end
    local i = sys.poll(list, stop - core.clock())
    if i then all:receive(all.running[i]) end
  end
end

--- Runs `cutelua mcp` with these words; returns its exit code.
---@param words string[]
---@return integer
function mcp.main(words)
  -- The server starts its own workers with this word.
  if words[1] == "--worker" then return require "cutelua.mcp.worker".main() end
  local opt = cli.parse(words, SPEC)
  local server = {root = opt.root, io = opt.allow == "io",
    seconds = opt.seconds, memory = opt.memory << 20, output = opt.output << 10}
  local input, why = sys.input()
  if not input then
    report.tell("cutelua: mcp: cannot read standard input: " .. why .. " [io]")
    return 1
  end
  local all = calls.new(opt.jobs)
  local session = protocol.new(server, all, function(text)
    local ok = io.stdout:write(text)
    all.deaf = all.deaf or not (ok and io.stdout:flush())
  end)
  all:prepare()
  local feed = splitter(function(line) session:receive(line) end,
                        function(most) session:too_long(most) end)
  while step(input, all, feed) do end
  if not all.deaf then drain(all) end
  all:close()
  return 0
end

return mcp
-- SPDX-License-Identifier: MIT
