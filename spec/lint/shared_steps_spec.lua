-- Tests the notes on scans and reductions that omit elements in one step: in
-- shared memory, in loops over whole tiles, and in variables that lanes select.
local cute = require "cute"
local notes = require "spec.notes"
local arch = cute.arch

local quiet = notes.quiet

local function expect(text, ...)
  local said = notes.told(...)
  assert.equal(1, #said)
  assert.matches("^cutelua: note: kernel k%d+: shared_steps_spec.lua:%d+: "
    .. text .. "$", said[1])
end

local function normal(...) return cute.randn({...}, cute.f32) end
local function zeros(...) return cute.zeros({...}, cute.f32) end

local N = 64
local ONE = {grid = 1, block = N}

describe("a note tells of a scan", function()
  -- Returns a scan; in each step, thread t adds s[t - d] if may(t, d).
  local function scan(may)
    return function(x, y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, N)
      s[t] = x[t]
      arch.sync_threads()
      for _, d in ipairs {1, 2, 4, 8, 16, 32} do
        local v = cute.when(may(t, d), function() return s[t - d] end,
                            function() return 0.0 end)
        arch.sync_threads()
        s[t] = s[t] + v
        arch.sync_threads()
      end
      y[t] = s[t]
    end
  end
  local text = "this scan omits element 0 of shared tensor 's' in thread i = "
    .. "d; should the condition be i:ge%(d%) instead of i:gt%(d%)%?"

  it("that omits element 0", function()
    expect(text, scan(function(t, d) return t:gt(d) end), ONE, normal(N),
           zeros(N))
    expect(text, scan(function(t, d) return t:ge(d + 1) end), ONE, normal(N),
           zeros(N))
    -- Like scan(), but as a loop of the kernel, in which the distance is a
    -- variable.
    local function loop(may)
      return function(x, y)
        local t = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.f32, N)
        s[t] = x[t]
        arch.sync_threads()
        local d = (1):to(cute.i32)
        cute.loop(function() return d:lt(N) end, function()
          local v = cute.when(may(t, d), function() return s[t - d] end,
                              function() return 0.0 end)
          arch.sync_threads()
          s[t] = s[t] + v
          arch.sync_threads()
          d = d * 2
        end)
        y[t] = s[t]
      end
    end
    expect(text, loop(function(t, d) return t:gt(d) end), ONE, normal(N),
           zeros(N))
    quiet(loop(function(t, d) return t:ge(d) end), ONE, normal(N), zeros(N))
  end)

  it("unless it is complete, or exclusive", function()
    quiet(scan(function(t, d) return t:ge(d) end), ONE, normal(N), zeros(N))
    quiet(scan(function(t, d) return t:gt(d - 1) end), ONE, normal(N), zeros(N))
    local function shared(f)
      return function(x, y)
        local t = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.f32, N)
        s[t] = x[t]
        arch.sync_threads()
        y[t] = f(s, t)
      end
    end
    quiet(shared(function(s, t)
      return cute.when(t:gt(0), function() return s[t - 1] end,
                       function() return s[N - 1] end)
    end), ONE, normal(N), zeros(N))
    -- no note: the condition is right for the most distant element
    quiet(shared(function(s, t)
      return cute.when(t:gt(1), function() return s[t - 1] + s[t - 2] end,
                       function() return s[N - 1] end)
    end), ONE, normal(N), zeros(N))
  end)
end)

describe("a note tells of a reduction", function()
  -- Returns a reduction by halves; a step stores f(s, t, distance) in s[t].
  local function halves(f, least)
    return function(x, y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, N)
      s[t] = x[t]
      arch.sync_threads()
      local d = N // 2
      while d >= least do
        cute.when(t:lt(d), function() s[t] = f(s, t, d) end)
        arch.sync_threads()
        d = d // 2
      end
      y[t] = s[t]
    end
  end

  it("that stores an element in place of the thread's own one", function()
    local text = "this reduction in shared tensor 's' replaces the thread's "
      .. "own element; should it combine both, as in s%[i%] = s%[i%] %+ "
      .. "s%[i %+ d%]%?"
    expect(text, halves(function(s, t, d) return s[t + d] end, 1), ONE,
           normal(N), zeros(N))
    expect(text, halves(function(s, t, d) return 2 * cute.abs(s[t + d]) end, 1),
           ONE, normal(N), zeros(N))
  end)

  it("unless it combines both, or moves a half once", function()
    quiet(halves(function(s, t, d) return s[t] + s[t + d] end, 1), ONE,
          normal(N), zeros(N))
    quiet(halves(function(s, t, d) return cute.max(s[t + d], s[t]) end, 1), ONE,
          normal(N), zeros(N))
    quiet(halves(function(s, t, d) return s[t + d] end, N // 2), ONE, normal(N),
          zeros(N))
  end)
end)

describe("a note tells of a loop over tiles", function()
  local LAUNCH = {grid = 4, block = 64}
  local COLUMNS = 77

  -- Returns a kernel in which each warp divides a row by its sum. add(x, row,
  -- lane) computes a lane's partial sum.
  local function divide(add)
    return function(x, y)
      local lane, row = arch.lane_idx(), arch.block_idx() * 2 + arch.warp_idx()
      local sum = arch.warp_reduction_sum(add(x, row, lane))
      for i in cute.range(lane, COLUMNS, 32) do
        y[{row, i}] = x[{row, i}] / sum
      end
    end
  end
  local function tiles(n, rest)
    return divide(function(x, row, lane)
      local sum = 0.0
      for k in cute.range(n) do
        local i = k * 32 + lane
        if n * 32 <= COLUMNS then
          sum = sum + cute.exp(x[{row, i}])
        else
          cute.when(i:lt(COLUMNS), function()
            sum = sum + cute.exp(x[{row, i}])
          end)
        end
      end
      if rest then
        local i = n * 32 + lane
        cute.when(i:lt(COLUMNS), function()
          sum = sum + cute.exp(x[{row, i}])
        end)
      end
      return sum
    end)
  end

  it("that omits the rest of a row", function()
    expect("this loop omits the last 13 of 77 elements of each row of 'x', "
      .. "which another line reads; was its end rounded down%?", tiles(2),
      LAUNCH, normal(8, COLUMNS), zeros(8, COLUMNS))
  end)

  it("unless another line reads the rest, or the loop rounds up", function()
    quiet(tiles(2, true), LAUNCH, normal(8, COLUMNS), zeros(8, COLUMNS))
    quiet(tiles(3), LAUNCH, normal(8, COLUMNS), zeros(8, COLUMNS))
  end)
end)

describe("a note tells of an index", function()
  -- Returns a kernel that stores the index of each row's maximum. With
  -- `exchanges`, lanes exchange the index together with the maximum.
  local function argmax(exchanges)
    return function(x, y)
      local lane, row = arch.lane_idx(), arch.block_idx()
      local best, at = (-1e30):to(cute.f32), (-1):to(cute.i32)
      for i in cute.range(lane, 100, 32) do
        local v = x[{row, i}]
        local better = v:gt(best)
        best, at = cute.where(better, v, best), cute.where(better, i, at)
      end
      for _, d in ipairs {16, 8, 4, 2, 1} do
        local v = arch.shuffle_sync_bfly(best, d)
        local i = exchanges and arch.shuffle_sync_bfly(at, d) or at
        local better = v:gt(best) | (v:eq(best) & i:lt(at))
        best, at = cute.where(better, v, best), cute.where(better, i, at)
      end
      cute.when(lane:eq(0), function() y[row] = at end)
    end
  end

  it("that the lanes do not exchange with the maximum", function()
    local launch, y = {grid = 4, block = 32}, cute.zeros({4}, cute.i32)
    expect("each lane selects this value by elements of its own, but nothing "
      .. "uses the values of lanes 1 to 31: should the lanes exchange it, too, "
      .. "where they exchange the elements%?", argmax(false), launch,
      normal(4, 100), y)
    quiet(argmax(true), launch, normal(4, 100), y)
  end)

  it("unless each lane has a row of its own, or all have the same row",
     function()
    local function own(same)
      return function(x, y)
        local lane, best = arch.lane_idx(), (-1e30):to(cute.f32)
        local at = (-1):to(cute.i32)
        for i in cute.range(100) do
          local v = x[{same and 0 or lane, i}]
          local better = v:gt(best)
          best, at = cute.where(better, v, best), cute.where(better, i, at)
        end
        if same then cute.when(lane:eq(0), function() y[0] = at end)
        else y[lane] = at end
      end
    end
    local y = cute.zeros({32}, cute.i32)
    quiet(own(false), {grid = 1, block = 32}, normal(32, 100), y)
    quiet(own(true), {grid = 1, block = 32}, normal(1, 100), cute.zeros({1},
          cute.i32))
  end)
end)
-- SPDX-License-Identifier: MIT
