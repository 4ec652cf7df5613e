--- Decides whether a traced value that Lua tests (`if`, `and`, `or`, `not`,
-- `while`) could also be nil. If so, the script tests whether the variable is
-- set, as in `b = b or 1`, which is allowed. If not, the test is always true,
-- even for a value that is 0 in the kernel. The script then gets an error.
--
-- The module follows the tested register back through the function's bytecode
-- to the instructions that may have set it. The value can never be nil if each
-- of these instructions computes a number, or made this traced value by reading
-- an element or by calling a function of cute. Values from tables, globals,
-- parameters and results of helpers may be nil at other times. A parameter of
-- the kernel may be nil only if the function gives it a default.
local bytecode = require "cute.lang.bytecode"
local core = require "cute.core"
local sign = require "cute.lang.signature"

local truth = {}

local OP = bytecode.OP

-- Three sets of opcodes.
-- - SETS: instructions that set register A.
-- - NEVER: instructions whose result is never nil or false.
-- - MAKES: instructions that may make a traced value.
local SETS, NEVER, MAKES = {}, {}, {}
for name in ([[MOVE LOADI LOADF LOADK LOADKX LOADFALSE LFALSESKIP LOADTRUE
  GETUPVAL GETTABUP GETTABLE GETI GETFIELD NEWTABLE UNM BNOT NOT LEN CONCAT
  CLOSURE]]):gmatch "%u+" do SETS[OP[name]] = true end
for op = OP.ADDI, OP.SHR do SETS[op], NEVER[op] = true, true end
for name in ([[LOADI LOADF LOADK LOADKX NEWTABLE UNM BNOT LEN CONCAT CLOSURE
  FORLOOP FORPREP]]):gmatch "%u+" do NEVER[OP[name]] = true end
for name in ("GETTABLE GETI GETFIELD CALL TFORCALL"):gmatch "%u+" do
  MAKES[OP[name]] = true
end

-- Reports whether instruction i sets register `reg` when the next instruction
-- that runs is j.
local function sets(flow, i, j, reg)
  local op, a = flow.op[i], flow.a[i]
  if op == OP.LOADNIL then return a <= reg and reg <= a + flow.b[i] end
  if op == OP.CALL or op == OP.VARARG then return reg >= a end
  if op == OP.TFORCALL then return reg >= a + 4 end
  if op == OP.SELF then return reg == a or reg == a + 1 end
  if op == OP.FORPREP or op == OP.FORLOOP then
    return a <= reg and reg <= a + 3
  end
  return a == reg and (SETS[op] or NEVER[op] or op == OP.TESTSET
                       and j == i + 1)
end

-- Returns the set of the instructions that may have set the value that register
-- `reg` has at instruction `at`. The element -1 means that the value may be an
-- argument of the call. Also returns the set of all instructions that may run
-- between these instructions and `at`.
local function setters(flow, at, reg)
  local found, between, pending = {}, {[at] = true}, {at}
  while #pending > 0 do
    local j = table.remove(pending)
    if j == 0 then found[-1] = true end
    for _, i in ipairs(flow.before[j]) do
      if sets(flow, i, j, reg) then
        found[i] = true
      elseif not between[i] then
        between[i] = true
        pending[#pending + 1] = i
      end
    end
  end
  return found, between
end

local always

-- Returns the innermost local called `name` in the function at a stack level,
-- and the local's value.
local function find_local(level, name)
  local found, held
  for n = 1, math.huge do
    local known, v = debug.getlocal(level + 1, n)
    if not known then return found, held end
    if known == name then found, held = n, v end
  end
end

-- Reports whether upvalue n of f can never be nil or false (see `always`). The
-- upvalue is a local of a function on the stack that called f.
local function always_above(f, n, value, state)
  local name, inside = debug.getupvalue(f, n), false
  if name == "(no name)" then return false end
  for level = 2, 60 do
    local info = debug.getinfo(level, "fS")
    if not info then return false end
    if inside and info.what ~= "C" then
      local slot, held = find_local(level, name)
      if slot and rawequal(held, value) then
        return always(info.func, core.vm_at(level), slot - 1, value, state)
      end
    end
    inside = inside or info.func == f
  end
  return false
end

-- Reports whether result n of h (counted from 0), which is `value`, can never
-- be nil or false at any return of h.
local function always_returned(h, n, value, state)
  local flow = bytecode.flow(h)
  local made = core.vm_made(value, h)
  for i = 0, flow.n - 1 do
    local op, a, b = flow.op[i], flow.a[i], flow.b[i]
    local reached = i == 0 or flow.before[i][1]
    if op == OP.TAILCALL and made ~= i or op == OP.RETURN0 and reached then
      return false
    elseif op == OP.RETURN1 and (n > 0 or not always(h, i, a, value, state))
      or op == OP.RETURN and reached
      and (b < n + 2 or not always(h, i, a + n, value, state)) then
      return false
    end
  end
  return true
end

-- Reports whether the value is result n of a function of the script, and result
-- n of this function can never be nil or false.
local function by_helper(n, value, state)
  for h in pairs(state.ran) do
    if core.vm_made(value, h) then
      return bytecode.flow(h) and always_returned(h, n, value, state)
    end
  end
  return false
end

-- Reports whether the value of a register is never nil or false when
-- instruction `at` of f runs. Returns "argument" if the value is an argument of
-- the kernel. carried: true if a loop or branch replaced the value after the
-- instruction that set the register.
function always(f, at, reg, value, state, carried)
  local flow = bytecode.flow(f)
  if not flow or not at then return false end
  local made, result = core.vm_made(value, f), true
  local found, between = setters(flow, at, reg)
  carried = carried or between[made]
  for i in pairs(found) do
    local op = flow.op[i]
    local one
    if i < 0 then
      one = f == state.kernel and reg < flow.parameters and "argument"
    elseif op == OP.MOVE or op == OP.TESTSET then
      one = always(f, i, flow.b[i], value, state, carried)
    elseif op == OP.GETUPVAL then
      one = always_above(f, flow.b[i] + 1, value, state)
    elseif MAKES[op] then
      one = made == i or carried or op == OP.CALL and not made
        and by_helper(reg - flow.a[i], value, state)
    else
      one = NEVER[op]
    end
    if not one then return false end
    if one == "argument" then result = one end
  end
  return next(found) ~= nil and result
end

-- Returns the instruction to which the conditional jump after the test at
-- instruction `at` leads.
local function target(flow, at)
  for i = at + 2, flow.n - 1 do
    for _, j in ipairs(flow.before[i]) do
      if j == at + 1 then return i end
    end
  end
end

-- Reports whether instruction `at` tests y in `x and y or z`, to select between
-- y and z.
local function is_choice(flow, at)
  return flow.k[at] and #flow.before[at + 2] > 1
end

-- Reports whether the test is `x or default`, or `if not x then x = default
-- end`.
local function has_default(flow, at)
  if not flow.k[at] or flow.op[at] == OP.NOT then return false end
  if flow.op[at] == OP.TESTSET then return true end
  local to = flow.op[at + 1] == OP.JMP and target(flow, at)
  return to and flow.a[to - 1] == flow.a[at] and SETS[flow.op[to - 1]]
end

---------------------------------------------------------------------------
-- Messages
---------------------------------------------------------------------------

-- Returns the name of a register's local or upvalue. If there is none, returns
-- the source text of the tested expression, or nil if the package cutelua does
-- not find it.
local function name_of(level, flow, at, reg)
  local info, name = debug.getinfo(level + 1, "fSl"),
    debug.getlocal(level + 1, reg + 1)
  if name and not name:find "^%(" then return name end
  for i in pairs((setters(flow, at, reg))) do
    if flow.op[i] == OP.GETUPVAL then
      return (debug.getupvalue(info.func, flow.b[i] + 1))
    end
  end
  local find = sign.workshop.tested_expression
  return find and find(info)
end

--- Returns the error message for a Lua test (such as `if`) of a register that
-- holds a traced value, or nil if the test is allowed.
---@param reg integer
---@param state table the state of the trace, see core/bind/trace.h
---@return string? message
function truth.check(reg, state)
  local f, at = debug.getinfo(2, "f").func, core.vm_at(2)
  local _, value = debug.getlocal(2, reg + 1)
  local flow, result = bytecode.flow(f), always(f, at, reg, value, state)
  if not result or is_choice(flow, at)
    or result == "argument" and has_default(flow, at) then
    return nil
  end
  local name, explain = name_of(2, flow, at, reg), sign.workshop.always_true
  return explain and explain(name, result == "argument")
    or "a traced value is always true in Lua's if, and, or, not, while"
end

return truth
-- SPDX-License-Identifier: MIT
