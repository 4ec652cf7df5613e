--- PTX that builds a tensor map in memory, field by field, and copies a box
-- through it.
local mapbuild = {}

--- State spaces in which a tensor map may be built.
mapbuild.SPACES = {"global", "shared", "generic"}

-- A kernel that copies a box at (c0, c1) of the tensor at x to `out`. Its %s
-- and %d stand for the bytes of the box, the instructions that build the map in
-- `maps`, fences, the rank, and the coordinates.
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

-- for each space: the suffix of its instructions, and the register with the
-- map's address
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

--- Returns the PTX of an entry k(x, maps, out, c0, c1) that builds the map.
---@param p table {rank, extent, stride, box, step, elemtype, swizzle, bytes}
---@param space string
---@return string
function mapbuild.text(p, space)
  return (PTX:format(p.bytes, building(p, space),
    (space == "global" and RELEASE .. "\n" or "") .. ACQUIRE, p.rank,
    p.rank == 1 and "%r0" or "%r0, %r1"))
end

return mapbuild
-- SPDX-License-Identifier: MIT
