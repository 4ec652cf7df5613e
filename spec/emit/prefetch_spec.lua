-- Tests the options level_prefetch_size and level2_eviction_priority of atoms
-- and of cute.arch.load: their loads and cp.async must prefetch memory into L2,
-- or change which lines L2 evicts.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"
local _ = cute._

-- Copies X to Y by loads and cp.async of 8 to 128 bits with the option `name`.
-- Only even threads copy the last 8 of their 64 bytes; the others store zeros.
local function copies(value, name)
  name = name or "level_prefetch_size"
  return function(X, Y)
    local tid = cute.arch.thread_idx()
    local function atom(copy, dtype, bits)
      return cute.make_copy_atom(copy, dtype, {num_bits_per_copy = bits,
                                               [name] = value})
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
    r[39] = cute.arch.load(X.iterator + (64 * tid + 39), nil, {[name] = value})
    for i = 40, 47 do r[i] = X[64 * tid + i] end
    local s = cute.make_smem_tensor(cute.u8, cute.make_layout {16, 64}, 16)
    local even = cute.make_rmem_tensor({1}, cute.boolean)
    even[0] = cute.eq(tid % 2, 0)
    for i, where in ipairs {"GLOBAL", "ALWAYS"} do
      local async = name == "level_prefetch_size" and atom
        or cute.make_copy_atom
      cute.copy(async("SM80_CP_ASYNC_CACHE" .. where .. "_ZFILL", cute.u8,
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

local VALUES = {size_64b = "level_prefetch_size",
                size_128b = "level_prefetch_size",
                size_256b = "level_prefetch_size",
                evict_first = "level2_eviction_priority",
                evict_last = "level2_eviction_priority",
                evict_normal = "level2_eviction_priority"}

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
    for value, name in pairs(VALUES) do
      local x, y = operands()
      cute.kernel("k", copies(value, name))(x, y):launch {grid = 1, block = 32}
      right(y, x)
    end
  end)

  it("changes no value on a GPU #gpu", function()
    for value, name in pairs(VALUES) do
      local X, Y, x = operands "gpu"
      cute.kernel("k", copies(value, name))(X, Y):launch {grid = 1, block = 32}
      right(Y:to "host", x)
    end
  end)

  it("is not combined with a priority", function()
    support.raises("pass either level_prefetch_size or "
      .. "level2_eviction_priority, not both", function()
        cute.make_copy_atom("UniversalCopy", cute.u8, {
          level_prefetch_size = "size_64b",
          level2_eviction_priority = "evict_last"})
      end)
  end)

  it("needs global memory, and a size that exists", function()
    local x, y = operands()
    support.raises("level_prefetch_size = 'size_32b'; size_64b, size_128b or "
      .. "size_256b is needed", function()
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

describe("an L2 eviction priority of a load", function()
  local function traced(value, f)
    local x, y = operands()
    return cute.kernel("k", f or copies(value, "level2_eviction_priority"))(
      x, y):trace {grid = 1, block = 32}
  end

  it("is in the text for each width, and only in copies", function()
    for value, last in pairs {evict_last = "true", evict_first = "false"} do
      local program = traced(value)
      local text = program:cuda "sm_90a"
      for _, type in ipairs {"uint4", "uint2", "unsigned", "unsigned short"} do
        assert.truthy(text:find(("ld_policy<%s>((const %s *)"):format(last,
          type), 1, true), type)
      end
      assert.truthy(text:find("ld_policy<" .. last .. ">%(X %+ "))
      assert.truthy(text:find("ld.global.L2::cache_hint.u8", 1, true))
      for _, name in ipairs {"copy", "ld"} do
        assert.truthy(program.ir:find(name .. ".L2::" .. value, 1, true), name)
      end
      if not kernels.compiles(program, {"sm_80", "sm_90a", "sm_120a"}) then
        pending "needs NVRTC"
      end
    end
    assert.falsy(traced "evict_normal":cuda "sm_90a":find("policy", 1, true))
    local first = traced(nil, function(X, Y)
      Y[0] = cute.arch.load(X.iterator, nil,
                            {level2_eviction_priority = "evict_first"})
    end)
    assert.truthy(first:cuda "sm_80":find("L2::cache_hint", 1, true))
    assert.falsy(first:cuda "sm_75":find("L2::", 1, true))
  end)

  it("needs no other access of its kind", function()
    local program = traced(nil, function(X, Y)
      local function sixteen(t)
        return cute.make_tensor(t.iterator, cute.make_layout {16})
      end
      local r = cute.make_rmem_tensor({16}, cute.u8)
      cute.copy(cute.make_copy_atom("UniversalCopy", cute.u8, {
        num_bits_per_copy = 128, level2_eviction_priority = "evict_last"}),
        sixteen(X), r)
      cute.autovec_copy(r, sixteen(Y))
    end)
    if not kernels.compiles(program, {"sm_80", "sm_90a"}) then
      pending "needs NVRTC"
    end
  end)

  it("may have a prefetch size, a cache operator and an order", function()
    local all = {level2_eviction_priority = "evict_first",
                 level_prefetch_size = "size_64b"}
    for key, value in pairs {cop = "cg", sem = "acquire"} do
      local o = {[key] = value}
      for k, v in pairs(all) do o[k] = v end
      local program = traced(nil, function(X, Y)
        Y[0] = cute.arch.load(X.iterator, nil, o)
      end)
      assert.truthy(program:cuda "sm_90a":find("L2::cache_hint.L2::64B", 1,
                                               true))
      if not kernels.compiles(program, {"sm_80", "sm_90a"}) then
        pending "needs NVRTC"
      end
    end
  end)

  it("needs global memory, and a priority that exists", function()
    support.raises("level2_eviction_priority = 'first'; evict_normal, "
      .. "evict_first or evict_last is needed", function()
        cute.make_copy_atom("UniversalCopy", cute.u8,
                            {level2_eviction_priority = "first"})
      end)
    support.raises("level2_eviction_priority applies to reads of global "
      .. "memory, but the source is in shared memory", function()
        traced(nil, function(_, Y)
          local s = cute.make_smem_tensor(cute.u8, cute.make_layout {1})
          cute.copy(cute.make_copy_atom("UniversalCopy", cute.u8,
            {level2_eviction_priority = "evict_last"}), s,
            cute.make_tensor(Y.iterator, cute.make_layout {1}))
        end)
      end)
    for _, name in ipairs {"ALWAYS", "GLOBAL_ZFILL"} do
      support.raises("SM80_CP_ASYNC_CACHE" .. name .. ": a cp.async cannot "
        .. "have a level2_eviction_priority, because ptxas before 13.4 makes "
        .. "an illegal instruction of it", function()
          cute.make_copy_atom("SM80_CP_ASYNC_CACHE" .. name, cute.u8, {
            num_bits_per_copy = 128, level2_eviction_priority = "evict_last"})
        end)
    end
    support.raises("store: no option 'level2_eviction_priority'", function()
      traced(nil, function(_, Y)
        cute.arch.store(Y.iterator, 1,
                        {level2_eviction_priority = "evict_last"})
      end)
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
