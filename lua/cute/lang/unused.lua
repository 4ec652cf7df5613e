--- Detects calls of kernels, of cute.compile and of cute.ops whose result is
-- not used. An example is `add(x, y)`, where `add(x, y):launch {...}` is meant.
-- Only the first call of a kernel is recorded, so later calls cost one field
-- access. Also detects iterators that a kernel makes outside of a `for`, such
-- as `cute.when(c)` or `cute.range(n)`. Also keeps the parts of inputs that
-- launches did not read.
local bytecode = require "cute.lang.bytecode"
local core = require "cute.core"
local sign = require "cute.lang.signature"
local source = require "cute.lang.source"
local words = require "cute.lang.report"

local unused = {}

--- The calls without an effect so far: {[key] = {place = line of the script,
-- kind = "called", "compiled" or "discarded", name = name of the kernel or
-- function}}. The key is the kernel, the field `unlaunched` of the prepared
-- launch, or the place.
unused.places = {}

--- Whether a comparison found wrong results. Kernel calls without a launch are
-- then reported even if the script fails, because they may be the cause.
unused.wrong = false

--- The parts of inputs that the latest launch of each kernel never read, but
-- that the kernel may omit on purpose: {[name of the kernel] = the report's
-- list `skipped`}. A comparison that finds wrong results prints them, because
-- they may be the cause. Every comparison empties this table.
unused.skipped = {}

-- Returns the script's line that made the current call, as "file:line" and as
-- the result of debug.getinfo. Returns nil if there is none.
local function caller()
  for level = 4, 13 do
    local info = debug.getinfo(level, "Sl")
    if not info then return end
    if info.currentline > 0 and not core.own_source(info.source) then
      return ("%s:%d"):format(info.short_src, info.currentline), info
    end
  end
end

local function record(key, kind, name)
  local place = caller()
  unused.places[key] = place and {place = place, kind = kind, name = name}
end

--- Records the line of the script at which kernel k is called.
function unused.note(k)
  k.called = true
  record(k, "called", k.name)
end

--- Records the line of the script that prepares a launch of a kernel for the
-- simulator.
---@param p table prepared launch
---@param name string the kernel's name
function unused.prepared(p, name)
  p.unlaunched = {}
  record(p.unlaunched, "compiled", name)
end

--- Marks a prepared launch as used: launched or inspected.
function unused.launched(p)
  local key = rawget(p, "unlaunched")
  if key then
    unused.places[key], p.unlaunched = nil, nil
  end
end

--- Records the report of a successful launch on the simulator.
---@param report table
function unused.observed(report)
  local list = report.skipped
  unused.skipped[report.kernel] = list and list[1] and list or nil
end

-- Returns the public function that a statement calls at a stack level, if the
-- statement ignores the results and passes no option `out`. Returns nil for
-- other calls.
local function discarding(level, f)
  if not bytecode.known() then return end
  local flow, at = bytecode.flow(f), core.vm_at(level + 1)
  if not (flow and at and flow.op[at] == bytecode.OP.CALL
      and flow.c[at] == 1) then return end
  local a = flow.a[at]
  local _, callee = debug.getlocal(level + 1, a + 1)
  for n = a + 2, flow.b[at] > 0 and a + flow.b[at] or a + 1 do
    local _, given = debug.getlocal(level + 1, n)
    if type(given) == "table" and rawget(given, "out") ~= nil then return end
  end
  return type(callee) == "function" and flow.b[at] > 0
    and core.signature(callee)
end

-- Finds the script's line that makes the current call. If the line ignores the
-- results of the public function that it calls, returns the function's
-- signature, and the result of debug.getinfo for the line; otherwise returns
-- nil. If `main` is true, only lines of the main chunk count.
local function discarded(main)
  for level = 3, 40 do
    local info = debug.getinfo(level, "Sfl")
    if not info then return end
    if info.what ~= "C" and not core.own_source(info.source) then
      if main and info.what ~= "main" then return end
      return discarding(level, info.func), info
    end
  end
end

--- Called by a function of cute.ops that makes a result. If a line of the
-- script's main chunk called the function and ignores the result, records this
-- line.
function unused.result()
  local called, info = discarded(true)
  if called and called:find "^ops%." then
    local place = ("%s:%d"):format(info.short_src, info.currentline)
    unused.places[place] = {place = place, kind = "discarded",
                            name = "cute." .. called:match "^[^(]+"}
  end
end

--- Writes a note if the script's line that makes the current call ignores the
-- results of the call, and these results report a failed launch.
---@param message string
function unused.failure(message)
  local called, info = discarded(false)
  if called and called:find "launch" then
    words.note(("%s:%d: faults = \"return\" raises no error, and this line "
      .. "ignores the results of the launch: %s"):format(info.short_src,
      info.currentline, message:match "^[^\n]*\n%s*([^\n]+)" or message))
  end
end

-- The iterators made so far by the kernel that is being traced: {iterator, text
-- of the call, line of the script, description of the calling function}.
local iterators = {}

--- Records an iterator of a kernel. It is marked as `begun` when a `for` first
-- calls it.
---@param iterator table
---@param what string "cute.when(c)"
function unused.iterator(iterator, what)
  -- core.hook(false) ends the recording of writes, because this list is not a
  -- table of the kernel.
  core.hook(false)
  iterators[#iterators + 1] = {iterator, what, caller()}
  core.hook(true)
end

--- Replaces the list of iterators by `those`, or by an empty list. Called with
-- nil when the trace of a kernel begins. Called with the list of the enclosing
-- kernel when the trace of an inner kernel ends.
---@param those? table[] iterators of the kernel around it
---@return table[] those until now
function unused.iterators(those)
  local before = iterators
  iterators = those or {}
  return before
end

--- Raises an error if an iterator of the kernel was never called.
function unused.check_iterators()
  for _, it in ipairs(iterators) do
    if it[3] and not it[1].begun then
      local explain = sign.workshop.idle_iterator
      error(("%s: %s"):format(it[3], explain
        and explain(it[2], source.line(it[4].source, it[4].currentline))
        or it[2] .. " is an iterator that no `for` loop uses [bad-argument]"),
        0)
    end
  end
end

--- Marks a call of kernel k as used: launched, traced or inspected.
function unused.forget(k) unused.places[k] = nil end

--- Raises the error for k(x) {grid = 1}, where `:launch` is missing.
function unused.called(call, opts)
  core.fail("bad-argument", ("kernel %s: :launch is missing before %s\n  "
    .. "write %s(...):launch {grid = g, block = b}"):format(call.kernel.name,
    core.show(opts), call.kernel.name))
end

return unused
-- SPDX-License-Identifier: MIT
