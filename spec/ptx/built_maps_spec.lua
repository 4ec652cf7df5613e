-- Tensor maps that a kernel of PTX builds in memory, field by field: the words
-- of the map, the box that a copy moves, and faults.
local core = require "cute.core"
local cute = require "cute"

-- Adds a box at (c0, c1) of the tensor at x to `out`. MAP stands for the
-- instructions that build the map in `maps`.
local PTX = [[
.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 maps, .param .u64 out,
                  .param .u32 c0, .param .u32 c1)
{
  .shared .align 1024 .b8 s[4096];
  .shared .align 128 .b8 own[128];
  .shared .align 8 .b64 bar;
  .reg .pred %%p<4>; .reg .b32 %%r<16>; .reg .b64 %%rd<12>;
  ld.param.u64 %%rd0, [x];
  ld.param.u64 %%rd1, [maps];
  ld.param.u64 %%rd2, [out];
  ld.param.u32 %%r0, [c0];
  ld.param.u32 %%r1, [c1];
  mov.u32 %%r2, %d;
  mov.u32 %%r3, %%tid.x;
  mov.u32 %%r4, s;
  mov.u32 %%r5, bar;
  mov.u64 %%rd3, own;
  cvta.shared.u64 %%rd4, %%rd3;
  setp.ne.u32 %%p0, %%r3, 0;
%s
  @%%p0 bra WAIT;
  mbarrier.init.shared::cta.b64 [%%r5], 1;
  fence.proxy.async.shared::cta;
%s
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r5], %%r2;
  cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes
    [%%r4], [%%rd1, {%s}], [%%r5];
WAIT:
  bar.sync 0;
TRY:
  mbarrier.try_wait.parity.shared::cta.b64 %%p1, [%%r5], 0;
  @!%%p1 bra TRY;
  shl.b32 %%r6, %%r3, 2;
COPY:
  setp.ge.u32 %%p2, %%r6, %%r2;
  @%%p2 bra DONE;
  add.u32 %%r7, %%r4, %%r6;
  ld.shared.u32 %%r8, [%%r7];
  cvt.u64.u32 %%rd8, %%r6;
  add.u64 %%rd9, %%rd2, %%rd8;
  st.global.u32 [%%rd9], %%r8;
  add.u32 %%r6, %%r6, 128;
  bra COPY;
DONE:
  ret;
}
]]

-- The state spaces of a map that is built: its modifier in PTX, its address
local SPACES = {global = {".global", "%rd1"}, shared = {".shared::cta", "%rd3"},
                generic = {"", "%rd4"}}

local RELEASE = "  fence.proxy.tensormap::generic.release.gpu;"
local ACQUIRE = "  fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;"

-- Returns the instructions that build a map with the fields of p in a space.
local function building(p, space)
  local word, at = table.unpack(SPACES[space])
  local list = {}
  local function add(...) list[#list + 1] = "  " .. string.format(...) end
  local function set(field, bits, ...)
    add("@!%%p0 tensormap.replace.tile.%s%s.b1024.b%d [%s], %s;", field, word,
        bits, at, table.concat({...}, ", "))
  end
  local near = space == "global" and "global" or "shared"
  local plain = space == "generic" and "%rd3" or at
  for k = 0, 15 do
    add("@!%%p0 st.%s.b64 [%s+%d], 0;", near, plain, 8 * k)
  end
  set("global_address", 64, "%rd0")
  set("rank", 32, p.rank - 1)
  for i = 1, p.rank do
    add("mov.b32 %%r9, %d;", p.extent[i])
    set("global_dim", 32, i - 1, "%r9")
    add("mov.b32 %%r9, %d;", p.box[i])
    set("box_dim", 32, i - 1, "%r9")
    set("element_stride", 32, i - 1, p.step and p.step[i] or 1)
    if i > 1 then
      add("mov.b64 %%rd9, %d;", p.stride[i - 1])
      set("global_stride", 64, i - 2, "%rd9")
    end
  end
  set("elemtype", 32, p.elemtype)
  set("interleave_layout", 32, p.interleave or 0)
  set("swizzle_mode", 32, p.swizzle or 0)
  set("fill_mode", 32, p.fill or 0)
  if near == "shared" then
    add("bar.warp.sync -1;")
    add("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic."
      .. "release.gpu.sync.aligned [%%rd1], [%s], 128;", "%rd3")
  end
  return table.concat(list, "\n")
end

-- Runs the kernel; first: the first word of `maps`. Returns the words of the
-- box and those of the map.
local function run(p, c, space, change, x, first)
  local out = cute.zeros({p.bytes // 4}, cute.u32)
  local maps = cute.zeros({32}, cute.i64)
  maps[0] = first or 0
  local text = PTX:format(p.bytes, building(p, space),
    (space == "global" and RELEASE .. "\n" or "") .. ACQUIRE, p.rank,
    p.rank == 1 and "%r0" or "%r0, %r1")
  if change then
    local n
    text, n = text:gsub(change[1], (change[2]:gsub("%%", "%%%%")))
    assert.is_true(n > 0)
  end
  cute.ptx(text):kernel "k"(x, maps, out, c[1], c[2] or 0):launch {
    grid = 1, block = 32, device = "sim:sm_90a"}
  return out, maps
end

-- PTX's numbers of the element types, in the order of the driver's.
local NUMBERS = {[0] = 0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12}

describe("a tensor map that PTX builds", function()
  local x

  setup(function()
    x = cute.zeros({40 * 20}, cute.u32)
    for i = 0, 799 do x[i] = i + 1 end
  end)

  for space in pairs(SPACES) do
    it("in " .. space .. " memory has the words of the driver's", function()
      math.randomseed(1024)
      for _ = 1, 12 do
        local rank = math.random(1, 5)
        local p = {type = math.random(0, 12), rank = rank, extent = {},
          stride = {}, box = {}, step = {}, swizzle = math.random(0, 3),
          fill = 0, bytes = 16}
        p.elemtype = NUMBERS[p.type]
        local size = ({[0] = 1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4})[p.type]
        for i = 1, rank do
          p.extent[i], p.step[i] = math.random(1, 9), math.random(1, 8)
          p.box[i] = i == 1 and 32 // size or math.random(1, 4)
          if i > 1 then p.stride[i - 1] = 32 * math.random(1, 100) end
        end
        local _, maps = run(p, {0}, space, {"  mbarrier.arrive.*WAIT:\n",
                                            "  ret;\nWAIT: ret;"}, x)
        p.address = x.iterator.address
        local want = core.encode_tensor_map(p)
        for k = 0, 15 do assert.equal(want[k + 1], maps[k], "word " .. k) end
      end
    end)

    it("in " .. space .. " memory gives the box at the coordinates", function()
      for i, c in ipairs {{0, 0}, {4, 3}, {36, 18}, {-4, -1}, {100, 0}} do
        local p = {rank = 2, extent = {38, 19}, stride = {160}, elemtype = 2,
          box = {8, 6}, step = {1, i % 2 + 1}, swizzle = i % 2,
          bytes = 32 * (6 // (i % 2 + 1))}
        local out = run(p, c, space, nil, x)
        for w = 0, p.bytes // 4 - 1 do
          -- swizzle 32B: bit 4 of the address ^= bit 7
          local at = w ~ (p.swizzle * (w >> 5 & 1) << 2)
          local a = c[1] + at % 8
          local b = c[2] + at // 8 * p.step[2]
          local inside = a >= 0 and a < 38 and b >= 0 and b < 19
          assert.equal(inside and b * 40 + a + 1 or 0, out[w])
        end
      end
    end)
  end

  it("is found at an address that the kernel loads", function()
    local p = {rank = 2, extent = {38, 19}, stride = {160}, elemtype = 2,
               box = {8, 4}, bytes = 128}
    local made = cute.zeros({32}, cute.i64)
    for _, space in ipairs {"global", "shared"} do
      local out = run(p, {4, 1}, space, {"ld.param.u64 %%rd1, %[maps%];",
        "ld.param.u64 %rd11, [maps]; ld.global.u64 %rd1, [%rd11];"}, x,
        made.iterator.address)
      for w = 0, 31 do
        assert.equal((w // 8 + 1) * 40 + 4 + w % 8 + 1, out[w])
      end
      assert.equal(x.iterator.address, made[0])
    end
  end)

  it("is reported if it is not acquired, released or valid", function()
    local p = {rank = 2, extent = {38, 19}, stride = {160}, elemtype = 2,
               box = {8, 4}, bytes = 128}
    local function wrong(want, change, fields, space)
      local q = setmetatable(fields or {}, {__index = p})
      local ok, text = pcall(run, q, {0, 0}, space or "global", change, x)
      assert.is_false(ok)
      text = tostring(text)
      assert.matches(want .. ": byte 0 of global tensor 'maps'", text, 1, true)
    end
    wrong("changed but not released afterwards",
          {"  fence[%w.:]*release[^\n]*\n", ""})
    wrong("changed but not acquired afterwards",
          {"  fence[%w.:]*acquire[^\n]*\n", ""})
    wrong("changed but not acquired afterwards",
          {"  fence[%w.:]*acquire[^\n]*\n", ""}, nil, "shared")
    wrong("holds no valid tensor map", nil, {rank = 3, stride = {160, 160},
      extent = {38, 19, 1}, box = {8, 4, 1}, bytes = 128}, "shared")
  end)
end)
-- SPDX-License-Identifier: MIT
