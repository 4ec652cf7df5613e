-- Tests launches of kernels on a GPU through cute.kernel: arguments in host and
-- device memory, errors, and calls after a kernel that faults.
local core = require "cute.core"
local cute = require "cute"
local gpu = require "cute.gpu"
local kernels = require "spec.kernels"
local support = require "spec.support"
local arch = cute.arch

local function ramp(n, from)
  return kernels.tensor({n}, cute.f32, function(i) return from + i end)
end

local double = cute.kernel("twice", function(x, y)
  local i = arch.block_idx() * 32 + arch.thread_idx()
  y[i] = x[i] * 2
end)

-- Each thread copies 16 bytes if the tensors' alignment allows it, else single
-- elements.
local vector = cute.kernel("vector", function(x, y)
  local t = arch.thread_idx()
  cute.autovec_copy(cute.local_tile(x, {4}, {t}), cute.local_tile(y, {4}, {t}))
end)

local strict = cute.kernel("strict", function(x, y)
  local t = arch.thread_idx()
  cute.copy(cute.make_copy_atom("UniversalCopy", cute.f32, 128),
            cute.local_tile(x, {4}, {t}), cute.local_tile(y, {4}, {t}))
end)

-- Copies a buffer, and a view that starts 4 bytes into the buffer. The kernel
-- `strict`, which needs 16-byte alignment, rejects the view.
local function check_views(device)
  local A, B = ramp(68, 0), cute.zeros({64}, cute.f32)
  local view = cute.make_tensor(A.iterator + 1, cute.make_layout {64})
  local opts = {grid = 1, block = 16, device = device}
  for offset, source in pairs {[0] = A, [1] = view} do
    local call = vector(source, B)
    assert(call:launch(opts))
    for i = 0, 63 do assert.equal(i + offset, B[i]) end
    assert.equal(offset == 0, call:trace {block = 16}.source:find("float4", 1,
      true) ~= nil)
  end
  assert(strict(A, B):launch(opts))
  support.raises("needs addresses that are multiples of 16 bytes, but the "
    .. "source is only known to be aligned to 4 [misaligned]",
    function() strict(view, B):launch(opts) end)
end

describe("views", function()
  it("keep their alignment, so that some vectors are rejected",
     function() check_views "sim" end)
end)

local device

describe("launches on a GPU #gpu", function()
  setup(function() device = assert(cute.device "gpu") end)

  it("copy host tensors in, and back those that are written", function()
    local x, y = ramp(64, 1), ramp(96, 1000)
    assert.is_true(double(x, y):launch {grid = 2, block = 32,
                                        device = "gpu"})
    for i = 0, 63 do
      assert.equal(i + 1, x[i])
      assert.equal(2 * (i + 1), y[i])
    end
    for i = 64, 95 do assert.equal(1000 + i, y[i]) end
  end)

  it("copy a host buffer with two views once", function()
    local x = ramp(64, 0)
    local b = (core.param_memory(x))
    local low = cute.make_tensor(b, cute.make_layout {32})
    local high = cute.make_tensor(x.iterator + 32, cute.make_layout {32})
    assert.is_true(double(high, low):launch {grid = 1, block = 32,
                                             device = "gpu"})
    for i = 0, 31 do
      assert.equal(2 * (32 + i), x[i])
      assert.equal(32 + i, x[32 + i])
    end
  end)

  it("see new values of host tensors each time", function()
    local x, y = ramp(32, 0), ramp(32, 0)
    local run = assert(cute.compile(double, x, y, {grid = 1, block = 32,
                                                   device = "gpu"}))
    for round = 1, 3 do
      for i = 0, 31 do x[i] = round * 100 + i end
      assert.is_true(run:launch())
      for i = 0, 31 do assert.equal(2 * (round * 100 + i), y[i]) end
    end
  end)

  it("do not copy tensors that are on the GPU", function()
    local x, y = ramp(32, 5), cute.zeros({32}, cute.f32)
    local dx = assert(device.dev:buffer((core.param_memory(x))))
    local dy = assert(device.dev:buffer("f32", 32))
    -- A tensor on the GPU selects its device; no device option is needed.
    assert.is_true(double(core.on_device(x, dx), core.on_device(y, dy))
      :launch {grid = 1, block = 32})
    assert.equal(0, y[3])
    assert.equal(16, assert(dy:download())[3])
  end)

  it("respect the alignment of views", function()
    check_views "gpu"
  end)

  -- Runs in a process of its own, because the process loses its GPU context.
  it("report an illegal address in one sentence, and go on",
     function()
    local out, err, code = support.run_lua {"-e", [[
      local cute = require "cute"
      local x, y = cute.ones({32}, cute.f32), cute.zeros({32}, cute.f32)
      local opts = {grid = 1, block = 32, device = "gpu"}
      local twice = cute.kernel("twice", function(a, b)
        local i = cute.arch.thread_idx()
        b[i] = a[i] * 2
      end)
      local bad = cute.kernel("bad", function(b, n)
        b[cute.arch.thread_idx():to(cute.i64) + n] = 1
      end)
      local run = assert(cute.compile(twice, x, y, opts))
      assert(run:launch())
      print(y[31])
      y[31] = 5
      print(pcall(function() bad(y, 1 << 40):launch(opts) end))
      print(y[31])
      print(pcall(run.launch, run))
      opts.faults = "return"
      print(twice(x, y):launch(opts))
      print(twice(x, y):launch({grid = 1, block = 32, device = "sim"}).ok)
      print(y[31])
      print(twice(x, y):launch({grid = 1, block = 32}) and "ran")]]}
    assert.equal("", err)
    assert.equal(0, code)
    local lines = support.lines(out)
    assert.equal(8, #lines, out)
    assert.equal("2.0", lines[1])
    assert.truthy(lines[2]:find("^false\t.-:%d+: kernel bad: cuMemcpyDtoH: "
      .. "CUDA_ERROR_ILLEGAL_ADDRESS .*%[driver%-error%]$"), out)
    assert.equal("5.0", lines[3])  -- unchanged
    assert.truthy(lines[4]:find("^false\t.*lost with its context: kernel bad "
      .. "failed with CUDA_ERROR_ILLEGAL_ADDRESS %[closed%]$"), out)
    assert.truthy(lines[5] == "true"
      or lines[5]:find("^nil\tkernel twice: kernel bad failed with "
      .. "CUDA_ERROR_ILLEGAL_ADDRESS and .*%[driver%-error%]$"), out)
    assert.equal("true", lines[6])
    assert.equal("2.0", lines[7])
    assert.equal("ran", lines[8])
  end)

  it("reject blocks that are too large, with the script's line",
     function()
    support.raises("2048", function()
      double(ramp(32, 0), ramp(32, 0)):launch {
        grid = 1, block = 2048, device = "gpu"}
    end)
  end)
end)

describe("launches on a GPU #gpu", function()
  setup(function() device = assert(cute.device "gpu") end)

  it("multiply odd sizes with cuBLAS and cublasLt", function()
    local dev = device.dev
    for _, size in ipairs {{97, 33, 51}, {1, 7, 129}, {255, 1, 3}} do
      local m, n, k = table.unpack(size)
      for _, t in ipairs {"bf16", "f16", "f32"} do
        for _, m_major in ipairs {false, true} do
          local a = core.buffer(t, m * k):fill_normal(m)
          local b = core.buffer(t, n * k):fill_normal(n)
          local ref = core.gemm_reference(a, b, core.buffer("f64", m * n),
                                          m, n, k)
          local D = assert(dev:buffer("f32", m * n))
          local spec = {m = m, n = n, k = k, A = assert(dev:buffer(a)),
                        B = assert(dev:buffer(b)), D = D, m_major = m_major}
          local function check(what, product)
            assert(D:memset(0xff))
            assert(product:launch())
            local v = core.gemm_check(a, b, D:download(), m, n, k, {
              ref = ref, unit = 1.25 * 2^-24,
              d = m_major and {1, m} or {n, 1}})
            assert.truthy(v.ok and v.frobenius < 1e-5,
              ("%s %s %dx%dx%d: %g"):format(what, t, m, n, k, v.frobenius))
          end
          check("cuBLAS", assert(gpu.cublas(spec)))
          for i, product in ipairs(assert(gpu.cublaslt(spec))) do
            check("cublasLt " .. i, product)
          end
        end
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
