-- Tests the GPU bindings against a driver that records its calls
-- (spec/gpu/fakecuda.c).
local support = require "spec.support"

local fake = require "spec.gpu.fake"
local run = fake.run

if not fake.there then
  describe("the driver interface", function() pending "needs a C compiler" end)
  return
end

describe("the driver interface", function()
  setup(fake.build)
  teardown(fake.remove)

  it("frees each handle once, by close or by the garbage collector", function()
    local out, err, code = run [[
      local keep = {}
      for i = 1, 20 do
        local b, s = assert(dev:buffer("f32", 8)), assert(dev:stream())
        local e, f = assert(dev:event()), assert(dev:load(cubin, "axpy"))
        if i % 2 == 0 then b:close() s:close() e:close() f:close() b:close() end
        if i % 5 == 0 then keep[i] = {b, s, e, f} end
        do local c <close> = assert(dev:event()) end
        if i % 7 == 0 then collectgarbage() end
      end
      print(dev:load(cubin, "none"))
      print "done"]]
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal("nil\tcuModuleGetFunction: CUDA_ERROR_OTHER (in words) " ..
                 "[driver-error]\ndone\n", out)
  end)

  it("searches CUDA's folder only if its path is absolute", function()
    for i, home in ipairs {fake.folder .. "/root", "root", "./root"} do
      support.exec {"sh", "-c", ("mkdir -p %s/root/lib64; cp %s/libcuda.so.1 "
        .. "%s/root/lib64"):format(fake.folder, fake.folder, fake.folder)}
      local path = support.exec({"pwd"}):gsub("\n", "")
      local function absolute(list)
        return (";" .. list):gsub(";([^/;])", ";" .. path .. "/%1"):sub(2)
      end
      for _, name in ipairs {"CUDA_HOME", "CUDA_PATH"} do
        local out, err = support.exec({support.lua, "-e",
          "print((require 'cute.core'.gpu_open()) ~= nil)"}, {cwd = fake.folder,
          env = {LUA_PATH = absolute(package.path), CUTELUA_NO_CUDA = "0",
                 LUA_CPATH = absolute(package.cpath), [name] = home}})
        assert.equal("", err)
        if i == 1 then assert.equal("true\n", out) end
        -- On a machine with a real driver, gpu_open finds that driver instead.
        local _, own = pcall(require "cute.core".gpu_open)
        if i > 1 and not own then assert.equal("false\n", out) end
      end
    end
  end)

  it("copies one buffer to another of its size", function()
    local out, err = run [[
      local x = assert(dev:buffer(core.buffer_from("f32", {1, 2, 3})))
      local y = assert(dev:buffer("i32", 3))
      assert(y:copy(x))
      print(y:download()[2] == 0x40400000)
      print(pcall(y.copy, y, dev:buffer("f32", 4)))
      x:close()
      print(pcall(y.copy, y, x))]]
    assert.equal("", err)
    local a, b, c = out:match "(.-)\n(.-)\n(.-)\n$"
    assert.equal("true", a)
    assert.truthy(b:find("[shape-mismatch]", 1, true), b)
    assert.truthy(c:find("[closed]", 1, true), c)
  end)

  it("packs arguments as the kernel takes them", function()
    local out, err = run [[
      local x = assert(dev:buffer(core.buffer_from("f32", {1, 2, 3})))
      local y = assert(dev:buffer("f32", 5))
      assert(y:memset(0))
      local f = assert(dev:load(cubin, "axpy"))
      local run = assert(f:prepare {args = {{y, 4}, x, {"f32", 0.5},
        {"i32", 3}, {"i64", -1 << 33}}, grid = 1, block = 32})
      f = nil
      collectgarbage()
      assert(run:launch_n(2))
      local got = y:download()
      print(got[0], got[1], got[3], got[4])
      local raw = assert(assert(dev:load(cubin, "axpy")):prepare {
        args = {y, x, string.pack("<f", 2), string.pack("<i4", 1),
                {"i64", 0}}, grid = {1, 2, 3}, block = {8, 2}})
      assert(raw:launch())
      print(y:download()[0])]]
    assert.equal("", err)
    assert.equal("0.0\t-8589934592.0\t-8589934592.0\t0.0\n2.0\n", out)
  end)

  it("launches on the given stream", function()
    local out, err = run [[
      local f = assert(dev:load(cubin, "other"))
      local run = assert(f:prepare {grid = 1, block = 32})
      local s = assert(dev:stream())
      print(run:launch(s), run:launch_n(2, s), run:launch())
      print((message(run.launch, run, 7)))
      s:close()
      print((message(run.launch, run, s)))
      print((message(run.launch_n, run, 2, s)))]]
    assert.equal("", err)
    assert.equal("true\ttrue\ttrue", support.lines(out)[1])
    assert.truthy(out:find("stream expected, got 7", 1, true), out)
    local _, closed = out:gsub("the stream was closed", "")
    assert.equal(2, closed)
  end)

  it("frees garbage before it reports that memory ran out", function()
    local out, err = run [[
      for i = 1, 10 do assert(dev:buffer("u8", 600000)) end
      local b = assert(dev:buffer("u8", 600000))
      print(dev:buffer("u8", 600000))
      b:close()
      assert(dev:buffer("u8", 600000))]]
    assert.equal("", err)
    assert.equal("nil\tthe GPU has no 600000 bytes left (1048576 free) " ..
                 "[out-of-memory]\n", out)
  end)
end)

describe("the driver interface", function()
  setup(fake.build)
  teardown(fake.remove)

  it("requests more shared memory once, and knows the limits", function()
    local out, err = run [[
      local f = assert(dev:load(cubin, "refused"))
      for _, n in ipairs {49152, 50000, 50000, 40000, 60000} do
        assert(f:prepare {grid = 1, block = 32, smem = n})
      end
      print(message(f.prepare, f, {grid = 1, block = 32, smem = 200000}))
      print(message(f.prepare, f, {grid = 1, block = 513}))
      print(message(f.prepare, f, {grid = 1, block = {1024, 2}}))
      print(f:prepare {grid = 8, block = 32, cluster = 2})
      local refused = f:prepare {grid = 1, block = 32}
      print(message(refused.launch, refused))]]
    assert.equal("opt in 50000\nopt in 60000\n", err)
    assert.equal("200000 bytes of dynamic and 0 of static shared memory, but a "
      .. "block on Fake has at most 166912 "
      .. "[smem-budget]\ngpufn:prepare: 513 threads a block, but the kernel "
      .. "can have at most 512 [bad-launch]\ngpufn:prepare: 2048 threads a "
      .. "block are too many: at most 1024 [bad-launch]\nnil\tthis driver "
      .. "cannot launch clusters [driver-error]\nkernel refused: "
      .. "cuLaunchKernel: CUDA_ERROR_OTHER (in words) [driver-error]\n", out)
  end)

  it("replaces a context after a fault", function()
    local out, err, code = run [[
      local b, s = assert(dev:buffer("f32", 8)), assert(dev:stream())
      local e, f = assert(dev:event()), assert(dev:load(cubin, "bad"))
      local run = assert(f:prepare {args = {b}, grid = 1, block = 1,
                                    stream = s})
      assert(run:launch())
      print(message(dev.sync, dev))
      print(b.closed, b, dev:info().epoch)
      for _, call in ipairs {{b.download, b}, {s.sync, s}, {e.record, e},
                             {run.launch, run},
                             {f.prepare, f, {grid = 1, block = 1}}} do
        print(message(table.unpack(call)))
      end
      assert(dev:sync())
      assert(dev:buffer("f32", 8))
      local again = assert(dev:load(cubin, "bad"))
      assert(assert(again:prepare {grid = 1, block = 1}):launch())
      print((select(2, dev:buffer(core.buffer("f32", 8)))))
      print(dev:info().epoch)]]
    assert.equal("", err)
    assert.equal(0, code)
    local dead = "CUDA_ERROR_ILLEGAL_ADDRESS (in words); the context was " ..
      "destroyed and its buffers are closed [driver-error]\n"
    local lost = "was lost with its context: kernel bad failed with "
      .. "CUDA_ERROR_ILLEGAL_ADDRESS [closed]\n"
    assert.equal("kernel bad: cuCtxSynchronize: " .. dead ..
      "true\tdevbuf (closed)\t1\n" ..
      "devbuf:download: the device buffer " .. lost ..
      "stream:sync: the stream " .. lost ..
      "event:record: the event " .. lost ..
      "launch:launch: the kernel " .. lost ..
      "gpufn:prepare: the kernel " .. lost ..
      "kernel bad: cuMemAlloc: " .. dead .. "2\n", out)
  end)

  it("reports that the driver refuses another context",
     function()
    local out, err, code = run([[
      local cute = require "cute"
      local device = cute.device "auto"
      print(device.kind)
      local f = assert(dev:load(cubin, "bad"))
      assert(assert(f:prepare {grid = 1, block = 1}):launch())
      print((pcall(dev.sync, dev)))
      print(dev:alive())
      print((select(2, dev:buffer("f32", 8))))
      print(cute.device "gpu")
      print(cute.device "auto")]], "1")
    local gone = "kernel bad failed with CUDA_ERROR_ILLEGAL_ADDRESS and the "
      .. "driver no longer lets this process use the GPU: start a new process "
      .. "(the simulator still works in this one) [driver-error]\n"
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal("gpu\nfalse\nnil\t" .. gone .. gone .. "nil\t" .. gone ..
      "simulator (sm_90a)\n", out)
  end)
end)

describe("a context that a thread creates", function()
  setup(fake.build)
  teardown(fake.remove)
  local SLOW = {FAKE_CONTEXT = "100"}

  it("is waited for by the first call that needs it", function()
    local out, err, code = run([[
      dev:begin()
      dev:begin()
      io.stderr:write "begun\n"
      local x = assert(dev:buffer(core.buffer_from("f32", {1, 2, 3})))
      io.stderr:write "copied\n"
      local y = core.buffer("f32", 3)
      dev:begin()
      x:download(y)
      print(y[0], y[1], y[2])]], nil, SLOW)
    assert.equal("begun\ncontext\ncopied\n", err)
    assert.equal(0, code)
    assert.equal("1.0\t2.0\t3.0\n", out)
  end)

  it("ends before the process, however the process ends", function()
    for last, want in pairs {["return"] = 0, ["os.exit(3)"] = 3,
                             ["os.exit(4, true)"] = 4} do
      local _, err, code = run("dev:begin() " .. last, nil, SLOW)
      -- os.exit without a second argument does not release the context.
      local held = want == 3 and "fakecuda: context still held\n" or ""
      assert.equal("context\n" .. held, err)
      assert.equal(want, code)
    end
  end)

  it("begins before a launch compiles its kernel", function()
    local out, err, code = run([[
      local cute = require "cute"
      require "cute.jit".compile = function()
        io.stderr:write "compiling\n"
        return {cubin = cubin, losses = {}, kernels = {}}
      end
      local x = cute.ones({32}, cute.f32)
      local k = cute.kernel("k", function(y)
        local i = cute.arch.thread_idx()
        y[i] = y[i] * 2
      end)
      print(k(x):launch {grid = 1, block = 32, device = "gpu"})]], nil, SLOW)
    assert.equal("compiling\ncontext\n", err)
    assert.equal(0, code)
    assert.equal("true\n", out)
  end)

  it("begins before an operation traces its kernel", function()
    local _, err, code = run([[
      local cute = require "cute"
      local trace = require "cute.lang.trace"
      local traced = trace.run
      function trace.run(...)
        local start = core.clock()
        while core.clock() < start + 0.3 do end
        return traced(...)
      end
      require "cute.jit".compile = function()
        io.stderr:write "compiling\n"
        return {cubin = cubin, losses = {}, kernels = {}}
      end
      local x = cute.ones({1024}, cute.f32)
      local y = cute.ops.elementwise(function(v) return v * 2 end, x)
      y:close()]], nil, SLOW)
    assert.equal("context\ncompiling\n", err)
    assert.equal(0, code)
  end)

  it("fails in the call that needs it", function()
    local out, err, code = run([[
      dev:begin()
      print((select(2, dev:buffer("f32", 8))))
      print(dev:buffer("f32", 8) ~= nil)]], nil,
      {FAKE_FAIL = "cuDevicePrimaryCtxRetain 1"})
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal("cuDevicePrimaryCtxRetain: CUDA_ERROR_OTHER (in words) "
      .. "[driver-error]\ntrue\n", out)
  end)
end)

describe("the driver interface", function()
  setup(fake.build)
  teardown(fake.remove)

  it("measures launches and functions", function()
    local out, err = run [[
      local x = assert(dev:buffer("f32", 9))
      local n = {0, 0}
      local f = assert(dev:load(cubin, "axpy"))
      local object = assert(f:prepare {args = {x, x, {"f32", 0}, {"i32", 0},
                                               {"i64", 0}},
                                       grid = 1, block = 1})
      local r = assert(gpu.bench({
        {name = "a", launch = object, flops = 4e9},
        {name = "b", launch = function() n[1] = n[1] + 1 end}},
        {rounds = 2, warm_ms = 6, hot_ms = 4, flush_bytes = 1000}))
      print(r.a.cold.median, r[2].name, r.a.cold.tflops, r.a.hot.n, n[1] > 10)
      print(message(gpu.bench, {{name = "c", launch = function()
        return nil, "mine [driver-error]"
      end}}, {flush_bytes = 1000}))
      local seen = {}
      local function count(name)
        return {launch = function() seen[name] = (seen[name] or 0) + 1 end}
      end
      gpu.bench({count "first", count "second"}, {rounds = 1, warm_ms = 0,
        hot_ms = 0, cold = false, settle_ms = 10})
      print(seen.first > seen.second, seen.second)
      local function axpy(elements)
        return assert(f:prepare {args = {x, x, {"f32", 0},
          {"i32", elements}, {"i64", 0}}, grid = 1, block = 1})
      end
      print((select(2, gpu.best {axpy(9), axpy(3), axpy(8)})))]]
    assert.equal("", err)
    assert.equal("2.0\tb\t2.0\t2\ttrue\nmine [driver-error]\ntrue\t2\n2\n",
                 out)
  end)

  it("names only kernels that may have caused a fault", function()
    local out, err = run [[
      local function launch(name)
        local f = assert(dev:load(cubin, name, 0))
        assert(f:prepare {grid = 1, block = 1}):launch()
      end
      launch "innocent"
      dev:sync()
      launch "one" launch "two" launch "bad"
      print(message(dev.sync, dev))
      for _, name in ipairs {"a", "b", "c", "d", "e", "bad"} do launch(name) end
      print(message(dev.sync, dev))
      launch "waited"
      dev:buffer("f32", 1):download()
      launch "bad2"
      print(message(dev.sync, dev))
      launch "bad3"
      local ok, text = pcall(launch, "after")  -- it learns of the other's
      print((text:gsub("^.-:%d+: ", "")))]]
    local gone = "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (in words); " ..
      "the context was destroyed and its buffers are closed [driver-error]\n"
    assert.equal("", err)
    assert.equal("kernel one or kernel two or kernel bad: " .. gone ..
      "kernel a or kernel b or kernel c or kernel d or another: " .. gone ..
      "kernel bad2: " .. gone .. "kernel bad3: " ..
      gone:gsub("cuCtxSynchronize", "cuModuleLoadData"), out)
  end)

  it("raises the driver's error if a method fails", function()
    for _, case in ipairs {
      {"cuMemcpyHtoD_v2", "b:upload(h)"}, {"cuMemcpyDtoH_v2", "b:download(h)"},
      {"cuMemcpyDtoH_v2", "b:download()"}, {"cuMemsetD8Async", "b:memset(0)"},
      {"cuMemcpyDtoDAsync_v2", "b:copy(b)"}, {"cuCtxSynchronize", "dev:sync()"},
      {"cuStreamSynchronize", "s:sync()"}, {"cuEventRecord", "e:record()"},
      {"cuEventSynchronize", "e:sync()"}, {"cuEventElapsedTime",
       "e:elapsed(e)"}, {"cuLaunchKernel", "l:launch()"},
      {"cuLaunchKernel", "l:launch_n(2)"},
    } do
      local out, err = run([[
        local h = core.buffer("f32", 4)
        local b, s, e = dev:buffer("f32", 4), dev:stream(), dev:event()
        local l = assert(dev:load(cubin, "any", 0)):prepare {grid = 1,
          block = 1}
        print(pcall(load("local h, b, s, e, l, dev = ...\n" ..
                         "]] .. case[2] .. [[", "=script"), h, b, s, e, l,
                    dev))]], nil, {FAKE_FAIL = case[1] .. " 1"})
      assert.equal("", err)
      assert.equal(("false\tscript:2: %s%s: CUDA_ERROR_OTHER (in words) " ..
        "[driver-error]\n"):format(case[1] == "cuLaunchKernel" and
        "kernel any: " or "", (case[1]:gsub("_v2", ""))), out)
    end
  end)
end)

local function has_nvrtc() return require "cute.jit".version() ~= nil end

describe("a launch through a driver that fails", function()
  local KERNEL = [[
    local cute = require "cute"
    local add = cute.kernel("add", function(x)
      x[cute.arch.thread_idx()] = 1
    end)
    local X = cute.zeros({32}, cute.f32)
    local opts = {grid = 1, block = 32, device = "gpu"}
  ]]

  setup(fake.build)
  teardown(fake.remove)

  it("raises or returns an error that names the kernel and the call", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    for _, call in ipairs {"cuMemAlloc_v2", "cuMemcpyHtoD_v2",
                           "cuLaunchKernel", "cuMemcpyDtoH_v2",
                           "cuModuleLoadData"} do
      local want = ("kernel add: %s: CUDA_ERROR_OTHER (in words) " ..
        "[driver-error]"):format((call:gsub("_v2", "")))
      local fails = {FAKE_FAIL = call .. " 1"}
      local out, err = run(KERNEL .. [[
        print(pcall(load("local add, X, opts = ...\nadd(X):launch(opts)",
                         "=script"), add, X, opts))]], nil, fails)
      assert.equal("", err)
      assert.equal("false\tscript:2: " .. want .. "\n", out)
      out, err = run(KERNEL .. [[
        opts.faults = "return"
        print(add(X):launch(opts))
        print(add(X):launch(opts))]], nil, fails)
      assert.equal("", err)
      assert.equal("nil\t" .. want .. "\ntrue\n", out)
    end
  end)

  it("names the kernel whose fault a later copy reports", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    local out, err = run(KERNEL:gsub('"add"', '"bad_add"') .. [[
      print(message(function() add(X):launch(opts) end))
      print(X(3))]])
    assert.equal("", err)
    assert.equal("kernel bad_add: cuMemcpyDtoH: CUDA_ERROR_ILLEGAL_ADDRESS " ..
      "(in words); the context was destroyed and its buffers are closed " ..
      "[driver-error]\n0.0\n", out)
  end)

  it("shows the script's line if the script ignores the result", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    local script = support.write(fake.folder .. "/script.lua", KERNEL, "\n",
                                 "add(X):launch(opts)\nprint(X(3))\n")
    local out, err, code = support.run({script}, {env = {
      LD_LIBRARY_PATH = fake.folder, FAKE_FAIL = "cuLaunchKernel 1",
      CUTELUA_NO_CUDA = "0"}})
    assert.equal("", out)
    assert.equal("cutelua: kernel add: cuLaunchKernel: CUDA_ERROR_OTHER " ..
      "(in words) [driver-error]\n  " .. script .. ":8 in main chunk\n", err)
    assert.equal(1, code)
  end)

  it("copies a host buffer once for two views of it", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    local out, err = run(KERNEL .. [[
      local both = cute.kernel("both", function(x, y, z)
        x[0] = y[0] + z[0]
      end)
      local low = cute.make_tensor(X.iterator, cute.make_layout {16})
      local high = cute.make_tensor(X.iterator + 8, cute.make_layout {16})
      local Z = cute.zeros({2}, cute.f32)
      local run = assert(cute.compile(both, low, high, Z, opts))
      print(run.source:find "restrict__ x", run.source:find "restrict__ z" > 0)
      run:launch()]], nil, {FAKE_SAY = "1"})
    assert.equal("nil\ttrue\n", out)
    local calls = support.lines(err)
    table.sort(calls)
    assert.same({"buffer 512", "buffer 512", "download 128", "free 512",
                 "free 512", "upload 128", "upload 8"}, calls)
  end)

  it("loads a kernel once, however often it is launched", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    local out, err = run(KERNEL .. [[
      for _ = 1, 3 do add(X):launch(opts) end
      print "launched"]], nil, {FAKE_FAIL = "cuModuleLoadData 2"})
    assert.equal("", err)
    assert.equal("launched\n", out)
  end)

  it("detects that views of GPU memory overlap", function()
    local out, err = run(KERNEL .. [[
      local low = cute.make_tensor(X.iterator, cute.make_layout {16})
      local d, e = dev:buffer("f32", 32), dev:buffer("f32", 32)
      for _, case in ipairs {{15, d}, {16, d}, {0, e}} do
        local other = cute.make_tensor(X.iterator + case[1],
                                       cute.make_layout {16})
        print(select(4, core.kind {core.on_device(low, d),
          core.on_device(other, case[2]), n = 2}) ~= nil)
      end]])
    assert.equal("", err)
    assert.equal("true\nfalse\nfalse\n", out)
  end)

  it("raises an error without a GPU, where compile returns nil", function()
    local out, err = support.run_lua({"-e", KERNEL .. [[
      local ok, message = pcall(function() add(X):launch(opts) end)
      print(ok, message)
      print((cute.compile(add, X, opts)))
      opts.faults = "return"
      print(add(X):launch(opts))]]}, {CUTELUA_NO_CUDA = "1"})
    assert.equal("", err)
    local lines = support.lines(out)
    assert.truthy(lines[1]:find("^false\t.-:%d+: kernel add: the NVIDIA "
      .. "driver was not found .*%[no%-gpu%]$"), out)
    assert.equal("nil", lines[2])
    assert.truthy(lines[3]:find("^nil\tkernel add: the NVIDIA driver was not "
      .. "found .*%[no%-gpu%]$"), out)
  end)
end)

-- The fake driver computes axpy as y = a x + far, whatever CUDA C it gets. All
-- values are multiples of 2^40, so `far` needs 64 bits.
local PAIR = [[
  local cute = require "cute"
  local traced, shift = {n = 0}, 0
  local axpy = cute.kernel("axpy", function(y, x, a, n, far)
    traced.n = traced.n + 1
    y[n] = x[shift] * a + far:to(cute.f32)
  end)
  local function tensor(n, value)
    local t = cute.full({n}, value, cute.f32)
    return core.on_device(t, assert(dev:buffer((core.param_memory(t)))))
  end
  local function get(t)
    return core.param_memory(t):download()[1] / 2^40
  end
  local device = cute.device "gpu"
  local opts = {grid = 1, block = 32, device = device}
  local far, one = 1 << 40, 2.0^40
  local X, Y, Z = tensor(8, 3), tensor(8, 1), tensor(8, 100)
]]

-- Asserts that the code prints `want`, line by line.
local function check(code, want, more)
  if not has_nvrtc() then return pending "needs NVRTC" end
  local out, err = run(PAIR .. code, nil, more)
  assert.equal("", err)
  assert.same(want, support.lines(out))
end

describe("a launch of a known program", function()
  setup(fake.build)
  teardown(fake.remove)

  it("passes these arguments to the driver, after one trace", function()
    check([[
      for i = 1, 3 do
        axpy(Y, X, i * one, 8, far):launch(opts)
        axpy(Z, X, 10 * i * one, 8, far):launch {grid = {i, 2}, block = {32}}
        print(get(Y), get(Z), traced.n)
      end
      axpy(Y, X, 1, 8, far):launch(opts)
      print(traced.n)
      axpy(Y, Y, 1.0, 8, far):launch(opts)
      print(traced.n)
      axpy(Y, X, 1.0, 8, far):launch {grid = 1, block = 16, device = device}
      axpy(Y, X, 1.0, 8, far):launch {grid = 1, block = 32, fmad = true}
      print(traced.n)
      shift = 1
      axpy(Y, X, 1.0, 8, far):launch(opts)
      print(traced.n)]], {"4.0\t31.0\t1", "7.0\t61.0\t1", "10.0\t91.0\t1",
                        "2", "3", "5", "6"})
  end)

  it("accepts new arguments for a prepared launch, of GPU or host",
     function()
    check([[
      local run = assert(cute.compile(axpy, Y, X, 2 * one, 8, far, opts))
      run(Z, X, one, 8, far)
      print(get(Z))
      run(Z, Y, one, 8, far, {grid = {2, 3}, stream = dev:stream()})
      print(get(Z))
      run:launch()
      print(get(Y))
      local x, y = cute.full({8}, 3, cute.f32), cute.full({8}, 5, cute.f32)
      run(y, x, 3 * one, 8, far)
      print(y[2] / one, traced.n)
      local own = assert(cute.compile(axpy, y, x, one, 8, far, opts))
      own:launch()
      print(y[2] / one)
      own(Y, X, one, 8, far)
      own(y, x, 2 * one, 8, 5)
      print(y[2] / one, get(Y), traced.n)
      print(message(run, Z, X, 1, 8, far))
      print(message(run, Z, X, 1.0, 8))
      print(message(run, Z, Z, 1.0, 8, far))
      print(message(run, Z, X, 1.0, 8, far, {grid = -1}))
      core.param_memory(X):close()
      print(message(run, Z, X, 1.0, 8, far))
      print(message(function()
        return axpy(Z, X, 1.0, 8, far):launch(opts)
      end))]], {
      "4.0", "2.0", "7.0", "10.0\t1", "4.0", "6.0\t4.0\t1",
      "kernel axpy: argument 3 is a number (i32); this launch takes a number "
        .. "(f32) [bad-launch]",
      "kernel axpy: this launch takes 5 arguments, got 4 [bad-launch]",
      "kernel axpy: arguments 1 and 2 share memory, but this launch was "
        .. "compiled for arguments that do not [bad-launch]",
      "  compile another launch for arguments that share memory",
      "grid = -1; one to three integers of at least 0 are needed [bad-launch]",
      "the device buffer was closed [closed]",
      "call:launch: the device buffer was closed [closed]"})
  end)

  it("runs a prepared launch n times", function()
    check([[
      local run = assert(cute.compile(axpy, Y, Y, 2.0, 8, far, opts))
      run:launch()
      print(run:launch_n(3), get(Y))
      local y = cute.full({8}, 1, cute.f32)
      local own = assert(cute.compile(axpy, y, y, 2.0, 8, far, opts))
      print(own:launch_n(2), y[2] / one)]], {"true\t15.0", "true\t3.0"})
  end)
end)

describe("a launch of a known program", function()
  setup(fake.build)
  teardown(fake.remove)

  it("takes tensors where it was compiled without, and the grid then",
     function()
    check([[
      local S = cute.symbolic {dtype = cute.f32, shape = {8}}
      local T = cute.symbolic {dtype = cute.f32, shape = {8}}
      local run = assert(cute.compile(axpy, S, T, 1.0, 8, far,
                                      {block = 32, device = device}))
      run(Y, X, 2 * one, 8, far, {grid = 3})
      print(get(Y))
      print(message(run, Y, X, one, 8, far))
      print(message(run, Y, tensor(9, 1), one, 8, far, {grid = 1}))
      print(message(run.launch, run))
      local y = cute.full({8}, 5, cute.f32)
      run(y, cute.full({8}, 3, cute.f32), 3 * one, 8, far, {grid = 3})
      print(y[1] / one)]], {"7.0",
      "kernel axpy was compiled without a grid: pass one to launch it, run(X, "
        .. "..., {grid = n}) [bad-launch]",
      "kernel axpy: argument 2 is a tensor of f32, (9):(1), aligned to 256 "
        .. "bytes; this launch takes a tensor of f32, (8):(1), aligned to 4 "
        .. "bytes [bad-launch]",
      "kernel axpy was compiled for symbolic arguments: pass tensors to launch "
        .. "it, run(X, ...) [bad-launch]", "10.0"})
  end)

  it("allocates no garbage", function()
    check([[
      local run = assert(cute.compile(axpy, Y, X, 2.0, 8, far, opts))
      local function bytes(f)
        for _ = 1, 3 do f() end
        collectgarbage()
        collectgarbage "stop"
        local before = collectgarbage "count"
        for _ = 1, 100 do f() end
        local made = (collectgarbage "count" - before) * 10.24
        collectgarbage "restart"
        return made
      end
      print(bytes(function() run(Y, X, 2.0, 8, far) end) < 10)
      local list = {Y, X, a = {2.0}}
      local nested = cute.kernel("nested", function(l) l[1][0] = l.a[1] end)
      local again = assert(cute.compile(nested, list, opts))
      print(bytes(function() again(list) end) < 10)
      for _, o in ipairs {opts, {grid = 1, block = 32, device = "gpu"},
                          {grid = {1, 2}, block = {32}, fastmath = true}} do
        print(bytes(function() axpy(Y, X, 2.0, 8, far):launch(o) end) < 350)
      end]], {"true", "true", "true", "true", "true"})
  end)

  it("loads the program again after the context was lost", function()
    check([[
      local bad = cute.kernel("bad", function(y) y[0] = 1 end)
      axpy(Y, X, 1.0, 8, far):launch(opts)
      axpy(Y, X, 1.0, 8, far):launch(opts)
      bad(Y):launch(opts)
      print(message(dev.sync, dev))
      X, Y = tensor(8, 3), tensor(8, 1)
      for _ = 1, 2 do axpy(Y, X, 2 * one, 8, far):launch(opts) end
      print(get(Y), traced.n)]], {
      "kernel axpy (2 launches) or kernel bad: cuCtxSynchronize: "
      .. "CUDA_ERROR_ILLEGAL_ADDRESS (in words); the context was destroyed and "
      .. "its buffers are closed [driver-error]", "7.0\t1"})
  end)
end)

local SIZES = [[
  local cute = require "cute"
  local k = cute.kernel("k", function(x) x[0] = cute.arch.cluster_size() end)
  local b = assert(dev:buffer("i32", 8))
  local X = core.on_device(cute.zeros({8}, "i32"), b)
  local function opts(t) t.block, t.device = 32, "gpu" return t end
]]

describe("a launch in clusters", function()
  setup(function() fake.build "-DFAKE_CLUSTERS" end)
  teardown(fake.remove)

  it("passes the cluster's extents, also for a known program", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    local _, err = run(SIZES .. [[
      for _ = 1, 2 do
        k(X):launch(opts {grid = {4, 2}, cluster = {2, 2}})
        k(X):launch(opts {grid = 16, cluster = 16})
        k(X):launch(opts {grid = 3, pdl = true})
        k(X):launch(opts {grid = 3, pdl = false})
        k(X):launch(opts {grid = 6, cluster = 3, pdl = true})
      end]])
    local each = "k: grid 4 2 1, clusters of 4\n%s" ..
      "k: grid 16 1 1, clusters of 16\nk: grid 3 1 1, clusters of 1, pdl\n" ..
      "k: grid 6 1 1, clusters of 3, pdl\n"
    -- Clusters of more than 8 blocks need an attribute of the function ("opt
    -- in"). It is set each time a launch is prepared.
    assert.equal(each:format "opt in 1\nopt in 1\n" .. each:format "", err)
  end)

  it("calls no driver function if the grid has no blocks", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    local out, err = run(SIZES .. [[
      for _, grid in ipairs {0, {0, 2}, {65536, 32768, 0}} do
        for _ = 1, 2 do
          k(X):launch(opts {grid = grid, cluster = {2, 1}})
          k(X):launch(opts {grid = grid, pdl = true, cooperative = true})
          k(cute.zeros({8}, "i32")):launch(opts {grid = grid})
        end
        local p = cute.compile(k, X, opts {grid = grid, pdl = true})
        print(p:launch(), p:launch_n(3), p(X))
        p(X, {grid = 5})
        p(X, {grid = grid})
      end
      local g = cute.graph(function()
        k(X):launch(opts {grid = 0, pdl = true})
        k(X):launch(opts {grid = 3, cluster = 3})
      end)
      print(g.nodes)]])
    local line = "k: grid 5 1 1, clusters of 1, pdl\n"
    assert.equal(line:rep(3) .. "k: grid 3 1 1, clusters of 3\n", err)
    assert.equal(("true\ttrue\ttrue\n"):rep(3) .. "1\n", out)
  end)

  it("runs all blocks at once if it is cooperative", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    local out, err = run(SIZES .. [[
      for _ = 1, 2 do
        k(X):launch(opts {grid = 100, cooperative = true})
        k(X):launch(opts {grid = 101})
      end
      k(X):launch(opts {grid = 4, cluster = 2, cooperative = true})
      print(message(function()
        k(X):launch(opts {grid = 101, cooperative = true})
      end))
      local go = cute.compile(k, X, opts {grid = 4, cooperative = true})
      go(X)
      print(message(go, X, {cooperative = false}))]])
    local each = "k: grid 100 1 1, clusters of 1, cooperative\n"
    assert.equal(each .. each .. "k: grid 4 1 1, clusters of 2, cooperative\n"
      .. "k: grid 4 1 1, clusters of 1, cooperative\n", err)
    assert.matches("k: a cooperative grid of 101 blocks, of 32 threads with 0 "
      .. "bytes of shared memory each, is more than .- runs at once "
      .. "%[bad%-launch%]\n  let each block do more\n", out)
    assert.matches("cooperative", out:match "[^\n]*\n$")
  end)

  it("may begin before the preceding one ends, in a graph too", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    local out, err = run(SIZES .. [[
      local g = cute.graph(function()
        k(X):launch(opts {grid = 2})
        k(X):launch(opts {grid = 3, pdl = true})
      end)
      print(g.nodes)]])
    assert.equal("2\n", out)
    assert.equal("k: grid 3 1 1, clusters of 1, pdl\n", err)
  end)

  it("reports how many clusters run at once", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    local out = run(SIZES .. [[
      local info = cute.utils.HardwareInfo()
      print(info:get_max_active_clusters(4), info:get_max_active_clusters(4))
      local gemm = require "kernels.gemm_sm90" {tile = {128, 256, 64},
                                                cluster = {2, 2}}
      for _, place in ipairs {"gpu", "host"} do
        print(table.concat(gemm.grid(8192, 8192, nil, 1, place), " "))
      end
      print(table.concat(gemm.grid(8192, 8192, 8, 1, "gpu"), " "))]])
    assert.equal("27\t27\n2 2 27\n2 2 30\n2 2 2\n", out)
  end)
end)

describe("a launch in clusters", function()
  setup(function() fake.build "-DFAKE_CLUSTERS" end)
  teardown(fake.remove)

  it("is prepared once for its clusters", function()
    if not has_nvrtc() then return pending "needs NVRTC" end
    local out, err = run(SIZES .. [[
      local go = cute.compile(k, X, opts {grid = 4, cluster = 2, pdl = true})
      go(X)
      go:launch()
      go(X, {grid = 6})
      print(message(go, X, {grid = 5}))
      print(message(go, X, {cluster = 4}))
      print(message(go, X, {pdl = false}))
      print(message(function() k(X):launch(opts {grid = 5, cluster = 2}) end))
      print(message(function() k(X):launch {grid = 16, block = 256,
        cluster = 8, device = "gpu"} end))
      local f = assert(dev:load(cubin, "any"))
      print(f:prepare({grid = 4, block = 32, cluster = 4})
        :max_active_clusters())]])
    assert.equal("k: grid 4 1 1, clusters of 2, pdl\n" ..
      "k: grid 4 1 1, clusters of 2, pdl\n" ..
      "k: grid 6 1 1, clusters of 2, pdl\n", err)
    assert.equal("a grid of 5 x 1 x 1 blocks in clusters of 2 x 1 x 1: 5 is "
      .. "not a multiple of 2 along x [bad-launch]\ncluster = 4 x 1 x 1, but "
      .. "this launch was compiled with cluster = 2 x 1 x 1 [bad-launch]\npdl "
      .. "= false, but this launch was compiled with pdl = true "
      .. "[bad-launch]\ncall:launch: a grid of 5 x 1 x 1 blocks in clusters of "
      .. "2 x 1 x 1: 5 is not a multiple of 2 along x [bad-launch]\nkernel k: "
      .. "Fake has no room for a cluster of 8 blocks of 256 threads with 0 "
      .. "bytes of shared memory each [bad-launch]\n27\n", out)
  end)
end)
-- SPDX-License-Identifier: MIT
