--- Plants faults in PTX. The kernel of a script, or of spec/ptx/kernels.lua, is
-- compiled once; each fault changes a copy of its PTX.
local core = require "cute.core"
local check = require "cutelua.check"
local cute = require "cute"
local faults = require "spec.faults"
local kernel = require "cute.lang.kernel"
local kernels = require "spec.ptx.kernels"
local report = require "cute.lang.report"
local support = require "spec.support"
local through = require "spec.ptx.through"

local plant = {}

local BOUNDS = {gpu = false, orders = 40, seconds = 10}

---------------------------------------------------------------------------
-- Kernels
---------------------------------------------------------------------------

-- Returns the program and the options of a script's first launch.
local function first_launch(words)
  local list = {}
  for word in words:gmatch "%S+" do list[#list + 1] = word end
  local path = ("scripts/%s.lua"):format(table.remove(list, 1))
  local saved, before = arg, kernel.runner
  local program, launch
  kernel.runner = {run = function(p, l)
    program, launch = p, l
    error(faults.STOP, 0)
  end}
  _G.arg = table.move(list, 1, #list, 1, {[0] = path})
  local ok, why = pcall(support.quietly, assert(loadfile(path)))
  _G.arg, kernel.runner = saved, before
  assert(launch, ok or tostring(why))
  return program, launch
end

-- Returns a base for faults: {ptx = the PTX of a script's first kernel, check =
-- a function that checks the script's first launch with changed PTX}.
local function of_script(words)
  local program, launch = first_launch(words)
  return {ptx = assert(through.ptx(program, program.arch)),
          check = function(text)
    local p, own = through.launch(program, launch, text, {lines = "ptx"})
    return check.launch(p, own, BOUNDS)
  end}
end

local function of_cuda(name)
  local k
  for _, other in ipairs(kernels) do k = other.name == name and other or k end
  local made = assert(core.jit_compile(kernels.source(k), "compute_90a",
                                       {"-lineinfo", "-default-device"}))
  local n = math.min(k.most or 65, 65)
  return {ptx = made.ptx or made.cubin, check = function(text)
    local call = cute.ptx(text):kernel(name, {smem = k.smem, lines = "ptx"})(
      table.unpack((k.args(n))))
    local launch = kernels.launch(k, n)
    for key, v in pairs(BOUNDS) do launch[key] = v end
    launch.device = "sim:sm_90a"
    return call:check(launch)
  end}
end

local bases = {}

--- Returns the base for a kernel. The name is "script: NAME WORDS" for a script
-- with arguments, or the name of a kernel in spec/ptx/kernels.lua.
---@param name string
---@return {ptx: string, check: fun(text: string): table}
function plant.base(name)
  if not bases[name] then
    local words = name:match "^script: (.*)"
    bases[name] = words and of_script(words) or of_cuda(name)
  end
  return bases[name]
end

---------------------------------------------------------------------------
-- Changes. Each returns a function(lines) that changes the list of lines and
-- returns the number of the changed line. `p` is a pattern of a line, `n`
-- counts its occurrences.
---------------------------------------------------------------------------

local function find(lines, p, n)
  local left = n or 1
  for i, line in ipairs(lines) do
    if line:find(p) and not line:find "^%s*//" then
      left = left - 1
      if left == 0 then return i end
    end
  end
  error(("no line %d of '%s'"):format(n or 1, p))
end

--- Returns a change that removes the nth line with pattern p. (A change is a
-- function that edits a list of PTX lines and returns the number of the changed
-- line.)
function plant.drop(p, n)
  return function(lines)
    local i = find(lines, p, n)
    lines[i] = ""
    return i
  end
end

--- Returns a change that replaces `from` by `to` in the nth line with pattern
-- p.
function plant.sub(p, n, from, to)
  return function(lines)
    local i = find(lines, p, n)
    local line, count = lines[i]:gsub(from, to, 1)
    assert(count == 1 and line ~= lines[i], lines[i])
    lines[i] = line
    return i
  end
end

--- Returns a change that inserts a text before the nth line with pattern p.
function plant.before(p, n, text)
  return function(lines)
    local i = find(lines, p, n)
    lines[i] = text .. " " .. lines[i]
    return i
  end
end

--- Returns a change that removes the nth loop that waits at an mbarrier.
function plant.unwait(n)
  return function(lines)
    local i = find(lines, "mbarrier%.try_wait", n)
    local first, last = i, i
    while not lines[first]:find "begin inline" do first = first - 1 end
    while not lines[last]:find "end inline" do last = last + 1 end
    for k = first, last do lines[k] = "" end
    return i
  end
end

--- Returns a change that makes several changes. Its line is the last one's
-- line.
function plant.all(...)
  local list = {...}
  return function(lines)
    local i
    for _, change in ipairs(list) do i = change(lines) end
    return i
  end
end

---------------------------------------------------------------------------
-- Checks
---------------------------------------------------------------------------

local function split(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

-- Returns the first fault of a verdict or of an error: its kind, its lines, and
-- its text.
local function first(ok, v)
  if ok and not v.fault then return v.verdict, {}, tostring(v) end
  if ok then
    local f = v.fault
    return f.kind, {f.line, f.line2 ~= 0 and f.line2 or nil}, tostring(v)
  end
  local text = type(v) == "string" and v or report.outcome(v) or tostring(v)
  local line, kind = text:match "^%S-:(%d+): [^\n]*%[([%l-]+)%]"
  local other = text:match "of line (%d+)" or text:match "in line (%d+)"
  return kind or "error", {tonumber(line), tonumber(other)}, text
end

--- Plants a fault and checks the kernel. Returns {kind =, lines = {line, other
-- line}, text =, at = the changed line, source = the lines of the PTX}.
---@param name string of a kernel
---@param change? function
---@return table
function plant.run(name, change)
  local base = plant.base(name)
  local lines = split(base.ptx)
  local at = change and change(lines)
  local ok, v = pcall(base.check, table.concat(lines, "\n"))
  local kind, found, text = first(ok, v)
  return {kind = kind, lines = found, text = text, at = at, source = lines}
end

--- Reports whether a finding names the right line. This is the changed line, or
-- a line that matches the pattern `want`.
---@param r table of plant.run
---@param want string patterns, separated by blanks; "here": the changed line
---@return boolean
function plant.right(r, want)
  for _, line in pairs(r.lines) do
    for p in want:gmatch "%S+" do
      if p == "here" and line == r.at then return true end
      if p ~= "here" and (r.source[line] or ""):find(p) then return true end
    end
  end
  return false
end


return plant
-- SPDX-License-Identifier: MIT
