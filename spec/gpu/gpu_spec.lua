local core = require "cute.core"
local gpu = require "cute.gpu"
local jit = require "cute.jit"
local support = require "spec.support"
local raises = support.raises

describe("cute.gpu", function()
  it("names the files it searched if there is no driver", function()
    local out, err, code = support.run_lua({"-e", [[
      local gpu = require "cute.gpu"
      print(gpu.available())
      print(gpu.info())
      print(gpu.cublas {})
      print(gpu.bench {})]]},
      {CUTELUA_NO_CUDA = "1"})
    assert.equal("", err)
    assert.equal(0, code)
    local count = 0
    for head, rest in out:gmatch "(%l+)\t([^\n]*)\n" do
      assert.equal(count == 0 and "false" or "nil", head)
      assert.truthy(rest:find("^the NVIDIA driver was not found %(looked"))
      assert.truthy(rest:find("%[no%-gpu%]$"))
      count = count + 1
    end
    assert.equal(4, count)
  end)

  it("runs each contestant once a round, in changing order",
     function()
    for n = 1, 6 do
      local behind = {}
      for round = 1, 2 * n do
        local list, seen = gpu.bench_order(n, round), {}
        assert.equal(n, #list)
        for at, i in ipairs(list) do
          seen[i] = true
          if at > 1 then behind[list[at - 1] .. "," .. i] = true end
        end
        for i = 1, n do assert.truthy(seen[i]) end
      end
      for i = 1, n - 1 do
        assert.truthy(behind[i .. "," .. i + 1])
        assert.truthy(behind[i + 1 .. "," .. i])
      end
    end
  end)

  it("returns median and spread", function()
    local list = {5, 1, 4, 2, 3}
    assert.same({median = 3, min = 1, max = 5, q1 = 2, q3 = 4, n = 5},
                gpu.stats(list))
    assert.same({5, 1, 4, 2, 3}, list)
    assert.equal(2.5, gpu.stats({1, 2, 3, 4}).median)
    assert.equal(7, gpu.stats({7}).median)
  end)
end)

local dev, arch

local function load(source, name)
  local out = assert(jit.compile(source, {arch = arch, name = name}))
  return assert(dev:load(out.cubin, name)), out
end

describe("a GPU #gpu", function()
  setup(function()
    dev = assert(gpu.open())
    arch = dev:info().arch
  end)

  local axpy = [[extern "C" __global__ void axpy(float *y, const float *x,
    float a, int n, long long shift) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + (float)shift;
  }]]

  -- With a GPU driver, NVRTC has a cache of its own. If this cache has the
  -- result, there is no log of registers and spills.
  it("reports registers and spills of every compilation", function()
    for _ = 1, 2 do
      local out = assert(jit.compile(axpy, {arch = arch, name = "axpy",
                                            cache = false}))
      assert.truthy(out.resources.registers > 3)
      assert.equal(0, out.resources.spill_stores)
    end
  end)

  it("is described", function()
    local info = dev:info()
    assert.truthy(info.arch:find "^sm_%d%d+a?$")
    assert.truthy(#info.name > 3)
    assert.truthy(info.sms > 0 and info.memory > 1 << 30)
    assert.truthy(info.smem >= 48 * 1024)
    assert.truthy(info.cuda:find "^%d+%.%d+$")
    assert.equal(dev, gpu.open())
    assert.truthy(gpu.available())
    local far, message = gpu.open(1000)
    assert.is_nil(far)
    assert.truthy(message:find("there is no GPU number 1000 (", 1, true))
  end)

  it("keeps the contents of its buffers", function()
    local h = core.buffer("bf16", 100003):fill_normal(1)
    local d <close> = assert(dev:buffer(h))
    assert.equal(200006, d.nbytes)
    assert.truthy(d:download():equal(h))
    assert.truthy(d:memset(0xff))
    local ones = assert(d:download())
    assert.equal("\xff\xff", ones:bytes(100002, 1))
    assert.truthy(d:upload(h))
    local again = core.buffer("bf16", 100003)
    assert.equal(again, d:download(again))
    assert.truthy(again:equal(h) and again.defined)
    assert.has_error(function() d:upload(core.buffer("bf16", 3)) end)
    assert.has_error(function() d:upload(core.buffer("f16", 100003)) end)
    d:close()
    d:close()
    assert.truthy(d.closed)
    raises("[closed]", d.download, d)
  end)

  it("frees garbage, then reports that memory ran out", function()
    local b, message = dev:buffer("u8", 1 << 45)
    assert.is_nil(b)
    assert.truthy(message:find("[out-of-memory]", 1, true), message)
    -- Each buffer takes three tenths of the free memory, because other
    -- processes may also use the GPU.
    local part = assert(dev:free_memory()) // 10 * 3
    for _ = 1, 8 do assert(dev:buffer("u8", part)) end
    collectgarbage()
  end)

  it("launches repeatedly with arguments packed once", function()
    local f, out = load(axpy, "axpy")
    local a = f:attributes()
    assert.equal(out.resources.registers, a.registers)
    assert.equal(0, a.local_bytes)
    local n = 1000
    local x = core.buffer("f32", n):fill_int(5, -100, 100)
    local y = assert(dev:buffer("f32", n + 1))
    assert(y:memset(0))
    local args = {{y, 4}, assert(dev:buffer(x)), {"f32", 0.5}, {"i32", n},
                  {"i64", -3}}
    local run = assert(f:prepare {args = args, grid = {(n + 255) // 256},
                                  block = 256})
    -- The prepared launch must keep its own reference to this argument.
    args[2] = nil
    collectgarbage()
    collectgarbage()
    assert.truthy(run:launch())
    assert.truthy(dev:sync())
    local got = assert(y:download())
    assert.equal(0.0, got[0])
    for i = 0, n - 1 do assert.equal(x[i] * 0.5 - 3, got[i + 1]) end
    y:close()
    raises("[closed]", run.launch, run)
  end)

  it("rejects launches that cannot fit", function()
    local f = load(axpy, "axpy")
    local b = assert(dev:buffer("f32", 4))
    local args = {b, b, {"f32", 1}, {"i32", 4}, {"i64", 0}}
    local function fails(text, t) raises(text, f.prepare, f, t) end
    fails("2048 threads a block", {args = args, grid = 1, block = {64, 32}})
    fails("grid of -1", {args = args, grid = -1, block = 32})
    fails("grid extent 2 is 65536", {args = args, grid = {1, 65536},
                                     block = 32})
    fails("block must be a number", {args = args, grid = 1})
    fails("static shared memory", {args = args, grid = 1, block = 32,
                                     smem = 1 << 20})
    fails("kernel argument 2 is a number", {args = {b, 1}, grid = 1,
                                            block = 32})
  end)
end)

describe("a GPU #gpu", function()
  setup(function()
    dev = assert(gpu.open())
    arch = dev:info().arch
  end)

  it("opts in to more than 48 KiB of shared memory", function()
    local f = load([[extern "C" __global__ void big(int *p) {
      extern __shared__ int s[];
      for (int i = threadIdx.x; i < 25000; i += 32) s[i] = i * 3;
      __syncwarp();
      p[threadIdx.x] = s[24999 - threadIdx.x];
    }]], "big")
    local d = assert(dev:buffer("i32", 32))
    local run = assert(f:prepare {args = {d}, grid = 1, block = 32,
                                  smem = 100000})
    assert(run:launch_n(3))
    assert(dev:sync())
    local got = assert(d:download())
    for i = 0, 31 do assert.equal((24999 - i) * 3, got[i]) end
  end)

  it("orders work by streams and times it by events", function()
    local f = load([[extern "C" __global__ void wait(long long *p,
      long long ns) {
      long long a, b;
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a));
      do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(b));
      while (b - a < ns);
      *p = ns;
    }]], "wait")
    local s <close> = assert(dev:stream())
    local p = assert(dev:buffer("i64", 1))
    local run = assert(f:prepare {args = {p, {"i64", 5000000}}, grid = 1,
                                  block = 1, stream = s})
    local from, to = assert(dev:event()), assert(dev:event())
    assert(from:record(s))
    assert(run:launch_n(2))
    assert(to:record(s))
    assert(s:sync())
    assert(to:sync())
    local ms = assert(from:elapsed(to))
    assert.equal("float", math.type(ms))
    assert.equal(5000000, p:download()[0])
  end)

  -- Runs in a process of its own, because the process loses its GPU context.
  it("reports an illegal address, closes lost objects and goes on", function()
    local out, err, code = support.run_lua {"-e", [[
      local core, gpu = require "cute.core", require "cute.gpu"
      local jit = require "cute.jit"
      local dev = assert(gpu.open())
      local f = assert(dev:load(jit.compile('extern "C" __global__ void '
        .. 'bad(int *p) { p[1ll << 40] = 1; }',
        {arch = dev:info().arch, name = "bad"}).cubin, "bad"))
      local h = core.buffer("i32", 4):fill(9)
      local d = assert(dev:buffer(h))
      local s, e = assert(dev:stream()), assert(dev:event())
      local blas = assert(gpu.cublas {m = 1, n = 1, k = 1,
        A = assert(dev:buffer("f32", 1)), B = assert(dev:buffer("f32", 1)),
        D = assert(dev:buffer("f32", 1))})
      assert(assert(f:prepare {args = {d}, grid = 1, block = 1}):launch())
      print(pcall(dev.sync, dev))
      print(dev:info().epoch, d.closed)
      print(pcall(d.download, d))
      print(pcall(s.sync, s))
      print(pcall(e.record, e))
      print(pcall(blas.launch, blas))
      print(pcall(f.prepare, f, {args = {}, grid = 1, block = 1}))
      d:close() s:close() e:close() f:close() blas:close()
      local again, why = dev:buffer(h)
      print(again and again:download():equal(h), why)]]}
    assert.equal("", err)
    assert.equal(0, code)
    local lines = support.lines(out)
    assert.equal(8, #lines, out)
    assert.truthy(lines[1]:find("^false\t.*kernel bad: cuCtxSynchronize: "
      .. "CUDA_ERROR_ILLEGAL_ADDRESS"), out)
    assert.truthy(lines[1]:find("[driver-error]", 1, true))
    assert.equal("1\ttrue", lines[2])
    for i = 3, 7 do
      assert.truthy(
        lines[i]:find("^false\t.*lost with its context: kernel bad failed with "
          .. "CUDA_ERROR_ILLEGAL_ADDRESS %[closed%]$"), lines[i])
    end
    assert.truthy(lines[8] == "true\tnil" or
      lines[8]:find "^nil\tkernel bad failed with CUDA_ERROR_ILLEGAL_ADDRESS "
        .. "and "
      and lines[8]:find("start a new process", 1, true), lines[8])
  end)
end)

describe("a GPU #gpu", function()
  setup(function()
    dev = assert(gpu.open())
    arch = dev:info().arch
  end)

  it("multiplies with cuBLAS in every type and order", function()
    local m, n, k = 96, 128, 64
    local U = 3 * 2^-24  -- rounding error relative to a sum, on the tensor
                         -- cores with the least precise sums
    local cases = {
      {"bf16", "bf16", 0.01, "f32", U}, {"bf16", "f32", 1e-6, "f32", U},
      {"f16", "f16", 0.001, "f32", U}, {"f32", "f32", 1e-6, "f32", U},
      {"f32", "f32", 0.002, "f32", 2^-9 / k, tf32 = true},
      {"f64", "f64", 1e-14, "f64", 2^-52}, {"i8", "i32", 0, "i32", 0},
    }
    for _, c in ipairs(cases) do
      -- For i8, cuBLAS only supports operands that are contiguous along K.
      for i, layout in ipairs(c[1] == "i8" and {"tn", "tn"}
                              or {"tn", "nt", "nn", "tt", "tn", "nt"}) do
        local m_major = i % 2 == 0
        local A, B = core.buffer(c[1], m * k), core.buffer(c[1], n * k)
        if c[1] == "i8" then A:fill_int(1, -100, 100) B:fill_int(2, -100, 100)
        else A:fill_normal(1) B:fill_normal(2) end
        local spec = {m = m, n = n, k = k, A = assert(dev:buffer(A)),
                      B = assert(dev:buffer(B)), m_major = m_major,
                      layout = layout,
                      D = assert(dev:buffer(c[2], m * n)), tf32 = c.tf32}
        assert(spec.D:memset(0xff))
        local want = core.buffer("f64", m * n)
        local opts = {a = layout:find "^t" and {k, 1} or {1, m},
                      b = layout:find "n$" and {k, 1} or {1, n},
                      ref = want, sums = c[4], unit = c[5]}
        core.gemm_reference(A, B, want, m, n, k, {a = opts.a, b = opts.b})
        opts.d = m_major and {1, m} or {n, 1}
        local function check()
          local v = core.gemm_check(A, B, spec.D:download(), m, n, k, opts)
          assert.truthy(v.ok and v.frobenius <= c[3],
                        c[1] .. " " .. v.frobenius)
        end
        gpu.cublas(spec):launch()
        check()
        if c[1] ~= "f64" then
          local list = assert(gpu.cublaslt(spec))
          assert.truthy(#list >= 1)
          for _, product in ipairs(list) do
            spec.D:memset(0xff)
            product:launch_n(2)
            check()
          end
        end
      end
    end
  end)

  it("multiplies e4m3 with cublasLt", function()
    if dev:info().arch < "sm_89" then return pending "needs sm_89" end
    local m, n, k = 128, 64, 256
    local A = core.buffer("e4m3", m * k):fill_normal(1)
    local B = core.buffer("e4m3", n * k):fill_normal(2)
    local D = assert(dev:buffer("bf16", m * n))
    local want = core.gemm_reference(A, B, core.buffer("f64", m * n), m, n, k)
    local function factor(x)
      local b = core.buffer("f32", 1)
      b[0] = x
      return assert(dev:buffer(b))
    end
    local spec = {m = m, n = n, k = k, m_major = true, D = D,
                  A = assert(dev:buffer(A)), B = assert(dev:buffer(B))}
    local function check(alpha)
      for _, product in ipairs(assert(gpu.cublaslt(spec))) do
        D:memset(0xff)
        product:launch()
        local v = core.gemm_check(A, B, D:download(), m, n, k, {ref = want,
          d = spec.m_major and {1, m} or {n, 1}, unit = 1.25 * 2^-13,
          alpha = alpha})
        assert.truthy(v.ok and v.frobenius < 0.01)
      end
    end
    check(1)
    spec.fast_accum = true
    check(1)
    spec.scale_A, spec.scale_B = factor(0.5), factor(8)
    check(4)
    spec.m_major, spec.scale_A = false, nil
    check(8)
    spec.layout = "nt"
    local none, message = gpu.cublaslt(spec)
    assert.is_nil(none)
    assert.truthy(message:find("cublasLt has no algorithm for bf16 (128,64)", 1,
                               true))
  end)

  it("rejects products that do not fit", function()
    local b = assert(dev:buffer("bf16", 64))
    assert.has_error(function()
      gpu.cublas {m = 8, n = 9, k = 8, A = b, B = b, D = b}
    end)
    assert.has_error(function() gpu.cublas {m = 8, n = 8, k = 0} end)
    local odd = assert(dev:buffer("u16", 64))
    assert.has_error(function()
      gpu.cublas {m = 8, n = 8, k = 8, A = odd, B = odd, D = odd}
    end)
  end)
end)

describe("a GPU #gpu", function()
  setup(function()
    dev = assert(gpu.open())
    arch = dev:info().arch
  end)

  it("benches contestants against each other", function()
    local f = load([[extern "C" __global__ void spin(int *p, int n) {
      int x = threadIdx.x;
      for (int i = 0; i < n; i++) x = x * 3 + 1;
      p[threadIdx.x] = x;
    }]], "spin")
    local d = assert(dev:buffer("i32", 32))
    local function spin(n)
      return assert(f:prepare {args = {d, {"i32", n}}, grid = 1, block = 32})
    end
    local slow = spin(400000)
    local r = assert(gpu.bench({
      {name = "quick", launch = spin(100000), flops = 1e6},
      {name = "slow", launch = slow},
      {name = "twice", launch = function()
        slow:launch()
        slow:launch()
      end}},
      {rounds = 3, warm_ms = 5, hot_ms = 5, flush_bytes = 1 << 20,
       progress = false}))
    for _, kind in ipairs {"hot", "cold"} do
      for _, name in ipairs {"quick", "slow", "twice"} do
        local stat = r[name][kind]
        assert.truthy(0 <= stat.min and stat.min <= stat.median)
        assert.truthy(stat.median <= stat.max)
        assert.equal(3, stat.n)
      end
    end
    assert.equal("quick", r[1].name)
    -- The launch "quick" has 1e6 operations and takes `median` milliseconds.
    assert.near(1e6 / (r.quick.hot.median * 1e-3) / 1e12,
                r.quick.hot.tflops, r.quick.hot.tflops * 1e-9)
    local list = {slow, spin(1000), slow}
    local object, at = assert(gpu.best(list))
    assert.equal(list[at], object)
    raises("refused [driver-error]", function()
      gpu.bench {{name = "bad", launch = function()
        return nil, "refused [driver-error]"
      end}}
    end)
    assert.has_error(function()
      gpu.bench {{name = "misuse", launch = function() error "mine" end}}
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
