-- Scripts that attack an untrusted state of libcutelua. Each row has a name,
-- the expected end of the script, and its text. Ends: "limit" (a budget is used
-- up), "memory", a kind of error, or "ok" if the script itself checks that the
-- attack has failed.
return {
  -- ---- access to the system ----
  {"files by io", "lua", [[io.open("/etc/passwd")]]},
  {"processes by os", "lua", [[os.execute("true")]]},
  {"C modules", "lua", [[package.loadlib("libc.so.6", "system")]]},
  {"files as chunks", "ok", [[assert(not dofile and not loadfile)]]},
  {"no library of the system", "ok", [[
    for _, name in ipairs {"io", "os", "package", "debug"} do
      assert(_G[name] == nil, name)
      assert(not pcall(require, name), name)
    end]]},
  {"modules of cutelua itself", "ok", [[
    for _, name in ipairs {"cute.core", "cute.lang.kernel", "cute.lang.files",
      "cutelua", "cutelua.ptx", "cutelua.ptx.raw", "cutelua.text.npy",
      "cutelua.program.main", "cute.embedding", "cute.sys", "cute.npy",
      "../core", "kernels../cute.core", "kernels..cute.core"} do
      assert(not pcall(require, name), name)
    end]]},
  {"compiled chunks", "ok", [[
    assert(not string.dump and not ("").dump)
    assert(not load("\27Lua"))
    assert(not load("\27Lua", "x", "b"))
    assert(not load(function() return nil end, "x", "b") or true)]]},
  {"metatables of Lua", "ok", [[
    assert(getmetatable("") == nil and getmetatable(print) == nil)
    local cute = require "cute"
    assert(getmetatable(cute) == nil)
    assert(getmetatable(cute.zeros({1}, cute.f32)) == nil)
    assert(getmetatable(cute.kernel("k", function() end)) == nil)]]},
  {"PTX and compilers", "ok", [[
    local cute = require "cute"
    for _, name in ipairs {"ptx", "cuda", "triton", "dsl", "raw_kernel",
      "nvrtc_version", "from_dlpack", "debug", "doc", "cli", "npy", "load",
      "save", "draw"} do
      assert(not pcall(function() return assert(cute[name]) end), name)
    end
    assert(not cute.jit.compile("", {}))
    assert(not cute.gpu.open(0))]]},
  {"PTX in a kernel", "ok", [[
    local cute = require "cute"
    local k = cute.kernel("k", function(x) cute.arch.inline_ptx("trap;") end)
    local ok = pcall(function()
      k(cute.zeros({1}, cute.f32)):launch {grid = 1, block = 1}
    end)
    assert(not ok)]]},
  {"a GPU by name", "ok", [[
    local cute = require "cute"
    local x = cute.zeros({1}, cute.f32)
    local k = cute.kernel("k", function(x) x[0] = 1 end)
    assert(not pcall(function()
      k(x):launch {grid = 1, block = 1, device = "gpu"}
    end))
    assert(not pcall(cute.zeros, {1}, cute.f32, {device = "gpu"}))
    assert(not pcall(function() return x:to "gpu" end))
    assert(not pcall(cute.stream, "gpu"))]]},
  {"a file by its name as a chunk's", "ok", [[
    local ok, message = pcall(load("error 'x'", "@/etc/passwd"))
    assert(not ok and not message:find "root")
    local cute = require "cute"
    local f = load("local cute = ... return function(x) x[0] = y.z end",
                   "@/etc/passwd")(cute)
    ok, message = pcall(function()
      cute.kernel("k", f)(cute.zeros({1}, cute.f32))
        :launch {grid = 1, block = 1}
    end)
    assert(not ok and not message:find "root")]]},
  {"addresses of memory", "ok", [[
    local cute = require "cute"
    local k = cute.kernel("k", function(x)
      x[0] = cute.make_ptr(cute.f32, 4096, "gmem")[0]
    end)
    assert(not pcall(function()
      k(cute.zeros({1}, cute.f32)):launch {grid = 1, block = 1}
    end))]]},
  {"functions that other functions reach", "ok", [[
    local seen, stack = {}, {_G}
    for _, name in ipairs {"cute", "cute.utils", "cute.pipeline", "cute.tiles",
      "kernels.softmax", "cute.ops", "cute.arch", "cute.nvgpu"} do
      stack[#stack + 1] = require(name)
    end
    local cute = require "cute"
    local k = cute.kernel("k", function(x) x[0] = 1 end)
    stack[#stack + 1] = k
    stack[#stack + 1] = k(cute.zeros({1}, cute.f32))
    local words = {getinfo = 1, setupvalue = 1, sethook = 1, open_input = 1,
      open_aside = 1, gpu_open = 1, dump = 1, popen = 1, execute = 1,
      getregistry = 1, loadlib = 1, put_in_place = 1, map_file = 1}
    while #stack > 0 do
      local t = table.remove(stack)
      if type(t) == "table" and not seen[t] then
        seen[t] = true
        for key, v in next, t do
          assert(not (words[key] and type(v) == "function"), key)
          stack[#stack + 1] = v
        end
        local ok, index = pcall(function() return t.__index end)
        if ok then stack[#stack + 1] = index end
      end
    end]]},

  -- ---- code that no hook can stop ----
  {"a finalizer", "lua", [[
    setmetatable({}, {__gc = function() while true do end end})]]},
  {"a finalizer that is added later", "ok", [[
    local meta = {}
    local function loop() while true do end end
    setmetatable({}, meta)
    meta.__gc = loop
    assert(not pcall(setmetatable, {}, meta))
    assert(not pcall(rawset, meta, "__gc", loop))
    collectgarbage()]]},
  {"a finalizer of a class of cutelua", "ok", [[
    local cute = require "cute"
    local k = cute.kernel("k", function(x) x[0] = 1 end)
    local function loop() while true do end end
    local function add(t) t.__index.__gc = loop end
    assert(not pcall(add, k))
    assert(not pcall(add, k(cute.zeros({1}, cute.f32))))
    pcall(add, cute.zeros({1}, cute.f32))
    pcall(add, cute.make_layout(4))
    pcall(add, cute.buffer(cute.f32, 4))
    cute.zeros({1}, cute.f32)
    collectgarbage()]]},
  {"weak tables", "lua", [[
    local w = setmetatable({}, {__mode = "k"})]]},
  {"weak tables that are added later", "ok", [[
    local meta = {}
    local w = setmetatable({}, meta)
    meta.__mode = "k"
    w[{}] = true
    collectgarbage()
    assert(next(w))]]},
  {"a handler of errors", "limit", [[
    local function loop() while true do end end
    while true do xpcall(loop, loop) end]]},
  {"a metamethod that closes", "limit", [[
    local function loop() while true do end end
    while true do
      local x <close> = setmetatable({}, {__close = loop})
      error "x"
    end]]},
  {"a metamethod that closes a coroutine", "limit", [[
    local function loop() while true do end end
    local function f()
      local x <close> = setmetatable({}, {__close = loop})
      loop()
    end
    local co = coroutine.create(f)
    coroutine.resume(co)
    coroutine.close(co)]]},
  {"a metamethod that closes a wrapped coroutine", "limit", [[
    local function loop() while true do end end
    coroutine.wrap(function()
      local x <close> = setmetatable({}, {__close = loop})
      loop()
    end)()]]},
  {"a suspended coroutine that is closed", "limit", [[
    local function loop() while true do end end
    local co = coroutine.create(function()
      local x <close> = setmetatable({}, {__close = loop})
      coroutine.yield()
    end)
    coroutine.resume(co)
    coroutine.close(co)]]},
  {"metamethods during a trace", "limit", [[
    local cute = require "cute"
    local function loop() while true do end end
    for _, name in ipairs {"__index", "__len", "__eq", "__lt", "__call",
      "__concat", "__tostring", "__pairs", "__newindex", "__add"} do
      local t = setmetatable({}, {[name] = loop})
      local k = cute.kernel("k", function(x)
        local u = t
        for i in cute.range(3) do u.a = x[0] x[i] = u.b end
        cute.when(x[0]:lt(1), function() u = nil end)
      end)
      pcall(function()
        k(cute.zeros({4}, cute.f32)):launch {grid = 1, block = 1}
      end)
    end
    loop()]]},

  -- ---- endless scripts ----
  {"a loop", "limit", [[while true do end]]},
  {"a loop that catches errors", "limit", [[
    while true do pcall(function() while true do end end) end]]},
  {"recursion", "lua", [[local function f() f() end f()]]},
  {"tail calls", "limit", [[local function f() return f() end f()]]},
  {"coroutines that end early", "limit", [[
    while true do
      coroutine.wrap(function() for i = 1, 50 do end end)()
    end]]},
  {"coroutines within coroutines", "lua", [[
    local function f() return coroutine.wrap(f)() end f()]]},
  {"a pattern of exponential time", "limit", [[
    string.find(("a"):rep(40), ("a*"):rep(20) .. "b")]]},
  {"a pattern of quadratic time", "limit", [[
    local s = ("("):rep(1e6)
    for i = 1, 1e6 do s:find("%b()", i) end]]},
  {"moves of a table", "limit", [[table.move({}, 1, 1 << 60, 2)]]},
  {"insertions into a long table", "limit", [[
    local t = {}
    for i = 1, 1e6 do t[i] = i end
    while true do table.insert(t, 1, 0) end]]},
  {"a length of 2^40", "limit", [[
    table.insert(setmetatable({}, {__len = function() return 1 << 40 end}),
                 1, 2)]]},
  {"sorting", "limit", [[
    local t = {}
    for i = 1, 3e5 do t[i] = i % 7 end
    while true do table.sort(t) end]]},
  {"long strings", "limit", [[
    local s = ("x"):rep(1e7)
    while true do local t = s .. s end]]},
  {"comparisons of long strings", "limit", [[
    local s, t = ("x"):rep(2e7), ("x"):rep(2e7)
    while s == t or s <= t do end]]},
  {"scans of an empty table", "limit", [[
    local t = {}
    for i = 1, 1e6 do t[i] = 1 end
    for i = 1, 1e6 do t[i] = nil end
    while true do next(t) end]]},
  {"collections", "limit", [[while true do collectgarbage() end]]},
  {"unpacking", "limit", [[
    local t = {}
    for i = 1, 5e5 do t[i] = 1 end
    while true do select("#", table.unpack(t)) end]]},

  -- ---- memory ----
  {"a string that doubles", "memory", [[
    local s = "x"
    while true do s = s .. s end]]},
  {"a table that grows", "memory", [[
    local t = {}
    while true do t[#t + 1] = {("x"):rep(1000)} end]]},
  {"a huge string", "lua", [[("x"):rep(1 << 62)]]},
  {"a huge tensor", "memory", [[
    require "cute".zeros({1 << 40}, "f32")]]},
  {"many tensors", "memory", [[
    local cute = require "cute"
    local t = {}
    for i = 1, 100 do t[i] = cute.zeros({1 << 20}, cute.f64) end]]},

  -- ---- layouts ----
  {"deep tuples", "ok", [[
    local cute = require "cute"
    local t = 1
    for i = 1, 1e5 do t = {t} end
    assert(not pcall(cute.make_layout, t))
    assert(not pcall(cute.size, t))
    assert(not pcall(cute.parse, ("("):rep(1e5)))]]},
  {"wide tuples", "ok", [[
    local cute = require "cute"
    local t = {}
    for i = 1, 1e5 do t[i] = 2 end
    assert(not pcall(cute.make_layout, t))]]},
  {"coordinates of a huge layout", "limit", [[
    local cute = require "cute"
    local l = cute.make_layout {1 << 30, 1 << 20}
    for c in cute.coords(l.shape) do l(c) end]]},

  -- ---- traces and the simulator ----
  {"an endless trace", "limit", [[
    local cute = require "cute"
    local k = cute.kernel("k", function() while true do end end)
    k():launch {grid = 1, block = 1}]]},
  {"a trace without end", "runaway-trace", [[
    local cute = require "cute"
    local k = cute.kernel("k", function(x)
      for i = 1, 1e12 do x[0] = x[0] + i end
    end)
    k(cute.zeros({1}, cute.f32)):launch {grid = 1, block = 1}]]},
  {"a trace of exponential size", "limit", [[
    local cute = require "cute"
    local function nest(x, n)
      if n == 0 then return end
      for i in cute.range(2) do nest(x, n - 1) nest(x, n - 1) x[i] = n end
    end
    local k = cute.kernel("k", function(x) nest(x, 40) end)
    k(cute.zeros({4}, cute.f32)):launch {grid = 1, block = 1}]]},
  {"branches in branches", "limit", [[
    local cute = require "cute"
    local function f(x, n)
      cute.when(x[0]:lt(n), function() f(x, n + 1) end)
    end
    local k = cute.kernel("k", function(x) f(x, 1) end)
    k(cute.zeros({1}, cute.f32)):launch {grid = 1, block = 1}]]},
  {"an endless kernel", "limit", [[
    local cute = require "cute"
    local k = cute.kernel("k", function(x)
      cute.loop(function() return x[0]:lt(5) end, function() x[1] = x[1] end)
    end)
    k(cute.zeros({4}, cute.f32)):launch {grid = 1, block = 32,
                                         budget = 1 << 50}]]},
  {"a huge grid", "limit", [[
    local cute = require "cute"
    local k = cute.kernel("k", function(x)
      x[cute.arch.block_idx() % 4] = 1
    end)
    k(cute.zeros({4}, cute.f32)):launch {grid = 1 << 26, block = 32}]]},
  {"a grid beyond the limit", "bad-launch", [[
    local cute = require "cute"
    local k = cute.kernel("k", function(x) x[0] = 1 end)
    k(cute.zeros({1}, cute.f32)):launch {grid = {1 << 30, 65535, 65535},
                                         block = 1}]]},
  {"deadlocks, caught", "limit", [[
    local cute = require "cute"
    local k = cute.kernel("k", function(x)
      cute.when(cute.arch.thread_idx():lt(32), function()
        cute.arch.barrier(1, 64)
      end)
    end)
    local x = cute.zeros({1}, cute.f32)
    while true do
      pcall(function() k(x):launch {grid = 100, block = 64} end)
    end]]},
  {"shared memory of 4 TB", "smem-budget", [[
    local cute = require "cute"
    local k = cute.kernel("k", function(x)
      cute.make_smem_tensor(cute.f32, 1 << 40)[0] = x[0]
    end)
    k(cute.zeros({1}, cute.f32)):launch {grid = 1, block = 1}]]},
  {"a product of 4096^3", "limit, or memory on many cores", [[
    local cute = require "cute"
    local A = cute.full({4096, 4096}, 1, cute.bf16)
    cute.ops.gemm(A, A)]]},
  {"a reference product", "limit", [[
    local cute = require "cute"
    local b = cute.buffer(cute.f32, 1 << 20)
    while true do cute.gemm_reference(b, b, b, 1024, 1024, 1024) end]]},
}
-- SPDX-License-Identifier: MIT
