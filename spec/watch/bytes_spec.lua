-- Tests the byte-by-byte checks of shared memory. One thread in each of two
-- warps runs random PTX with accesses of 1 to 16 bytes. A model of single bytes
-- gives the expected values, reads of unwritten bytes, and conflicts between
-- two barriers.
local cute = require "cute"
local support = require "spec.support"
local Gen = require "spec.random".Gen
local words = require "cute.lang.report"

local HEAD = [[
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pout)
{
.shared .align 16 .b8 sm[%d];
.reg .b16 h<4>; .reg .b32 a<4>; .reg .b64 b<2>;
.reg .b64 out; .reg .b32 tid, s; .reg .b64 sum; .reg .pred p0, p1;
ld.param.u64 out, [pout];
mov.u32 tid, %%tid.x;
mov.u32 s, sm;
mov.b64 sum, 0;
setp.eq.u32 p0, tid, 0;
setp.eq.u32 p1, tid, 32;
]]
local TAIL = [[
@p0 st.global.b64 [out], sum;
@p1 st.global.b64 [out+8], sum;
ret;
}
]]
local MOST = 16  -- maximum number of reports of a launch
local LINES = select(2, HEAD:gsub("\n", ""))

-- Ways to write an access in PTX, by its number of bytes. Each is {type,
-- registers}.
local FORM = {[1] = {{"u8", {"h0"}}}, [2] = {{"u16", {"h0"}},
  {"v2.u8", {"h0", "h1"}}}, [4] = {{"b32", {"a0"}}, {"v2.u16", {"h0", "h1"}},
  {"v4.u8", {"h0", "h1", "h2", "h3"}}}, [8] = {{"b64", {"b0"}},
  {"v2.b32", {"a0", "a1"}}, {"v4.u16", {"h0", "h1", "h2", "h3"}}},
  [16] = {{"v4.b32", {"a0", "a1", "a2", "a3"}}, {"v2.b64", {"b0", "b1"}}}}
local WIDE = {h = "b16", a = "b32", b = "b64"}

local function registers(list)
  return #list == 1 and list[1] or "{" .. table.concat(list, ", ") .. "}"
end

-- Returns PTX that stores w bytes, all equal to v.
local function store(g, who, at, w, v)
  local form, text = g:pick(FORM[w]), {}
  local size = w // #form[2]
  for k, r in ipairs(form[2]) do
    local n = 0
    for _ = 1, size do n = n << 8 | v end
    text[k] = ("mov.%s %s, 0x%x; "):format(WIDE[r:sub(1, 1)], r, n)
  end
  return table.concat(text) .. ("@p%d st.shared.%s [s+%d], %s;"):format(who,
    form[1], at, registers(form[2]))
end

-- Returns PTX that loads w bytes and adds the loaded registers to `sum`.
local function load_of(g, who, at, w)
  local form = g:pick(FORM[w])
  local text = {("@p%d ld.shared.%s %s, [s+%d]; "):format(who, form[1],
    registers(form[2]), at)}
  for _, r in ipairs(form[2]) do
    local c = r:sub(1, 1)
    local from = r
    if c ~= "b" then
      text[#text + 1] = ("cvt.u64.u%d b1, %s; "):format(c == "h" and 16 or 32,
                                                        r)
      from = "b1"
    end
    text[#text + 1] = ("@p%d add.u64 sum, sum, %s; "):format(who, from)
  end
  return table.concat(text), w // #form[2]
end

local function atomic(g, who, at, w, v)
  local reg = w == 4 and "a0" or "b0"
  local op = g:pick {("atom.shared.or.b%d %s, [s+%d], %s;"):format(8 * w, reg,
    at, reg), ("red.shared.or.b%d [s+%d], %s;"):format(8 * w, at, reg)}
  return ("mov.b%d %s, 0x%x; @p%d "):format(8 * w, reg, v, who) .. op
end

---------------------------------------------------------------------------
-- The model
---------------------------------------------------------------------------

local Model = {}
Model.__index = Model

-- Reports whether two accesses to one byte conflict.
local function conflict(a, b)
  return a.who ~= b.who and (a.write or b.write)
    and not (a.strong and b.strong)
end

-- Reports whether the accesses to one byte between two barriers have a conflict
-- that every schedule shows. If atomics of both threads change the byte, the
-- simulator remembers only the last atomic. Then a schedule may hide the
-- conflict between an earlier atomic and a weak access.
local function shown(list)
  local strong = {}
  for _, x in ipairs(list) do
    if x.strong then strong[x.who] = true end
  end
  local both = strong[0] and strong[1]
  for i, x in ipairs(list) do
    for k = 1, i - 1 do
      local y = list[k]
      if conflict(x, y) and not (both and (x.strong or y.strong)) then
        return true
      end
    end
  end
  return false
end

-- Ends a part of the program, at a barrier.
function Model:barrier()
  for _, list in pairs(self.touched) do
    if shown(list) then self.raced[self.section] = true end
  end
  self.section, self.touched = self.section + 1, {}
end

-- Records an access in the model. If it reads unwritten bytes, `lacks` is the
-- address of the first one.
function Model:access(x)
  self.lines[x.line] = x
  for at = x.at, x.at + x.bytes - 1 do
    self.touched[at] = self.touched[at] or {}
    table.insert(self.touched[at], x)
  end
  for at = x.at, x.at + x.bytes - 1 do
    if (not x.write or x.strong) and not self.value[at] then
      x.lacks = x.lacks or at
    end
  end
  for at = x.at, x.at + x.bytes - 1 do
    if x.strong then
      local shift = 8 * (at - x.at)
      self.value[at] = (self.value[at] or 0) | x.v >> shift & 255
    elseif x.write then
      self.value[at] = x.v
    end
  end
end

-- Adds the value that a load reads to its thread's sum.
function Model:sum(x, size)
  for at = x.at, x.at + x.bytes - 1, size do
    local n = 0
    for k = size - 1, 0, -1 do n = n << 8 | (self.value[at + k] or 0) end
    self.sums[x.who] = self.sums[x.who] + n
  end
end

-- Returns a program's text and its model. solo: only one thread accesses
-- memory, so that the order of accesses is known.
local function program(g, solo)
  local bytes = 16 * (1 + g:r(30))
  local m = setmetatable({lines = {}, touched = {}, value = {}, raced = {},
                          section = 1, sums = {[0] = 0, 0}}, Model)
  local text = {HEAD:format(bytes):sub(1, -2)}
  local first = g:chance(50) and bytes // 16 + 1 or 0
  for k = 1, first do
    local x = {who = 0, line = LINES + k, section = 1, v = 0, write = true,
               bytes = 16, at = 16 * (k - 1)}
    text[k + 1] = k == first and "bar.sync 0;" or store(g, 0, x.at, 16, 0)
    if k < first then m:access(x) end
  end
  m.touched = {}
  for k = first + 1, first + 6 + g:r(24) do
    local who, w = solo and 0 or g:r(2) - 1, g:pick {1, 1, 2, 4, 4, 8, 16}
    local x = {who = who, line = LINES + k, section = m.section, v = k}
    local roll = g:r(100)
    if roll > 80 and roll <= 92 then w = g:pick {4, 8} end
    x.bytes, x.at = w, w * (g:r(math.min(bytes, 48) // w) - 1)
    if g:chance(25) then x.at = w * (g:r(bytes // w) - 1) end
    if roll <= 40 then
      x.write, text[k + 1] = true, store(g, who, x.at, w, k)
      m:access(x)
    elseif roll <= 80 then
      local size
      text[k + 1], size = load_of(g, who, x.at, w)
      m:access(x)
      m:sum(x, size)
    elseif roll <= 92 then
      x.write, x.strong = true, true
      text[k + 1] = atomic(g, who, x.at, w, k)
      m:access(x)
    else
      text[k + 1] = "bar.sync 0;"
      m:barrier()
    end
  end
  m:barrier()
  return table.concat(text, "\n") .. "\n" .. TAIL, m
end

---------------------------------------------------------------------------
-- The simulator
---------------------------------------------------------------------------

local function run(text, seed)
  local out = cute.zeros({2}, cute.u64)
  local kernel = cute.ptx(text):kernel("k", {lines = "ptx"})
  return support.report(kernel(out):launch {grid = 1, block = 64, threads = 1,
    seed = seed, device = "sim:sm_90a", faults = "return"}), out
end

-- Tests a program of one thread. The simulator must report exactly the lines
-- that read an unwritten byte, with the first such byte. If there is none, the
-- stored sum must equal the model's sum.
local function alone(g, seed)
  local text, m = program(g, true)
  local r, out = run(text, seed)
  local want, got = {}, {}
  for line, x in pairs(m.lines) do
    if x.lacks then
      want[#want + 1] = ("uninitialised, line %d, byte %d"):format(line,
                                                                   x.lacks)
    end
  end
  local lacks = #want
  for i, f in ipairs(r.reports) do
    got[i] = ("%s, line %d, byte %d"):format(f.kind, f.line, f.offset)
  end
  if lacks >= MOST then return lacks end
  table.sort(want)
  table.sort(got)
  if lacks == 0 then
    want[1], got[#got + 1] = ("sum %d"):format(m.sums[0]),
                             ("sum %d"):format(out[0])
  end
  local a, b = table.concat(want, "\n"), table.concat(got, "\n")
  if a ~= b then
    error(("seed %d\n%s\nmodel:\n%s\nsimulator:\n%s"):format(seed, text, a, b))
  end
  return lacks
end

-- Returns nil if a reported race is a race in the model; otherwise returns the
-- reason why it is not.
local function unfounded(m, f)
  local a, b = m.lines[f.line], m.lines[f.line2]
  if not a or not b then return "a line without an access" end
  if a.section ~= b.section then return "a barrier is between the lines" end
  if not conflict(a, b) then return "the accesses do not conflict" end
  for _, x in ipairs {a, b} do
    if f.offset < x.at or f.offset >= x.at + x.bytes then
      return "a line does not access the byte"
    end
  end
end

-- Tests a program of two threads. Each reported race must be a race in the
-- model. Each part between two barriers that has a race in the model must have
-- a report, unless the limit of reports is reached.
local function together(g, seed)
  local text, m = program(g, false)
  local r = run(text, seed)
  local found, races = {}, 0
  for _, f in ipairs(r.reports) do
    if f.kind == "race" then
      local why = unfounded(m, f)
      if why then
        error(("seed %d\n%s\n%s: %s, lines %s and %s"):format(seed, text, why,
          f.message, f.line, f.line2))
      end
      found[m.lines[f.line].section] = true
    end
  end
  for section in pairs(m.raced) do
    races = races + 1
    if not found[section] and #r.reports < MOST then
      error(("seed %d\n%s\npart %d has an unreported race\n%s"):format(seed,
        text, section, r))
    end
  end
  return races
end

describe("bytes of shared memory", function()
  local tell = words.tell
  setup(function() words.tell = function() end end)
  teardown(function() words.tell = tell end)
  for name, test in pairs {["in one thread"] = alone,
                           ["in two warps"] = together} do
    for part = 1, 3 do
      it(("have the reports of a model of bytes %s, %d"):format(name, part)
         .. support.long(part), function()
        local faulty, clean, n = 0, 0, part == 1 and 200 or 800
        for seed = 10000 * part + 1, 10000 * part + n do
          local g = setmetatable({state = seed * 0x9e3779b97f4a7c15}, Gen)
          if test(g, seed) > 0 then faulty = faulty + 1
          else clean = clean + 1 end
        end
        assert.is_true(faulty > n // 10, faulty)
        assert.is_true(clean > n // 50, clean)
      end)
    end
  end
end)
-- SPDX-License-Identifier: MIT
