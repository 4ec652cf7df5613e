--- `cutelua profile SCRIPT`: prints the memory traffic and the bank conflicts
-- of a script's launches on the simulator. Each kernel is shown once for each
-- grid.
local core = require "cute.core"
local session = require "cutelua.profile.session"
local simreport = require "cute.lang.simreport"

local main = {}

main.HELP = [==[
usage: cutelua profile [options] script [arguments]
       cutelua profile [options] FILE.ptx|FILE.cu|NAME.json --launch LAUNCH
Runs a script on the simulator and prints, for each kernel and grid, the memory
traffic of each line, the lanes that conflict in shared memory, and a layout
without these conflicts. docs/profile.md explains the figures.

  --kernel NAME  this kernel only
  --format FORM  text, json or sarif (text): docs/findings.md
  --help         prints this text and stops

Exit code: 0 success, 1 an error or no launch, 2 a wrong command line, 130
interrupted.
]==]

--- Parses the arguments after `profile`: see session.options.
---@param words string[]
function main.options(words)
  return session.options("profile", words, {["--kernel"] = "string"})
end

-- Runs a launch and prints its memory traffic and bank conflicts.
local function look(program, launch, opt)
  launch.record = true
  local found = core.sim_run(program.fn, launch)
  if #found.reports > 0 then return found end
  found.kernel, found.sm = program.info.name, launch.sm
  local r = simreport.attach(found, program)
  print(("kernel %s, grid %s, block %s: %d instructions of warps"):format(
    program.info.name, table.concat(launch.grid, " x "),
    table.concat(launch.block, " x "), found.instructions))
  print(r:traffic())
  local list = r:conflicts()
  for _, c in ipairs(list) do print(c) end
  local layouts = list[1] and r:find_swizzle()
  if layouts and layouts[1] then print(layouts) end
  if opt.findings then opt.findings:profiled(r, list, layouts or {}) end
  return found
end

--- Starts a session that records the launches until finish().
---@param opt table
function main.start(opt) return session.start("profile", opt, look) end

return main
-- SPDX-License-Identifier: MIT
