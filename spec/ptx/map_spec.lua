-- Tests tensor maps of 128 bytes: how they are decoded, and kernels that have
-- such maps as parameters.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"

local function pick(list) return list[math.random(#list)] end

-- bytes of an element for each type of a tensor map
local SIZE = {[0] = 1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4}

-- Returns random parameters of a tensor map. The driver would accept most, but
-- not all, of them.
local function random()
  local p = {im2col = math.random() < 0.4, type = math.random(0, 12),
    rank = math.random(1, 5), interleave = pick {0, 0, 0, 1, 2},
    swizzle = math.random(0, 3), l2 = math.random(0, 3),
    fill = pick {0, 0, 1}, address = math.random(0, (1 << 52) - 1) * 32,
    extent = {}, stride = {}, step = {}}
  if p.im2col or p.interleave > 0 then p.rank = math.random(3, 5) end
  local size = SIZE[p.type]
  for i = 1, p.rank do
    p.extent[i] = math.random(1, pick {8, 300, 1 << 20, 1 << 32})
    p.step[i] = pick {1, 1, 1, 1, math.random(8)}
    if i > 1 then p.stride[i - 1] = math.random(0, (1 << 35) - 1) * 32 end
  end
  local row = pick {16, 16, 32, 64, 128} // size
  if p.im2col then
    local half = ({1 << 15, 1 << 7, 1 << 4})[p.rank - 2]
    p.channels, p.pixels = row, math.random(1, 1024)
    p.lower, p.upper = {}, {}
    for i = 1, p.rank - 2 do
      p.lower[i] = math.random(-half, math.min(half - 1, 3))
      p.upper[i] = math.random(math.max(p.lower[i], -half), half - 1)
    end
  else
    p.box = {row}
    for i = 2, p.rank do p.box[i] = math.random(1, pick {2, 8, 256}) end
    for i = 1, p.rank do
      if p.step[i] > p.box[i] then p.step[i] = 1 end
    end
  end
  return p
end

local function pack(words) return ("<" .. ("i8"):rep(16)):pack(
  table.unpack(words)) end

describe("the bytes of a tensor map", function()
  it("are decoded to the parameters that encode them #long", function()
    math.randomseed(48)
    local seen, n = {}, 0
    for _ = 1, 16000 do
      local p = random()
      local ok, words = pcall(core.encode_tensor_map, p)
      if ok then
        n = n + 1
        local got = core.decode_tensor_map(pack(words))
        got.dtype = nil
        assert.same(p, got)
        assert.same(words, core.encode_tensor_map(got))
        seen["type " .. p.type], seen["rank " .. p.rank] = true, true
        seen["swizzle " .. p.swizzle] = true
        seen[("im2col %s, interleave %d"):format(p.im2col, p.interleave)] = true
      end
    end
    local kinds = 0
    for _ in pairs(seen) do kinds = kinds + 1 end
    assert.equal(13 + 5 + 4 + 6, kinds)
    assert.is_true(n > 2000)
  end)

  it("are rejected, each changed bit, or give another map", function()
    local words = core.encode_tensor_map {type = 9, rank = 3, swizzle = 3,
      address = 0x7f0000000100, extent = {100, 64, 30}, stride = {208, 13312},
      box = {64, 32, 2}}
    local own, wrong, other = pack(words), 0, 0
    for bit = 0, 1023 do
      local at = bit // 8 + 1
      local bytes = own:sub(1, at - 1)
        .. string.char(own:byte(at) ~ 1 << bit % 8) .. own:sub(at + 1)
      local got, message = core.decode_tensor_map(bytes)
      if got then
        other = other + 1
        assert.equal(bytes, pack(core.encode_tensor_map(got)))
      else
        wrong = wrong + 1
        assert.matches("^tensor map: .*%[[%l-]+%]$", message)
      end
    end
    assert.equal(1024, wrong + other)
    assert.is_true(wrong > 600 and other > 150)
  end)

  it("are 128", function()
    local got, why = core.decode_tensor_map(("x"):rep(127))
    assert.is_nil(got)
    assert.equal("a tensor map has 128 bytes, got 127 [bad-argument]", why)
  end)
end)

-- A kernel that loads a box at (c0, c1) and copies it to `out`, word by word.
local PTX = [[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 m[128], .param .u64 out,
                  .param .u32 c0, .param .u32 c1, .param .u32 bytes)
{
  .shared .align 1024 .b8 s[8192];
  .shared .align 8 .b64 bar;
  .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<6>;
  mov.b64 %rd0, m;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r0, [c0];
  ld.param.u32 %r1, [c1];
  ld.param.u32 %r2, [bytes];
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, s;
  mov.u32 %r5, bar;
  setp.ne.u32 %p0, %r3, 0;
  @%p0 bra WAIT;
  mbarrier.init.shared::cta.b64 [%r5], 1;
  fence.proxy.async.shared::cta;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], %r2;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r4], [%rd0, {%r0, %r1}], [%r5];
WAIT:
  bar.sync 0;
TRY:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r5], 0;
  @!%p1 bra TRY;
  shl.b32 %r6, %r3, 2;
COPY:
  setp.ge.u32 %p2, %r6, %r2;
  @%p2 bra DONE;
  add.u32 %r7, %r4, %r6;
  ld.shared.u32 %r8, [%r7];
  cvt.u64.u32 %rd2, %r6;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r8;
  add.u32 %r6, %r6, 128;
  bra COPY;
DONE:
  ret;
}
]]

local function bytes_of(x, fields)
  local p = {type = 2, rank = 2, address = x.iterator.address,
             extent = {20, 12}, stride = {96}, box = {8, 4}}
  for k, v in pairs(fields or {}) do p[k] = v end
  return pack(core.encode_tensor_map(p))
end

describe("a kernel of PTX", function()
  local module, x

  setup(function()
    module = cute.ptx(PTX)
    x = cute.zeros({24 * 12}, cute.u32)
    for i = 0, 24 * 12 - 1 do x[i] = i + 1 end
  end)

  local function run(m, c0, c1)
    local out = cute.zeros({32}, cute.u32)
    module:kernel "k"(m, out, c0, c1, 128):launch {
      grid = 1, block = 32, device = "sim"}
    return out
  end

  it("takes a tensor map as bytes and reads its box", function()
    for _, c in ipairs {{0, 0}, {4, 5}, {16, 10}, {-4, -1}, {100, 0}} do
      local out = run({map = bytes_of(x), tensor = x}, c[1], c[2])
      for j = 0, 3 do
        for i = 0, 7 do
          local a, b = c[1] + i, c[2] + j
          local inside = a >= 0 and a < 20 and b >= 0 and b < 12
          assert.equal(inside and b * 24 + a + 1 or 0, out[j * 8 + i])
        end
      end
    end
  end)

  it("moves elements by the swizzle of the bytes", function()
    local out = run({map = bytes_of(x, {swizzle = 1}), tensor = x}, 0, 0)
    for word = 0, 31 do
      -- a swizzle of 32 bytes XORs bit 4 of the address with bit 7
      local from = word ~ (word >> 5 & 1) << 2
      assert.equal(from // 8 * 24 + from % 8 + 1, out[word])
    end
  end)

  it("finds the address of the bytes among its tensors", function()
    local out = cute.zeros({24 * 13}, cute.u32)
    for i = 0, 24 * 13 - 1 do out[i] = i end
    local m = bytes_of(x, {address = out.iterator.address + 96})
    module:kernel "k"(m, out, 4, 0, 128):launch {
      grid = 1, block = 32, device = "sim"}
    assert.equal(24 + 4, out[0])
  end)

  it("rejects bytes without a tensor, or beyond it, in a sentence", function()
    local function wrong(m, want)
      local message = support.message(function() run(m, 0, 0) end)
      assert.matches("^entry k: parameter m: " .. want, message)
      assert.matches("%[bad%-argument%]", message)
    end
    wrong(bytes_of(x, {address = 1 << 40}), "the map's address 0x10000000000 "
      .. "is in no tensor of this call %[bad%-argument%]\n  name the tensor")
    wrong({map = bytes_of(x, {extent = {20, 13}, stride = {96}}), tensor = x},
      "the map describes 1232 bytes, but its tensor has 1152")
    wrong({map = ("\xff"):rep(128), tensor = x}, "tensor map: ")
    wrong({map = "abc", tensor = x}, "a tensor map has 128 bytes, got 3")
    wrong({map = bytes_of(x), tensor = 5},
      "the field `tensor` of {map =, tensor =} is 5, not a tensor")
    wrong({map = bytes_of(x), tensr = x},
          "{map =, tensor =} has no field \"tensr\"")
    wrong(("\0"):rep(128), "tensor map: ")
  end)
end)
-- Parameters of a tensor map of an image of 5 x 4 pixels with 8 channels. One
-- copy loads 4 pixels.
local images = {rank = 4, extent = {8, 5, 4, 1}, stride = {32, 160, 640},
  im2col = true, lower = {0, 0}, upper = {0, 0}, step = {1, 1, 1, 1},
  channels = 8, pixels = 4}
local unfolds = ".4d.shared::cluster.global.im2col"

-- Returns a function that launches PTX with another form of the copy.
local function other(x, fields, form, coordinates, offsets)
  local text = PTX:gsub("%.2d%.shared::cluster%.global", form)
    :gsub("{%%r0, %%r1}", coordinates)
    :gsub("%[%%r5%];\nWAIT", "[%%r5]" .. offsets .. ";\nWAIT")
  local kernel = cute.ptx(text):kernel "k"
  return function(c0, c1)
    local out = cute.zeros({32}, cute.u32)
    kernel({map = bytes_of(x, fields), tensor = x}, out, c0, c1, 128):launch {
      grid = 1, block = 32, device = "sim"}
    return out
  end
end

describe("a copy of PTX through a tensor map", function()
  local x = cute.zeros({24 * 12}, cute.u32)
  for i = 0, 24 * 12 - 1 do x[i] = i + 1 end

  it("unfolds the pixels of an image by a map of im2col", function()
    for _, c in ipairs {{0, 0, 0, 0}, {3, 1, 0, 0}, {4, 3, 0, 0},
                        {1, 1, 2, 1}} do
      local w, h, right, down = table.unpack(c)
      local out = other(x, images, unfolds, "{0, %%r0, %%r1, 0}",
                        (", {%d, %d}"):format(right, down))(w, h)
      for q = 0, 3 do
        -- the index in the image of pixel q of the box, before the offsets are
        -- added
        local at = h * 5 + w + q
        local a, b = at % 5 + right, at // 5 + down
        for i = 0, 7 do
          assert.equal(a < 5 and b < 4 and (b * 5 + a) * 8 + i + 1 or 0,
                       out[8 * q + i])
        end
      end
    end
  end)

  it("reports an mbarrier outside of shared memory", function()
    local text, n = PTX:gsub("%], %[%%r5%];\nWAIT", "], [%%r6];\nWAIT")
    assert.equal(1, n)
    text = text:gsub("  setp.ne", "  mov.u32 %%r6, 0x40000000;\n%0", 1)
    local message = support.message(function()
      cute.ptx(text):kernel "k"({map = bytes_of(x), tensor = x},
        cute.zeros({32}, cute.u32), 0, 0, 0):launch {grid = 1, block = 32,
                                                     device = "sim"}
    end)
    assert.matches("write outside shared memory: byte 1073741824 to", message)
  end)

  it("rejects a map that does not fit the copy, in a sentence", function()
    local three = {rank = 3, extent = {20, 12, 1}, stride = {96, 1152},
                   box = {8, 4, 1}}
    local four = "{%%r0, %%r1, %%r0, %%r1}"
    local function wrong(fields, form, coordinates, offsets, want)
      local message = support.message(function()
        other(x, fields, form, coordinates, offsets)(0, 0)
      end)
      assert.matches(want, message)
    end
    wrong(three, "%0", "%0", "", "has 2 coordinates, but the tensor map has 3 "
      .. "modes")
    wrong(images, "%0", "%0", "", "has 2 coordinates, but the tensor map has 4 "
      .. "modes")
    wrong(images, ".4d.shared::cluster.global", four, "",
          "needs a tensor map of tiles, but this one is of im2col")
    wrong({rank = 4, extent = {8, 5, 4, 1}, stride = {32, 160, 640},
           box = {8, 4, 1, 1}}, unfolds, four, ", {0, 0}",
          "needs a tensor map of im2col, but this one is of tiles")
    wrong(images, unfolds, four, ", {0, 0, 0}",
          "has 3 offsets; 4 coordinates need 2")
    wrong(images, unfolds, four, "", "operand")
    wrong(images, unfolds .. "::w", four, ", {0, 0}", "im2col::w")
  end)
end)
-- SPDX-License-Identifier: MIT
