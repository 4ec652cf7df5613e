-- Tests notes on parts of arguments that a launch never reads or stores. Usual
-- mistakes must get a note with the right coordinates; kernels that access only
-- a part on purpose must get none. Brute force in Lua checks the coordinates
-- for random tiles and layouts.
local cute = require "cute"
local json = require "cutelua.text.json"
local support = require "spec.support"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync

-- Launches kernel f without printing anything, and returns its report.
local function run(grid, block, f, ...)
  local _, r = support.told(function(...)
    return support.report(cute.kernel("k", f)(...):launch {
      grid = grid, block = block, device = "sim:sm_90a", faults = "return"})
  end, ...)
  assert.is_true(r.ok, tostring(r))
  return r
end

-- Returns the notes of a report as texts, without the line and the advice.
local function notes(r)
  local list = {}
  for k, text in ipairs(json.decode(r:json()).notes or {}) do
    list[k] = text:match "^cover_spec.lua:%d+: (.-) %(%d" or text
  end
  return list
end

local function zeros(...) return cute.zeros({...}, cute.f32) end
local function ones(...) return cute.ones({...}, cute.f32) end

-- Returns the notes of C = A B^T, computed in tiles of 32 x 32 x 16 with
-- mistake `how`.
local function gemm(M, N, K, grid, how)
  return notes(run(grid, 32, function(mA, mB, mC)
    local t, m, n = arch.thread_idx(), arch.block_idx()
    if how == "swapped" then m, n = n, m end
    local tile, at = {32, 32, 16}, {m, n, cute._}
    local gA = cute.local_tile(mA, tile, at, {1, cute.X, 1})
    local gB = how == "projection"
      and cute.local_tile(mB, tile, at, {1, cute.X, 1})
      or cute.local_tile(mB, tile, at, {cute.X, 1, 1})
    local still = how == "constant"
    local gC = cute.local_tile(mC, tile, at, {1, 1, cute.X})
    local sums = cute.make_rmem_tensor({32}, cute.f32)
    sums:fill(0)
    for k in cute.range(K // 16) do
      for j = 0, 31 do
        for c = 0, 15 do
          sums[j] = sums[j] + gA[{t, c, k}] * gB[{j, c, still and 0 or k}]
        end
      end
    end
    for j = 0, 31 do gC[{t, j}] = sums[j] end
  end, ones(M, K), ones(N, K), zeros(M, N)))
end

describe("a note tells of a matrix product", function()
  it("whose grid is one block short", function()
    assert.same({}, gemm(64, 96, 32, {2, 3}))
    assert.same({"columns 64 to 95 of 'mC' were never stored",
                 "rows 64 to 95 of 'mB' were never read"},
                gemm(64, 96, 32, {2, 2}))
    -- the stores are limited by the extent of the wrong mode
    assert.same({"rows 64 to 127 of 'mC' were never stored",
                 "rows 64 to 127 of 'mA' were never read"},
                gemm(128, 64, 64, {2, 2}))
    -- The grid has too few blocks along both modes.
    assert.same({"rows 32 to 63, and columns 64 to 95 of 'mC' were never "
                 .. "stored",
                 "rows 32 to 63 of 'mA' were never read",
                 "rows 64 to 95 of 'mB' were never read"},
                gemm(64, 96, 32, {1, 2}))
  end)

  it("whose B is tiled as A", function()
    assert.same({"rows 64 to 127 of 'mB' were never read"},
                gemm(64, 128, 32, {2, 4}, "projection"))
  end)

  it("whose loop over K takes the first tile of B each time", function()
    assert.same({}, gemm(32, 32, 64, {1, 1}))
    assert.same({"columns 16 to 63 of 'mB' were never read"},
                gemm(32, 32, 64, {1, 1}, "constant"))
    assert.same({"columns 16 to 63 of 'mB' were never read"},
                gemm(64, 96, 64, {2, 3}, "constant"))
  end)

  it("whose coordinates are swapped", function()
    assert.same({"columns 64 to 127 of 'mC' were never stored",
                 "rows 64 to 127 of 'mB' were never read"},
                gemm(128, 128, 32, {2, 4}, "swapped"))
  end)
end)

-- Returns the notes of a kernel that copies to y (50,70), but only the columns
-- below `limit`.
local function limited(limit)
  return notes(run({3, 50}, 32, function(x, y)
    local c, r = arch.block_idx()
    c = c * 32 + arch.thread_idx()
    cute.when(c:lt(limit), function() y[{r, c}] = x[{r, c}] end)
  end, ones(50, 70), zeros(50, 70)))
end

-- Returns the notes of a kernel in which blocks of 128 threads sum 6 rows of x.
-- A thread's loop begins at the thread's index or, with `forgotten`, at 0.
local function row_sums(forgotten, n)
  return notes(run(6, 128, function(x, y)
    local t, row = arch.thread_idx(), arch.block_idx()
    local sum = cute.var(0.0, cute.f32)
    for i in cute.range(forgotten and 0 or t, n, 128) do
      sum.value = sum.value + x[{row, i}]
    end
    arch.atomic_add(y.iterator + row, sum.value)
  end, ones(6, 1000), zeros(6)))
end

describe("a note tells of a limit", function()
  it("of a loop that ends a step before the extent", function()
    local function sums(n, stop)
      return notes(run(4, 32, function(x, y)
        local first = arch.block_idx() * 32 + arch.thread_idx()
        local sum = cute.var(0.0, cute.f32)
        for i in cute.range(first, stop, 128) do
          sum.value = sum.value + x[i]
        end
        y[first] = sum.value
      end, ones(n), zeros(128)))
    end
    assert.same({"elements 872 to 999 of 'x' were never read"}, sums(1000, 872))
    assert.same({}, sums(1000, 1000))
    -- no note: more than one step is missing, which may be intended
    assert.same({}, sums(1000, 744))
  end)
end)

describe("a note tells of a limit", function()
  it("that is the extent of another mode", function()
    assert.same({"columns 50 to 69 of 'y' were never stored",
                 "columns 50 to 69 of 'x' were never read"}, limited(50))
    assert.same({}, limited(70))
    assert.same({}, limited(40))
  end)

  it("that a loop reaches in steps of a block, without the thread's index",
     function()
    local list = row_sums(true, 1000)
    assert.equal(2, #list)
    assert.matches("all threads of the block add the same value", list[1])
    assert.equal("columns 1 to 127 of every 128 of 'x' were never read",
                 list[2])
    assert.same({}, row_sums(false, 1000))
    assert.same({}, row_sums(false, 500))
  end)

  -- Returns the notes of a kernel in which one block of 32 threads sums n
  -- elements in tiles. The loop runs from tile `first` to the tile before
  -- `last`; with `down`, it runs backwards.
  local function tiles(n, first, last, down)
    return notes(run(1, 32, function(x, y)
      local t, sum = arch.thread_idx(), cute.var(0.0, cute.f32)
      local from, to, step = first, last, 1
      if down then from, to, step = last - 1, first - 1, -1 end
      for i in cute.range(from, to, step) do
        local at = i * 32 + t
        cute.when(at:lt(n), function() sum.value = sum.value + x[at] end)
      end
      y[t] = sum.value
    end, ones(n), zeros(32)))
  end

  it("of a loop that leaves out the first tiles, or the rest", function()
    for _, down in ipairs {false, true} do
      assert.same({"elements 0 to 31 of 'x' were never read"},
                  tiles(320, 1, 10, down))
      assert.same({"elements 0 to 63 of 'x' were never read"},
                  tiles(330, 2, 11, down))
      assert.same({}, tiles(330, 0, 11, down))
      -- no note: a loop over the middle tiles may be intended
      assert.same({}, tiles(320, 1, 9, down))
    end
    assert.same({"elements 320 to 329 of 'x' were never read"},
                tiles(330, 0, 10))
    assert.same({}, tiles(400, 0, 10))
  end)

  it("of a loop over as many tiles as there are, but the last", function()
    -- Returns the notes of a kernel that sums the rows of x (32,64) in tiles of
    -- 16 columns. Iteration i reads tile number at(i).
    local function columns(at, from, like)
      return notes(run(1, 32, function(x, y)
        local t = arch.thread_idx()
        local sum = cute.var(0.0, cute.f32)
        for i in cute.range(4) do
          for j = 0, 15 do
            local v = x[{t, at(i) * 16 + j}]
            if like then y[{t, i * 16 + j}] = v
            else sum.value = sum.value + v end
          end
        end
        if not like then y[{t, 0}] = sum.value end
      end, ones(32, from), zeros(32, like or 1)))
    end
    assert.same({}, columns(function(i) return i end, 64))
    assert.same({"columns 48 to 63 of 'x' were never read"},
                columns(function(i) return cute.min(i, 2) end, 64))
    -- no note: reading half of x may be intended
    assert.same({}, columns(function(i) return i end, 128))
    assert.same({}, columns(function(i) return i end, 128, 64))
  end)

  -- Returns the notes of a product of A (32,64) and B (64,32), whose loop over
  -- K ends at `last`.
  local function product(last)
    return notes(run(32, 32, function(A, B, C)
      local i, j = arch.block_idx(), arch.thread_idx()
      local sum = cute.var(0.0, cute.f32)
      for l in cute.range(last) do
        sum.value = sum.value + A[{i, l}] * B[{l, j}]
      end
      C[{i, j}] = sum.value
    end, ones(32, 64), ones(64, 32), zeros(32, 32)))
  end

  it("of a loop over the rows instead of K", function()
    assert.same({"columns 32 to 63 of 'A' were never read",
                 "rows 32 to 63 of 'B' were never read"}, product(32))
    assert.same({}, product(64))
  end)

  it("of the threads, whose tiles end before it", function()
    -- Returns the notes of a kernel in which each thread adds the elements at
    -- distances 0, 64, ... `last` * 64 from its first element.
    local function counted(last)
      return notes(run(6, 64, function(x, y)
        local first = arch.block_idx() * 256 + arch.thread_idx()
        for j = 0, last do
          local i = first + j * 64
          cute.when(i:lt(1500), function()
            arch.atomic_add(y.iterator, x[i])
          end)
        end
      end, ones(1500), zeros(1)))
    end
    assert.same({"elements 192 to 255 of every 256 of 'x' were never read"},
                counted(2))
    assert.same({}, counted(3))
  end)
end)

-- Returns the notes of a kernel that adds n elements of x. A block of 64
-- threads has four chunks of 64 elements, and adds chunks number `first` to
-- `last`.
local function chunks(n, first, last, guard)
  return notes(run((n + 255) // 256, 64, function(x, y)
    local i = arch.block_idx() * 256 + arch.thread_idx()
    for k = first, last do
      local function add() arch.atomic_add(y.iterator, x[i + k * 64]) end
      if guard then cute.when((i + k * 64):lt(n), add) else add() end
    end
  end, ones(n), zeros(1)))
end

describe("a note tells of chunks of blocks", function()
  it("that no thread reads, at the end or at the beginning", function()
    assert.same({}, chunks(1000, 0, 3, true))
    assert.same({}, chunks(1024, 0, 3))
    assert.same({"elements 0 to 63 of every 256 of 'x' were never read"},
                chunks(1000, 1, 3, true))
    assert.same({"elements 0 to 63 of every 256 of 'x' were never read"},
                chunks(1024, 1, 3))
    assert.same({"elements 128 to 255 of every 256 of 'x' were never read"},
                chunks(1024, 0, 1))
  end)
end)

describe("a note tells of a vector", function()
  -- Returns the notes of a kernel that multiplies rows of x by w. For chunk k
  -- of a row, it reads the elements of w from first(k) on.
  local function scaled(first, m)
    return notes(run(m // 2, 64, function(x, w, y)
      local row = arch.block_idx() * 2 + arch.warp_idx()
      local lane = arch.lane_idx()
      for k = 0, 2 do
        local at = {row, k * 32 + lane}
        y[at] = x[at] * w[first(k) + lane]
      end
    end, ones(m, 96), ones(96), zeros(m, 96)))
  end

  it("of which only a part is read, unlike all other tensors", function()
    local function right(k) return k * 32 end
    for m = 2, 8, 2 do
      assert.same({}, scaled(right, m))
      assert.same({"elements 32 to 95 of 'w' were never read"},
                  scaled(function() return 0 end, m))
    end
  end)

  -- Returns the notes of a kernel that sums the rows of x. Iteration k of its
  -- loop reads column at(k).
  local function columns(at)
    return notes(run(1, 32, function(x, y)
      local t, sum = arch.thread_idx(), 0.0
      for k in cute.range(6) do sum = sum + x[{t, at(k)}] end
      y[t] = sum
    end, ones(32, 6), zeros(32)))
  end

  it("that a loop reads again instead of the next one", function()
    assert.same({}, columns(function(k) return k end))
    assert.same({"columns 1 to 5 of 'x' were never read"},
                columns(function() return 0 end))
  end)
end)

describe("a note tells of an output", function()
  -- Returns the notes of a kernel in which thread t adds its count to bin
  -- number at(t) of y.
  local function bins(at)
    return notes(run(2, 128, function(x, y)
      local t, b = arch.thread_idx(), arch.block_idx()
      cute.when(t:lt(64), function()
        arch.atomic_add(y.iterator + at(t), x[{b, t}])
      end)
    end, ones(2, 64), zeros(64)))
  end

  it("of which atomics reach only the first elements", function()
    assert.same({}, bins(function(t) return t end))
    assert.same({"elements 1 to 63 of 'y' were never stored"},
                bins(function() return 0 end))
    assert.same({"elements 8 to 63 of 'y' were never stored"},
                bins(function(t) return t % 8 end))
  end)

  -- Returns the notes of a kernel whose blocks draw tickets from a counter. The
  -- block that draws ticket `number` stores to y.
  local function last(grid, number, body)
    return notes(run(grid, 32, function(x, ticket, y, n)
      local t, s = arch.thread_idx(), cute.make_smem_tensor(cute.i32, 1)
      cute.assume(n, 0, 9, 1)
      cute.when(t:eq(0), function()
        local mine = arch.atomic_add(ticket.iterator, 1)
        s[0] = cute.where(mine:eq(number), 1, 0)
      end)
      arch.sync_threads()
      local chosen = s[0]:eq(1)
      if body then chosen = body(x, n) | chosen end
      cute.when(chosen & t:eq(0), function()
        y[0] = x[0] + x[t + 1]
      end)
    end, ones(33), cute.zeros({1}, cute.i32), zeros(1), 5))
  end

  it("that the condition of the store excludes", function()
    assert.same({}, last(4, 3))
    local text = {"no element of 'y' was stored"}
    assert.same(text, last(4, 4))
    assert.same(text, last(3, 3))
    -- no note: data, or a scalar argument, decide whether there is a store
    assert.same({}, last(4, 4, function(x) return x[3]:gt(7) end))
    assert.same({}, last(4, 4, function(_, n) return n:gt(7) end))
    -- no note if data may exclude all elements of all outputs
    local function above(n, also)
      return notes(run(2, 32, function(x, y, z)
        local i = arch.block_idx() * 32 + arch.thread_idx()
        cute.when(x[i]:gt(7), function() y[i % n] = x[i] end)
        if also then z[i] = x[i] else cute.partial_ok(z) end
      end, ones(64), zeros(n), zeros(64)))
    end
    assert.same(text, above(64))
    assert.same({}, above(64, true))
    assert.same({}, above(1))  -- no note: a flag
  end)
end)

-- Returns the notes of a copy of x to y, with `extent` elements. A block copies
-- 64 elements, and blocks begin `step` elements apart.
local function apart(extent, step)
  return notes(run(extent // step, 64, function(x, y)
    local i = arch.block_idx() * step + arch.thread_idx()
    y[i] = x[i]
  end, ones(extent), zeros(extent)))
end

-- Runs a copy of tiles of 32 rows. A tiled copy has 8 rows at a time. If `all`
-- is true, all of its parts are copied, otherwise only the first one.
local function tiles(all, fill)
  return run(4, 64, function(x, y)
    local b = arch.block_idx()
    local atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.f32)
    local copy = cute.make_tiled_copy_tv(atom,
      cute.make_layout({8, 8}, {8, 1}), cute.make_layout({1, 4}))
    local slice = copy:get_slice(arch.thread_idx())
    local s = slice:partition_S(cute.local_tile(x, {32, 32}, {b, 0}))
    local d = slice:partition_D(cute.local_tile(y, {32, 32}, {b, 0}))
    if all then cute.copy(copy, s, d)
    else cute.copy(copy, s[{cute._, 0, 0}], d[{cute._, 0, 0}]) end
  end, ones(128, 32), fill)
end

describe("a note tells of gaps", function()
  it("where blocks are closer to each other than they step", function()
    assert.same({}, apart(1024, 64))
    assert.same({"elements 64 to 127 of every 128 of 'y' were never stored",
                 "elements 64 to 127 of every 128 of 'x' were never read"},
                apart(1024, 128))
    assert.same({"elements 64 to 127 and 192 to 255 of 'y' were never stored",
                 "elements 64 to 127 and 192 to 255 of 'x' were never read"},
                apart(256, 128))
  end)

  it("where only the first copy of a tile is made", function()
    assert.same({}, notes(tiles(true, zeros(128, 32))))
    local r = tiles(false, zeros(128, 32))
    assert.same({"rows 8 to 31 of every 32 of 'y' were never stored",
                 "rows 8 to 31 of every 32 of 'x' were never read"}, notes(r))
    local line = debug.getinfo(tiles, "S").linedefined + 10
    assert.equal(("cover_spec.lua:%d: rows 8 to 31 of every 32 of 'y' were "
      .. "never stored (3072 of 4096 elements); does each step cover a whole "
      .. "tile? cute.partial_ok says that this is intended"):format(line),
      json.decode(r:json()).notes[1])
  end)

  it("and of a tile that is missing at the end of a flat grid", function()
    local function flat(grid)
      return notes(run(grid, 32, function(x, y)
        local b, t = arch.block_idx(), arch.thread_idx()
        for j = 0, 31 do
          local at = {b // 4 * 32 + t, b % 4 * 32 + j}
          y[at] = x[at]
        end
      end, ones(128, 128), zeros(128, 128)))
    end
    assert.same({}, flat(16))
    assert.same({"rows 96 to 127 in columns 64 to 127 of 'y' were never "
                 .. "stored"}, flat(14))
  end)

  it("of tensors of other ranks and layouts", function()
    local function block(x, y)
      local b, t = arch.block_idx(), arch.thread_idx()
      for j = 0, 7 do y[{b, j, t}] = x[{b, j, t}] end
    end
    assert.same({"coordinates 6 to 8 of mode 0 of 'y' were never stored",
                 "coordinates 6 to 8 of mode 0 of 'x' were never read"},
                notes(run(6, 32, block, ones(9, 8, 32), zeros(9, 8, 32))))
    local nested = cute.make_layout({{4, 8}, 32}, {{1, 128}, 4})
    assert.same({"rows 24 to 31 of 'y' were never stored",
                 "rows 24 to 31 of 'x' were never read"},
      notes(run(24, 32, function(x, y)
        local at = {(arch.block_idx()), (arch.thread_idx())}
        y[at] = x[at]
      end, cute.ones(nested, cute.f32), zeros(32, 32):mark_layout_dynamic())))
  end)

  it("in an output as long as a guard, if the grid is not", function()
    local function fill(grid, extent, limit)
      return notes(run(grid, 32, function(x, n)
        local i = arch.block_idx() * 32 + arch.thread_idx()
        cute.when(i:lt(limit or n), function() x[i] = 1 end)
      end, zeros(extent), extent))
    end
    assert.same({"elements 96 to 119 of 'x' were never stored"}, fill(3, 120))
    assert.same({"elements 64 to 119 of 'x' were never stored"},
                fill(2, 120, 120))
    assert.same({}, fill(4, 120))
    assert.same({}, fill(4, 128, 120))
    -- There is a note: the kernel compares blocks with the extent, so the grid
    -- may have too few blocks.
    assert.same({"elements 32 to 119 of 'x' were never stored"}, fill(1, 120))
  end)
end)

-- Returns the notes of a launch of `grid` blocks of 32 threads, whose kernel is
-- body(x, y, i, b, t, n).
local function map(grid, x, y, body, n)
  return notes(run(grid, 32, function(a, c, m)
    local b, t = arch.block_idx(), arch.thread_idx()
    body(a, c, b * 32 + t, b, t, m)
  end, x, y, n))
end

local function copy(x, y, i) y[i] = x[i] end
-- Returns a kernel body that copies the elements below `n` or, if n is nil,
-- below the kernel's argument.
local function below(n)
  return function(x, y, i, _, _, m)
    cute.when(i:lt(n or m), function() y[i] = x[i] end)
  end
end

it("a note tells of rows that loops up to an argument leave out", function()
  -- Copies rows of x (10,75) to y by a warp each; extents are arguments.
  local function copied(grid, columns_of, wide, ...)
    return notes(run(grid, 128, function(x, y, M, N)
      local row = arch.block_idx() * 4 + arch.warp_idx()
      cute.when(row:lt(M), function()
        for j in cute.range(arch.lane_idx(), columns_of(N), 32) do
          y[{row, j}] = x[{row, j}]
        end
      end)
    end, ones(10, wide), zeros(10, 75), ...))
  end
  local function all(n) return n end
  assert.same({}, copied(3, all, 75, 10, 75))
  assert.same({"rows 8 to 9 of 'y' were never stored",
               "rows 8 to 9 of 'x' were never read"},
              copied(2, all, 75, 10, 75))
  -- no notes: x has more columns than N, or M or N is smaller than the tensors
  assert.same({}, copied(3, all, 90, 10, 75))
  assert.same({}, copied(3, all, 75, 10, 60))
  assert.same({}, copied(3, all, 75, 6, 75))
  assert.same({}, copied(3, function(n) return n // 2 end, 75, 10, 75))
end)

it("a note tells of rows that a grid leaves out, whose guards are right",
   function()
  -- Returns the notes of a kernel that adds 1 to x (96,64) with blocks of 16 x
  -- 16 threads.
  local function add(grid)
    return notes(run(grid, {16, 16}, function(x, y)
      local bx, by = arch.block_idx()
      local tx, ty = arch.thread_idx()
      local at = {by * 16 + ty, bx * 16 + tx}
      cute.when(at[1]:lt(96) & at[2]:lt(64), function()
        y[at] = x[at] + 1
      end)
    end, ones(96, 64), zeros(96, 64)))
  end
  assert.same({}, add {4, 6})
  assert.same({"rows 64 to 95 of 'y' were never stored",
               "rows 64 to 95 of 'x' were never read"}, add {6, 4})
end)

describe("no note tells of elements", function()
  it("that a limit of the kernel excludes, but of those that it does not",
     function()
    local text = {"elements 320 to 639 of 'c' were never stored",
                  "elements 320 to 639 of 'a' were never read"}
    for _, n in ipairs {640, 639} do
      assert.same(text, map(10, ones(640), zeros(640), below(n)))
      assert.same(text, map(10, ones(640), zeros(640), below(), n))
      assert.same({}, map(20, ones(640), zeros(640), below(), n))
    end
    assert.same({}, map(20, ones(640), zeros(640), below(640)))
    -- There is a note if only the last element is not stored. There is none if
    -- the kernel reads the inputs up to their end.
    assert.same({"element 639 of 'c' was never stored",
                 "element 639 of 'a' was never read"},
                map(20, ones(640), zeros(640), below(639)))
    assert.same({}, map(20, ones(640), zeros(640), function(x, y, i)
      cute.when(i:lt(639), function() y[i] = x[i + 1] - x[i] end)
    end))
    for _, n in ipairs {320, 300, 20} do
      assert.same({}, map(20, ones(640), zeros(640), below(n)))
      assert.same({}, map(20, ones(640), zeros(640), below(), n))
    end
    -- no note: 80 vectors of 4 elements
    assert.same({}, map(20, ones(640), zeros(640), function(x, y, i)
      cute.when(i:lt(80), function()
        for j = 0, 3 do y[i * 4 + j] = x[i * 4 + j] end
      end)
    end))
    -- no note: only elements below the diagonal
    assert.same({}, map({1, 32}, ones(32, 32), zeros(32, 32),
      function(x, y, i)
        local _, b = arch.block_idx()
        cute.when(i:lt(b), function() y[{i, b}] = x[{i, b}] end)
      end))
    -- no note: the number of iterations is the block's index
    assert.same({}, map(4, ones(64, 32), zeros(64, 32), function(x, y, _, b, t)
      for k in cute.range(b) do y[{k * 2, t}] = x[{k * 2, t}] end
    end))
  end)

  it("that arguments or data decide", function()
    assert.same({}, map(10, ones(640), zeros(640), function(x, y, i, _, _, m)
      y[i * m] = x[i * m]
    end, 1))
    assert.same({}, notes(run(20, 32, function(x, y, at)
      local i = arch.block_idx() * 32 + arch.thread_idx()
      local k = at[i]
      y[k] = x[k]
    end, ones(640), zeros(640), cute.zeros({640}, cute.i32))))
    assert.same({}, notes(run(10, 32, function(x, y, n)
      local i = arch.block_idx() * 32 + arch.thread_idx()
      cute.when(i:lt(n[0]), function() y[i] = x[i] end)
    end, ones(640), zeros(640), cute.full({1}, 320, cute.i32))))
  end)

  it("that no other tensor has, or that are meant", function()
    assert.same({}, map(10, ones(320), zeros(640), copy))
    assert.same({}, map(10, ones(400), zeros(640), copy))
    assert.same({}, map(5, ones(640), zeros(160), function(x, y, i)
      y[i] = x[i * 2]
    end))
    assert.same({}, map(10, ones(640), zeros(640), function(x, y, i)
      cute.partial_ok(x)
      cute.partial_ok(y)
      copy(x, y, i)
    end))
    assert.same({"elements 320 to 639 of 'a' were never read"},
      map(10, ones(640), zeros(640), function(x, y, i)
        cute.undefined_ok(y)
        copy(x, y, i)
      end))
    -- no notes: a single row is read; a column is a constant; one block has all
    -- elements
    assert.same({}, map(1, ones(32, 32), zeros(32), function(x, y, i)
      y[i] = x[{2, i}]
    end))
    assert.same({}, map(2, ones(64, 64), zeros(64, 64), function(x, y, i)
      for j = 0, 8 do y[{i, j}] = x[{i, j}] end
    end))
    assert.same({"elements 32 to 639 of 'c' were never stored",
                 "elements 32 to 639 of 'a' were never read"},
                map(1, ones(640), zeros(640), copy))
    -- no note: the address does not depend on the block, so a single block may
    -- be intended
    assert.same({}, map(1, ones(640), zeros(640), function(x, y, _, _, t)
      y[t] = x[t]
    end))
    assert.same({}, map(10, ones(640), zeros(640), function(x, y, i)
      copy(x, y, i + 160)
    end))
    -- no note: all blocks read the same elements, but no tensor has a tile for
    -- each block
    assert.same({}, map(20, ones(400), zeros(640), function(x, y, i, _, t)
      y[i] = x[t]
    end))
  end)

  it("of tensors that are updated or share memory", function()
    assert.same({}, map(10, ones(640), zeros(640), function(_, y, i)
      y[i] = y[i] + 1
    end))
    local x = ones(640)
    assert.same({}, map(10, cute.local_tile(x, {320}, {0}), x,
                        function(a, y, i) y[i + 320] = a[i] end))
  end)
end)

describe("no note tells of elements", function()
  it("beyond the end of a loop that begins at the block", function()
    local function stride(n)
      return map(2, ones(256), zeros(256), function(x, y, i)
        for k in cute.range(i, n, 64) do y[k] = x[k] end
      end)
    end
    assert.same({}, stride(200))
    assert.same({}, stride(256))
    -- no note: 64 is the number of elements in two blocks
    assert.same({}, stride(64))
    -- notes, even if the compared values need more than 63 bits
    for _, n in ipairs {math.mininteger, math.maxinteger} do
      assert.equal(2, #map(2, ones(128), zeros(128), function(x, y, i)
        cute.when(i:to(cute.i64):ne(n), function() y[i] = x[i] end)
      end))
    end
  end)

  it("around a copy of a whole tensor, or beyond what all outputs need",
     function()
    -- Copies the product of x and z to y for the first m x n elements.
    local function corner(x, z, y, m, n)
      return notes(run(m, n, function(a, b, c)
        local at = {(arch.block_idx()), (arch.thread_idx())}
        c[at] = a[at] * b[at]
      end, x, z, y))
    end
    assert.same({}, corner(ones(16, 32), ones(16, 32), zeros(32, 32), 16, 32))
    assert.same({}, corner(ones(32, 16), ones(32, 16), zeros(32, 32), 32, 16))
    assert.same({}, corner(ones(32, 32), ones(32, 32), zeros(16, 16), 16, 16))
    -- a note, because an input with these extents is only partly read
    assert.same({"rows 16 to 31 of 'c' were never stored",
                 "rows 16 to 31 of 'b' were never read"},
                corner(ones(16, 32), ones(32, 32), zeros(32, 32), 16, 32))
  end)
end)

-- Returns random numbers for each of two modes: the extent, the tile, the step
-- between tiles, and the number of blocks.
local function random_tiles()
  local extent, tile, step, grid = {}, {}, {}, {}
  for k = 1, 2 do
    tile[k] = math.random(1, 4)
    step[k] = tile[k] + (math.random(3) == 1 and math.random(0, 3) or 0)
    grid[k] = math.random(1, 5)
    local least = (grid[k] - 1) * step[k] + tile[k]
    extent[k] = least + (math.random(2) == 1 and math.random(0, 9) or 0)
  end
  return extent, tile, step, grid
end

-- Returns a random layout of this shape: column-major, row-major, with padded
-- rows, or row-major with a nested mode.
local function random_layout(extent)
  local m, n = extent[1], extent[2]
  local kind = math.random(m % 2 == 0 and 4 or 3)
  if kind == 1 then return cute.make_layout({m, n}) end
  if kind < 4 then return cute.make_layout({m, n}, {n + kind - 2, 1}) end
  return cute.make_layout({{2, m // 2}, n}, {{1, 2 * n}, 2})
end

-- Returns the set of coordinates that the blocks access, for each mode.
local function accessed(extent, tile, step, grid)
  local sets = {{}, {}}
  for k = 1, 2 do
    for b = 0, grid[k] - 1 do
      for i = 0, tile[k] - 1 do
        assert(b * step[k] + i < extent[k])
        sets[k][b * step[k] + i] = true
      end
    end
  end
  return sets
end

-- Returns the first coordinate c with set[c] == has, and the number of these.
local function count(set, extent, has)
  local first, n = nil, 0
  for c = 0, extent - 1 do
    if (set[c] or false) == has then
      first, n = first or c, n + 1
    end
  end
  return first, n
end

-- Returns the set of coordinates that a note lists for a mode. Examples: "rows
-- 1, 3 to 4 and 6"; "rows 2 to 3 of every 4 and 10 to 14".
local function listed(text, noun, extent)
  local list = (" " .. text):match(" " .. noun .. "s? ([%d, toandfevry]+)")
  local set = {}
  if not list then return set end
  local first, period, rest = list:match "^(.-) of every (%d+)(.*)$"
  local function put(part, step)
    local from, to = part:match "(%d+) to (%d+)"
    from = math.tointeger(from or part:match "%d+")
    for start = from or extent, step and extent - 1 or from or 0, step or 1 do
      for c = start, math.min(start + (to and to - from or 0), extent - 1) do
        set[c] = true
      end
    end
  end
  if first then put(first, math.tointeger(period)) end
  local others = (rest or list):gsub(" and ", ", ")
  for part in others:gmatch "[^,]+" do put(part) end
  return set
end

describe("a note tells that one coordinate of a mode is accessed", function()
  -- Computes y[b] = x[b] + z[b] for matrices x[b]. `how` is the mistake.
  local function batches(grid, how)
    return notes(run(grid, 32, function(x, z, y)
      local t, m, _, b = arch.thread_idx(), arch.block_idx()
      if how == "quotient" then b = b // 3 end
      y[{b, m, t}] = x[{b, m, t}] + z[{how == "constant" and 0 or b, m, t}]
    end, ones(3, 2, 32), ones(3, 2, 32), zeros(3, 2, 32)))
  end

  it("for a grid without its third extent, or a quotient of 0", function()
    assert.same({}, batches({2, 1, 3}))
    for _, list in ipairs {batches {2, 1}, batches({2, 1, 3}, "quotient")} do
      assert.same({"coordinates 1 to 2 of mode 0 of 'y' were never stored",
        "coordinates 1 to 2 of mode 0 of 'x' were never read",
        "coordinates 1 to 2 of mode 0 of 'z' were never read"}, list)
    end
  end)

  it("for a constant coordinate of one operand", function()
    assert.same({"coordinates 1 to 2 of mode 0 of 'z' were never read"},
                batches({2, 1, 3}, "constant"))
  end)
end)

describe("the coordinates of random tiles", function()
  -- Copies the tiles of x to y, with one thread per block.
  local function copied(extent, tile, step, grid)
    local x = cute.ones(random_layout(extent), cute.f32)
    local y = cute.zeros(random_layout(extent), cute.f32)
    return notes(run(grid, 1, function(a, c)
      local m, n = arch.block_idx()
      for i in cute.range(tile[1]) do
        for j in cute.range(tile[2]) do
          local at = {m * step[1] + i, n * step[2] + j}
          c[at] = a[at]
        end
      end
    end, x, y))
  end

  -- Compares the notes of a copy with the coordinates that it does not access.
  local function compare(extent, tile, step, grid)
    local list = copied(extent, tile, step, grid)
    local sets = accessed(extent, tile, step, grid)
    local gaps, told, suffix, flat = 0, true, true, false
    for k = 1, 2 do
      local first, missing = count(sets[k], extent[k], false)
      local _, hit = count(sets[k], extent[k], true)
      if missing > 0 then
        gaps = gaps + 1
        told = told and first >= 2 and hit >= 2
        suffix = suffix and first + missing == extent[k]
        flat = hit == 1 and first == 1
      end
    end
    -- A note is also expected if all blocks access only coordinate 0 of a mode.
    told = told or flat and gaps == 1 and grid[1] * grid[2] > 1
    if gaps == 0 or not told then
      assert.same({}, list)
      return 0
    end
    -- with one block, which may be intended, a note may be absent
    local one = grid[1] * grid[2] == 1 and suffix
    assert.is_true(#list == 2 or one and #list < 2)
    for _, text in ipairs(list) do
      for k, noun in ipairs {"row", "column"} do
        local set = listed(text, noun, extent[k])
        for c = 0, extent[k] - 1 do
          assert.equal(not sets[k][c], set[c] or false,
                       ("%s: %s %d"):format(text, noun, c))
        end
      end
    end
    return 1
  end

  local function compare_all(n)
    math.randomseed(7)
    local told = 0
    for _ = 1, n do told = told + compare(random_tiles()) end
    assert.is_true(told > n / 8 and told < n * 7 / 8, tostring(told))
  end
  it("are those that a brute force finds", function() compare_all(60) end)
  it("are those that a brute force finds, #long", function()
    compare_all(1000)
  end)
end)

describe("a note tells of a tensor that TMA reads", function()
  -- Returns the notes of a kernel that loads tiles of 16 x 16 of x by TMA, one
  -- per block, and stores them to y. With `still`, all blocks load the first
  -- tile.
  local function load(grid, x, y, still)
    local smem = cute.make_layout({16, 16}, {16, 1})
    local atom, coords = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileG2SOp(), x, smem, {16, 16})
    return notes(run(grid, 32, function(a, c, out)
      local t, m, n = (arch.thread_idx()), arch.block_idx()
      local s = cute.make_smem_tensor(cute.f32, smem, 128)
      local bar = cute.make_smem_tensor(cute.i64, cute.make_layout(1), 8)
      local g = cute.local_tile(c, {16, 16}, {cute._, cute._})
      local to, from = cpasync.tma_partition(a, 0, cute.make_layout(1),
        cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
      cute.when(t:eq(0), function()
        arch.mbarrier_init(bar.iterator, 1)
        arch.mbarrier_init_fence()
      end)
      arch.sync_threads()
      cute.when(t:eq(0), function()
        arch.mbarrier_arrive_and_expect_tx(bar.iterator, 1024)
        local tile = still and {cute._, 0, 0} or {cute._, m, n}
        cute.copy(a, from[tile], to, {tma_bar_ptr = bar.iterator})
      end)
      arch.mbarrier_wait(bar.iterator, 0)
      for j = 0, 7 do
        local at = {t // 2, t % 2 * 8 + j}
        cute.local_tile(out, {16, 16}, {m, n})[at] = s[at]
      end
    end, atom, coords, y))
  end

  it("with the modes of the tensor map", function()
    assert.same({}, load({3, 4}, ones(48, 64), zeros(48, 64)))
    assert.same({"columns 48 to 63 of 'out' were never stored",
                 "coordinates 48 to 63 of mode 0 of the tensor map of 'a' were "
                 .. "never read"}, load({3, 3}, ones(48, 64), zeros(48, 64)))
    assert.same({"coordinates 16 to 63 of mode 0, and coordinates 16 to 47 of "
                 .. "mode 1 of the tensor map of 'a' were never read"},
                load({3, 4}, ones(48, 64), zeros(48, 64), true))
  end)
end)

describe("a comparison that fails names a part of an input", function()
  -- Copies element where(t, n) of each row t of x to y, for the rows with
  -- guard(t, n), and compares y with a tensor of zeros. Returns what the error
  -- says of elements that were never read.
  local function unread(guard, where, x, compare)
    run(2, 16, function(from, to, rows)
      local t = arch.block_idx() * 16 + arch.thread_idx()
      cute.when(guard(t, rows), function()
        to[t] = from[{t, where(t, from)}]
      end)
    end, x, zeros(24), x.shape[1])
    local list = {}
    for _ = 1, compare or 1 do
      local ok, message = pcall(cute.testing.assert_close, ones(3), zeros(3))
      assert.is_false(ok)
      list = {}
      for line in message:gmatch "[^\n]+" do
        list[#list + 1] = line:match "kernel k: cover_spec.lua:%d+: (.+)"
      end
    end
    return list
  end
  local function first() return 0 end
  local function inside(t, rows) return t:lt(rows) end

  it("that a scalar argument limits", function()
    assert.same({"row 0, and columns 1 to 7 of 'from' were never read "
                 .. "(169 of 192 elements)"},
      unread(function(t, rows) return t:gt(0) & t:lt(rows) end, first,
             ones(24, 8)))
    assert.same({"rows 20 to 23, and columns 1 to 7 of 'from' were never read "
                 .. "(172 of 192 elements)"},
      unread(function(t, rows) return t:lt(rows - 4) end, first, ones(24, 8)))
    assert.same({"row 1 of every 2, and columns 1 to 7 of 'from' were never "
                 .. "read (180 of 192 elements)"},
      unread(function(t, rows) return t:lt(rows) & (t % 2):eq(0) end, first,
             ones(24, 8)))
  end)

  it("once, if several comparisons follow the launch", function()
    assert.same({}, unread(inside, first, ones(24, 8), 2))
  end)

  it("but none that data choose, or that was read", function()
    assert.same({}, unread(inside, function(t, x)
      return x[{t, 0}]:to(cute.i32)
    end, ones(24, 8)))
    assert.same({}, unread(inside, first, ones(24, 1)))
  end)

  it("but none of a large input that a limit in the kernel omits", function()
    local function few(t, rows) return t:lt(rows // 15) end
    assert.equal(1, #unread(few, first, ones(300, 200)))
    assert.same({}, unread(few, first, ones(300, 300)))
  end)

  it("and no other comparison prints it", function()
    unread(inside, first, ones(24, 8))
    run(1, 32, function(x, y, n)
      local t = arch.thread_idx()
      cute.when(t:lt(n), function() y[t] = x[t] end)
    end, ones(24), zeros(24), 20)
    assert.has_no_error(function()
      cute.testing.assert_close(ones(3), ones(3))
    end)
    assert.is_nil(next(require("cute.lang.unused").skipped))
  end)
end)
-- SPDX-License-Identifier: MIT
