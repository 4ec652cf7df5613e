--- Reads a Lua function's bytecode: the constants that it compares with, the
-- globals that it reads, the upvalues that it assigns. The code comes from
-- string.dump, whose format is the same in every Lua 5.4.
local core = require "cute.core"

local bytecode = {}

-- The numbers of Lua's opcodes, by name. core/bind/trace.h repeats some of
-- them.
local OP, count = {}, 0
for name in ([[MOVE LOADI LOADF LOADK LOADKX LOADFALSE LFALSESKIP LOADTRUE
  LOADNIL GETUPVAL SETUPVAL GETTABUP GETTABLE GETI GETFIELD SETTABUP SETTABLE
  SETI SETFIELD NEWTABLE SELF ADDI ADDK SUBK MULK MODK POWK DIVK IDIVK BANDK
  BORK BXORK SHRI SHLI ADD SUB MUL MOD POW DIV IDIV BAND BOR BXOR SHL SHR MMBIN
  MMBINI MMBINK UNM BNOT NOT LEN CONCAT CLOSE TBC JMP EQ LT LE EQK EQI LTI LEI
  GTI GEI TEST TESTSET CALL TAILCALL RETURN RETURN0 RETURN1 FORLOOP FORPREP
  TFORPREP TFORCALL TFORLOOP SETLIST CLOSURE VARARG VARARGPREP
  EXTRAARG]]):gmatch "%u%w*" do
  OP[name], count = count, count + 1
end
bytecode.OP = OP

local HEADER = "\27Lua\x54\0\x19\x93\r\n\x1a\n\4\8\8"
  .. string.pack("=i8n", 0x5678, 370.5)

---------------------------------------------------------------------------
-- Reading
---------------------------------------------------------------------------

-- Functions that read from a dump. A reader r is the table {dump, at = position
-- of the next byte}.
local function byte(r)
  r.at = r.at + 1
  return r[1]:byte(r.at - 1)
end

local function size(r)
  local b = byte(r)
  local n = b & 0x7f
  while b < 0x80 do
    b = byte(r)
    n = n << 7 | b & 0x7f
  end
  return n
end

local function bytes(r, n)
  r.at = r.at + n
  return r[1]:sub(r.at - n, r.at - 1)
end

local function text(r)
  local n = size(r)
  return n > 0 and bytes(r, n - 1) or nil
end

local CONSTANT = {
  [0] = function() return nil end,
  [1] = function() return false end,
  [17] = function() return true end,
  [3] = function(r) return (string.unpack("=i8", bytes(r, 8))) end,
  [19] = function(r) return (string.unpack("=n", bytes(r, 8))) end,
  [4] = text, [20] = text,
}

-- Reads a function's prototype: {code = its bytes, parameters = number of
-- parameters, k = constants, up = {{in_stack, index}, ...}, inner = the
-- functions that it contains, first = its first line, steps = for each
-- instruction, the change of the line as a signed byte (empty without debug
-- information), lines = the lines of the instructions whose change is given as
-- -128}. Constants, upvalues and instructions are numbered from 0.
local function prototype(r)
  local p = {k = {}, up = {}, inner = {}, lines = {}}
  -- Skips the name of the source.
  text(r)
  p.first = size(r)
  size(r)  -- last line
  p.parameters = byte(r)
  -- The vararg flag and the number of registers are not used.
  bytes(r, 2)
  p.code = bytes(r, 4 * size(r))
  for i = 0, size(r) - 1 do p.k[i] = CONSTANT[byte(r)](r) end
  for i = 0, size(r) - 1 do
    p.up[i] = {byte(r) ~= 0, byte(r)}
    -- Skips the upvalue's kind.
    byte(r)
  end
  for i = 1, size(r) do p.inner[i] = prototype(r) end
  p.steps = bytes(r, size(r))
  for _ = 1, size(r) do
    local i = size(r)
    p.lines[i] = size(r)
  end
  -- Skips the names of locals, with their ranges, and the names of upvalues.
  for _ = 1, size(r) do
    text(r)
    size(r)
    size(r)
  end
  for _ = 1, size(r) do text(r) end
  return p
end

-- Returns the prototype in a dump, or nil if it cannot be read.
local function parsed(dump)
  if dump:sub(1, #HEADER) ~= HEADER then return nil end
  local ok, p = pcall(prototype, {dump, at = #HEADER + 2})
  return ok and p or nil
end

-- Returns the prototype of a Lua function, or nil if it cannot be read or its
-- dump has more than `most` bytes. with_lines: whether the dump includes line
-- information.
local function read(f, most, with_lines)
  if most and core.dumps_more(f, most) then return nil end
  local ok, dump = pcall(string.dump, f, not with_lines)
  return ok and parsed(dump) or nil
end

-- Iterates over the instructions of a prototype. With a pattern `first`, it
-- visits only instructions whose first byte matches. Each step returns the
-- opcode and the operands A, B and C.
local function instructions(p, first)
  local at, code = 1, p.code
  return function()
    while first and at do
      at = code:find(first, at)
      if not at or at % 4 == 1 then break end
      at = at + 1
    end
    if not at or at > #code then return nil end
    local w
    w, at = string.unpack("=I4", code, at)
    return w & 0x7f, w >> 7 & 0xff, w >> 16 & 0xff, w >> 24
  end
end

---------------------------------------------------------------------------
-- Queries
---------------------------------------------------------------------------

--- Returns constant i of a function, counted from 0, or nil if it is unknown.
function bytecode.constant(f, i)
  local p = read(f)
  return p and p.k[i]
end

--- Returns "empty" if a function's body is empty, "return" if the body only
-- consists of `return`, else nil.
---@return string?
function bytecode.idle(f)
  -- The dump of a function that is not empty has more than 64 bytes.
  local p, n = read(f, 64), 0
  if not p then return nil end
  for op, _, b in instructions(p) do
    if op == OP.RETURN0 or op == OP.RETURN and b == 1 then n = n + 1
    elseif op ~= OP.VARARGPREP then return nil
    end
  end
  return n > 1 and "return" or "empty"
end

-- A pattern for the first byte of the instructions that use an upvalue. The
-- highest bit of this byte is the lowest bit of operand A.
local USES_UPVALUE = "["
for _, name in ipairs {"GETUPVAL", "SETUPVAL", "GETTABUP", "SETTABUP"} do
  USES_UPVALUE = USES_UPVALUE .. string.char(OP[name], OP[name] | 0x80)
end
USES_UPVALUE = USES_UPVALUE .. "]"

-- Adds to `out` how p and its inner functions use each upvalue, in the form
-- that bytecode.upvalues returns.
local function uses(p, out)
  local function at(i)
    out[i] = out[i] or {keys = {}, balance = 0}
    return out[i]
  end
  for op, a, b, c in instructions(p, USES_UPVALUE) do
    if op == OP.GETUPVAL then
      at(b).whole, at(b).balance = true, at(b).balance + 1
    elseif op == OP.SETUPVAL then
      at(b).set, at(b).balance = true, at(b).balance - 1
    elseif op == OP.GETTABUP then
      local keys = at(b).keys
      if keys[p.k[c]] == nil then keys[p.k[c]] = true end
    else
      at(a).keys[p.k[b]] = false
    end
  end
  for _, q in ipairs(p.inner) do
    for i, u in pairs(uses(q, {})) do
      local in_stack, index = q.up[i][1], q.up[i][2]
      if not in_stack then
        local mine = at(index)
        mine.set, mine.balance = mine.set or u.set, mine.balance + u.balance
        mine.whole = mine.whole or u.whole
        for k, read_only in pairs(u.keys) do
          if mine.keys[k] ~= false then mine.keys[k] = read_only end
        end
      end
    end
  end
  return out
end

-- Caches the results of bytecode.upvalues by the function's dump. A script that
-- runs again creates its functions again, with the same dumps.
local answers, MOST = {n = 0}, 500

--- Returns how a function and its inner functions use each upvalue, numbered
-- from 1. Unused upvalues are absent. Returns nil if the code cannot be read.
-- - whole: whether the upvalue's value is used other than by indexing it.
-- - set: whether the upvalue is assigned.
-- - balance: how many more instructions read it than assign it.
-- - keys: the constants that index it, {[constant] = true if only read, false
--   if assigned}.
---@return table<integer, table>?
function bytecode.upvalues(f)
  local ok, dump = pcall(string.dump, f, true)
  if not ok then return nil end
  if answers[dump] then return answers[dump] end
  local p = parsed(dump)
  if not p then return nil end
  local out = {}
  for i, u in pairs(uses(p, {})) do out[i + 1] = u end
  if answers.n == MOST then answers = {n = 0} end
  answers[dump], answers.n = out, answers.n + 1
  return out
end

-- Returns the lines of a prototype's instructions, numbered from 0.
local function lines_of(p)
  local list, line = {}, p.first
  for i = 0, #p.steps - 1 do
    local step = string.unpack("b", p.steps, i + 1)
    line = step == -128 and p.lines[i] or line + step
    list[i] = line
  end
  return list
end

-- Adds to `out` the reads and assignments of globals in p and its inner
-- functions; env is the number of p's upvalue _ENV.
local function globals(p, env, out)
  local lines = lines_of(p)
  for i = 0, #p.code // 4 - 1 do
    local w = string.unpack("=I4", p.code, 4 * i + 1)
    local op, a = w & 0x7f, w >> 7 & 0xff
    if op == OP.GETTABUP and w >> 16 & 0xff == env then
      -- A chunk ends with a return, so each instruction that reads a global has
      -- a next one, at i + 1.
      local to = string.unpack("=I4", p.code, 4 * i + 5)
      out[#out + 1] = {name = p.k[w >> 24], line = lines[i],
        field = to & 0x7f == OP.SETFIELD and to & 0x8000 == 0
          and to >> 24 == a and p.k[to >> 16 & 0xff]}
    elseif op == OP.SETTABUP and a == env then
      out.assigned[p.k[w >> 16 & 0xff]] = true
    end
  end
  for _, q in ipairs(p.inner) do
    for n, u in pairs(q.up) do
      if not u[1] and u[2] == env then globals(q, n, out) end
    end
  end
  return out
end

--- Returns the reads of globals in a chunk and its functions, as a list of
-- {name =, line =, field = name of the field that gets the value, or false}.
-- The list's field `assigned` is the set of the globals that the chunk and its
-- functions assign. Returns nil if the code cannot be read.
---@param chunk function
---@return table?
function bytecode.globals(chunk)
  local p = read(chunk, nil, true)
  return p and #p.steps > 0 and globals(p, 0, {assigned = {}}) or nil
end

-- Returns the first line where p or one of its inner functions assigns upvalue
-- n, counted from 0. With a key, returns the line that assigns field `key` of
-- this upvalue.
local function assigned(p, n, key)
  local i = 0
  for op, a, b in instructions(p) do
    if key == nil and op == OP.SETUPVAL and b == n
      or key ~= nil and op == OP.SETTABUP and a == n and p.k[b] == key then
      return lines_of(p)[i]
    end
    i = i + 1
  end
  for _, q in ipairs(p.inner) do
    for m, u in pairs(q.up) do
      local line = not u[1] and u[2] == n and assigned(q, m, key)
      if line then return line end
    end
  end
end

--- Returns the first line where a function or an inner function assigns upvalue
-- n, counted from 1. With a key, returns the line that assigns field `key` of
-- this upvalue. Returns nil if the line is unknown.
---@return integer?
function bytecode.assigned(f, n, key)
  local p = read(f, nil, true)
  return p and #p.steps > 0 and assigned(p, n - 1, key) or nil
end

-- Returns the instructions that may run next after instruction i.
local function followers(i, w)
  local op, bx = w & 0x7f, w >> 15
  if op == OP.JMP then return i + 1 + (w >> 7) - 0xffffff end
  if op >= OP.EQ and op <= OP.TESTSET then return i + 1, i + 2 end
  if op == OP.LFALSESKIP then return i + 2 end
  if op >= OP.TAILCALL and op <= OP.RETURN1 then return nil end
  if op == OP.FORLOOP or op == OP.TFORLOOP then return i + 1, i + 1 - bx end
  if op == OP.FORPREP then return i + 1, i + 2 + bx end
  if op == OP.TFORPREP then return i + 1 + bx end
  return i + 1
end

local flows = setmetatable({}, {__mode = "k"})

--- Returns the code of a Lua function as tables that are indexed by the
-- instruction number, from 0: {n = number of instructions, parameters =, op =
-- {}, a = {}, b = {}, c = {}, k = {[i] = whether bit k is set}, before = {[i] =
-- instructions that may run just before i}}. Returns nil if the code cannot be
-- read.
---@return table?
function bytecode.flow(f)
  if flows[f] then return flows[f] end
  local p = read(f)
  if not p then return nil end
  local flow = {n = #p.code // 4, parameters = p.parameters, op = {}, a = {},
                b = {}, c = {}, k = {}, before = {}}
  for i = 0, flow.n do flow.before[i] = {} end
  for i = 0, flow.n - 1 do
    local w = string.unpack("=I4", p.code, 4 * i + 1)
    flow.op[i], flow.a[i] = w & 0x7f, w >> 7 & 0xff
    flow.b[i], flow.c[i], flow.k[i] = w >> 16 & 0xff, w >> 24, w & 0x8000 ~= 0
    for _, to in ipairs {followers(i, w)} do
      table.insert(flow.before[to], i)
    end
  end
  flows[f] = flow
  return flow
end

-- luacheck: push ignore 211 231 311 (operations to be found, not to be done)
local function straight()
  local a, b = 1, 2
  a = b
  b = 3
  local c = b
end

local function comparing(a, b, t)
  if a == b then return end
  if a == 5 then return end
  if a == "k" then return end
  local c = t[a]
  t[a] = b
end

local function writing(a, b, t)
  t.k = a
  t[1] = a
  bytecode.k = a
  local c = {}
  if a then b() end
  c = a or b
  c = not a
  c = #a
  c = {a}
  for i = 1, 2 do b(i) end
  return t()
end
-- luacheck: pop

local function is_known()
  local p, q, r = read(straight), read(comparing), read(writing)
  if not p or not q or not r then return false end
  local seen = {}
  for _, f in ipairs {q, r} do
    for op, a, b, c in instructions(f) do
      seen[#seen + 1] = table.concat({op, a, b, c}, " ")
    end
  end
  seen = table.concat(seen, "\n")
  for _, want in ipairs {
    ("^%d 0 1 %%d+\n"):format(OP.EQ), ("\n%d 0 132 %%d+\n"):format(OP.EQI),
    ("\n%d 0 0 %%d+\n"):format(OP.EQK), ("\n%d 3 2 0\n"):format(OP.GETTABLE),
    ("\n%d 2 0 1\n"):format(OP.SETTABLE),
    ("\n%d 2 0 0\n"):format(OP.SETFIELD), ("\n%d 2 1 0\n"):format(OP.SETI),
    ("\n%d 0 0 0\n"):format(OP.SETTABUP), ("\n%d 3 "):format(OP.NEWTABLE),
    ("\n%d 0 "):format(OP.TEST), ("\n%d %%d 0 "):format(OP.TESTSET),
    ("\n%d %%d 0 "):format(OP.NOT), ("\n%d %%d 0 "):format(OP.LEN),
    ("\n%d %%d 1 0\n"):format(OP.SETLIST),
    ("\n%d %%d %%d 0\n"):format(OP.FORPREP),
    ("\n%d 4 1 1\n"):format(OP.CALL), ("\n%d 4 1 "):format(OP.TAILCALL)} do
    if not seen:find(want) then return false end
  end
  return core.vm_trial(straight, p.code)
end

local known

--- Reports whether this Lua is a version whose bytecode and hooks this module
-- knows.
---@return boolean
function bytecode.known()
  if known == nil then known = is_known() end
  return known
end

return bytecode
-- SPDX-License-Identifier: MIT
