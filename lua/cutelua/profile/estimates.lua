--- `cutelua estimate SCRIPT`: prints the estimated time of a script's launches
-- on a GPU. Each kernel is estimated once for each grid.
local cards = require "cutelua.profile.cards"
local core = require "cute.core"
local estimate = require "cutelua.profile.estimate"
local session = require "cutelua.profile.session"

local estimates = {}

estimates.HELP = [==[
usage: cutelua estimate [options] script [arguments]
       cutelua estimate [options] FILE.ptx|FILE.cu|NAME.json --launch LAUNCH
Runs a script on the simulator and prints, for each kernel and grid, the time
that a card is estimated to take, and what limits it. The card need not be
present. docs/estimate.md explains the figures and their error.

  --card NAME    h200, h100, a100, l40s, b200, b300 or rtx5090 (default: the
                 Blackwell card that a launch simulates, else h200)
  --cold         L2 is empty at the start
  --registers N  registers of each thread (default: as NVRTC reports)
  --at N         the block or cluster that is simulated (default 0)
  --kernel NAME  this kernel only
  --format FORM  text, json or sarif (text): docs/findings.md
  --help         prints this text and stops

Exit code: 0 success, 1 an error or no launch, 2 a wrong command line, 130
interrupted.
]==]

--- Parses the arguments after `estimate`: see session.options.
---@param words string[]
function estimates.options(words)
  local opt, why = session.options("estimate", words, {["--at"] = "integer",
    ["--card"] = "string", ["--cold"] = "flag", ["--kernel"] = "string",
    ["--registers"] = "integer"})
  if opt and opt.card and not cards.known(opt.card) then
    return nil, ("--card: no card '%s'; known cards: %s"):format(
      core.visible(opt.card), table.concat(cards.names(), " "))
  elseif opt and opt.registers
    and (opt.registers < 1 or opt.registers > 255) then
    return nil, ("--registers: a number from 1 to 255 is needed, got %d")
      :format(opt.registers)
  end
  return opt, why
end

-- Prints the estimate of a launch, then runs the whole launch.
local function look(program, launch, opt)
  local prepared = estimate.launched(program, launch)
  prepared.progress = launch.progress
  local e = estimate.of(prepared, {card = opt.card, cold = opt.cold,
    registers = opt.registers, at = opt.at})
  print(e)
  if opt.findings then opt.findings:estimated(e) end
  return core.sim_run(program.fn, launch)
end

--- Starts a session that estimates the launches until finish().
---@param opt table
function estimates.start(opt) return session.start("estimate", opt, look) end

return estimates
-- SPDX-License-Identifier: MIT
