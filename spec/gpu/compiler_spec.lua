-- Text that NVRTC 13 or its ptxas makes something else of, and what is emitted
-- in its place.
local cute = require "cute"
local jit = require "cute.jit"
local T = require "spec.kernels"
local arch = cute.arch

-- A load of constants or of what was just written, as a condition says.
local choose = cute.kernel("choose", function(x, y, z)
  local t = arch.thread_idx()
  y[16 * t + 7] = x[8 * t + 3] + 1
  z[t] = cute.where(cute.lt(x[8 * t], x[8 * t + 1]), x[8 * t + 7],
                    y[16 * t + 7])
end)

local branch = cute.kernel("branch", function(x, y, z)
  local t = arch.thread_idx()
  local v = x[8 * t] * 0
  y[16 * t + 7] = x[8 * t + 3] + 1
  cute.when(cute.lt(x[8 * t], x[8 * t + 1]), function() v = x[8 * t + 7] end,
            function() v = y[16 * t + 7] end)
  z[t] = v
end)

-- Down, and up, to a negated value.
local function counting(first, sign)
  return cute.kernel("counting", function(x, y, z)
    local t = arch.thread_idx()
    local sum = x[8 * t + 4]
    local n = x[8 * t + 6]:to(cute.i32) & 7
    for _ in cute.range(first, -n, sign) do sum = sum + x[8 * t + 5] end
    z[t] = sum
    y[t] = sum
  end)
end

local CASES = {choose = choose, branch = branch, down = counting(3, -1),
               ["down by twos"] = counting(9, -2), up = counting(-12, 1),
               ["up by threes"] = counting(-12, 3)}

local function operands()
  return T.tensor({256}, cute.f32, function(i) return i * 37 % 23 end),
    cute.zeros({512}, cute.f32), cute.zeros({32}, cute.f32)
end

local function results(kernel, device)
  local x, y, z = operands()
  assert(kernel(x, y, z):launch {grid = 1, block = 32, device = device})
  local list = {}
  for i = 0, 31 do list[i] = z[i] end
  return list
end

describe("what NVRTC gets wrong", function()
  it("is not asked for: constants and what is written, in one load", function()
    if not jit.version() then return pending "no NVRTC" end
    for _, kernel in ipairs {choose, branch} do
      local x, y, z = operands()
      local ptx = assert(kernel(x, y, z):trace {block = 32}:compile "sm_90a")
        .ptx
      -- every load past the coherent caches has an address that nothing chose
      local chosen = {}
      for name in ptx:gmatch "selp%.b64%s+(%%rd%d+)" do chosen[name] = true end
      for address in ptx:gmatch "ld%.global%.nc[%w.]*%s+[^,]+, %[(%%rd%d+)" do
        assert.is_nil(chosen[address])
      end
    end
  end)

  it("is not asked for: loops down that ptxas unrolls", function()
    local function pragma(first, limit, step)
      local text = cute.kernel("k", function(x)
        local n = limit or arch.thread_idx()
        for i in cute.range(first, n, step) do x[i] = 1.0 end
      end)(cute.zeros({99}, cute.f32)):trace {block = 32}.source
      return text:match "#pragma unroll[^\n]*"
    end
    assert.equal("#pragma unroll 1", pragma(9, nil, -1))
    assert.equal("#pragma unroll 1", pragma(40, nil, -2))
    assert.is_nil(pragma(9, -90, -1))
    assert.is_nil(pragma(0, nil, 1))
  end)

  for name, kernel in pairs(CASES) do
    it(("is right on the card: %s #gpu"):format(name), function()
      assert.same(results(kernel, "sim"), results(kernel, "gpu"))
    end)
  end
end)
