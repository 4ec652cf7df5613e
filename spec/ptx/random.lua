-- Random programs in PTX: arithmetic, conversions, shuffles, votes, atomics,
-- shared memory, predicates and branches. Their results do not depend on the
-- schedule. As a script, runs programs on the simulator and on a GPU, and
-- prints the number of programs whose results differ:
--
--     build/cutelua spec/ptx/random.lua 2000 [first seed [level]]
--
-- `level` is the driver's optimisation level (default 0). At level 0, the GPU
-- executes the instructions of the text. At higher levels, ptxas changes bits
-- of NaNs, and replaces an rcp.approx.ftz of an rcp.approx.ftz by the operand.
local random = {}

random.GRID, random.BLOCK = 2, 64

-- Pools of registers that programs read and write, by letter.
local POOLS = {
  r = {n = 8, type = "b32"}, q = {n = 4, type = "b64"},
  f = {n = 6, type = "f32"}, d = {n = 4, type = "f64"},
  h = {n = 3, type = "b16"}, p = {n = 4, type = "pred"},
}

-- Statements. The letter of a pool stands for a random register of the pool, #N
-- for a random number less than N, and (a|b) for one of the two words. %t0 to
-- %t2 are 32-bit registers for intermediate values; %u0 has 64 bits. Where
-- compilers may choose the bits of a NaN, a sum with -0 makes them canonical.
-- Statements of this first group are also used inside branches.
local PLAIN = {
  "(add|sub|mul.lo).(u32|s32) r, r, r", "(and|or|xor).b32 r, r, r",
  "(min|max).(u32|s32) r, r, r", "mul.hi.(u32|s32) r, r, r",
  "mad.lo.s32 r, r, r, r", "mad.hi.u32 r, r, r, r", "not.b32 r, r",
  "(neg|abs).s32 r, r", "(shl.b32|shr.u32|shr.s32) r, r, r",
  "shl.b32 r, r, #40", "(popc|clz|brev).b32 r, r", "bfind.(u32|s32) r, r",
  "and.b32 %t0, r, 63; and.b32 %t1, r, 63; bfe.(u32|s32) r, r, %t0, %t1",
  "and.b32 %t0, r, 31; bfi.b32 r, r, r, %t0, #20",
  "prmt.b32 r, r, r, r", "prmt.b32.(f4e|b4e|rc8|ecl|ecr|rc16) r, r, r, r",
  "shf.(l|r).(wrap|clamp).b32 r, r, r, r", "lop3.b32 r, r, r, r, #256",
  "or.b32 %t0, r, 1; (div|rem).u32 r, r, %t0",
  "and.b32 %t0, r, 32767; add.u32 %t0, %t0, 1; (div|rem).s32 r, r, %t0",
  "sad.(u32|s32) r, r, r, r", "dp4a.(u32.u32|s32.s32|u32.s32) r, r, r, r",
  "mul24.lo.(u32|s32) r, r, r", "slct.b32.s32 r, r, r, r",
  "slct.f32.f32 f, f, f, f", "selp.b32 r, r, r, p", "selp.f64 d, d, d, p",
  "add.cc.u32 %t0, r, r; addc.u32 r, r, r", "sub.cc.u32 %t0, r, r; "
    .. "subc.u32 r, r, %t0",
  "mul.wide.(u32|s32) q, r, r", "mad.wide.u32 q, r, r, q",
  "(add|sub|mul.lo).(u64|s64) q, q, q", "(and|or|xor).b64 q, q, q",
  "(min|max).(u64|s64) q, q, q", "(shl.b64|shr.u64|shr.s64) q, q, r",
  "mul.hi.(u64|s64) q, q, q", "(popc|clz).b64 r, q",
  "or.b64 %u0, q, 1; (div|rem).u64 q, q, %u0", "mov.b64 q, {r, r}",
  "mov.b64 {r, r}, q", "mov.b32 r, {h, h}", "mov.b32 {h, h}, r",
  "mov.b32 r, f", "mov.b32 f, r", "mov.b64 d, q", "mov.b64 q, d",
  "setp.(eq|ne|lt|le|gt|ge).(u32|s32) p, r, r",
  "setp.(lt|ge|ltu|geu|equ|num|nan).f32 p, f, f",
  "setp.(lt|eq|neu).f64 p, d, d", "setp.(lo|hs).u64 p, q, q",
  "setp.lt.(and|or|xor).s32 p, r, r, p", "(and|or|xor).pred p, p, p",
  "not.pred p, p", "set.(lt|ge).(u32.f32|u32.s32) r, X, X",
  "(add|sub|mul).(rn|rz|rm|rp).f32 f, f, f", "(add|sub|mul).rn.ftz.f32 f, f, f",
  "(add|mul).rn.sat.f32 f, f, f", "fma.(rn|rz|rm|rp).f32 f, f, f, f",
  "fma.rn.ftz.f32 f, f, f, f",
  "add.rn.f32 %t0, f, 0f80000000; (min|max).f32 f, %t0, f",
  "(min|max).NaN.f32 f, f, f", "(neg|abs).f32 f, f", "(neg|abs).ftz.f32 f, f",
  "div.(rn|rz).f32 f, f, f", "sqrt.(rn|rm).f32 f, f", "rcp.(rn|rp).f32 f, f",
  "div.approx.f32 f, f, f", "div.full.f32 f, f, f", "rcp.approx.ftz.f32 f, f",
  "(rsqrt|sqrt).approx.f32 f, f", "(ex2|lg2|sin|cos).approx.f32 f, f",
  "tanh.approx.f32 f, f",
  "copysign.f32 %t0, f, f; add.rn.f32 f, %t0, 0f80000000",
  "(add|sub|mul).(rn|rz|rm|rp).f64 d, d, d", "fma.(rn|rz).f64 d, d, d, d",
  "(min|max).f64 d, d, d", "div.rn.f64 d, d, d", "sqrt.rn.f64 d, d",
  "(add|sub|mul).rn.f16 h, h, h", "fma.rn.f16 h, h, h, h",
  "(add|mul).rn.f16x2 r, r, r", "fma.rn.(f16x2|bf16x2) r, r, r, r",
  "(min|max).(f16x2|bf16x2) r, r, r",
  "cvt.(rzi|rni|rmi|rpi).(s32|u32).f32 r, f", "cvt.(rn|rz).f32.(s32|u32) f, r",
  "cvt.rzi.(s64|u64).f32 q, f", "cvt.rn.f32.(s64|u64) f, q",
  "cvt.rzi.(s32|u32).f64 r, d", "cvt.rn.f64.(s32|u32) d, r",
  "cvt.f64.f32 d, f", "cvt.(rn|rz|rm|rp).f32.f64 f, d", "cvt.rn.f16.f32 h, f",
  "cvt.f32.f16 f, h", "cvt.(rni|rzi|rmi).f32.f32 f, f",
  "cvt.rn.(f16x2|bf16x2).f32 r, f, f", "cvt.rn.satfinite.e4m3x2.f32 h, f, f",
  "cvt.(u8|s8|u16|s16).u32 %t0, r; add.u32 r, r, %t0",
  "cvt.sat.(u8.s32|s8.s32) %t0, r; xor.b32 r, r, %t0",
  "cvt.s64.s32 q, r", "cvt.u32.u64 r, q", "cvt.rna.tf32.f32 r, f",
  "tanh.approx.bf16x2 r, r",
}

-- Statements that all threads of a warp or a block execute together.
local TOGETHER = {
  "shfl.sync.(idx|down|bfly).b32 r|p, r, #32, 31, -1",
  "shfl.sync.up.b32 r|p, r, #32, 0, -1",
  "and.b32 %t0, r, 31; shfl.sync.idx.b32 r, r, %t0, 31, -1",
  "vote.sync.ballot.b32 r, p, -1", "vote.sync.(all|any|uni).pred p, p, -1",
  "and.b32 %t0, r, 3; match.any.sync.b32 r, %t0, -1",
  "redux.sync.(add|min|max).s32 r, r, -1",
  "redux.sync.(and|or|xor).b32 r, r, -1",
  -- Each thread writes its own slot and reads another thread's slot.
  "st.shared.b32 [%own], r; bar.sync 0; xor.b32 %t0, %at, #64; shl.b32 %t0, "
    .. "%t0, 2; add.u32 %t0, %t0, %base; ld.shared.b32 r, [%t0]; bar.sync 0",
  "st.shared.b32 [%own], r; atom.shared.(add.u32|min.s32|max.u32|exch.b32|"
    .. "inc.u32|dec.u32) r, [%own], r",
  "st.shared.b32 [%own], r; atom.shared.cas.b32 r, [%own], r, r",
  "st.shared.b32 [%own], 0; bar.sync 0; and.b32 %t0, r, 60; add.u32 %t0, %t0, "
    .. "%base; red.shared.(add.u32|max.s32|or.b32|xor.b32) [%t0], r; "
    .. "bar.sync 0; ld.shared.b32 r, [%own]; bar.sync 0",
  "red.global.(add|min|max|and|or|xor).(b32) [%sum+SLOT], r",
}

-- Completes the type of a `red` instruction: each atomic operation exists for
-- only some types.
local function atomic(text, at)
  local op = text:match "red%.global%.(%l+)"
  if not op then return text end
  local kinds = {["add"] = "u32", ["min"] = "s32", ["max"] = "u32"}
  -- Each operation gets its own word of memory, because different operations on
  -- one word do not commute.
  return (text:gsub("b32 %[", (kinds[op] or "b32") .. " ["):gsub("SLOT",
    tostring(4 * at[op])))
end

local SLOTS = {add = 0, min = 1, max = 2, ["and"] = 3, ["or"] = 4, xor = 5}

--- Returns a random program: an entry `k` with the parameters x, out and sums.
-- x has 256 words, out has random.WORDS words for each thread, sums has 8
-- words.
---@param seed integer
---@return string
function random.program(seed)
  local state = seed * 2654435761 + 12345
  local function below(n)
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % n
  end
  local function statement(text)
    text = text:gsub("%(([^()]+)%)", function(list)
      local words = {}
      for w in list:gmatch "[^|]+" do words[#words + 1] = w end
      return words[below(#words) + 1]
    end)
    text = text:gsub("X", text:find "f32" and "f" or "r")
    local fixed = atomic(text, SLOTS)
    return (fixed:gsub("#(%d+)", function(n) return tostring(below(n)) end)
      :gsub("%f[%w_%.%%]([rqfdhp])%f[^%w_]", function(pool)
        return ("%%%s%d"):format(pool, below(POOLS[pool].n))
      end))
  end
  local out, label = {}, 0
  local function add(text, ...) out[#out + 1] = "  " .. text:format(...) end
  for _ = 1, 24 + below(24) do
    local what = below(10)
    if what < 5 then
      add("%s;", statement(PLAIN[below(#PLAIN) + 1]))
    elseif what < 7 then
      -- The predicate applies to the last instruction of the statement.
      local text = statement(PLAIN[below(#PLAIN) + 1])
      add("%s;", text:gsub("([^;]+)$", (" @%%%%p%d %%1"):format(
        below(POOLS.p.n))):gsub("  +", " "))
    elseif what < 8 then
      label = label + 1
      add("@%%p%d bra L%d;", below(POOLS.p.n), label)
      for _ = 1, 1 + below(3) do
        add("%s;", statement(PLAIN[below(#PLAIN) + 1]))
      end
      out[#out + 1] = ("L%d:"):format(label)
    else
      add("%s;", statement(TOGETHER[below(#TOGETHER) + 1]))
    end
  end
  return random.HEAD .. table.concat(out, "\n") .. "\n" .. random.TAIL
end

-- Calls use(...) for all registers, in a fixed order.
local function each(use)
  for _, pool in ipairs {"r", "q", "f", "d", "h", "p"} do
    for i = 0, POOLS[pool].n - 1 do use(pool, i, POOLS[pool].type) end
  end
end

local function head()
  local out = {[[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 out, .param .u64 sums)
{
  .reg .b32 %t<3>; .reg .b64 %u<3>; .reg .b32 %at; .reg .b32 %base;
  .reg .b32 %own; .reg .b64 %sum; .reg .b64 %in; .reg .b64 %to;
  .reg .b64 %all;
  .shared .align 4 .b8 memory[256];]]}
  local body, words = {}, 0
  local function add(...) body[#body + 1] = string.format(...) end
  each(function(pool, i, kind)
    if i > 0 then return end
    out[#out + 1] = ("  .reg .%s %%%s<%d>;"):format(kind, pool, POOLS[pool].n)
  end)
  body[1] = [[
  ld.param.u64 %in, [x]; ld.param.u64 %all, [out]; ld.param.u64 %sum, [sums];
  mov.u32 %at, %tid.x; mov.u32 %base, memory;
  shl.b32 %t0, %at, 2; add.u32 %own, %base, %t0;
  mov.u32 %t1, %ctaid.x; shl.b32 %t1, %t1, 6; add.u32 %t1, %t1, %at;
  mul.wide.u32 %u0, %t1, WORDS; add.s64 %to, %all, %u0;
  st.shared.b32 [%own], %at;
  bar.sync 0;
  ld.shared.b32 %t2, [%own];]]
  each(function(pool, i, kind)
    -- Register i starts with the input's word 7 i + t (mod 256).
    add("  mad.lo.u32 %%t0, %%t1, 5, %d; and.b32 %%t0, %%t0, 254;", words * 7)
    add("  mul.wide.u32 %%u0, %%t0, 4; add.s64 %%u0, %%in, %%u0;")
    if pool == "p" then
      add("  ld.global.b32 %%t0, [%%u0]; setp.lt.s32 %%p%d, %%t0, 0;", i)
    else
      add("  ld.global.%s %%%s%d, [%%u0];", kind, pool, i)
    end
    words = words + 1
  end)
  return table.concat(out, "\n") .. "\n" .. table.concat(body, "\n") .. "\n"
end

local function tail()
  local out, at = {}, 0
  each(function(pool, i, kind)
    if pool == "p" then
      out[#out + 1] = ("  selp.b32 %%t0, 1, 0, %%p%d; st.global.b32 [%%to+%d], "
        .. "%%t0;"):format(i, at)
    elseif pool == "h" then
      out[#out + 1] = ("  cvt.u32.u16 %%t0, %%h%d; st.global.b32 [%%to+%d], "
        .. "%%t0;"):format(i, at)
    else
      out[#out + 1] = ("  st.global.%s [%%to+%d], %%%s%d;"):format(kind, at,
        pool, i)
    end
    at = at + 8
  end)
  random.WORDS = at // 4
  return table.concat(out, "\n") .. "\n  ret;\n}\n"
end

random.TAIL = tail()
random.HEAD = head():gsub("WORDS", tostring(random.WORDS * 4))

--- Runs a program; returns the words of out and sums as a list.
---@param text string
---@param seed integer selects the input
---@param options table of the launch, besides grid and block
---@param level? integer the driver's optimisation level
---@return integer[]
function random.run(text, seed, options, level)
  local cute = require "cute"
  local k = cute.ptx(text):kernel("k", {optimize = level})
  local x = cute.zeros({256}, cute.i32)
  local state = seed
  for i = 0, 255 do
    state = state * 6364136223846793005 + 1442695040888963407
    local word = state >> 32
    -- Half of the words become floats near 1 or small integers.
    if i % 4 == 1 then word = 0x3f000000 + (word & 0x1ffffff) end
    if i % 8 == 2 then word = word & 255 end
    x[i] = (word & 0xffffffff ~ 0x80000000) - 0x80000000
  end
  local n = random.GRID * random.BLOCK * random.WORDS
  local out, sums = cute.zeros({n}, cute.i32), cute.zeros({8}, cute.i32)
  options.grid, options.block = random.GRID, random.BLOCK
  k(x, out, sums):launch(options)
  local list = {}
  for i = 0, n - 1 do list[i + 1] = out[i] end
  for i = 0, 7 do list[n + i + 1] = sums[i] end
  return list
end

--- Compares two lists; returns the index of the first difference, or nil.
function random.difference(a, b)
  for i = 1, #a do
    if a[i] ~= b[i] then return i end
  end
end

local function main(count, first, level)
  local bad = 0
  for seed = first, first + count - 1 do
    local text = random.program(seed)
    local ok, why = pcall(function()
      local a = random.run(text, seed, {})
      local b = random.run(text, seed, {device = "gpu"}, level)
      local at = random.difference(a, b)
      return at and ("word %d of thread %d is %08x on the simulator, %08x on "
        .. "the card"):format((at - 1) % random.WORDS, (at - 1) // random.WORDS,
        a[at] & 0xffffffff, b[at] & 0xffffffff)
    end)
    if not ok or why then
      bad = bad + 1
      print(("seed %d: %s"):format(seed, tostring(why)))
    end
  end
  print(("%d programs, %d differ"):format(count, bad))
  return bad == 0
end

if arg and arg[0] and arg[0]:find "random%.lua$" then
  os.exit(main(tonumber(arg[1]) or 200, tonumber(arg[2]) or 1,
               math.tointeger(tonumber(arg[3] or 0))))
end

return random
-- SPDX-License-Identifier: MIT
