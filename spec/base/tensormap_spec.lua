-- Tests tensor maps against recorded results of a driver: the message for each
-- broken rule, and the bytes of tensor maps. (`make golden` compares thousands
-- of tensor maps, valid and invalid ones.)
local core = require "cute.core"
local support = require "spec.support"

-- Returns the parameters of a tensor map that the driver accepts, with some
-- fields changed.
local function tiled(fields)
  local p = {type = 9, rank = 3, address = 0x7f0000000100,
             extent = {100, 64, 30}, stride = {208, 13312},
             box = {64, 32, 2}, step = {1, 1, 1}, swizzle = 3}
  for k, v in pairs(fields) do p[k] = v end
  return p
end

local function im2col(fields)
  local p = tiled {im2col = true, rank = 4, extent = {64, 14, 12, 8},
                   stride = {128, 1792, 21504}, step = {1, 1, 1, 1},
                   lower = {-1, -2}, upper = {1, 2}, channels = 64,
                   pixels = 128}
  for k, v in pairs(fields) do p[k] = v end
  return p
end

local RULES = {
  {tiled {type = 13}, "element type 13 does not exist: valid "
    .. "values are 0 to 12 (u8 u16 u32 i32 "
    .. "u64 i64 f16 f32 f64 bf16 f32.ftz tf32 tf32.ftz) [bad-argument]"},
  {tiled {type = 14, sm100 = true}, "element type 14 does not exist: valid "
    .. "values are 0 to 13 (u8 u16 u32 i32 "
    .. "u64 i64 f16 f32 f64 bf16 f32.ftz tf32 tf32.ftz u4) [bad-argument]"},
  {tiled {type = 13, sm100 = true, extent = {99, 64, 30}}, "mode 0 has 99 "
    .. "elements of 4 bits: they must fill bytes [misaligned]"},
  {tiled {type = 13, sm100 = true, box = {33, 32, 2}}, "rows of the box are "
    .. "16.5 bytes: they must be a multiple of 16 [misaligned]"},
  {tiled {type = 13, sm100 = true, fill = 1, box = {32, 8, 2}},
    "NaN can fill only floats, but the elements are integers [type-mismatch]"},
  {tiled {interleave = 3},
    "interleave 3 does not exist: valid "
    .. "values are 0 to 2 (none, 16, 32 bytes) [bad-argument]"},
  {tiled {swizzle = 4},
    "swizzle 4 does not exist: valid "
    .. "values are 0 to 3 (none, 32, 64, 128 bytes) [bad-argument]"},
  {tiled {l2 = -1}, "L2 promotion -1 does not exist: valid "
    .. "values are 0 to 3 "
    .. "(none, 64, 128, 256 bytes) [bad-argument]"},
  {tiled {fill = 2}, "fill 2 does not exist: valid "
    .. "values are 0 to 1 (zeros, NaN) [bad-argument]"},
  {tiled {rank = 6},
    "rank 6 does not exist: valid "
    .. "values are 1 to 5 (modes of a tensor) [bad-argument]"},
  {tiled {rank = 2, interleave = 1}, "an interleave takes tensors of 3 modes "
    .. "or more, this one has 2 [shape-mismatch]"},
  {im2col {rank = 2}, "im2col takes tensors of 3 modes or more, this one has "
    .. "2 [shape-mismatch]"},
  {tiled {address = 0x108},
    "the address 0x108 is not a multiple of 16 bytes [misaligned]"},
  {tiled {address = 0x110, interleave = 2},
    "the address 0x110 is not a multiple of 32 bytes [misaligned]"},
  {tiled {address = 1 << 57},
    "the address 0x200000000000000 has more than 57 bits [limit]"},
  {tiled {extent = {100, 0, 30}},
    "mode 1 has 0 elements: 1 to 2^32 are possible [limit]"},
  {tiled {extent = {100, 64, (1 << 32) + 1}},
    "mode 2 has 4294967297 elements: 1 to 2^32 are possible [limit]"},
  {tiled {stride = {200, 13312}},
    "the stride of mode 1, 200 bytes, is not a multiple of 16 [misaligned]"},
  {tiled {stride = {208, 1 << 40}}, "the stride of mode 2, 1099511627776 "
    .. "bytes: 0 to 2^40 - 1 are possible [limit]"},
  {tiled {step = {1, 9, 1}},
    "the element stride of mode 1, 9: 1 to 8 are possible [limit]"},
  {tiled {type = 2, box = {32, 32, 2}, fill = 1},
    "NaN can fill only floats, but the elements are integers [type-mismatch]"},
  {tiled {box = {64, 257, 2}}, "the box has 257 elements of mode 1: a copy "
    .. "takes 1 to 256 [limit]"},
  {tiled {box = {60, 32, 2}}, "rows of the box are 120 bytes: they must be "
    .. "a multiple of 16 [misaligned]"},
  {tiled {box = {72, 32, 2}}, "rows of the box are 144 bytes: a swizzle of "
    .. "128 bytes allows no longer rows [shape-mismatch]"},
  {tiled {box = {64, 256, 9}}, "the box has 294912 bytes: shared memory has "
    .. "233472 [smem-budget]"},
  {im2col {channels = 257},
    "257 channels: a copy takes 1 to 256 [limit]"},
  {im2col {pixels = 1025}, "1025 pixels: a copy takes 1 to 1024 [limit]"},
  {im2col {lower = {-1, -129}}, "the lower corner of spatial mode 1, -129: "
    .. "with 2 of them -128 to 127 are possible [limit]"},
  {im2col {upper = {1, 128}}, "the upper corner of spatial mode 1, 128: with 2 "
    .. "of them -128 to 127 are possible [limit]"},
  {im2col {lower = {7, 0}, upper = {-7, 0}}, "corners 7 and -7 leave no "
    .. "element of the 14 elements of spatial mode 0 [shape-mismatch]"},
  {im2col {extent = {64, 1 << 31, 12, 8}}, "corners -1 and 1 leave no "
    .. "element of the 2147483648 elements of spatial mode 0 [shape-mismatch]"},
}

-- Parameters and a driver's words, the last six of which are 0.
local ENCODED = {
  {{type = 12, rank = 5, address = 0x7f00004d74e0,
    extent = {100, 64, 4959, 4056, 1024},
    stride = {400, 25600, 126950400, 514910822400}, box = {28, 1, 128, 8, 1},
    step = {1, 6, 1, 1, 1}, l2 = 2},
   "7f00004d74e0 1900050440 7911c000000640 70007e313a00 "
   .. "3f00000063 fd70000135e 1b000028000003ff 77f00 0 10"},
  {{im2col = true, type = 8, rank = 5, address = 0x7f000070efa0,
    extent = {256, 256, 64, 1000, 3826},
    stride = {2048, 524288, 33554432, 33554432000}, lower = {-4, 0, 1},
    upper = {-4, 4, -4}, channels = 16, pixels = 41, step = {1, 1, 1, 1, 1},
    interleave = 2, swizzle = 3},
   "7f000070efa0 80000074c1 20000000008000 7d000000 "
   .. "ff000000ff 3e70000003f f00000000000ef1 28709c041c 1480 400"},
  {{type = 9, rank = 1, address = 0x7f00002a9a00, extent = {64}, box = {8},
    step = {1}, swizzle = 1, l2 = 1, fill = 1},
   "7f00002a9a00 2a500 0 0 "
   .. "3f 0 700000000000000 0 10 100"},
}

describe("a tensor map", function()
  it("is what the driver's rules allow", function()
    for _, fields in ipairs {tiled {}, im2col {}, tiled {fill = 1},
                             tiled {stride = {0, (1 << 40) - 16}},
                             tiled {address = (1 << 57) - 16},
                             tiled {swizzle = 0, box = {256, 228, 2}},
                             tiled {interleave = 1, box = {72, 32, 2}},
                             im2col {lower = {7, 0}, upper = {-6, 0}}} do
      assert.equal(16, #core.encode_tensor_map(fields))
    end
  end)

  it("names the rule that it breaks", function()
    for _, case in ipairs(RULES) do
      local message = support.message(function()
        core.encode_tensor_map(case[1])
      end)
      assert.equal("tensor map: " .. case[2], message)
    end
  end)

  it("is encoded as the driver does it", function()
    for i, case in ipairs(ENCODED) do
      local words = core.encode_tensor_map(case[1])
      local text = ("%x "):rep(16):format(table.unpack(words))
      assert.equal(case[2] .. (" 0"):rep(6) .. " ", text, "case " .. i)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
