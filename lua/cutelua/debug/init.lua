--- A debugger for kernels on the simulator that runs forward and backward.
--
-- A session numbers the instructions of a launch in the order in which the
-- simulator executes them. The same seed reproduces the same order. To go back,
-- the debugger restores memory, restarts the launch and runs it up to an
-- earlier step.
--
-- A function drives a session: either the prompt (cutelua.debug.prompt) or a
-- function of the script. It is a coroutine, which is resumed at each stop.
local core = require "cute.core"
local locals = require "cutelua.debug.locals"
local memory = require "cutelua.program.memory"
local show = require "cutelua.debug.show"
local simreport = require "cute.lang.simreport"
local source = require "cute.lang.source"

local debugger = {}

local Session = {}
Session.__index = Session

local QUIT = setmetatable({}, {__tostring = function()
  return "the debugger was left"
end})

---------------------------------------------------------------------------
-- Running
---------------------------------------------------------------------------

-- Continues the launch until it meets a goal: a list of points and memory
-- changes at which to stop. Returns when the launch has stopped.
function Session:run(goal)
  goal.faults = goal.faults ~= false
  coroutine.yield(goal)
  return self.at
end

-- Runs the launch again from its beginning until it meets a goal.
function Session:rerun(goal)
  goal.back = true
  return self:run(goal)
end

local function look(self, stop)
  self.stop = stop
  self.at = stop and stop:where() or {why = "over", step = self.report.steps}
  local fault = self.at.fault
  self.at.fault = fault and simreport.sentence(fault)
  local at = self.at
  if stop and (not self.focus or at.why == "point" or at.why == "change"
    or at.why == "fault") then
    self.focus = {cta = at.cta, warp = at.warp, block = at.block,
                  lane = self.focus and self.focus.lane or 0}
  end
end

-- Runs the launch. Runs it again whenever the function that drives the session
-- goes back.
local function drive(self, options)
  local co = coroutine.create(self.drive)
  local goal, report
  local function resume()
    local ok, want = coroutine.resume(co, self)
    if not ok then error(want, 0) end
    -- The function that drives the session has returned, so the launch
    -- continues without stops.
    if coroutine.status(co) == "dead" then return {} end
    return want
  end
  options.debug = function(stop)
    look(self, stop)
    goal = resume()
    return not goal.back and goal
  end
  goal = {["until"] = 1}
  repeat
    goal.back = nil
    options.goal = goal
    report = core.sim_run(self.fn, options)
    if not goal.back then
      self.report = report
      look(self, nil)
      if coroutine.status(co) ~= "dead" then
        goal = resume()
        -- The run has ended, so only a goal that goes back can still be met.
        while not goal.back and coroutine.status(co) ~= "dead" do
          goal = resume()
        end
      end
    end
    if goal.back then self.restore() end
  until not goal.back
  return report
end

---------------------------------------------------------------------------
-- Navigation
---------------------------------------------------------------------------

-- Returns a goal: a table of points and memory changes at which the run stops.
-- It has all breakpoints and watchpoints, and the points in `more`.
function Session:goals(more)
  local goal = {points = {}, changes = {}}
  for _, p in ipairs(more or {}) do goal.points[#goal.points + 1] = p end
  for _, b in ipairs(self.breaks) do
    local list = b.line and goal.points or goal.changes
    list[#list + 1] = b
  end
  self.watched = goal.changes
  return goal
end

-- Returns the points where the warp in focus stops: at the beginning of each
-- line or, if `every` is true, at each instruction.
local function of_focus(self, every)
  local f = self.focus
  return {{cta = f.cta, warp = f.warp, every = every}}
end

local function repeated(n, f)
  for _ = 1, n or 1 do
    if not f() then return false end
  end
  return true
end

function Session:is_over() return self.at.why == "over" end

local function forward(self, every, n)
  return repeated(n, function()
    if self:is_over() then return false end
    self:run(self:goals(of_focus(self, every)))
    return not self:is_over()
  end)
end

-- Goes back to the last position before the current one at which a goal is met;
-- returns false if there is none.
local function backward(self, goal)
  local now = self.at.step
  if now <= 1 then return false end
  goal["until"], goal.recall, goal.faults = now, true, false
  local met = self:rerun(goal).met
  self:rerun {["until"] = met and met.step or now, faults = false}
  if met then self.focus.cta, self.focus.warp = self.at.cta, self.at.warp end
  return met
end

local function back(self, every, n)
  local focus = {self.focus.cta, self.focus.warp}
  return repeated(n, function()
    local met = backward(self, {points = of_focus(self, every)})
    self.focus.cta, self.focus.warp = focus[1], focus[2]
    return met
  end)
end

--- Runs the warp in focus to its next line, or to the n-th next; returns false
-- at the end of the launch.
---@param n? integer
function Session:step(n) return forward(self, false, n) end

--- Runs the warp in focus to its next instruction, or to the n-th next.
---@param n? integer
function Session:stepi(n) return forward(self, true, n) end

--- Takes the warp in focus back to its previous line, or n lines back; returns
-- false at the beginning of the launch.
---@param n? integer
function Session:back(n) return back(self, false, n) end

--- Takes the warp in focus back to its previous instruction, or n instructions
-- back.
---@param n? integer
function Session:backi(n) return back(self, true, n) end

--- Continues to the next breakpoint, watchpoint or fault; returns false at the
-- end of the run.
function Session:continue()
  if self:is_over() then return false end
  self:run(self:goals())
  return not self:is_over()
end

--- Goes back to the most recent breakpoint or watchpoint; returns false if
-- there is none.
function Session:reverse() return backward(self, self:goals()) end

--- Goes to instruction number n of the run.
---@param n integer 1 is the first
function Session:go(n)
  if math.type(n) ~= "integer" or n < 1 then
    core.fail("bad-argument", ("step %s; steps count from "
      .. "1"):format(tostring(n)))
  end
  local goal = {["until"] = n, faults = false}
  if n > self.at.step and not self:is_over() then self:run(goal)
  elseif n ~= self.at.step or self:is_over() then self:rerun(goal) end
  if not self:is_over() then
    self.focus.cta, self.focus.warp = self.at.cta, self.at.warp
    self.focus.block = self.at.block
  end
  return not self:is_over()
end

---------------------------------------------------------------------------
-- Breakpoints
---------------------------------------------------------------------------

local function new_break(self, b)
  self.count = self.count + 1
  b.number = self.count
  self.breaks[#self.breaks + 1] = b
  return b.number
end

-- Returns the source chunk of the kernel whose short file name is `name`;
-- raises an error if there is none.
local function chunk_of(self, name)
  local found
  for _, chunk in ipairs(self.chunks) do
    if source.short(chunk) == name or chunk:sub(2) == name then
      found = chunk
    end
  end
  if not found then
    local names = {}
    for i, chunk in ipairs(self.chunks) do names[i] = source.short(chunk) end
    core.fail("unknown-name", ("no line of '%s' is in this kernel: its lines "
      .. "are in %s"):format(name, table.concat(names, ", ")))
  end
  return found
end

--- Sets a breakpoint at the beginning of a line.
---@param line integer
---@param where? {file: string, cta: integer, warp: integer} restricts where it
-- stops; an absent field allows any value
---@return integer number of the breakpoint
function Session:breakpoint(line, where)
  where = where or {}
  local file = where.file and chunk_of(self, where.file) or self.chunks[1]
  local known = self.lines[file]
  if not known[line] then
    local near
    for n in pairs(known) do
      if n >= line and (not near or n < near) then near = n end
    end
    core.fail("bad-argument", ("%s:%d has no instruction%s"):format(
      source.short(file), line, near and (", the next line with one is %d")
      :format(near) or ""))
  end
  return new_break(self, {file = file, line = line, cta = where.cta,
                          warp = where.warp})
end

--- Sets a watchpoint: runs stop when an element of a tensor changes, or when
-- its value is stored again.
---@param what string such as "sA(3,5)"
---@return integer number
function Session:watch(what)
  local e = show.element(self, what)
  e.text = what
  return new_break(self, e)
end

--- Deletes the breakpoint or watchpoint with this number; without a number,
-- deletes all breakpoints and watchpoints.
---@param number? integer
---@return boolean there was one
function Session:delete(number)
  for i = #self.breaks, 1, -1 do
    if not number or self.breaks[i].number == number then
      table.remove(self.breaks, i)
      if number then return true end
    end
  end
  return not number
end

--- Returns the last change of an element before the current position, in the
-- form of session.at: its step and its writer. The field `warp` is -1 if the
-- writer is an agent (asynchronous hardware such as TMA). Returns nil if the
-- element did not change.
---@param what string such as "sA(3,5)"
---@return table? at
function Session:last(what)
  local e = show.element(self, what)
  local now, focus = self.at.step, self.focus
  local met = self:rerun {["until"] = now, recall = true, faults = false,
                          changes = {e}}.met
  self.focus = focus
  return met
end

---------------------------------------------------------------------------
-- Inspecting
---------------------------------------------------------------------------

--- Moves the focus to another thread. cta is the block's number in launch
-- order; warp and lane select the thread in the block.
---@param cta? integer
---@param warp? integer
---@param lane? integer
function Session:look(cta, warp, lane)
  local f = self.focus
  self.focus = {cta = cta or f.cta, warp = warp or f.warp,
                lane = lane or f.lane}
  if not self:is_over() then
    local ok, why = pcall(self.stop.value, self.stop, nil, self.focus.cta,
                          self.focus.warp, self.focus.lane)
    if not ok then
      self.focus = f
      error(why, 0)
    end
  end
end

--- Returns the names that are visible at the focus, as {name = its value in the
-- trace}. The end of a warp has no instruction in the trace; it counts as a
-- position after all instructions.
function Session:names()
  local at = self:seat()
  local is_end = at.ref == 0 and at.op
  return self.locals:at(is_end and math.huge or at.ref or 0, at.file, at.line)
end

-- Returns the position of the warp in focus: the instruction that it executes,
-- or at which it waits.
function Session:seat()
  local f, at = self.focus, self.at
  if self:is_over() or at.cta == f.cta and at.warp == f.warp then return at end
  for _, w in ipairs(self.stop:warps()) do
    if w.cta == f.cta and w.warp == f.warp then return w end
  end
  return at
end

--- Returns the value of an expression as text: a local, `smem.A`, `sA(3,5)`.
---@param what string
---@return string
function Session:print(what) return show.print(self, what) end

--- Each of these methods returns text about the current stop: where() the
-- position, warps() all warps of the cluster, bars() the barriers, source() the
-- lines around the position.
function Session:where() return show.where(self) end
function Session:warps() return show.warps(self) end
function Session:bars() return show.bars(self) end
function Session:source(n) return show.source(self, n) end

--- Leaves the debugger and ends the launch. Memory gets the contents that it
-- had before the launch.
function Session:quit() -- luacheck: no self
  error(QUIT, 0)
end

---------------------------------------------------------------------------
-- Starting
---------------------------------------------------------------------------

-- Sets self.chunks, the source chunks with code of the kernel, the kernel's own
-- chunk first. Sets self.lines, the lines of each chunk that have instructions.
local function lines_of(self)
  self.lines, self.chunks = {}, {}
  for _, at in ipairs(self.fn:lines()) do
    local file, line = at[1], at[2]
    if not self.lines[file] then
      self.lines[file] = {}
      self.chunks[#self.chunks + 1] = file
    end
    self.lines[file][line] = true
  end
end

--- Debugs launches on the simulator while f runs. For each launch that `wanted`
-- selects, calls `drive_it` with a session. Kernels that are traced in the
-- meantime record their locals.
---@param drive_it fun(session: table)
---@param wanted fun(name: string): boolean
---@param f fun(...)
---@return boolean left true if session:quit() ended f
---@return any ... results of f
function debugger.during(drive_it, wanted, f, ...)
  local kernel = require "cute.lang.kernel"
  local before = kernel.runner
  kernel.runner = {
    record = locals.new,
    run = function(program, options)
      if not wanted(program.info.name) then
        return core.sim_run(program.fn, options)
      end
      local self = setmetatable({fn = program.fn, drive = drive_it,
        name = program.info.name, locals = program.locals, breaks = {},
        count = 0, at = {step = 0},
        restore = memory.keep(program, options.args)}, Session)
      lines_of(self)
      options.progress = nil
      local ok, report = pcall(drive, self, options)
      if ok then return report end
      self.restore()
      error(report, 0)
    end}
  local out = table.pack(pcall(f, ...))
  kernel.runner = before
  if out[1] then return false, table.unpack(out, 2, out.n) end
  if out[2] == QUIT then return true end
  error(out[2], 0)
end

--- Debugs one launch of a kernel on the simulator. If the last argument is a
-- function, it drives the debugger; otherwise the debugger's prompt reads
-- commands:
--
--     cute.debug(add, A, B, C, {grid = 8, block = 128})
--     cute.debug(add, A, B, C, {grid = 8, block = 128}, function(s)
--       s:breakpoint(12)
--       s:continue()
--       print(s:print "tAgA(0,1)")
--     end)
---@param k table a kernel
---@param ... any the kernel's arguments, then the launch's options
---@return table? report of the launch; nil after session:quit()
function debugger.debug(k, ...)
  local args = table.pack(...)
  local drive_it = type(args[args.n]) == "function" and args[args.n] or nil
  if drive_it then args.n = args.n - 1 end
  local opts = {}
  for name, v in pairs(args[args.n] or {}) do opts[name] = v end
  opts.device = opts.device or "sim"
  local left, report = debugger.during(
    drive_it or require "cutelua.debug.prompt".run, function() return true end,
    function()
      return k(table.unpack(args, 1, args.n - 1)):launch(opts)
    end)
  return not left and report or nil
end

return debugger
-- SPDX-License-Identifier: MIT
