-- Tests races between plain accesses and atomics whose result is not used. In
-- random PTX, three lanes of two warps access two words. A race is a pair of
-- accesses to a word by two threads with no barrier in between. At least one
-- access of the pair is a write, and at most one is an atomic. One run must
-- report a race if, and only if, there is one.
local cute = require "cute"
local Gen = require "spec.random".Gen

local HEAD = [[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pout)
{
.shared .align 16 .b8 sm[8];
.reg .b32 tid, lane, warp, s, v, t, sum; .reg .b64 out, at; .reg .pred p, q;
ld.param.u64 out, [pout];
mov.u32 tid, %tid.x;
and.b32 lane, tid, 31;
shr.u32 warp, tid, 5;
mov.u32 s, sm;
mov.u32 sum, 0;
setp.eq.u32 p, tid, 0;
@p st.shared.v2.b32 [s], {sum, sum};
bar.sync 0;
]]
local TAIL = [[
mul.wide.u32 at, tid, 4;
add.u64 at, out, at;
st.global.b32 [at], sum;
ret;
}
]]

local LANES = 3
local OPS = {
  add = "@p red.shared.add.u32 [s+%d], 1;",
  max = "@p red.shared.max.u32 [s+%d], tid;",
  load = "@p ld.shared.u32 v, [s+%d]; @p add.u32 sum, sum, v;",
  store = "@p st.shared.u32 [s+%d], v;"}
local ATOMIC = {add = true, max = true}

-- Returns a random program as text, and its accesses {thread, warp, word, op,
-- blocks =, warps =}. `blocks` and `warps` count the barriers before the
-- access: those of the block, and those of the access's warp.
local function program(g)
  local text, list = {HEAD}, {}
  local blocks, warps = 0, {[0] = 0, [1] = 0}
  local names = g:pick {{"add", "load"}, {"add", "max", "load"},
                        {"add", "load", "store"}}
  for k = 1, g:r(6) + 1 do
    local warp, what = g:r(2) - 1, g:r(10)
    if what == 1 then
      blocks = blocks + 1
      text[#text + 1] = "bar.sync 0;\n"
    elseif what <= 3 then
      warps[warp] = warps[warp] + 1
      text[#text + 1] = ("setp.eq.u32 q, warp, %d;\n@!q bra W%d;\n"
        .. "bar.warp.sync -1;\nW%d:\n"):format(warp, k, k)
    else
      local op, word, mask = g:pick(names), g:r(2) - 1, g:r(7)
      text[#text + 1] = ("mad.lo.u32 v, tid, 64, %d;\nshl.b32 t, 1, lane;\n"
        .. "and.b32 t, t, %d;\nsetp.eq.u32 q, warp, %d;\n"
        .. "setp.ne.and.u32 p, t, 0, q;\n"):format(k, mask, warp)
        .. OPS[op]:format(4 * word) .. "\n"
      for lane = 0, LANES - 1 do
        if mask >> lane & 1 == 1 then
          list[#list + 1] = {thread = 32 * warp + lane, warp = warp,
            word = word, op = op, blocks = blocks, warps = warps[warp]}
        end
      end
    end
  end
  text[#text + 1] = TAIL
  return table.concat(text), list
end

local function races(list)
  for i, a in ipairs(list) do
    for k = i + 1, #list do
      local b = list[k]
      local ordered = a.thread == b.thread or a.blocks ~= b.blocks
        or a.warp == b.warp and a.warps ~= b.warps
      local writes = a.op ~= "load" or b.op ~= "load"
      local atomics = ATOMIC[a.op] and ATOMIC[b.op]
      if a.word == b.word and not ordered and writes and not atomics then
        return true
      end
    end
  end
  return false
end

local function reported(text, seed)
  local out = cute.zeros({64}, cute.u32)
  local _, _, r = cute.ptx(text):kernel "k"(out):launch {
    grid = 1, block = 64, device = "sim:sm_90a", seed = seed,
    faults = "return"}
  for _, f in ipairs(r and r.reports or {}) do
    assert.is_truthy(f.kind == "race" or f.kind == "warp-race", f.message)
  end
  return r ~= nil and r.reports[1] ~= nil
end

describe("atomics without a result", function()
  local function compare(from, to)
    local racy = 0
    for seed = from, to do
      local text, list = program(setmetatable(
        {state = seed * 0x9e3779b97f4a7c15}, Gen))
      local want = races(list)
      racy = racy + (want and 1 or 0)
      assert.equal(want, reported(text, seed % 4), ("seed %d\n%s"):format(seed,
        text))
    end
    assert.is_true(racy > (to - from) // 5 and racy < (to - from) * 4 // 5)
  end

  it("race with plain accesses in every run", function()
    compare(1, 300)
  end)

  it("race with plain accesses in every run, many #long", function()
    compare(301, 6000)
  end)
end)
-- SPDX-License-Identifier: MIT
