--- A worker of `cutelua mcp`: a process that runs one command and ends. It
-- loads the modules that commands need before its request arrives, so that an
-- answer takes only the time of the command.
--
-- The request is one line of JSON: {command =, words =, texts = scripts by
-- name, files = texts by path to write first, memory = bytes, allow_io =, reads
-- = true to report what the command reads, nonce =}. The worker's output is the
-- output of the command, interspersed with frames (cutelua.mcp.calls). A script
-- does not know the nonce, so it cannot write a frame.
local calls = require "cutelua.mcp.calls"
local collected = require "cutelua.program.collected"
local core = require "cute.core"
local findings = require "cutelua.findings"
local guard = require "cutelua.mcp.guard"
local json = require "cutelua.text.json"
local program = require "cutelua.program.main"

local worker = {}

-- Modules that tracing, checking and reporting load when they are first used.
local EARLY = {}
for name in ([[cute cute.algorithm cute.lang.branch cute.lang.dependencies
    cute.lang.fields cute.lang.loop_carried cute.lang.region cute.lang.trace
    cute.lang.truth cute.lang.undefined cute.ops cute.pipeline cute.tiles
    cute.tuple cutelua cutelua.bench.harness cutelua.bench.lesson
    cutelua.check.main cutelua.page.main cutelua.profile.estimates
    cutelua.profile.main cutelua.text.crossed cutelua.text.faults
    cutelua.text.foreign cutelua.text.mistakes cutelua.text.nils
    cutelua.text.relaunched cutelua.text.strays cutelua.text.suggest
    cutelua.text.surplus kernels.gemm_sm80
    kernels.operand_rules]]):gmatch "%S+" do
  EARLY[#EARLY + 1] = name
end

-- The least number of seconds between two reports of progress.
local LEAST = 0.1

--- Runs the request that arrives on standard input; returns the exit code.
function worker.main()
  for _, name in ipairs(EARLY) do require(name) end
  io.stdout:setvbuf "line"
  local request = json.decode(io.read "L" or "")
  if not request then return 1 end
  for path, text in pairs(request.files or {}) do
    local f <close> = assert(io.open(path, "wb"))
    f:write(text)
  end
  collected.sink = function(found)
    io.stdout:flush()
    calls.frame(request.nonce, {kind = "record", record = found})
  end
  function findings.early(list)
    calls.frame(request.nonce, {kind = "early", record = {findings = list}})
  end
  local last = -math.huge
  function findings.launched(text)
    local now = core.clock()
    if now - last < LEAST then return end
    last = now
    calls.frame(request.nonce, {kind = "progress", message = text})
  end
  guard.memory(request.memory)
  if request.command == "learn" and not request.allow_io then
    guard.learner()
  end
  local reads = request.reads and require "cutelua.mcp.reads"
  if reads then reads.start() end
  local code = program.run({texts = request.texts,
    guard = guard.script(request.memory, request.allow_io)}, request.command,
    request.words)
  io.stdout:flush()
  if reads then
    calls.frame(request.nonce, {kind = "reads", list = reads.list,
                                opaque = reads.opaque})
  end
  calls.frame(request.nonce, {kind = "exit", code = code})
  return code
end

return worker
-- SPDX-License-Identifier: MIT
