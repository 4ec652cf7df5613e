-- Tests tensors on a GPU, copies in both directions, and the memory pool.
-- Without a GPU, they run on a driver that records its calls
-- (spec/gpu/fakecuda.c).
local cute = require "cute"
local fake = require "spec.gpu.fake"
local support = require "spec.support"

local HEAD = [[
  local cute = require "cute"
  local function all(t)
    local list = {}
    for _, x in t:to "host":elements() do list[#list + 1] = x end
    return table.concat(list, " ")
  end
]]

describe("new tensors", function()
  it("have the same random values in every type, rounded", function()
    local a = cute.rand({64, 9}, cute.f32, {seed = 3})
    local b = cute.rand({64, 9}, cute.bf16, {seed = 3})
    local least, most = 1, 0
    for i, x in a:elements() do
      assert.equal(x * 256 // 1 / 256, b(i))
      least, most = math.min(least, x), math.max(most, x)
    end
    assert.truthy(least >= 0 and least < 0.02 and most < 1 and most > 0.98)
    local h = cute.rand({4096}, cute.e5m2, {seed = 5})
    for _, x in h:elements() do assert.truthy(x < 1 and x * 8 % 1 == 0) end
  end)

  it("use a global seed, or their own", function()
    local function three()
      return cute.randn({1}, cute.f64)(0), cute.rand({1}, cute.f64)(0),
        cute.randn({1}, cute.f64)(0)
    end
    cute.manual_seed(7)
    local a, b, c = three()
    cute.manual_seed(7)
    assert.same({a, b, c}, {three()})
    assert.are_not.equal(a, c)
    local d = cute.randn({5}, cute.f32, {seed = 9})
    -- Random numbers of f64 are the numbers that f32 gets with the same seed,
    -- before they are rounded to f32.
    local wide = cute.randn({5}, cute.f64, {seed = 9})
    for i = 0, 4 do
      assert.equal(d(i), (string.unpack("f", string.pack("f", wide(i)))))
      assert.not_equal(d(i), wide(i))
    end
    local want = cute.buffer("f32", 5)
    want:fill_normal(9)
    for i = 0, 4 do assert.equal(want[i], d(i)) end
  end)

  it("have integers below their end", function()
    local seen = {}
    for _, x in cute.randint(-2, 3, {500}, cute.i8, {seed = 1}):elements() do
      seen[x] = true
    end
    assert.same({[-2] = true, [-1] = true, [0] = true, [1] = true,
                 [2] = true}, seen)
    for _, c in ipairs {{1 << 60, (1 << 60) + 9}, {math.mininteger, 5},
                        {math.mininteger, math.maxinteger},
                        {math.maxinteger - 3, math.maxinteger}} do
      local least, most, n = c[2], c[1], 0
      for _, x in cute.randint(c[1], c[2], {500}, cute.i64, {seed = 1})
        :elements() do
        assert(x >= c[1] and x < c[2])
        least, most, n = math.min(least, x), math.max(most, x), n + 1
      end
      -- Some sample must be within 1/50 of each end of the range.
      local part = (c[2] + 0.0 - c[1]) / 50
      assert(n == 500 and least - c[1] + 0.0 <= part and c[2] - most - 1.0
             <= part, c[1])
    end
    support.raises("seed = \"x\": an integer is needed", cute.rand, {2},
                   cute.f32, {seed = "x"})
    support.raises("the lower bound 3 must be below the upper bound 3",
      cute.randint, 3, 3, {2},
                   cute.i8)
    support.raises("128 does not fit in i8", cute.randint, 0, 129, {2}, cute.i8)
    support.raises("i32 is an integer type", cute.rand, {2}, cute.i32)
    support.raises("no option 'sed'", cute.rand, {2}, cute.f32, {sed = 1})
  end)
end)

describe("tensors on the host", function()
  it("are not copied, or are copied with their layout", function()
    local A = cute.rand({6, 5}, cute.f32, {seed = 1})
    assert.equal("host", A.device)
    for _, place in ipairs {"host", "cpu", "sim", "sim:sm_80",
                            cute.device "sim"} do
      assert.equal(A, A:to(place))
    end
    local view = cute.make_tensor(A.iterator + 7,
      cute.make_layout({2, 3}, {10, 1}))
    local copy = view:clone()
    assert.equal(tostring(view), tostring(copy))
    for i, x in view:elements() do assert.equal(x, copy(i)) end
    copy[{1, 1}] = 9
    assert.are_not.equal(9, A(3, 3))
    support.raises("no device 'card'", A.to, A, "card")
    support.raises("bad argument", A.to, A)
  end)

  it("copy elements from tensors of their shape", function()
    local A = cute.randint(0, 99, {4, 6}, cute.i32)
    local B = cute.zeros(cute.make_layout({4, 6}, {1, 5}), cute.i32)
    assert.equal(B, B:copy_from(A))
    for i = 0, 3 do
      for j = 0, 5 do assert.equal(A(i, j), B(i, j)) end
    end
    local C = cute.zeros({4, 6}, cute.i4):copy_from(
      cute.randint(0, 8, {4, 6}, cute.i4, {seed = 2}))
    assert.equal(cute.randint(0, 8, {4, 6}, cute.i4, {seed = 2})(3, 5), C(3, 5))
    -- A copy from its own transposed view must read before it writes.
    local D = cute.tensor({{1, 2}, {3, 4}}, cute.f64)
    D:copy_from(cute.select(D, {1, 0}))
    assert.same({1, 3, 2, 4}, {D(0, 0), D(0, 1), D(1, 0), D(1, 1)})
    local E = cute.zeros({3}, cute.f32):copy_from(cute.tensor {1, 2, 3})
    assert.equal(2, E(1))  -- The shapes 3 and (3) are compatible.
    support.raises("a tensor of shape (4,6) cannot be copied to one of (6,4)",
                   B.copy_from, cute.zeros({6, 4}, cute.i32), A)
    support.raises("i32 cannot be copied to f32", B.copy_from,
                   cute.zeros({4, 6}, cute.f32), A)
  end)

  it("report that there is no GPU", function()
    local out, err = support.run_lua({"-e", HEAD .. [[
      local A = cute.zeros({3}, "f32")
      print(pcall(A.to, A, "gpu"))
      print(A:to "auto" == A, cute.zeros({3}, "f32", {device = "auto"}).device)
      print(cute.zeros({3}, "f32", {pinned = true})(2))]]},
      {CUTELUA_NO_CUDA = "1"})
    assert.equal("", err)
    local lines = support.lines(out)
    assert.truthy(lines[1]:find("the NVIDIA driver was not found", 1, true))
    assert.equal("true\thost", lines[2])
    assert.equal("0.0", lines[3])
  end)
end)

-- Programs that must print the same with the fake driver and on a GPU.
local SAME = {}

SAME["are copies of what a view spans, with its layout and alignment"] = {[[
      local A = cute.randint(0, 9, {6, 5}, cute.i32, {seed = 1})
      local G = A:to "gpu"
      print(G.device, all(G) == all(A), G:to "gpu" == G)
      local view = cute.make_tensor(A.iterator + 7,
        cute.make_layout({2, 3}, {10, 1}))
      local g = view:to(cute.device "gpu")
      print(g, all(g) == all(view), core.param_memory(g).count)
      print(all(g:clone()) == all(g), g:clone().device)
      local far = cute.make_tensor(A.iterator + 29, cute.make_layout({3}, {-2}))
      print(all(far:to "gpu") == all(far))
      local tail = cute.zeros({1000}, "i4", {device = "gpu"})
      print(tail.device, all(tail):find "[^0 ]")
      cute.print_tensor(cute.tensor({{1, 2}}, "i32"):to "gpu")
      print(message(function() return G(1, 1) end))
      print(message(function() G[{1, 1}] = 3 end))]], {
      "gpu\ttrue\ttrue", "ptr[i32,gpu]+7 o (2,3):(10,1)\ttrue\t20",
      "true\tgpu", "true", "gpu\tnil", "ptr[i32,host] o (1,2):(0,1):",
      "    1    2",
      "the tensor's elements are on a GPU [bad-argument]",
      '  t:to "host" returns a copy on the host',
      "the tensor's elements are on a GPU [bad-argument]",
      '  t:to "host" returns a copy on the host'}}

SAME["are made there, and filled, in every width"] = {[[
      for _, t in ipairs {"u8", "bf16", "f32", "f64", "i64", "i4", "e3m2"} do
        local x = cute.full({3}, 1, t, {device = "gpu"})
        local o = cute.ones({2, 2}, t, {device = "gpu"})
        local z = cute.zeros({2}, t, {device = "gpu"})
        local l = cute.full_like(x, 2)
        print(all(x), all(o), all(z), all(l), l.device)
      end
      local x = cute.rand({3, 2}, "f32", {device = "gpu", seed = 4})
      print(all(x) == all(cute.rand({3, 2}, "f32", {seed = 4})))
      print(all(cute.tensor({1, 2}, "i32", {device = "gpu"})))
      x:fill(7)
      print(all(x))]], {
      "1 1 1\t1 1 1 1\t0 0\t2 2 2\tgpu",
      "1.0 1.0 1.0\t1.0 1.0 1.0 1.0\t0.0 0.0\t2.0 2.0 2.0\tgpu",
      "1.0 1.0 1.0\t1.0 1.0 1.0 1.0\t0.0 0.0\t2.0 2.0 2.0\tgpu",
      "1.0 1.0 1.0\t1.0 1.0 1.0 1.0\t0.0 0.0\t2.0 2.0 2.0\tgpu",
      "1 1 1\t1 1 1 1\t0 0\t2 2 2\tgpu", "1 1 1\t1 1 1 1\t0 0\t2 2 2\tgpu",
      "1.0 1.0 1.0\t1.0 1.0 1.0 1.0\t0.0 0.0\t2.0 2.0 2.0\tgpu",
      "true", "1 2", "7.0 7.0 7.0 7.0 7.0 7.0"}}

SAME["take elements from the host and from a GPU"] = {[[
      local A = cute.randint(0, 9, {4, 6}, cute.i32, {seed = 2})
      local G = cute.zeros({4, 6}, cute.i32, {device = "gpu"}):copy_from(A)
      print(all(G) == all(A))
      local H = cute.zeros({4, 6}, cute.i32):copy_from(G)
      print(all(H) == all(A), H.device)
      local part = cute.make_tensor(H.iterator + 1,
        cute.make_layout({2, 3}, {6, 1}))
      part:copy_from(cute.make_tensor(G.iterator + 8,
        cute.make_layout({2, 3}, {6, 2})))
      print(H(0, 1) == A(1, 2), H(1, 3) == A(3, 0), H(0, 4) == A(0, 4))
      print(all(cute.empty({4, 6}, cute.i32, {device = "gpu"}):copy_from(G))
        == all(A))]], {"true", "true\thost", "true\ttrue\ttrue", "true"}}

-- A program that copies between different layouts, for which it runs a kernel.
-- The fake driver does not know this kernel, so only its calls are compared.
local MOVED = [[
      local A = cute.randint(0, 9, {4, 6}, cute.i32, {seed = 2})
      local G = A:to "gpu"
      local T = cute.zeros(cute.make_layout({4, 6}, {1, 4}), cute.i32,
                           {device = "gpu"})
      local wide = cute.zeros({4, 8}, cute.i32, {device = "gpu"})
      local part = cute.make_tensor(wide.iterator + 1,
        cute.make_layout({4, 6}, {8, 1}))
      local column = cute.make_tensor(wide, cute.make_layout({4}, {8}))
      local i4 = cute.zeros(cute.make_layout({4, 6}, {1, 4}), cute.i4,
                            {device = "gpu"})
      local small = cute.randint(0, 8, {4, 6}, cute.i4)
      local graph = cute.graph(function()
        T:copy_from(G)
        part:copy_from(T)
        column:fill(7)
      end)
]]
local LOOK = [[
      graph:launch()
      print(all(T) == all(A), T)
      local w = wide:to "host"
      print(w(1, 0), w(1, 1) == A(1, 0), w(3, 6) == A(3, 5), w(3, 7))
      part:copy_from(A)
      T:copy_from(A)
      column:fill(3)
      print(all(T) == all(A), all(part) == all(A), all(column))
      print(all(i4:copy_from(small)) == all(small))
      local f = cute.randn({4, 6}, cute.f32, {seed = 6})
      local b = cute.empty({4, 6}, cute.bf16, {device = "gpu"})
      print(all(cute.testing.convert(f, b))
        == all(cute.testing.convert(f, cute.empty({4, 6}, cute.bf16))))
      print(all(cute.testing.convert(b, cute.zeros({4, 6}, cute.f32)))
        == all(b))]]

describe("tensors on a GPU #gpu", function()
  for name, case in pairs(SAME) do
    it(name, function()
      local out, err = support.run_lua {"-e", fake.HEAD .. HEAD .. case[1]}
      assert.equal("", err)
      assert.same(case[2], support.lines(out))
    end)
  end

  it("copy elements from another layout, or with gaps", function()
    local out, err = support.run_lua {"-e", fake.HEAD .. HEAD .. MOVED .. LOOK}
    assert.equal("", err)
    assert.same({"true\tptr[i32,gpu] o (4,6):(1,4)", "7\ttrue\ttrue\t0",
      "true\ttrue\t3 3 3 3", "true", "true", "true"}, support.lines(out))
  end)
end)

if not fake.there then return end

describe("the kernel that moves elements", function()
  it("does so between all layouts of a shape", function()
    local copy, sim = cute.ops.copy, {device = "sim"}
    local A = cute.randint(0, 99, {5, 67}, cute.i32)
    for _, l in ipairs {cute.make_layout({5, 67}, {1, 5}),
                        cute.make_layout({5, 67}, {70, 1}),
                        cute.make_layout({5, 67}, {67, 1})} do
      local B = cute.full(l, -1, cute.i32)
      copy(A, B, sim)
      for i = 0, 4 do
        for j = 0, 66 do assert.equal(A(i, j), B(i, j)) end
      end
      if l.stride[1] == 70 then
        local gap = cute.make_tensor(B.iterator + 67,
          cute.make_layout({4, 3}, {70, 1}))
        for _, x in gap:elements() do assert.equal(-1, x) end
      end
    end
    local f = cute.randn({5, 67}, cute.f32)
    local b = cute.empty(cute.make_layout({5, 67}, {1, 5}), cute.bf16)
    copy(f, b, sim)
    local want = cute.testing.convert(f, cute.zeros_like(b))
    for i, x in b:elements() do assert.equal(want(i), x) end
    local one = cute.full({1}, 3, cute.i32)
    local same = cute.make_tensor(one.iterator,
                                  cute.make_layout({5, 67}, {0, 0}))
    copy(same, A, sim)
    for _, x in A:elements() do assert.equal(3, x) end
  end)
end)

describe("tensors on a GPU, through a driver", function()
  setup(fake.build)
  teardown(fake.remove)

  it("are moved by a kernel where layouts differ", function()
    if not require "cute.jit".version() then return pending "needs NVRTC" end
    local out, err = fake.run(HEAD .. MOVED .. "print(graph.nodes)", nil,
                              {FAKE_SAY = "1"})
    -- Setting one element takes a single call of the driver; the tensor is not
    -- downloaded.
    assert.equal("4\n", out)
    assert.is_nil(err:find "download")
  end)

  -- Asserts that the code prints `want`, line by line.
  local function check(code, want, more)
    local out, err, status = fake.run(HEAD .. code, nil, more)
    assert.equal("", err)
    assert.equal(0, status)
    assert.same(want, support.lines(out))
  end

  for name, case in pairs(SAME) do
    it(name, function() check(case[1], case[2]) end)
  end

  it("come from a pool that the driver fills once", function()
    check([[
      local function make(n)
        local t = cute.empty({n}, "u8", {device = "gpu"})
        core.param_memory(t):close()
      end
      for i = 1, 50 do make(100000) make(90000 + i) end
      local m = gpu.memory()
      print(m.misses, m.hits, m.used, m.pool >= 100000, m.peak == m.pool)
      make(50000)  -- would waste too much of these
      print(gpu.memory().misses, gpu.memory().pool == m.pool + 50176)
      print(gpu.trim() == m.pool + 50176, gpu.memory().pool)
      local keep = cute.zeros({200000}, "u8", {device = "gpu"})
      print(gpu.trim(), gpu.memory().used)]], {
      "1\t99\t0\ttrue\ttrue", "2\ttrue", "true\t0", "0\t200192"})
  end)

  it("return to the pool as garbage", function()
    check([[
      for i = 1, 40 do cute.zeros({600000}, "u8", {device = "gpu"}) end
      collectgarbage()
      print(gpu.memory().misses, gpu.memory().used)
      local b = cute.zeros({600000}, "u8", {device = "gpu"})
      print((message(function()
        return cute.zeros({600000}, "u8", {device = "gpu"})
      end)))
      -- what is free is given back before memory runs out
      b = nil
      collectgarbage()
      cute.zeros({1000000}, "u8", {device = "gpu"})]], {"1\t0",
      "the GPU has no 600000 bytes left (1048576 free) [out-of-memory]"})
  end)

  it("of two devices are not mixed in a launch", function()
    check([[
      local k = cute.kernel("k", function(x, y) x[0] = y[0] end)
      local h = cute.zeros({4}, "i32")
      local g, f = h:to "gpu", h:to "gpu:1"
      for _, case in ipairs {{h, g}, {g, h}, {g, g, "sim"}, {f, g},
                             {g, g, "gpu:1"}} do
        print(message(function()
          k(case[1], case[2]):launch {grid = 1, block = 1, device = case[3]}
        end))
      end
      print(f.device, message(h.to, h, "gpu:2"))]], {
      "kernel k: argument 1 is on the host, argument 2 on gpu: all arguments "
        .. "of a launch must be on one device [bad-launch]",
      '  t:to "gpu" copies a tensor there',
      "kernel k: argument 1 is on gpu, argument 2 on the host: all arguments "
        .. "of a launch must be on one device [bad-launch]",
      '  t:to "gpu" copies a tensor there',
      "kernel k runs on the simulator, but its argument 1 is on gpu "
        .. "[bad-launch]",
      '  t:to "host" copies a tensor there',
      "kernel k runs on gpu:1, but its argument 2 is on gpu [bad-launch]",
      '  t:to "gpu:1" copies a tensor there',
      "kernel k runs on gpu:1, but its argument 1 is on gpu [bad-launch]",
      '  t:to "gpu:1" copies a tensor there',
      "gpu:1\tthere is no GPU number 2 (2 found) [no-gpu]"},
      {FAKE_GPUS = "2"})
  end)
end)
-- SPDX-License-Identifier: MIT
