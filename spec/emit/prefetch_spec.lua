-- Tests the option level_prefetch_size of atoms and of cute.arch.load: their
-- loads and cp.async must prefetch memory into L2.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"
local _ = cute._

-- Copies X to Y by loads and cp.async of 8 to 128 bits with prefetch `size`.
-- Only even threads copy the last 8 of their 64 bytes; the others store zeros.
local function copies(size)
  return function(X, Y)
    local tid = cute.arch.thread_idx()
    local function atom(name, dtype, bits)
      return cute.make_copy_atom(name, dtype, {num_bits_per_copy = bits,
        level_prefetch_size = size})
    end
    local function runs(t, n)
      return cute.make_tensor(t.iterator, cute.make_layout {n, 2048 // n})
    end
    local y = runs(Y, 64)(_, tid)  -- each thread has 64 contiguous bytes
    local r = cute.make_rmem_tensor({64}, cute.u8)
    local function part(n, i)
      return runs(X, n)(_, tid * (64 // n) + i),
        cute.make_tensor(r.iterator + n * i, cute.make_layout {n})
    end
    cute.copy(atom("UniversalCopy", cute.u8, 128), part(16, 0))
    cute.copy(atom("DefaultCopy", cute.u8, 64), part(16, 1))
    cute.copy(atom("UniversalCopy", cute.u8, 32), part(4, 8))
    cute.copy(atom("UniversalCopy", cute.u8, 16), part(2, 18))
    cute.copy(atom("UniversalCopy", cute.u8, 8), part(1, 38))
    r[39] = cute.arch.load(X.iterator + (64 * tid + 39), nil,
                           {level_prefetch_size = size})
    for i = 40, 47 do r[i] = X[64 * tid + i] end
    local s = cute.make_smem_tensor(cute.u8, cute.make_layout {16, 64}, 16)
    local even = cute.make_rmem_tensor({1}, cute.boolean)
    even[0] = cute.eq(tid % 2, 0)
    for i, name in ipairs {"GLOBAL", "ALWAYS"} do
      cute.copy(atom("SM80_CP_ASYNC_CACHE" .. name .. "_ZFILL", cute.u8,
                     i == 1 and 128 or 64),
        cute.make_tensor(runs(X, 16)(_, tid * 4 + 3).iterator + 8 * (i - 1),
                         cute.make_layout(i == 1 and 16 or 8)),
        cute.make_tensor(s(_, tid + 32 * (i - 1)).iterator,
                         cute.make_layout(i == 1 and 16 or 8)),
        i == 2 and even or nil)
    end
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    for i = 0, 7 do
      r[48 + i], r[56 + i] = s({i, tid}), s({i, tid + 32})
    end
    cute.autovec_copy(r, y)
  end
end

local function operands(device)
  local x = kernels.tensor({2048}, cute.u8, function(i) return i * 7 % 251 end)
  local y = cute.zeros({2048}, cute.u8)
  if device then return x:to(device), y:to(device), x end
  return x, y, x
end

local function right(y, x)
  for i = 0, 2047 do
    assert.equal(i % 64 >= 56 and i // 64 % 2 == 1 and 0 or x(i), y(i), i)
  end
end

describe("an L2 prefetch size of a load", function()
  it("is in the text for each width, and only in copies", function()
    local x, y = operands()
    local program = cute.kernel("k", copies "size_256b")(x, y):trace {
      grid = 1, block = 32}
    local text = program:cuda "sm_90a"
    for _, type in ipairs {"uint4", "uint2", "unsigned", "unsigned short"} do
      assert.truthy(text:find("ld_l2<256>((const " .. type .. " *)", 1, true),
                    type)
    end
    assert.truthy(text:find "ld_l2<256>%(X %+ ")
    assert.truthy(text:find("ld.global.L2::256B.u8", 1, true))
    assert.truthy(text:find("cp_async_cg_l2<256, 16, ", 1, true))
    assert.truthy(text:find("cp_async_ca_l2<256, 8, ", 1, true))
    for _, name in ipairs {"copy", "cp.async.cg", "cp.async.zfill"} do
      assert.truthy(program.ir:find(name .. ".L2::256B", 1, true), name)
    end
    -- Loads without the option do not prefetch, nor do targets that lack it.
    local plain = cute.kernel("k", copies())(x, y):trace {grid = 1, block = 32}
    assert.falsy(plain:cuda "sm_90a":find("L2", 1, true))
    local first = cute.kernel("k", function(X, Y)
      Y[0] = cute.arch.load(X.iterator, nil, {level_prefetch_size = "size_64b"})
    end)(x, y):trace {grid = 1, block = 32}
    assert.truthy(first:cuda "sm_80":find("L2::64B", 1, true))
    assert.falsy(first:cuda "sm_75":find("L2::", 1, true))
    if not kernels.compiles(program, {"sm_80", "sm_90a"}) then
      pending "needs NVRTC"
    end
  end)

  it("changes no value", function()
    for _, size in ipairs {"size_64b", "size_128b", "size_256b"} do
      local x, y = operands()
      cute.kernel("k", copies(size))(x, y):launch {grid = 1, block = 32}
      right(y, x)
    end
  end)

  it("changes no value on a GPU #gpu", function()
    for _, size in ipairs {"size_64b", "size_128b", "size_256b"} do
      local X, Y, x = operands "gpu"
      cute.kernel("k", copies(size))(X, Y):launch {grid = 1, block = 32}
      right(Y:to "host", x)
    end
  end)

  it("needs global memory, and a size that exists", function()
    local x, y = operands()
    support.raises("no level_prefetch_size 'size_32b' (size_64b size_128b "
      .. "size_256b)", function()
        cute.make_copy_atom("UniversalCopy", cute.u8,
                            {level_prefetch_size = "size_32b"})
      end)
    local function traced(f) cute.kernel("k", f)(x, y):trace {
      grid = 1, block = 32} end
    support.raises("level_prefetch_size applies to reads of global memory, "
      .. "but the source is in shared memory", function()
        traced(function(_, Y)
          local s = cute.make_smem_tensor(cute.u8, cute.make_layout {1})
          cute.copy(cute.make_copy_atom("UniversalCopy", cute.u8,
            {level_prefetch_size = "size_64b"}), s,
            cute.make_tensor(Y.iterator, cute.make_layout {1}))
        end)
      end)
    support.raises("store: no option 'level_prefetch_size'", function()
      traced(function(_, Y)
        cute.arch.store(Y.iterator, 1, {level_prefetch_size = "size_64b"})
      end)
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
