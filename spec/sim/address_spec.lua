-- Tests memory accesses by make_ptr, with an address that a kernel loads or
-- computes.
local cute = require "cute"
local kernels = require "spec.kernels"
local random = require "spec.random"
local support = require "spec.support"
local arch = cute.arch

local TARGETS = {"sm_80", "sm_90a"}

-- Returns an i64 tensor that contains the addresses of the tensors in a list.
local function table_of(list, device)
  local t = cute.zeros({#list}, "i64")
  for i, x in ipairs(list) do t[i - 1] = x.address end
  return device and t:to(device) or t
end

local function ramp(n, first, dtype)
  local t = cute.zeros({n}, dtype or "f32")
  for i = 0, n - 1 do t[i] = first + i end
  return t
end

-- Returns a tensor of integers from -3 to 4. Neighbours usually differ.
local function integers(n, seed)
  local t = cute.zeros({n}, "f32")
  for i = 0, n - 1 do t[i] = (i * i * 7 + seed * 13 + i // 3) % 8 - 3 end
  return t
end

local function at(ptrs, i, n, opts)
  return cute.make_tensor(cute.make_ptr("f32", ptrs[i], opts),
                          cute.make_layout {n})
end

-- Computes c = a * b + c for n x n matrices. Each block reads the addresses of
-- its matrices from as, bs and cs.
local matrices = cute.kernel("matrices", function(as, bs, cs, n)
  local l = cute.make_layout({n, n}, {n, 1})
  local block, t = arch.block_idx(), arch.thread_idx()
  local function matrix(ptrs)
    return cute.make_tensor(cute.make_ptr("f32", ptrs[block],
      {assumed_align = 16}), l)
  end
  local a, b, c = matrix(as), matrix(bs), matrix(cs)
  local i, j = t // n, t % n
  local sum = c[{i, j}]
  for k in cute.range(n) do sum = sum + a[{i, k}] * b[{k, j}] end
  c[{i, j}] = sum
end)

local function check_matrices(device)
  local a, b, c, want = {}, {}, {}, {}
  local N, there = 8, device == "gpu"
  local function put(list, x)
    list[#list + 1] = there and x:to "gpu" or x
    return x
  end
  for k = 1, 5 do
    local x = put(a, integers(N * N, k))
    local y = put(b, integers(N * N, 9 + k))
    put(c, ramp(N * N, k))
    want[k] = {}
    for i = 0, N - 1 do
      for j = 0, N - 1 do
        local sum = k + i * N + j
        for q = 0, N - 1 do sum = sum + x(i * N + q) * y(q * N + j) end
        want[k][i * N + j] = sum
      end
    end
  end
  local where = there and "gpu"
  local call = matrices(table_of(a, where), table_of(b, where),
                        table_of(c, where), N)
  call:launch {grid = 5, block = N * N, device = device}
  for k = 1, 5 do
    local z = c[k]:to "host"
    for i = 0, N * N - 1 do assert.equal(want[k][i], z(i)) end
  end
  return call
end

describe("memory at addresses", function()
  it("is that of tensors whose addresses a tensor has", function()
    local program = check_matrices "sim":trace {block = 64}
    kernels.compiles(program, TARGETS)
    assert.is_nil(program.source:find("__restrict__", 1, true))
    assert.matches("float *const a = (float *)as[", program.source, 1, true)
  end)

  it("is so on a GPU #gpu", function() check_matrices "gpu" end)

  -- Two kernels make the same random accesses to three tensors. One kernel
  -- accesses three parts of one tensor. The other kernel reads the addresses of
  -- three tensors.
  for seed = 1, support.skipped(1, 2) and 4 or 12 do
    it("gives what names give, at random: seed " .. seed, function()
      local g = setmetatable({state = seed * 7919 + 12345}, random.Gen)
      local N, steps = 32, {}
      for _ = 1, 6 do
        steps[#steps + 1] = {g:r(5), g:r(3), g:r(3), g:r(N) - 1, g:r(3)}
      end
      local function body(view)
        return function(where, out)
          local t = arch.thread_idx()
          local s = cute.make_smem_tensor("f32", cute.make_layout {4 * N}, 16)
          local sum = cute.var(0.0, "f32")
          for _, step in ipairs(steps) do
            local kind, p, q, shift, m = table.unpack(step)
            local x, y = view(where, (t * m + p) % 3), view(where, q - 1)
            local i = (t + shift) % N
            if kind == 1 then
              sum.value = sum.value + x[i]
            elseif kind == 2 then
              y[i] = sum.value + p
            elseif kind == 3 then
              arch.atomic_add(y.iterator + i, 1.0)
            elseif kind == 4 then
              local r = cute.make_rmem_tensor({4}, "f32")
              cute.autovec_copy(cute.local_tile(x, {4}, {i // 4}), r)
              sum.value = sum.value + r[0] + 2 * r[3]
            else
              cute.copy(cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(),
                                            "f32", 128),
                        cute.local_tile(x, {4}, {i // 4}),
                        cute.local_tile(s, {4}, {t}))
              arch.cp_async_commit_group()
              arch.cp_async_wait_group(0)
              sum.value = sum.value + s[4 * t + 1]
            end
            arch.sync_threads()
          end
          out[t] = sum.value
        end
      end
      local all = ramp(3 * N, 1)
      local named, by_address = cute.zeros({N}, "f32"), cute.zeros({N}, "f32")
      local l = cute.make_layout {N}
      cute.kernel("named", body(function(x, k)
        return cute.make_tensor(x.iterator + k * N, l)
      end))(all, named):launch {grid = 1, block = N, device = "sim"}
      local three = {ramp(N, 1), ramp(N, 1 + N), ramp(N, 1 + 2 * N)}
      local call = cute.kernel("address", body(function(x, k)
        return at(x, k, N, {assumed_align = 16})
      end))(table_of(three), by_address)
      call:launch {grid = 1, block = N, device = "sim"}
      for i = 0, N - 1 do assert.equal(named(i), by_address(i)) end
      for k = 0, 3 * N - 1 do
        assert.equal(all(k), three[k // N + 1](k % N))
      end
      kernels.compiles(call:trace {block = N}, TARGETS)
    end)
  end
end)

describe("an address", function()
  local function report(k, ...)
    return support.report(k(...):launch {grid = 1, block = 32, device = "sim",
                                         faults = "return"})
  end
  local function first(address, align)
    local t, o = cute.zeros({1}, "i64"), cute.zeros({32}, "f32")
    t[0] = address
    return report(cute.kernel("load", function(ptrs, out)
      local i = arch.thread_idx()
      out[i] = at(ptrs, 0, 32, {assumed_align = align})[i]
    end), t, o).reports[1]
  end

  it("that lies in no tensor is reported", function()
    local x = ramp(32, 0)
    local p = x.address
    local r = first(0)
    assert.equal("out-of-bounds", r.kind)
    assert.matches("^read at address 0x0, which belongs to no argument and to "
      .. "no tensor whose address was taken$", r.message)
    assert.equal("out-of-bounds", first(p + (1 << 40)).kind)
    r = first(p + 4)  -- only the last lane's element is outside of the tensor
    assert.equal("out-of-bounds", r.kind)
    assert.matches(("0x%x"):format(p + 128), r.message, 1, true)
    assert.is_nil(first(p))
    assert.matches("read at address 0x%x+, which is not a multiple of 4 bytes",
      first(p + 2).message)
    r = first(p, 256)
    if p % 256 ~= 0 then assert.equal("misaligned", r.kind) end
  end)

  it("at either end of 64 bits is reported", function()
    for _, address in ipairs {math.mininteger, math.mininteger + 4, -4,
                              math.maxinteger - 3} do
      local r = first(address)
      assert.equal("out-of-bounds", r.kind)
      assert.matches(("read at address 0x%x,"):format(address), r.message,
                     1, true)
    end
  end)

  it("never leads to the memory of another tensor", function()
    local low, high, o = ramp(32, 0), ramp(32, 0), cute.zeros({32}, "f32")
    if low.address > high.address then low, high = high, low end
    local apart = (high.address - low.address) // 4
    local k = cute.kernel("k", function(ptrs, out, n)
      local t = arch.thread_idx()
      out[t] = at(ptrs, 0, 1 << 24)[t + n]
    end)
    for _, ptrs in ipairs {table_of {low}, table_of {low, high}} do
      local r = report(k, ptrs, o, apart).reports[1]
      assert.equal("out-of-bounds", r and r.kind)
      assert.equal(("read at address 0x%x, which belongs to a different "
        .. "tensor than the pointer 0x%x that it was computed from"):format(
          high.address, low.address),
        r.message)
    end
    assert.same({}, report(k, table_of {high}, o, 0).reports)
    -- An address in a part of a buffer gives access to the whole buffer.
    local parts = cute.make_tensor(low.iterator + 8, cute.make_layout {24})
    assert.same({}, report(k, table_of {parts}, o, -8).reports)
  end)

  it("of closed memory is reported", function()
    -- The buffer is large, so that no later buffer of the test gets its
    -- address.
    local b = cute.buffer("f32", 1 << 20)
    local x = cute.make_tensor(b, cute.make_layout {32})
    x:fill(1)
    local p = x.address
    assert.is_nil(first(p))
    b:close()
    assert.equal("out-of-bounds", first(p).kind)
  end)

  it("does not hide undefined reads and races", function()
    local u = cute.empty({32}, "f32")
    assert.equal("uninitialised", first(u.address).kind)
    local function raced(sync)
      local x, o = ramp(32, 0), cute.zeros({32}, "f32")
      return report(cute.kernel("k", function(ptrs, named, out)
        local t = arch.thread_idx()
        at(ptrs, 0, 32)[t] = t:to(cute.f32)
        if sync then arch.sync_warp() end
        out[t] = named[31 - t]
      end), table_of {x}, x, o).reports[1]
    end
    assert.is_nil(raced(true))
    local r = raced(false)
    assert.equal("warp-race", r.kind)
    assert.matches("named", r.message)
  end)

  it("does not hide races of blocks", function()
    local x = ramp(32, 0)
    local r = support.report(cute.kernel("k", function(ptrs)
      at(ptrs, 0, 32)[arch.thread_idx()] = arch.block_idx():to(cute.f32)
    end)(table_of {x}):launch {grid = 2, block = 32, device = "sim",
                               faults = "return"}).reports[1]
    assert.equal("block-race", r.kind)
    assert.matches("memory at a raw address", r.message)
  end)
end)

describe("an address", function()
  it("leaves no trace if check runs all schedules", function()
    local x, y = ramp(8, 1), ramp(8, 5)
    local k = cute.kernel("k", function(ptrs, n)
      local t = arch.thread_idx()
      for i in cute.range(n) do
        local p = at(ptrs, i, 8)
        p[t] = p[t] + 1
      end
    end)
    local v = k(table_of {x, y}, 2):check {grid = 1, block = 8, gpu = false}
    assert.equal("ok", v.verdict, tostring(v))
    assert.same({1, 8, 5, 12}, {x(0), x(7), y(0), y(7)})
    v = cute.kernel("bad", function(ptrs)
      local s = arch.thread_idx() + arch.block_idx() * 0
      at(ptrs, 0, 8)[s] = arch.block_idx():to(cute.f32)
    end)(table_of {x}):check {grid = 2, block = 8, gpu = false}
    assert.equal("bug", v.verdict, tostring(v))
    assert.equal(1, x(0))
  end)

  it("is rejected if its type or alignment is wrong", function()
    local function traced(f)
      return function()
        cute.kernel("k", function(p, i) f(p, i) end)(cute.zeros({4}, "i64"),
          cute.zeros({4}, "i32")):trace {block = 32}
      end
    end
    support.raises("an address must be of type i64 or u64, not i32 "
      .. "[type-mismatch]",
      traced(function(_, i) cute.make_ptr("f32", i[0]) end))
    support.raises("assumed_align = 3: a power of two of 4 bytes or more is "
      .. "needed [bad-argument]", traced(function(p)
        cute.make_ptr("f32", p[0], {assumed_align = 3})
      end))
    support.raises("address needs memory space gmem, not \"smem\"", traced(
      function(p) cute.make_ptr("f32", p[0], "smem") end))
    support.raises("elements of e2m1 have no address of their own", traced(
      function(p) cute.make_ptr("e2m1", p[0]) end))
    support.raises("no option 'align'", traced(function(p)
      cute.make_ptr("f32", p[0], "gmem", {align = 3})
    end))
    support.raises("address: a kernel's tensor has no address while the kernel "
      .. "is traced",
      traced(function(p) return p.address end))
    support.raises("is only meaningful inside a kernel",
      cute.make_ptr, "f32", 4096)
  end)
end)

describe("a 32-bit product that wraps and is used in an address", function()
  local function kind(f, ...)
    local k = cute.kernel("k", f)
    local r = support.report(k(...):launch {grid = 1, block = 32,
      device = "sim", faults = "return"}).reports[1]
    return r and r.kind
  end
  local x, out = ramp(32, 0), cute.zeros({32}, "f32")
  local ptrs = table_of {x}
  local function leads(f, want, n)
    assert.equal(want, kind(function(p, m, o) f(p, m, o) end, ptrs, n, out))
  end
  local WRAPS = "index-overflow"

  it("is reported as in a tensor", function()
    local function load(p, n, o)
      o[0] = cute.make_tensor(cute.make_ptr("f32", p[0]),
                              cute.make_layout({4, 8}, {1, n}))[{0, 4}]
    end
    leads(load, WRAPS, 1 << 30)
    leads(load, nil, 7)
    local r = support.report(cute.kernel("k", function(p, n, o, y)
      load(p, n, o)
      y[8] = 1
    end)(ptrs, 1 << 30, out, x):launch {grid = 1, block = 1, device = "sim",
                                        faults = "return"}).reports[1]
    assert.equal("an index uses a product that overflows 32 bits: the access "
      .. "reaches element 0 of global tensor 'y'", r.message)
  end)

  it("if only constants together overflow", function()
    local function reports(f)
      local r = support.report(cute.kernel("k", f)(x):launch {grid = 2,
        block = 32, device = "sim", faults = "return"})
      return r.ok or r.reports[#r.reports].kind
    end
    local function by_block(k, l)
      return function(a)
        local b, t = arch.block_idx(), arch.thread_idx()
        cute.when(t:eq(0), function() a[b * k * l] = 1 end)
      end
    end
    assert.equal(WRAPS, reports(by_block(1 << 16, 1 << 16)))
    assert.equal(true, reports(by_block(2, 3)))
    assert.equal("signed-overflow", reports(function(a)
      local i = arch.thread_idx() + 0x7fff0000 + 0x7fff0000 + 0x20000
      cute.when(i:lt(8), function() a[i] = 1 end)
    end))
    -- Unsigned integers wrap.
    assert.equal(true, reports(function(a)
      local i = arch.thread_idx():to(cute.u32) * 65536 * 65536
      cute.when(arch.thread_idx():eq(0) & arch.block_idx():eq(0), function()
        a[i:to(cute.i32)] = 1
      end)
    end))
  end)

  it("in stores, atomics, copies, and in the address itself", function()
    local function part(p, offset)
      return cute.make_tensor(cute.make_ptr("f32", p[0]) + offset,
                              cute.make_layout {4})
    end
    leads(function(p, n) part(p, n * n)[0] = 1 end, WRAPS, 1 << 16)
    leads(function(p, n) part(p, n << 30)[0] = 1 end, WRAPS, 4)
    leads(function(p, n)
      arch.atomic_add(cute.make_ptr("f32", p[0]) + n * n, 1.0)
    end, WRAPS, 1 << 16)
    -- way 1 overflows the address of the destination, way -1 that of the source
    for _, way in ipairs {1, -1} do
      leads(function(p, n)
        local a, b = part(p, 0), part(p, n * n + 4)
        if way < 0 then a, b = b, a end
        cute.when(arch.thread_idx():eq(0), function()
          cute.autovec_copy(a, b)
        end)
      end, WRAPS, 1 << 16)
    end
    local function moved(p, n, o)
      o[0] = cute.make_tensor(cute.make_ptr("f32", p[0] + (n * n):to("i64")),
                              cute.make_layout {4})[0]
    end
    leads(moved, WRAPS, 1 << 16)
    leads(moved, nil, 2)
  end)

  it("is reported only for lanes and addresses that use it", function()
    leads(function(p, n, o)
      local t = arch.thread_idx()
      local i = cute.where(t:lt(31), n - (1 << 16), n)
      o[t] = at(p, 0, 32)[i * i]
    end, WRAPS, 1 << 16)
    leads(function(p, n, o)
      o[0] = at(p, 0, 32)[0]
      o[1] = (n * n):to("f32")
    end, nil, 1 << 16)
    leads(function(p, n, o)
      local wide = n:to("i64")
      o[0] = at(p, 0, 32)[wide * wide - (1 << 32)]
    end, nil, 1 << 16)
  end)
end)
-- SPDX-License-Identifier: MIT
