--- Mamba's selective scan, forward. The initial states are an input, and the
-- final states a result.
--
--     local k = selective_scan {dtype = cute.bf16, states = 16}
--     k.kernel(u, delta, A, B, C, y, z, D, bias, h0, h1):launch {
--       grid = k.grid(batch, channels), block = k.block}
--
-- At each time of each channel, the kernel computes h[n] = exp(dt A[n]) h[n] +
-- dt B[n] u for all states n, and then y = (sum over n of C[n] h[n] + D u)
-- silu(z). dt is delta or, with softplus, log(1 + exp(delta + bias)). u, delta,
-- z, y are (batch, channels, time), B and C (batch, states, time), A (channels,
-- states), D and bias (channels). h0 and h1 (batch, channels, states) are the
-- states before the first and after the last time. A, D, bias, h0, h1 are f32;
-- z, D, bias, h0, h1 can be nil.
--
-- `lanes` threads share a channel. Each has a few of its states. They advance
-- in time by groups of steps, four for each lane. Each lane computes dt and dt
-- u for its own four steps and, at the end, y of these steps. Between these two
-- tasks, all lanes process all steps of the group. cp.async loads a tile along
-- time while the previous tile is processed. (Gu and Dao, Mamba, 2023, section
-- 3.3.)
local cute = require "cute"
local rules = require "kernels.operand_rules"
local tiles = require "cute.tiles"
local _ = cute._

local WARP, STEPS = 32, 4
local THREADS = 512  -- the number of threads on a multiprocessor, if each has
                     -- 128 registers
local LN2, LOG2E = math.log(2), 1 / math.log(2)

local Scan = {}
Scan.__index = Scan

---------------------------------------------------------------------------
-- Tiles of time
---------------------------------------------------------------------------

-- Makes an operand: {smem = its tensor (rows,time,stages) in shared memory,
-- load = function(k, stage)}. load copies the kth tile along time, of rows tile
-- `at` of t, to a stage of shared memory. Elements outside t are loaded as
-- zeros. Rows are padded by 16 bytes, so that lanes that read 16 bytes each
-- from consecutive rows have no bank conflicts.
function Scan:input(t, rows, at)
  local T, dtype = self.time, t.element_type
  local width = math.min(rules.widest(dtype.bits, t.shape[2]), T // self.lanes)
  local along = T // width
  local across = self.block // along
  rows = (rows + across - 1) // across * across
  local pitch = T + 128 // dtype.bits
  local smem = cute.make_smem_tensor(dtype, cute.make_layout(
    {rows, T, self.stages}, {pitch, 1, rows * pitch}), 16)
  local async = width * dtype.bits >= 32
  local copy = cute.make_tiled_copy(cute.make_copy_atom(
    async and "SM80_CP_ASYNC_CACHEALWAYS_ZFILL" or "UniversalCopy", dtype,
    width * dtype.bits), cute.make_layout({across, along}, {along, 1}),
    cute.make_layout {1, width})
  local thr = copy:get_slice((cute.arch.thread_idx()))
  local src = thr:partition_S(cute.local_tile(t, {rows, T}, {at, _}))
  local dst = thr:partition_D(smem)                        -- (CPY,M,T,PIPE)
  local inside = tiles.inside(thr, t, {rows, T}, at)
  local held = not async and cute.make_fragment_like(src(_, _, _, 0))
  return {smem = smem, load = function(k, stage)
    local pred, to = inside(k), dst(_, _, _, stage)
    if async then return cute.copy(copy, src(_, _, _, k), to, pred) end
    held:fill(0)
    cute.copy(copy, src(_, _, _, k), held, pred)
    cute.autovec_copy(held, to)
  end}
end

-- Allocates a tile of f32 in shared memory, (rows,time). Each row is padded by
-- four elements to avoid bank conflicts.
local function wide(rows, time)
  return cute.make_smem_tensor(cute.f32, cute.make_layout({rows, time},
    {time + STEPS, 1}), 16)
end

-- Returns a view of four elements of row `row` of t (rows,time), beginning with
-- element `time`.
local function steps_of(t, row, time)
  return cute.make_tensor(t(row, _).iterator + time, cute.make_layout {STEPS})
end

-- Reads four time steps of row `row` of t from shared memory. Returns them as
-- f32.
local function read(t, row, time)
  local r = cute.make_rmem_tensor({STEPS}, t.element_type)
  cute.autovec_copy(steps_of(t, row, time), r)
  return r:load():to(cute.f32)
end

local function write(t, row, time, v)
  local r = cute.make_rmem_tensor({STEPS}, t.element_type)
  for j = 0, STEPS - 1 do r[j] = v[j] end
  cute.autovec_copy(r, steps_of(t, row, time))
end

-- Calls f(row, time) for each group of four steps of a tile that this thread
-- handles.
function Scan:each(rows, f)
  local along = self.time // STEPS
  local all = rows * along
  for first = 0, all - 1, self.block do
    local e = (cute.arch.thread_idx()) + first
    local function one() f(e // along, e % along * STEPS) end
    if first + self.block <= all then one()
    else cute.when(cute.lt(e, all), one) end
  end
end

-- Converts a tile of B and of C to f32, for all channels of the block.
function Scan:widen(g, stage)
  self:each(self.states, function(n, t)
    write(g.wide.B, n, t, read(g.B.smem(_, _, stage), n, t))
    write(g.wide.C, n, t, read(g.C.smem(_, _, stage), n, t))
  end)
end

-- Stores this thread's four steps of y, (channels,time), at `time`.
local function store(g, time, v)
  local y, dtype = g.y, g.y.element_type
  local width = math.min(rules.widest(dtype.bits, y.shape[2]), STEPS)
  local parts = STEPS // width
  local held = cute.make_rmem_tensor({width, parts}, dtype)
  local pred = cute.make_rmem_tensor({1, parts}, cute.boolean)
  for j = 0, STEPS - 1 do held[j] = v[j]:to(dtype) end
  for i = 0, parts - 1 do
    pred[{0, i}] = cute.lt(g.at, y.shape[1])
      & cute.lt(time + i * width, y.shape[2])
  end
  cute.copy(cute.make_copy_atom("UniversalCopy", dtype, width * dtype.bits),
    held, cute.make_tensor(y(g.at, _).iterator + time,
      cute.make_layout {width, parts}), {pred = pred})
end

---------------------------------------------------------------------------
-- Steps
---------------------------------------------------------------------------

-- Computes 2^x. Subnormal results become zero, so that each exponential is one
-- instruction.
local function exp2(x) return cute.arch.approx("ex2.approx.ftz.f32", x) end

-- Computes log2(1 + 2^x), which is softplus(x ln 2) / ln 2. For t = 2^x below
-- 2^-5, 1 + t would lose bits of t. Then the function uses the series of log2(1
-- + t), within 2e-7.
local function softplus2(x)
  local t = exp2(x)
  local grown = cute.arch.approx("lg2.approx.ftz.f32", 1 + t)
  local r = cute.fma(t, -LOG2E / 4, LOG2E / 3)
  local small = t * cute.fma(t, cute.fma(t, r, -LOG2E / 2), LOG2E)
  return cute.where(cute.lt(x, -5), small,
                    cute.where(cute.gt(x, 30), x, grown))
end

local function silu(x)
  return x * cute.arch.approx("rcp.approx.ftz.f32", 1 + exp2(x * -LOG2E))
end

-- Sums each of v[1..n] over the lanes of a channel. Neighbouring lanes of a
-- channel are `apart` lanes of the warp apart. Each lane ends with n / lanes of
-- the sums: lane j has those from j * n / lanes on. In each step two lanes
-- exchange halves of v; a lane adds only the half that it keeps.
local function spread_sum(v, lanes, lane, apart)
  local n, d = #v, lanes // 2
  while d > 0 do
    local upper, half = cute.ne(lane & d, 0), n // 2
    for i = 1, half do
      local give = cute.where(upper, v[i], v[i + half])
      v[i] = cute.where(upper, v[i + half], v[i])
        + cute.arch.shuffle_sync_bfly(give, d * apart)
    end
    n, d = half, d // 2
  end
  return v
end

-- Returns three lists for this lane's four steps, which begin at step t of the
-- tile: log2(e) dt, dt u, and u. `left` is the number of steps from the tile's
-- beginning to the end of time. Steps after the end add nothing.
function Scan:prepare(g, t, left, stage)
  local delta = read(g.delta.smem(_, _, stage), g.c, t)
  local u = read(g.u.smem(_, _, stage), g.c, t)
  local dt, du = {}, {}
  for j = 0, STEPS - 1 do
    local x = delta[j] * LOG2E
    if self.softplus then x = softplus2(x + g.bias) end
    dt[j] = cute.where(cute.lt(t + j, left), x, 0)
    du[j] = dt[j] * LN2 * u[j]
  end
  return dt, du, u
end

-- Advances this thread's states by four steps, beginning at time t. Appends
-- this thread's contribution to each of the four values of y to the list y.
function Scan:advance(g, dt, du, t, stage, y)
  local first = #y
  for i = 0, self.each_lane - 1 do
    local n, h = i * self.lanes + g.lane, g.h
    local function of(name)
      return read(g.wide[name] or g[name].smem(_, _, stage), n, t)
    end
    local B, C = of "B", of "C"
    for j = 0, STEPS - 1 do
      h[i] = cute.fma(exp2(dt[j] * g.A[i]), h[i], du[j] * B[j])
      local k = first + j + 1
      y[k] = y[k] and cute.fma(C[j], h[i], y[k]) or C[j] * h[i]
    end
  end
end

function Scan:compute(g, k, stage)
  local lanes, begin = self.lanes, k * self.time
  for t in cute.range(0, self.time, STEPS * lanes) do
    local own, y = t + STEPS * g.lane, {}
    local dt, du, u = self:prepare(g, own, g.length - begin, stage)
    if lanes == 1 then
      self:advance(g, dt, du, t, stage, y)
    else
      write(g.dt, g.c, own, dt)
      write(g.du, g.c, own, du)
      cute.arch.sync_warp()
      for s = 0, lanes - 1 do
        local at = t + STEPS * s
        self:advance(g, read(g.dt, g.c, at), read(g.du, g.c, at), at, stage, y)
      end
      y = spread_sum(y, lanes, g.lane, WARP // lanes)
    end
    local z, out = g.z and read(g.z.smem(_, _, stage), g.c, own), {}
    for j = 0, STEPS - 1 do
      local v = y[j + 1]
      if g.D then v = v + g.D * u[j] end
      if z then v = v * silu(z[j]) end
      out[j] = v
    end
    store(g, begin + own, out)
  end
end

---------------------------------------------------------------------------
-- The kernel
---------------------------------------------------------------------------

-- Loads element `at` of t, a vector (channels) of f32. Returns 0 if t is nil or
-- has no such channel.
local function of_channel(t, at)
  local out = cute.var(0, cute.f32)
  cute.when(cute.lt(at, cute.size(t)), function() out.value = t[at] end)
  return out.value
end

-- Calls f(i, at, n) for each state of this thread that exists. n is the index
-- of the state in channel `at`, and i its index among the thread's states. t is
-- a tensor (channels, states).
function Scan:states_of(t, at, lane, f)
  for i = 0, self.each_lane - 1 do
    local n = i * self.lanes + lane
    cute.when(cute.lt(at, t.shape[1]) & cute.lt(n, self.states),
              function() f(i, at, n) end)
  end
end

function Scan:run(u, delta, A, B, C, y, more)
  local of, batch = cute.arch.block_idx()
  local tid, T, lanes = (cute.arch.thread_idx()), self.time, self.lanes
  -- Neighbouring lanes process different channels, so that they read the same
  -- elements of B and C.
  local apart = WARP // lanes
  local function tile(t)
    return self:input(t(batch, _, _), self.channels, of)
  end
  local function states(t) return self:input(t(batch, _, _), self.states, 0) end
  local g = {u = tile(u), delta = tile(delta), z = more.z and tile(more.z),
    B = states(B), C = states(C), y = y(batch, _, _), length = u.shape[3],
    lane = tid % WARP // apart, c = tid // WARP * apart + tid % apart,
    A = cute.make_rmem_tensor({self.each_lane}, cute.f32),
    h = cute.make_rmem_tensor({self.each_lane}, cute.f32), wide = {}}
  g.at = of * self.channels + g.c
  if self.dtype ~= cute.f32 then
    g.wide.B, g.wide.C = wide(self.states, T), wide(self.states, T)
  end
  if lanes > 1 then
    g.dt, g.du = wide(self.channels, T), wide(self.channels, T)
  end
  g.D = more.D and of_channel(more.D, g.at)
  g.bias = more.bias and of_channel(more.bias, g.at) * LOG2E or 0
  g.A:fill(0)
  self:states_of(A, g.at, g.lane, function(i, c, n) g.A[i] = A[{c, n}] end)
  g.h:fill(0)
  if more.h0 then
    self:states_of(more.h0(batch, _, _), g.at, g.lane, function(i, c, n)
      g.h[i] = more.h0[{batch, c, n}]
    end)
  end

  local function load(k, stage)
    for _, name in ipairs {"u", "delta", "z", "B", "C"} do
      if g[name] then g[name].load(k, stage) end
    end
  end
  local count, stage = (g.length + T - 1) // T, 0
  load(0, 0)
  cute.arch.cp_async_commit_group()
  for k in cute.range(count) do
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    cute.when(cute.lt(k + 1, count), function() load(k + 1, 1 - stage) end)
    cute.arch.cp_async_commit_group()
    if g.wide.B then
      self:widen(g, stage)
      cute.arch.sync_threads()
    end
    self:compute(g, k, stage)
    stage = 1 - stage
  end
  if more.h1 then
    self:states_of(more.h1(batch, _, _), g.at, g.lane, function(i, c, n)
      more.h1[{batch, c, n}] = g.h[i]
    end)
  end
end

--- Returns a kernel with arguments (u, delta, A, B, C, y [, z, D, bias, h0,
-- h1]), and its launch parameters.
---@param o table {dtype: any, states: integer?, softplus: boolean?,
-- lanes: integer?, channels: integer?, time: integer?}
-- dtype: the type of u, delta, z, B, C, y; states: 16 when absent; softplus:
-- applies softplus to delta + bias; lanes: 1, 2 or 4 threads for a channel (4);
-- channels: channels of a block (32); time: time steps of a tile (32)
---@return table {kernel: any, block: integer,
-- grid: fun(batch: integer, channels: integer): integer[]}
return function(o)
  rules.options("selective_scan", o,
    "dtype states softplus lanes channels time")
  local s = setmetatable({dtype = o.dtype, states = o.states or 16,
    softplus = o.softplus, lanes = o.lanes or 4, channels = o.channels or 32,
    time = o.time or 32, stages = 2}, Scan)
  local lanes = s.lanes
  rules.given("selective_scan", s, "dtype", "states")
  rules.integers("selective_scan", s, {"channels", "time"}, 4, 256, "power")
  rules.need(s.states % lanes == 0 and lanes & (lanes - 1) == 0 and lanes <= 4,
    "selective_scan", "the lanes must be 1, 2 or 4 and divide the %d states; "
    .. "%d do not", s.states, lanes)
  rules.need(s.time >= STEPS * lanes, "selective_scan",
    "tiles of %d steps for %d lanes; at least %d steps are "
      .. "needed", s.time, lanes,
    STEPS * lanes)
  rules.need(s.channels * lanes >= math.max(s.time, WARP)
    and s.channels * lanes <= 1024, "selective_scan",
    "%d threads for %d channels and %d steps; 32 to 1024 threads, and no fewer "
    .. "than steps, are needed", s.channels * lanes, s.channels, s.time)
  s.each_lane = s.states // s.lanes
  s.block = s.channels * s.lanes
  return {block = s.block,
    grid = function(batch, channels)
      return {(channels + s.channels - 1) // s.channels, batch}
    end,
    kernel = cute.kernel("selective_scan", {fmad = true, block = s.block,
      min_blocks = math.max(1, THREADS // s.block)},
      function(u, delta, A, B, C, y, z, D, bias, h0, h1)
        s:run(u, delta, A, B, C, y,
              {z = z, D = D, bias = bias, h0 = h0, h1 = h1})
      end)}
end
-- SPDX-License-Identifier: MIT
