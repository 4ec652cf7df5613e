--- Mamba's selective scan, forward, with the states carried in and out.
--
--     local k = selective_scan {dtype = cute.bf16, states = 16}
--     k.kernel(u, delta, A, B, C, y, z, D, bias, h0, h1):launch {
--       grid = k.grid(batch, channels), block = k.block}
--
-- h[n] = exp(dt A[n]) h[n] + dt B[n] u; y = sum over n of C[n] h[n], + D u,
-- times silu(z), at each time of each channel; dt = delta, or with softplus
-- log(1 + exp(delta + bias)). u, delta, z, y are (batch, channels, time), B and
-- C (batch, states, time), A (channels, states), D and bias (channels), h0 and
-- h1 (batch, channels, states), the states before and after. A, D, bias, h0, h1
-- are f32; z, D, bias, h0, h1 may be nil.
--
-- `lanes` threads share a channel, a few states each, and walk through time;
-- tiles of time come by cp.async, the next one while one is computed. (Gu and
-- Dao, Mamba, 2023, section 3.3.)
local cute = require "cute"
local check = require "kernels.check"
local tiles = require "cute.tiles"
local _ = cute._

local WARP = 32
local LOG2E = math.log(math.exp(1), 2)

local Scan = {}
Scan.__index = Scan

---------------------------------------------------------------------------
-- Tiles of time
---------------------------------------------------------------------------

-- Tiles (rows, time) of t, which begin at row tile `at`, through `stages` of
-- shared memory: smem (rows,time,stages), load(k, stage). What lies outside is
-- zero. Rows are a piece apart from the banks' turn, so that lanes which read
-- a column of pieces do not meet.
function Scan:input(t, rows, at)
  local T, dtype = self.time, t.element_type
  local width = math.min(check.widest(dtype.bits, t.shape[2]), T // self.lanes)
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

-- A tile of y (rows,time) from shared memory, by rows.
function Scan:write(y, smem, at)
  local T, dtype = self.time, y.element_type
  local width = math.min(check.widest(dtype.bits, y.shape[2]), T // self.lanes)
  local along = T // width
  local copy = cute.make_tiled_copy(
    cute.make_copy_atom("UniversalCopy", dtype, width * dtype.bits),
    cute.make_layout({self.block // along, along}, {along, 1}),
    cute.make_layout {1, width})
  local thr = copy:get_slice((cute.arch.thread_idx()))
  local dst = thr:partition_D(cute.local_tile(y, {self.channels, T}, {at, _}))
  local src = thr:partition_S(smem)
  local inside = tiles.inside(thr, y, {self.channels, T}, at)
  local held = cute.make_fragment_like(src)
  return function(k)
    cute.autovec_copy(src, held)
    cute.copy(copy, held, dst(_, _, _, k), inside(k))
  end
end

---------------------------------------------------------------------------
-- Steps
---------------------------------------------------------------------------

-- Subnormals count as zero here: each exponential is one instruction then.
local function exp2(x) return cute.arch.approx("ex2.approx.ftz.f32", x) end

local function softplus(x)
  local grown = cute.arch.approx("lg2.approx.ftz.f32", 1 + exp2(x * LOG2E))
  return cute.where(cute.gt(x, 20), x, grown * (1 / LOG2E))
end

local function silu(x)
  return x * cute.arch.approx("rcp.approx.ftz.f32", 1 + exp2(x * -LOG2E))
end

-- Sums over the lanes of a channel, `apart` lanes of the warp from each other,
-- of v[1..n]: lane j ends with n / lanes of them, from j * n / lanes on. Halves
-- are exchanged: what a lane gives away it need not add.
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
  return v, n
end

-- A tile of f32 in shared memory, (rows,time), its rows a piece apart.
function Scan:wide(rows)
  return cute.make_smem_tensor(cute.f32, cute.make_layout(
    {rows, self.time}, {self.time + 4, 1}), 16)
end

-- Calls f(row, time) for each place of a tile that is this thread's.
function Scan:each(rows, f)
  local all = rows * self.time
  for first = 0, all - 1, self.block do
    local e = (cute.arch.thread_idx()) + first
    local function one() f(e // self.time, e % self.time) end
    if first + self.block <= all then one()
    else cute.when(cute.lt(e, all), one) end
  end
end

-- dt and dt u of tile k. Time that has ended adds nothing.
function Scan:prepare(g, k, stage)
  self:each(self.channels, function(c, t)
    local x = g.delta.smem[{c, t, stage}]:to(cute.f32)
    if self.softplus then
      x = softplus(x + g.bias[c])
    end
    x = cute.where(cute.lt(k * self.time + t, g.length), x, 0)
    g.dt[{c, t}] = x
    g.du[{c, t}] = x * g.u.smem[{c, t, stage}]:to(cute.f32)
  end)
  if self.dtype == cute.f32 then return end
  self:each(self.states, function(n, t)
    g.wideB[{n, t}] = g.B.smem[{n, t, stage}]:to(cute.f32)
    g.wideC[{n, t}] = g.C.smem[{n, t, stage}]:to(cute.f32)
  end)
end

-- Four of f32 at (row, time).
local function four(t, row, time)
  local r = cute.make_rmem_tensor({4}, cute.f32)
  cute.autovec_copy(cute.make_tensor(t(row, _).iterator + time,
                                     cute.make_layout {4}), r)
  return r
end

-- Four steps of this thread's states from time t on: y of the times that it is
-- left with, {value...}, and which is the first.
function Scan:steps(g, h, t, stage)
  local dt, du = four(g.dt, g.c, t), four(g.du, g.c, t)
  local B, C, y = {}, {}, {}
  for i = 1, self.each_lane do
    local n = (i - 1) * self.lanes + g.lane
    if self.dtype == cute.f32 then
      B[i] = four(g.B.smem(_, _, stage), n, t)
      C[i] = four(g.C.smem(_, _, stage), n, t)
    else
      B[i], C[i] = four(g.wideB, n, t), four(g.wideC, n, t)
    end
  end
  for j = 0, 3 do
    for i = 1, self.each_lane do
      h[i - 1] = cute.fma(exp2(dt[j] * g.A[i - 1]), h[i - 1], du[j] * B[i][j])
      y[j + 1] = y[j + 1] and cute.fma(C[i][j], h[i - 1], y[j + 1])
        or C[i][j] * h[i - 1]
    end
  end
  local sums, n = spread_sum(y, self.lanes, g.lane, WARP // self.lanes)
  return sums, t + g.lane * n, n
end

function Scan:compute(g, h, stage)
  for t in cute.range(0, self.time, 4, {unroll = 2}) do
    local sums, first, n = self:steps(g, h, t, stage)
    for i = 1, n do
      local at, v = first + i - 1, sums[i]
      if g.D then v = v + g.D * g.u.smem[{g.c, at, stage}]:to(cute.f32) end
      if g.z then
        v = v * silu(g.z.smem[{g.c, at, stage}]:to(cute.f32))
      end
      g.y[{g.c, at}] = v:to(g.y.element_type)
    end
  end
end

---------------------------------------------------------------------------
-- The kernel
---------------------------------------------------------------------------

-- A channel's numbers, of a list (channels), 0 behind its end.
local function of_channel(t, at)
  local out = cute.var(0, cute.f32)
  cute.when(cute.lt(at, cute.size(t)), function() out.value = t[at] end)
  return out.value
end

-- This thread's states: of a tensor (channels, states), or 0; back into one.
function Scan:states_of(t, at, lane, f)
  for i = 0, self.each_lane - 1 do
    local n = i * self.lanes + lane
    cute.when(cute.lt(at, t.shape[1]) & cute.lt(n, self.states),
              function() f(i, at, n) end)
  end
end

function Scan:run(u, delta, A, B, C, y, more)
  local of, batch = cute.arch.block_idx()
  local tid, T = (cute.arch.thread_idx()), self.time
  -- Neighbours in the warp are channels: they read the same B and C.
  local apart = WARP // self.lanes
  local function tile(t)
    return self:input(t(batch, _, _), self.channels, of)
  end
  local function states(t) return self:input(t(batch, _, _), self.states, 0) end
  local g = {u = tile(u), delta = tile(delta), z = more.z and tile(more.z),
    B = states(B), C = states(C), length = u.shape[3],
    lane = tid % WARP // apart, c = tid // WARP * apart + tid % apart,
    dt = self:wide(self.channels), du = self:wide(self.channels),
    A = cute.make_rmem_tensor({self.each_lane}, cute.f32)}
  if self.dtype ~= cute.f32 then
    g.wideB, g.wideC = self:wide(self.states), self:wide(self.states)
  end
  local at, h = of * self.channels + g.c, cute.make_rmem_tensor(
    {self.each_lane}, cute.f32)
  g.D = more.D and of_channel(more.D, at)
  g.y = cute.make_smem_tensor(self.dtype, cute.make_layout({self.channels, T},
    {T + 128 // self.dtype.bits, 1}), 16)
  if self.softplus then
    g.bias = cute.make_smem_tensor(cute.f32, cute.make_layout {self.channels})
    cute.when(cute.lt(tid, self.channels), function()
      g.bias[tid] = more.bias
        and of_channel(more.bias, of * self.channels + tid) or 0
    end)
  end
  g.A:fill(0)
  self:states_of(A, at, g.lane, function(i, c, n)
    g.A[i] = A[{c, n}] * LOG2E
  end)
  h:fill(0)
  if more.h0 then
    self:states_of(more.h0(batch, _, _), at, g.lane, function(i, c, n)
      h[i] = more.h0[{batch, c, n}]
    end)
  end

  local function load(k, stage)
    for _, name in ipairs {"u", "delta", "z", "B", "C"} do
      if g[name] then g[name].load(k, stage) end
    end
  end
  local write = self:write(y(batch, _, _), g.y, of)
  local count, stage = (g.length + T - 1) // T, 0
  load(0, 0)
  cute.arch.cp_async_commit_group()
  for k in cute.range(count) do
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    cute.when(cute.lt(k + 1, count), function() load(k + 1, 1 - stage) end)
    cute.arch.cp_async_commit_group()
    self:prepare(g, k, stage)
    cute.arch.sync_threads()
    self:compute(g, h, stage)
    cute.arch.sync_threads()
    write(k)
    stage = 1 - stage
  end
  if more.h1 then
    self:states_of(more.h1(batch, _, _), at, g.lane, function(i, c, n)
      more.h1[{batch, c, n}] = h[i]
    end)
  end
end

--- A kernel of (u, delta, A, B, C, y [, z, D, bias, h0, h1]) and what its
-- launch needs.
---@param o {dtype: any, states: integer?, softplus: boolean?, lanes: integer?,
-- channels: integer?, time: integer?}
-- dtype: of u, delta, z, B, C, y; states: 16; softplus: of delta + bias; lanes:
-- 1, 2 or 4 threads a channel (4); channels: of a block (32); time: steps of a
-- tile (32)
---@return {kernel: any, block: integer,
-- grid: fun(batch: integer, channels: integer): integer[]}
return function(o)
  local s = setmetatable({dtype = o.dtype, states = o.states or 16,
    softplus = o.softplus, lanes = o.lanes or 4, channels = o.channels or 32,
    time = o.time or 32, stages = 2}, Scan)
  local lanes = s.lanes
  check.given("selective_scan", s, "dtype", "states")
  check.integers("selective_scan", s, {"channels", "time"}, 4, 256, "power")
  check.need(s.states % lanes == 0 and lanes & (lanes - 1) == 0 and lanes <= 4,
    "selective_scan", "1, 2 or 4 lanes that divide the %d states are needed, "
    .. "not %d", s.states, lanes)
  check.need(s.channels * lanes >= math.max(s.time, WARP)
    and s.channels * lanes <= 1024, "selective_scan",
    "%d threads for %d channels and %d steps; as many as steps, and 32 to 1024 "
    .. "are needed", s.channels * lanes, s.channels, s.time)
  s.each_lane = s.states // s.lanes
  s.block = s.channels * s.lanes
  return {block = s.block,
    grid = function(batch, channels)
      return {(channels + s.channels - 1) // s.channels, batch}
    end,
    kernel = cute.kernel("selective_scan", {fmad = true},
      function(u, delta, A, B, C, y, z, D, bias, h0, h1)
        s:run(u, delta, A, B, C, y,
              {z = z, D = D, bias = bias, h0 = h0, h1 = h1})
      end)}
end
