--- Finds the loops and branches of a kernel by running ordinary Lua.
--
-- `for k in cute.range(n) do ... end` runs its body once to find the locals
-- that change. Then the IR is rolled back to the beginning of the loop, these
-- locals are set to loop variables of the kernel, and the body runs again. This
-- repeats until the set of locals and the facts known about each variable no
-- longer change. `cute.loop` treats the variables that its functions assign in
-- the same way. cute.lang.branch does so for variables that a branch changes.
-- Fields of tables that the body writes are treated like locals
-- (cute.lang.fields).
local sign = require "cute.lang.signature"
local core = require "cute.core"
local branch = require "cute.lang.branch"
local bytecode = require "cute.lang.bytecode"
local lex = require "cute.lang.lex"
local dependencies = require "cute.lang.dependencies"
local regions = require "cute.lang.region"
local report = require "cute.lang.report"
local source = require "cute.lang.source"
local truth = require "cute.lang.truth"
local undefined = require "cute.lang.undefined"
local unused = require "cute.lang.unused"

local trace = {}

---------------------------------------------------------------------------
-- for k in cute.range(...)
---------------------------------------------------------------------------

local Loop = {}
Loop.__index = Loop

-- Lua calls this metamethod of the closing value when the generic `for` over
-- cute.range ends, also when it ends by an error, break or return.
function Loop:__close(err)
  if self.done then return end
  core.hook(false)
  if self.region then self.region:abandon() end
  core.hook(true)
  if err == nil then
    core.fail("loop-exit", "break, return or goto out of a traced loop: its "
      .. "body is traced once for all iterations\n  cute.break_if(condition) "
      .. "leaves the loop")
  end
end

-- The iterator function of a `for` over cute.range. Its caller is the function
-- that contains the loop.
local function next_pass(loop)
  if getmetatable(loop) ~= Loop then
    core.fail("bad-argument", "cute.range was called outside a for loop: write "
      .. "`for k in cute.range(n) do`")
  end
  local level = 2
  core.hook(false)
  if not loop.region then
    loop.begun = true
    local view = regions.collect(level)
    loop.region = regions.open("this loop", regions.place(level), view)
    loop.region.leavable, loop.region.loop = "loop", loop
    loop.region:start(level)
  elseif not loop.region:again(level) then
    loop.region:leave(level)
    loop.done = true
    core.hook(true)
    return nil
  end
  loop.region:rewind(level)
  loop.region:declare()
  local k = core.open_for(loop.lo, loop.hi, loop.step, loop.unroll)
  loop.region:enter(level)
  core.hook(true)
  return k
end

local function host_range(lo, hi, step)
  local i = lo - step
  return function()
    i = i + step
    if step > 0 and i < hi or step < 0 and i > hi then return i end
  end
end

local function limits(what, a, b, step, opts)
  if type(b) == "table" then a, b, step, opts = a, nil, nil, b end
  if type(step) == "table" then step, opts = nil, step end
  if b == nil then a, b = 0, a end
  step = step or 1
  local given = {a, b, step}
  for i = 1, 3 do
    local v = given[i]
    if math.type(v) ~= "integer" and core.typename(v) ~= "value" then
      core.fail("bad-argument", ("%s: a limit is %s, not an integer%s")
        :format(what, core.show(v), math.type(v) == "float" and "\n  write a "
        .. "// b for an integer: a / b is a float" or ""))
    end
  end
  if step == 0 then
    core.fail("bad-argument", what .. ": the step must not be 0")
  end
  opts = opts or {}
  core.check_options(opts, "unroll")
  local v = opts.unroll
  if v ~= nil and (math.type(v) ~= "integer" or v < 1 or v > 1024) then
    core.fail("bad-argument", ("%s: unroll = %s: 1 to 1024 expected")
      :format(what, tostring(v)))
  end
  return a, b, step, opts
end

--- Makes a loop on the device: `for k in cute.range(n) do`, or `cute.range(lo,
-- hi[, step])`. The counter runs from lo to hi - 1. Outside a kernel it is a
-- plain loop.
--
--     k = cute.kernel(function(x, y, n)
--       local sum = 0.0
--       for i in cute.range(n) do sum = sum + x[i] end
--       y[0] = sum
--     end)
--     x, y = cute.ones({100}, cute.f32), cute.zeros({1}, cute.f32)
--     k(x, y, 100):launch {grid = 1, block = 1, device = "sim"}
--     y(0)  --> 100.0
---@param a integer|cute.Value hi, or lo when b is given
---@param b? integer|cute.Value
---@param step? integer positive
---@param opts? {unroll: integer} factor for the compiler
function trace.range(a, b, step, opts)
  local lo, hi, by, o = limits("cute.range", a, b, step, opts)
  if not core.tracing() then return host_range(lo, hi, by) end
  local loop = setmetatable({lo = lo, hi = hi, step = by,
                             unroll = o.unroll or 0}, Loop)
  unused.iterator(loop, "cute.range(n)")
  return next_pass, loop, nil, loop
end

--- Makes a loop that is unrolled while tracing. Its limits are Lua integers.
function trace.range_constexpr(a, b, step)
  local lo, hi, by = limits("cute.range_constexpr", a, b, step)
  for _, v in ipairs {lo, hi, by} do
    if not math.type(v) then
      core.fail("needs-static", "cute.range_constexpr: a limit is traced\n  "
        .. "write cute.range(...) for a traced loop")
    end
  end
  return host_range(lo, hi, by)
end

---------------------------------------------------------------------------
-- cute.loop, cute.var
---------------------------------------------------------------------------

-- Runs a function of cute.loop and raises an error if it returns results: they
-- would be lost, and its `return` would not leave the kernel.
local function run_body(f)
  if select("#", f()) > 0 then
    core.fail("bad-argument", "cute.loop: the function returned a value, which "
      .. "is not used\n  assign it to a local of the kernel, which keeps its "
      .. "value after the loop")
  end
end

local function condition(c)
  if type(c) == "boolean" or core.typename(c) == "value"
    and core.dtype_of(c) == core.boolean then return c end
  core.fail("type-mismatch", ("cute.loop: the condition is %s, not a boolean")
    :format(core.typename(c) == "value" and tostring(core.dtype_of(c))
    or core.typename(c)))
end

--- Repeats body on the device while cond() is true.
--
--     k = cute.kernel(function(y, n)
--       local i = n
--       cute.loop(function() return i:gt(1) end, function() i = i // 2 end)
--       y[0] = i
--     end)
--     y = cute.zeros({1}, cute.i32)
--     k(y, 100):launch {grid = 1, block = 1, device = "sim"}
--     y(0)  --> 1
---@param cond fun(): cute.Value
---@param body fun()
function trace.loop(cond, body)
  if not core.tracing() then
    while cond() do body() end
    return
  end
  branch.check_idle("cute.loop", body)
  core.hook(false)
  local region <close> = regions.open("cute.loop", regions.call_place "loop ",
                                      regions.collect(nil, {cond, body}))
  region.leavable = "loop"
  region:start(1)
  repeat
    region:rewind(1)
    region:declare()
    core.open_loop()
    region:enter(1)
    core.hook(true)
    core.break_unless(condition(cond()))
    run_body(body)
    core.hook(false)
  until not region:again(1)
  region:leave(1)
  core.hook(true)
end

---------------------------------------------------------------------------
-- Leaving loops, helpers and the kernel
---------------------------------------------------------------------------

-- Checks the condition of cute.break_if or cute.return_if. Returns nil if the
-- condition is never true; else true or a traced boolean.
local function leaving(what, cond)
  local v = cond
  if core.typename(v) == "value" and core.dtype_of(v) == core.boolean then
    local known = core.known(v)
    if known == nil then return v end
    v = known
  end
  if type(v) ~= "boolean" then
    core.fail("type-mismatch", ("%s: the condition is %s, not a boolean")
      :format(what, core.typename(v) == "value" and tostring(core.dtype_of(v))
      or core.typename(v)))
  end
  return v or nil
end

--- Leaves the innermost traced loop if the condition is true. Locals keep the
-- values that were assigned so far.
--
--     k = cute.kernel(function(y, n)
--       local last = 0
--       for i in cute.range(n) do
--         last = i
--         cute.break_if((i * i):gt(50))
--       end
--       y[0] = last
--     end)
--     y = cute.zeros({1}, cute.i32)
--     k(y, 100):launch {grid = 1, block = 1, device = "sim"}
--     y(0)  --> 8
---@param cond boolean|cute.Value
function trace.break_if(cond)
  local region = core.tracing() and regions.innermost()
  if not region or region.leavable ~= "loop" then
    core.fail("loop-exit", ("cute.break_if(%s): it is not inside a traced loop "
      .. "(cute.range, cute.loop)"):format(core.show(cond)))
  end
  cond = leaving("cute.break_if", cond)
  if cond == nil then return end
  core.hook(false)
  region:leave_if(cond)
  core.hook(true)
end

-- On the host, cute.return_if leaves a function made by cute.func by raising a
-- table with the results. This is the table's metatable.
local Left = {}
-- The number of functions made by cute.func that are running on the host now.
local on_host = 0

--- Leaves the innermost function made by cute.func if the condition is true.
-- The function then returns the results `...`. Outside of such a function,
-- return_if ends the thread.
---@param cond boolean|cute.Value
---@param ... any
function trace.return_if(cond, ...)
  cond = leaving("cute.return_if", cond)
  if cond == nil then return end
  if not core.tracing() then
    if on_host == 0 then
      core.fail("not-tracing", "cute.return_if works only inside a kernel or a "
        .. "function created by cute.func")
    end
    error(setmetatable(table.pack(...), Left), 0)
  end
  local region = regions.innermost()
  while region and region.leavable ~= "func" do region = region.outer end
  if region then
    core.hook(false)
    region:leave_if(cond, table.pack(...))
    core.hook(true)
    return
  end
  if select("#", ...) > 0 then
    core.fail("bad-argument", "cute.return_if: a kernel cannot return "
      .. "values\n  write cute.func(function(...) ... end) for a function that "
      .. "returns early")
  end
  core.leave_if(cond)
end

local function call_on_host(f, ...)
  on_host = on_host + 1
  local result = table.pack(pcall(f, ...))
  on_host = on_host - 1
  if not result[1] then
    result = result[2]
    if getmetatable(result) ~= Left then error(result, 0) end
    return table.unpack(result, 1, result.n)
  end
  return table.unpack(result, 2, result.n)
end

-- The largest number of nested calls of one function made by cute.func.
local MAX_CALLS = 256

-- Raises an error if f, a function made by cute.func, calls itself more than
-- MAX_CALLS deep.
local function check_recursion(f)
  local n, region = 0, regions.opened()
  while region do
    if region.func == f then n = n + 1 end
    region = region.outer
  end
  if n >= MAX_CALLS then
    core.fail("limit", ("cute.func: this function called itself %d times: a "
      .. "traced condition never ends a recursion\n  write cute.loop(cond, "
      .. "body), or end the recursion by a number that Lua knows"):format(n))
  end
end

local function call_traced(f, ...)
  local args = table.pack(...)
  core.hook(false)
  check_recursion(f)
  local region <close> = regions.open("cute.func", regions.call_place "func ",
                                      regions.collect(nil, {f}))
  region.leavable, region.results, region.func = "func", {}, f
  region:start(1)
  local results
  repeat
    region:begin_once()
    core.hook(true)
    results = table.pack(f(table.unpack(args, 1, args.n)))
    core.hook(false)
    -- The function has no early return, so it needs no region.
    if region.exits == 0 then
      region:rewind(1)
      region:finish()
      core.hook(true)
      return f(table.unpack(args, 1, args.n))
    end
  until not region:end_once(results)
  results = table.pack(region:finish_once())
  core.hook(true)
  return table.unpack(results, 1, results.n)
end

--- Makes a function that cute.return_if(condition, results...) can leave early.
-- Its assignments to outer variables take effect.
--
--     sign = cute.func(function(x)
--       cute.return_if(cute.lt(x, 0), -1)
--       return 1
--     end)
--     sign(-5), sign(5)  --> -1, 1
---@param f function
---@return function
function trace.func(f)
  local function helper(...)
    if not core.tracing() then return call_on_host(f, ...) end
    return call_traced(f, ...)
  end
  regions.helpers[helper] = f
  return helper
end

local Var = {}

--- Raises [type-mismatch] if a cute.var `v` itself is compared or converted,
-- instead of its number `v.value`.
local function bare()
  core.fail("type-mismatch", "a cute.var was used as a number\n  write v.value "
    .. "for its current value")
end
for event in ([[add sub mul div idiv mod pow unm band bor bxor shl shr bnot
  concat lt le eq]]):gmatch "%l+" do Var["__" .. event] = bare end
for event in ("lt le gt ge eq ne to bitcast"):gmatch "%l+" do
  Var[event] = bare
end

function Var.__index(self, k)
  if k == "value" then return core.vget(rawget(self, 1)) end
  return Var[k]
end

function Var.__newindex(self, k, v)
  if k ~= "value" then
    core.fail("unknown-name", "a cute.var has only the field 'value'")
  end
  core.vset(rawget(self, 1), v)
end

--- Returns the variable's current number: `v.value`.
function Var:get() return core.vget(rawget(self, 1)) end
--- Sets the variable to another number: `v.value = x`.
function Var:set(v) core.vset(rawget(self, 1), v) end
function Var.__tostring() return "cute.var" end

sign.class("var", Var, [[
  get() set(x: number|boolean|value) lt(other) le(other) gt(other) ge(other)
  eq(other) ne(other) to(dtype) bitcast(dtype)
]])

--- Makes an explicit mutable scalar: `local v = cute.var(0); v.value = v.value
-- + 1`.
--
--     k = cute.kernel(function(y)
--       local v = cute.var(0)
--       for i in cute.range(5) do v.value = v.value + i end
--       y[0] = v.value
--     end)
--     y = cute.zeros({1}, cute.i32)
--     k(y):launch {grid = 1, block = 1, device = "sim"}
--     y(0)  --> 10
---@param x number|cute.Value initial value
---@param dtype? cute.DType its type (that of x when absent)
function trace.var(x, dtype)
  return setmetatable({core.var(x, dtype)}, Var)
end

---------------------------------------------------------------------------
-- Running a trace
---------------------------------------------------------------------------

-- The names that each line of a chunk assigns: for each chunk name, {text =,
-- lines =}. A file is read once. The text of a chunk whose name begins with "="
-- (the prompt) may change. Each text given to `load` is a chunk of its own,
-- named by the text, so the cache is cleared when it has LEXED entries.
local LEXED = 256
local lexed, lexed_count = {}, 0

local function assigned_in(chunk)
  local known = lexed[chunk]
  if known and chunk:sub(1, 1) ~= "=" then return known.lines end
  local text = source.text(chunk) or ""
  if not known or known.text ~= text then
    if lexed_count == LEXED then lexed, lexed_count = {}, 0 end
    known = {text = text, lines = lex.assigned(text)}
    lexed[chunk], lexed_count = known, lexed_count + 1
  end
  return known.lines
end

-- The result of bytecode.known(), or nil until it was called.
local known

local function is_known()
  if known == nil then
    known = bytecode.known()
    if not known then
      io.stderr:write("cutelua: warning: this Lua's bytecode is not that of "
        .. "Lua 5.4: == and ~= on traced values are not detected, and changes "
        .. "to table fields in loops are lost\n")
    end
  end
  return known
end

-- Rewrites Lua's message about a yield. Adds advice to a message that may be
-- about a traced value.
local function explain(message)
  if type(message) == "string" and message:find "attempt to yield" then
    local _, why = pcall(core.fail, "inside-kernel", "coroutine.yield outside "
      .. "of a coroutine of the kernel: a kernel is traced at once, and cannot "
      .. "be suspended")
    return why
  end
  if type(message) ~= "string" or message:find("%[[%l-]+%]")
    or not (message:find "cute%.value" or message:find "'for' "
            or message:find "%(field '%?'%)") then
    return message
  end
  local advise = sign.workshop.traced
  return advise and advise(message) or message
end

-- Reports whether a message of Lua is about a traced number where Lua needs a
-- plain one. in_table: whether the arguments include numbers in tables, which
-- the script may have assumed to be constants.
local function is_static(message, in_table)
  return message:find "%[needs%-static%]" or message:find "got traced "
    or message:find "= traced .- expected" or message:find "got cute%.value"
    or in_table and message:find "%[traced%-in%-lua%]"
end

-- Checks a call f(g()), in which f receives all results of g. Returns an error
-- message if f should not receive some of them, else nil.
local function surplus(...)
  local check = sign.workshop.surplus
  return check and check(...)
end

--- Traces func as kernel `name` with these arguments. If an error occurs,
-- opts.missing(about_nil) returns a sentence about missing arguments, or nil.
-- If the error is about nil, the sentence may name an argument that is nil.
-- - opts.numbers: whether some arguments are numbers.
-- - opts.in_table: whether some of these numbers are in tables.
-- - opts.held: see dependencies.take.
---@return userdata fn, table read the record of cute.lang.dependencies
function trace.run(name, func, opts, ...)
  local ran, elements = {}, {n = 0}
  opts.state = {watched = {}, lines = {}, memo = {}, ran = ran,
                accumulate = {}, tiled = {}, scales = {}, left = {},
                undefined = {holders = setmetatable({}, {__mode = "k"}),
                             tested = regions.tested, read = undefined.read},
                elements = elements, lex = assigned_in, known = is_known(),
                constant = bytecode.constant, surplus = surplus,
                truth = truth.check, kernel = func, record = opts.record}
  local before = regions.begin(opts.state)
  local function handler(message)
    message = explain(message)
    local about_nil = type(message) == "string"
      and message:find "%f[%a]nil%f[%A]" ~= nil
    local missing = (about_nil or report.parse(tostring(message)).kind)
      and opts.missing(about_nil)
    if missing then message = message .. "\n  " .. missing end
    if opts.numbers and type(message) == "string"
      and is_static(message, opts.in_table) then
      message = message .. "\n  pass an argument that Lua must know as "
        .. "cute.constexpr(n)"
    end
    if report.keep then return report.keep(message, name) end
    return message
  end
  if report.keep then report.keep(nil) end
  local outer = unused.iterators()
  local strays = sign.workshop.strays
  local stray = strays and strays(name, func)
  local ok, fn = pcall(core.trace, name, func, opts, handler, ...)
  if ok or type(fn) == "string" and fn:find("[unused-boolean]", 1, true) then
    local used, why = xpcall(unused.check_iterators, handler)
    if not used then ok, fn = false, why end
  end
  unused.iterators(outer)
  if stray then stray:look() end
  -- With opts.record, nothing is restored, so that the debugger can still show
  -- the values of the trace.
  if not opts.record then regions.restore() end
  regions.begin(before)
  if stray then stray:tell() end
  if not ok then error(fn, 0) end
  local read = dependencies.take(func, opts.held, ran)
  read.elements = elements
  return fn, read
end

sign.nests(trace.loop)

return trace
-- SPDX-License-Identifier: MIT
