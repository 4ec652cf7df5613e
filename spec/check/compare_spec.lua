-- Tests the comparison of a kernel's results with a reference and with a GPU:
-- it must name the elements that differ and the line that wrote them. Also
-- tests the proposed sizes, which reveal faults that square sizes hide.
local check = require "cutelua.check"
local compare = require "cutelua.check.compare"
local cute = require "cute"
local kernel = require "cute.lang.kernel"
local sizes = require "cutelua.check.sizes"
local support = require "spec.support"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync

local function here() return debug.getinfo(2, "l").currentline end

local function ints(...)
  local n, t = 1, {...}
  for _, x in ipairs(t) do n = n * x end
  local list = {}
  for i = 1, n do list[i] = i end
  return cute.tensor(list, cute.i32):with_shape(t)
end

-- Returns a kernel of y = 2 x, eight elements in each thread. With `bad`, one
-- element of thread 37 is wrong.
local line
local function twice(bad)
  return cute.kernel("twice", function(x, y)
    local t = arch.thread_idx() + 32 * arch.block_idx()
    local tXgX = cute.local_tile(x, {8}, {t})
    local tYgY = cute.local_tile(y, {8}, {t})
    local tYrY = cute.make_fragment_like(tYgY)
    for i = 0, 7 do tYrY[i] = 2 * tXgX[i] end
    cute.when(t:eq(bad), function()
      tYrY[5] = 7
      tYrY[6] = 8
    end)
    line = here() + 1
    cute.autovec_copy(tYrY, tYgY)
  end)
end

local function reference(x, y)
  for i = 0, 511 do y[i] = 2 * x[i] end
end

local function verdict(bad, more)
  local x, y = cute.zeros({512}, cute.i32), cute.zeros({512}, cute.i32)
  for i = 0, 511 do x[i] = i end
  local o = {grid = 2, block = 32, reference = reference, gpu = false}
  for k, v in pairs(more or {}) do o[k] = v end
  local v = twice(bad)(x, y):check(o)
  -- check() must restore the memory that the launch wrote.
  assert.equal(0, y(301))
  return v
end

describe("a reference", function()
  it("that agrees is reported", function()
    local v = verdict(-1)
    assert.equal("ok", v.verdict)
    assert.same({{with = "reference", tensor = "y", most = 0, of = 512,
                  count = 0, error = 0}}, v.compared)
    assert.matches("simulator = reference: y, all 512 elements, bit for bit",
                   tostring(v))
  end)

  it("reports elements that no store of the kernel reaches", function()
    local x, y = cute.ones({32}, cute.i32), cute.zeros({32}, cute.i32)
    local v = cute.kernel("half", function(_, b)
      b[arch.thread_idx()] = 1
    end)(x, y):check {grid = 1, block = 32, gpu = false,
      reference = function(a, b) b:fill(1) a[7] = 5 end}
    assert.equal("bug", v.verdict)
    assert.same({0, 1}, {v.compared[2].count, v.compared[1].count})
    assert.same({7, 1, 5}, {v.compared[1].first.coord[1],
                            v.compared[1].first.got, v.compared[1].first.want})
    -- check() must restore the memory that the launch wrote.
    assert.equal(1, x(7))
  end)

  it("shows the first wrong element, its writer, and the box of all",
     function()
    local v = verdict(37)
    assert.equal("bug", v.verdict)
    local c = v.compared[1]
    assert.equal(2, c.count)
    assert.same({{301}, {302}}, {c.low, c.high})
    local f = c.first
    assert.same({301, 7, 602}, {f.coord[1], f.got, f.want})
    assert.same({{5}, {1, 0, 0}, "tYrY", 5, line},
                {f.threads, f.block, f.name, f.value, f.line})
    local text = tostring(v)
    assert.matches("simulator and reference differ in y: 2 of 512 elements, "
      .. "all in %(301%) to %(302%)", text)
    assert.matches("first y%(301%): 7 on the simulator, 602 by the reference\n"
      .. "    written by thread 5 of block %(1,0,0%), value 5 of tYrY, at "
      .. "compare_spec.lua:" .. line, text)
    assert.matches('"compared":%[{"count":2,.*"first":{"at":301,"block":'
      .. '%[1,0,0%],"coord":%[301%],"file":"compare_spec.lua"', v:json())
  end)

  it("accepts differences that rounding explains", function()
    local k = cute.kernel("third", function(x, y)
      local t = arch.thread_idx()
      y[t] = x[t] / 3
    end)
    local function of(want, tolerance)
      return k(cute.randn({32}, cute.f32), cute.zeros({32}, cute.f32)):check {
        grid = 1, block = 32, gpu = false, tolerance = tolerance,
        reference = function(x, y)
          for i = 0, 31 do y[i] = x[i] * want end
        end}.verdict
    end
    assert.equal("ok", of(1 / 3))
    assert.equal("bug", of(0.3334))
    assert.equal("ok", of(0.3334, 1e-3))
  end)
end)

describe("a reference", function()
  it("names the last of several writers, and copies that were started",
     function()
    local last
    local k = cute.kernel("two", function(y)
      local t = arch.thread_idx()
      y[{t // 8, t % 8}] = 1
      arch.sync_threads()
      last = here() + 2
      cute.when(t:eq(40), function()
        y[{2, 3}] = 2
      end)
    end)
    local v = k(cute.zeros({8, 8}, cute.i32)):check {grid = 1, block = 64,
      gpu = false, reference = function(y) y:fill(1) end}
    local f = v.compared[1].first
    assert.same({{2, 3}, {40}, last}, {f.coord, f.threads, f.line})

    local store = cpasync.CopyBulkTensorTileS2GOp()
    local layout = cute.make_ordered_layout({8, 32}, {1, 0})
    local tma = cute.kernel("tma", function(atom, y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, layout, 128)
      for i = 0, 7 do s[{i, t}] = cute.where(t:eq(3), i, 0) end
      arch.fence_view_async_shared()
      arch.sync_threads()
      local tSsS, tSgS = cpasync.tma_partition(atom, 0, cute.make_layout(1),
        cute.group_modes(s, 0, 2), cute.group_modes(
          cute.local_tile(y, {8, 32}, {arch.block_idx(), 0}), 0, 2))
      last = here() + 2
      cute.when(t:eq(0), function()
        cute.copy(atom, tSsS, tSgS)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, true)
      end)
    end)
    local y = cute.zeros({16, 32}, cute.i32)
    local atom, coordinates = cpasync.make_tiled_tma_atom(store, y, layout,
                                                          {8, 32})
    v = tma(atom, coordinates):check {grid = 2, block = 32, gpu = false,
                                      reference = function() end}
    local c = v.compared[1]
    assert.same({14, {1, 3}, {15, 3}}, {c.count, c.low, c.high})
    assert.same({{1, 3}, last}, {c.first.coord, c.first.line})
    assert.same({{0}, {0, 0, 0}}, {c.first.threads, c.first.block})
  end)

  it("is rejected if there are no arguments for it", function()
    local p = twice(-1)(ints(512), ints(512)):compile {grid = 2, block = 32,
                                                       device = "sim"}
    support.raises("a reference needs the arguments of a call", function()
      p:check {reference = reference}
    end)
    support.raises("no such thing", function()
      verdict(-1, {reference = function() error "no such thing" end})
    end)
  end)
end)

local function of(k, n, more)
  local o = {grid = 1, block = n}
  for name, v in pairs(more or {}) do o[name] = v end
  return k(cute.randn({n}, cute.f32), cute.zeros({n}, cute.f32)):check(o)
end

local function unary(f)
  return cute.kernel("unary", function(x, y)
    local t = arch.thread_idx()
    y[t] = f(x[t])
  end)
end

-- Calls f with a fake GPU, which runs `other` instead of a kernel. If `other`
-- is nil, each launch on it fails.
local function pretend(other, f)
  local gpu, elsewhere = compare.gpu, kernel.elsewhere
  compare.gpu = function()
    return {name = "a card", sm = 90, dev = {sync = function() end}}
  end
  kernel.elsewhere = function(_, launch)
    return {launch = function()
      if not other then error("an illegal address", 0) end
      local x, y = launch.args[1][1], launch.args[2][1]
      for i = 0, #x - 1 do y[i] = other(x[i], i) end
    end}
  end
  local ok, v = pcall(f)
  compare.gpu, kernel.elsewhere = gpu, elsewhere
  assert(ok, v)
  return v
end

describe("a GPU", function()
  it("is compared bit for bit, and differences are bugs", function()
    local double = unary(function(x) return 2 * x end)
    local v = pretend(function(x) return 2 * x end, function()
      return of(double, 64)
    end)
    assert.same({"ok", "a card", 0}, {v.verdict, v.gpu, v.compared[1].most})
    assert.matches("simulator = GPU: y, all 64 elements, bit for bit",
                   tostring(v))
    v = pretend(function(x, i)
      return i == 40 and 2 * x * (1 + 0x1p-23) or 2 * x
    end, function() return of(double, 64) end)
    assert.equal("bug", v.verdict)
    assert.same({40}, v.compared[1].first.coord)
    assert.same({40}, v.compared[1].first.threads)
    assert.matches("which must be equal bit for bit\n    first y%(40%): .* on "
      .. "the simulator, .* by the GPU", tostring(v))
    v = pretend(nil, function() return of(double, 64) end)
    assert.equal("bug", v.verdict)
    assert.matches("the GPU run failed: an illegal address", tostring(v))
  end)

  it("has other bits if a zero has another sign", function()
    local zero = unary(function(x) return x * 0 end)
    local negative = 0
    local v = pretend(function(x)
      negative = negative + (x < 0 and 1 or 0)
      return 0
    end, function() return of(zero, 64) end)
    assert.equal("bug", v.verdict)
    assert.same({0, negative}, {v.compared[1].error, v.compared[1].count})
    assert.matches("y%(%d+%): %-0 on the simulator, 0 by the GPU", tostring(v))
  end)

  it("that is missing is reported as not compared", function()
    local gpu = compare.gpu
    compare.gpu = function() return nil, "no driver" end
    local v = of(unary(function(x) return x end), 32, {
      reference = function(x, y) for i = 0, 31 do y[i] = x[i] end end})
    local _, why = pcall(of, unary(function(x) return x end), 32, {gpu = true})
    compare.gpu = gpu
    assert.matches("simulator = reference: y, all 32 elements, .*\n  the GPU "
      .. "was not compared: no driver$", tostring(v))
    assert.matches("check: no driver", tostring(why))
  end)

  it("may round CUDA's functions differently, with a note", function()
    local v = pretend(function(x) return math.exp(x) * (1 + 1e-7) end,
      function() return of(unary(cute.exp), 64) end)
    assert.equal("ok", v.verdict)
    assert.matches("the GPU need not give the same bits: exp "
      .. "%(compare_spec.lua:",
                   tostring(v))
    assert.is_true(v.compared[1].error < 3e-7)
  end)

  it("is not used if a bug, or an unfinished schedule, is known", function()
    local clock = cute.kernel("clock", function(_, y) y[0] = arch.clock() end)
    local v = pretend(nil, function()
      return clock(cute.zeros({1}, cute.i32), cute.zeros({1}, cute.i32)):check {
        grid = 1, block = 1}
    end)
    assert.equal("incomplete", v.verdict)
    assert.equal("some schedules may not end (gpu = true compares anyway)",
                 v.not_compared)
    assert.is_nil(pretend(nil, function()
      return of(unary(function(x) return x end), 32, {gpu = false})
    end).not_compared)
  end)

  it("is not used if several results are right", function()
    local ticket = cute.kernel("ticket", function(c, y)
      cute.when((arch.thread_idx() % 32):eq(0), function()
        y[arch.atomic_add(c.iterator, 1)] = arch.thread_idx()
      end)
    end)
    -- check() must not launch on the fake GPU, on which any launch fails.
    local v = pretend(nil, function()
      return ticket(cute.zeros({1}, cute.i32), cute.zeros({2}, cute.i32))
        :check {grid = 1, block = 64}
    end)
    assert.same({"ok", 2}, {v.verdict, v.results})
    assert.equal("the results depend on the schedule", v.not_compared)
  end)
end)

describe("a GPU", function()
  it("runs no launch whose mbarrier phase ends by chance",
     function()
    local k = cute.kernel("phases", function(_, y)
      local bar = arch.alloc_smem(cute.i64, 1)
      cute.when(arch.thread_idx():eq(0), function()
        arch.mbarrier_init(bar, 1)
      end)
      arch.sync_threads()
      y[arch.thread_idx()] = cute.where(arch.mbarrier_test_wait(bar, 1), 2, 1)
    end)
    for seed = 0, 9 do
      local v = pretend(function() return 2 end, function()
        return k(cute.zeros({64}, cute.i32), cute.zeros({64}, cute.i32)):check {
          grid = 1, block = 64, device = "sim:sm_90a", seed = seed}
      end)
      assert.equal("ok", v.verdict, tostring(v))
    end
  end)

  it("has the simulator's bits #gpu", function()
    local k = unary(function(x) return cute.exp2(x) / 3 + x * x end)
    local v = of(k, 256, {gpu = true})
    assert.equal("ok", v.verdict, tostring(v))
    assert.equal(0, v.compared[1].most)
    v = of(unary(cute.sin), 256, {gpu = true, reference = function(x, y)
      for i = 0, 255 do y[i] = math.sin(x[i]) end
    end})
    assert.equal("ok", v.verdict, tostring(v))
    assert.same({"GPU", "reference"}, {v.compared[1].with, v.compared[2].with})
    assert.is_truthy(v.inexact)
  end)

  it("multiplies as the simulator, to the bit #gpu", function()
    for _, script in ipairs {"gemm3stage", "gemm_hopper"} do
      local out, err, code = support.exec {support.program, "check",
        "scripts/" .. script .. ".lua", "--m", "200", "--n", "136", "--k", "72"}
      assert.equal(0, code, out .. err)
      assert.matches("simulator = GPU: [%w_]+, all %d+ elements, bit for bit",
                     out)
      assert.matches("check: reference: ok", out)
    end
  end)
end)

---------------------------------------------------------------------------
-- Sizes
---------------------------------------------------------------------------

local TM, TN = 16, 32

-- Returns a kernel of y = 2 x with one block for each tile. The tensors have m
-- rows and n columns. raster(b, tiles along m, tiles along n) returns block b's
-- tile; inside(row, column, m, n) reports whether the element exists.
local function tiled(raster, inside)
  return cute.kernel("tiled", function(x, y, m, n)
    local i, j = raster(arch.block_idx(), (m + TM - 1) // TM,
                        (n + TN - 1) // TN)
    local col = j * TN + arch.thread_idx()
    for r = 0, TM - 1 do
      local row = i * TM + r
      cute.when(inside(row, col, m, n), function()
        y[{row, col}] = 2 * x[{row, col}]
      end)
    end
  end)
end

local function by_rows(b, _, tiles_n) return b // tiles_n, b % tiles_n end
local function within(row, col, m, n) return row:lt(m) & col:lt(n) end

local function doubled(x, y, m, n)
  for i = 0, m - 1 do
    for j = 0, n - 1 do y[{i, j}] = 2 * x[{i, j}] end
  end
end

local function at_sizes(k, square, more)
  local function arguments(m, n)
    return {cute.randn({m, n}, cute.f32), cute.empty({m, n}, cute.f32), m, n,
            grid = (m + TM - 1) // TM * ((n + TN - 1) // TN)}
  end
  local own = arguments(square, square)
  local o = {grid = own.grid, block = TN, reference = doubled, gpu = false,
             sizes = arguments, tile = {TM, TN}, size = {square, square}}
  for name, v in pairs(more or {}) do o[name] = v end
  return k(table.unpack(own, 1, 4)):check(o)
end

local function of_size(v, ...)
  local key = table.concat({...}, "x")
  for _, s in ipairs(v.sizes) do
    if table.concat(s.size, "x") == key then return s end
  end
end

describe("sizes of its own choice", function()
  it("are 1, ragged, a tile less, a tile more", function()
    assert.same({{64, 64}, {1, 64}, {48, 64}, {80, 64}, {55, 64}, {64, 1},
      {64, 32}, {64, 96}, {64, 46}, {1, 1}, {55, 46}},
      sizes.around({64, 64}, {16, 32}))
    assert.same({{8}, {1}, {24}}, sizes.around({8}))
  end)

  it("leave the tables of their options as they are", function()
    local k = cute.kernel("fill", function(x) x[arch.thread_idx()] = 1 end)
    local tile, size = {}, {3}
    local v = k(cute.zeros({8}, cute.i32)):check {grid = 1, block = 8,
      gpu = false, tile = tile, size = size, sizes = function(n, m)
        return {cute.zeros({n * m}, cute.i32), block = n * m}
      end}
    assert.equal("ok", v.verdict, tostring(v))
    assert.same({{}, {3}}, {tile, size})
  end)

  it("are ok for a kernel that is", function()
    local v = at_sizes(tiled(by_rows, within), 64)
    assert.equal("ok", v.verdict, tostring(v))
    assert.equal(11, #v.sizes)
    assert.matches("ok at 64x64, 1x64, 48x64", tostring(v))
  end)

  -- The raster visits bands that are two tile columns wide, so that blocks
  -- share L2. The mistake: the height of a band is the number of tiles along N
  -- instead of M.
  it("show a raster that a square hides #long", function()
    local v = at_sizes(tiled(function(b, _, tiles_n)
      local high = 2 * tiles_n
      return b % high, b // high
    end, within), 256)
    assert.equal("ok", v.sizes[1].verdict)
    assert.equal("bug", v.verdict)
    assert.equal("bug", of_size(v, 256, 224).verdict)
    assert.matches("bug at .*256x224", tostring(v))
    assert.matches('"size":%[256,224%],"verdict":"bug"', v:json())
  end)

  it("show a predicate that a square hides #long", function()
    local v = at_sizes(tiled(by_rows, function(row, col, m)
      return row:lt(m) & col:lt(m)
    end), 256)
    assert.equal("ok", v.sizes[1].verdict)
    assert.equal("bug", of_size(v, 256, 238).verdict)
    assert.equal("out-of-bounds", of_size(v, 256, 238).of.fault.kind)
    -- With m = 1, the kernel omits all columns but the first.
    local wrong = of_size(v, 1, 256)
    assert.equal("bug", wrong.verdict)
  end)

  it("that a kernel rejects are no bugs; Lua's errors are raised", function()
    local ok = tiled(by_rows, within)
    local function sizes_of(m, n)
      if m % TM > 0 or n % TN > 0 then
        error(("its tiles are whole ones, of %d x %d"):format(TM, TN), 0)
      end
      return {cute.randn({m, n}, cute.f32), cute.empty({m, n}, cute.f32), m, n,
              grid = m // TM * (n // TN)}
    end
    local v = at_sizes(ok, 64, {sizes = sizes_of})
    assert.equal("ok", v.verdict)
    assert.same({"refused", "its tiles are whole ones, of 16 x 32"},
                {of_size(v, 55, 46).verdict, of_size(v, 55, 46).why})
    assert.matches("refused at 1x64, 55x64, 64x1, 64x46, 1x1, 55x46: its tiles "
      .. "are whole ones", tostring(v))
    support.raises("attempt to index a nil value", function()
      at_sizes(ok, 64, {sizes = function() return ({}).x.y end})
    end)
    support.raises("a number has no field 'x'", function()
      at_sizes(ok, 64, {sizes = function(m) return m.x.y end})
    end)
    support.raises("tile = 0; a number above 0 is needed", function()
      at_sizes(ok, 64, {tile = {0}})
    end)
  end)
end)

---------------------------------------------------------------------------
-- Lessons
---------------------------------------------------------------------------

local LESSON = [[
local cute = require "cute"
local wrong = %s
local kernel = cute.kernel("double", function(x, y, m, n)
  local b, t = cute.arch.block_idx(), cute.arch.thread_idx()
  local row, col = b // ((n + 31) // 32), b %% ((n + 31) // 32) * 32 + t
  cute.when(col:lt(n), function()
    y[{row, col}] = 2 * x[{row, col}] + cute.where(wrong(row, col, m), 1.0, 0.0)
  end)
end)
require "cutelua.bench.harness".run(arg, {
  about = "Twice.", dims = {{"rows", "rows"}, {"n", "columns"}},
  dtypes = {"f32"}, sim = {{8, 64}}, gpu = {{8, 64}}, tile = {4, 32},
  operands = function(p)
    return {{"x", {p.rows, p.n}}, {"y", {p.rows, p.n}, out = true}}
  end,
  make = function(p)
    if p.n == 1 then error("two columns at least", 0) end
    return {kernel = kernel, grid = p.rows * ((p.n + 31) // 32), block = 32,
            args = {"x", "y", p.rows, p.n}}
  end,
  pieces = function(p) return p.rows end,
  reference = function(p, i)
    local y = {}
    for k = 1, p.n do y[k] = 2 * p.x[i * p.n + k - 1] end
    return {y = y}
  end,
})]]

describe("cutelua check of a lesson", function()
  local dir
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  local function run(wrong, ...)
    support.write(dir .. "/l.lua", LESSON:format(
      ("function(row, col, m) return %s end"):format(wrong)))
    return support.exec {support.program, "check", "--no-gpu",
                         select(1, ...) or dir .. "/l.lua",
                         select("#", ...) > 0 and dir .. "/l.lua" or nil}
  end

  it("reports its reference's result, and the writer of wrong elements",
     function()
    local out, _, code = run "row:eq(9)"
    assert.equal(0, code, out)
    assert.matches("\ncheck: reference: ok: error 0.0e%+00 of all elements\n",
                   out)
    out, _, code = run "row:eq(5) & col:ge(40)"
    assert.equal(1, code)
    assert.matches("\ncheck: reference: bug: y%(5,%d+%) is .*\n  simulator and "
      .. "reference differ in y: 24 of 512 elements, all in %(5,40%) to "
      .. "%(5,63%),.*\n    first y%(5,40%): .*\n    written by thread 8 of "
      .. "block %(11,0,0%), at l.lua:7\n", out)
    out, _, code = run("row:eq(5) & col:ge(40)", "--json")
    assert.equal(1, code)
    assert.matches('"count":24,.*"coord":%[5,40%].*"kind":"reference".*'
      .. '"verdict":"bug"}\n$', out)
  end)

  it("does the same for copies", function()
    support.write(dir .. "/c.lua", [[
      local cute = require "cute"
      require "cutelua.bench.copylesson".run(arg, {about = "Copies.",
        transpose = true, block = 32, tile = {16, 32},
        grid = function(m, n) return (m + 15) // 16 * ((n + 31) // 32) end,
        kernel = cute.kernel("copy", function(A, B)
          local m, n = cute.size(A, 0), cute.size(A, 1)
          local tiles = (n + 31) // 32
          local j = cute.arch.block_idx() % tiles * 32 + cute.arch.thread_idx()
          for r = 0, 15 do
            local i = cute.arch.block_idx() // tiles * 16 + r
            cute.when(i:lt(m) & j:lt(n), function()
              B[{j, i}] = A[{cute.where(i:eq(3), 2, i), j}]
            end)
          end
        end)})]])
    local out, _, code = support.exec {support.program, "check", "--no-gpu",
      dir .. "/c.lua", "--m", "20", "--n", "40"}
    assert.equal(1, code, out)
    assert.matches("simulator and reference differ in B: 40 of 800 elements, "
      .. "all in %(0,3%) to %(39,3%),.*\n    first B%(0,3%): ", out)
    assert.matches("written by thread 0 of block %(0,0,0%), at c.lua:12", out)
  end)

  it("takes sizes around its own", function()
    local out, _, code = run("row:eq(5) & col:eq(64) & m:eq(8)", "--sizes")
    assert.equal(1, code)
    assert.matches("check: ok at 8x64, 1x64, 4x64, 12x64, 5x64, 8x32, 8x46, "
      .. "5x46\ncheck: bug at 8x96\ncheck: refused at 8x1, 1x1: two columns at "
      .. "least\n$", out)
    out, _, code = run("row:eq(500)", "--sizes")
    assert.equal(0, code, out)
  end)
end)

describe("cutelua.check", function()
  it("separates options of check from those of a launch", function()
    local launch, own = check.options {grid = 1, tolerance = 1, gpu = false}
    assert.same({device = "sim", grid = 1}, launch)
    assert.same({tolerance = 1, gpu = false}, own)
  end)
end)
-- SPDX-License-Identifier: MIT
