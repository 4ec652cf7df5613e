--- The host side of GEMMs that load and store by TMA (kernels/gemm_sm90,
-- kernels/gemm_sm100): tensor maps, arguments, grids and launches.
local rules = require "kernels.operand_rules"
local core = require "cute.core"
local cute = require "cute"
local groups = require "kernels.groups"
local model = require "kernels.gemm_sm90.model"
local scale_factors = require "kernels.gemm_sm100.scale_factors"
local smem = require "kernels.gemm_sm90.smem"
local targets = require "cute.targets"
local tma_rules = require "kernels.gemm_sm90.tma_rules"

local _ = cute._
local cpasync, utils = cute.nvgpu.cpasync, cute.utils

local host = {}

--- Returns a view of B (2N,K[,L]), or of its scale factors, in which groups of
-- 8 rows of both halves alternate. The wgmma accumulators of a thread are 8
-- columns apart. Therefore a thread holds the same columns of both halves.
---@param B any
---@return any
local function in_turn(B)
  local shape, stride = B.shape, B.stride
  local n, d = shape[1] // 2, stride[1]
  shape[1], stride[1] = {8, 2, n // 8}, {d, n * d, 8 * d}
  return cute.make_tensor(B.iterator, cute.make_layout(shape, stride))
end

host.in_turn = in_turn

-- Returns the number of clusters of `size` blocks that run at once on `sms`
-- multiprocessors. If the operands are on a GPU, the driver reports this
-- number; otherwise it comes from a table.
local function at_once(sms, size, place)
  local most = targets.clusters(sms, size)
  local gpu = size > 1 and place and place:match "^gpu:?(%d*)$"
  if not gpu then return math.max(most, 1) end
  local said = require "cute.gpu".clusters(size, tonumber(gpu) or 0)
  return math.max(said and math.min(said, sms // size) or most, 1)
end

--- Makes the object of a GEMM with complete options `o`. The object has the
-- GEMM's kernel and methods. made: {kernel, a, b, d, epi_mma}. a and b are the
-- layouts of stages, and d is the layout of buffers. epi_mma is the MMA, or the
-- copy of tensor memory, that determines the fragments of an epilogue.
---@param o table
---@param made table
---@return table
function host.new(o, made)
  local bm, bn, bk = table.unpack(o.tile)
  local self = {kernel = made.kernel, block = o.block, options = o,
                epi_mma = made.epi_mma,
                cluster = {o.cluster[1] * o.split, o.cluster[2], 1}}

  --- Returns a TMA atom and a tensor of coordinates for each of A, B and D.
  function self.atoms(A, B, D)
    local function load(X, layout, rows, ctas)
      local dtype = X.element_type
      local depth = bk * math.min(dtype.bits, 8) // 8
      if tma_rules.is_view(X) then
        return X.load(layout(_, _, 0), {rows, bk}, ctas,
                      {l2_promotion = o.l2_promotion})
      end
      local kind = ctas > 1 and cpasync.CopyBulkTensorTileG2SMulticastOp()
        or cpasync.CopyBulkTensorTileG2SOp()
      return cpasync.make_tiled_tma_atom(kind, smem.bytes(X, dtype),
        smem.bytes(layout(_, _, 0), dtype), {rows, depth}, ctas,
        {l2_promotion = o.l2_promotion})
    end
    local a, cA = load(A, made.a, bm, o.cluster[2])
    local b, cB = load(o.gated and in_turn(B) or B, made.b, bn, o.cluster[1])
    local d, cD = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileS2GOp(), D, made.d(_, _, 0, 0), o.epi)
    return a, cA, b, cB, d, cD
  end

  -- Returns a copy of `more`, an epilogue's arguments, in which each source is
  -- replaced by a TMA atom and its coordinates. With scales, `more` begins with
  -- the factors of A (M,K) and of B (N,K), which are replaced in the same way.
  local function with_maps(more, A, B)
    local list, out, at = o.sources or {}, {n = 0}, o.blocks and 2 or 0
    local function push(x) out.n, out[out.n + 1] = out.n + 1, x end
    if o.scales then
      for i, X in ipairs {A, B} do
        local atom, coords = scale_factors.atom(
          scale_factors.words(more[i], X.shape[1], X.shape[2], o.vs), o.tile,
          o.tile[i], o.vs)
        push(atom)
        push(coords)
      end
      for i = 3, more.n do push(more[i]) end
      return out
    end
    for i = 1, math.max(more.n, #list > 0 and at + #list or 0) do
      local s = list[i - at]
      if s then
        tma_rules.source(o, i - at, more[i])
        local atom, coords = cpasync.make_tiled_tma_atom(
          cpasync.CopyBulkTensorTileG2SOp(), more[i], smem.parts(o, s.dtype,
          s.major, 1)(_, _, 0, 0), o.epi)
        push(atom)
        push(coords)
      else
        push(more[i])
      end
    end
    return out
  end

  local function count(m, n)
    if o.gated then n = 2 * n end
    return (m + bm - 1) // bm, (n + bn - 1) // bn
  end

  --- Returns all arguments of the kernel for D = A B^T or, if alpha or beta is
  -- given, for D = alpha A B^T + beta D. `...` holds, in this order: with
  -- scales, the factors of A and of B; then the epilogue's arguments. If the
  -- kernel's blocks share data, callers append the result of self.workspace.
  function self.arguments(A, B, D, alpha, beta, ...)
    tma_rules.operands(o, A, B, D)
    local why = tma_rules.reach(o, A, B, D)
    rules.need(not why, o.kernel, "%s%s", why, o.scales and ""
      or " (gemm_sm80 accepts any layout)")
    local m, n = count(D.shape[1], D.shape[2])
    local k = (B.shape[2] + bk - 1) // bk
    if k < o.split then
      core.fail("bad-argument", ("%s: K = %d has %d tile%s of %d, fewer than "
        .. "split = %d"):format(o.kernel, B.shape[2], k, k == 1 and "" or "s",
        bk, o.split))
    end
    local list = table.pack(self.atoms(A, B, D))
    list[7], list[8], list[9], list.n = m, n, k, 9
    if o.shares then list.n = 12 end
    if not (alpha or beta or o.epilogue or o.blocks or o.groups
      or o.scales) then
      return list
    end
    list[10], list[11], list[12] = D, alpha or 1.0, beta or 0.0
    if o.groups == "list" then list[10] = nil end
    if not (alpha or beta) then list[11], list[12] = nil, nil end
    local more = with_maps(table.pack(...), A, B)
    list.n = 12 + more.n
    return table.move(more, 1, more.n, 13, list)
  end

  --- Returns a copy of `list`, a result of self.arguments, with other operands
  -- and sources (or factors) of the same types and layouts. Reuses the old
  -- tensor maps with new addresses.
  function self.with(list, A, B, D, ...)
    local out = table.move(list, 1, list.n, 1, {n = list.n})
    if o.gated then B = in_turn(B) end
    local function rebind(atom, X)
      return core.tma_rebind(atom, smem.bytes(X, X.element_type))
    end
    out[1] = rebind(list[1], tma_rules.is_view(A) and A.tensor or A)
    out[3] = rebind(list[3], B)
    out[5] = core.tma_rebind(list[5], D)
    if list[10] then out[10] = D end
    for i = 1, select("#", ...) do
      local at = 11 + 2 * i + (o.blocks and 2 or 0)
      local X = select(i, ...)
      if o.scales then
        local of = i == 1 and A or B
        X = scale_factors.words(X, cute.size(of, 0), of.shape[2], o.vs)
      end
      out[at] = core.tma_rebind(list[at], X)
    end
    return out
  end

  --- Returns the kernel's last argument for `problems`, a list of {A, B, D}. It
  -- includes a buffer for the blocks of `grid`, on the operands' device
  -- `place`. For the other arguments, pass any of the problems to
  -- self.arguments. like: an earlier result for problems of the same types and
  -- layouts, whose shapes and maps are reused.
  function self.list(problems, grid, place, like)
    local space = {a = {}, b = {}, d = {}, shapes = like and like.shapes}
    local shapes = not like and core.buffer("i32", 3 * #problems)
    for g, x in ipairs(problems) do
      local A, B, D = table.unpack(x)
      if like then
        if o.gated then B = in_turn(B) end
        space.a[g] = core.tma_rebind(like.a[g], A)
        space.b[g] = core.tma_rebind(like.b[g], B)
        space.d[g] = core.tma_rebind(like.d[g], D)
      else
        local a, _, b, _, d = self.atoms(A, B, D)
        space.a[g], space.b[g], space.d[g] = a, b, d
        shapes[3 * g - 3], shapes[3 * g - 2] = A.shape[1], B.shape[1]
        shapes[3 * g - 1] = A.shape[2]
      end
    end
    space.shapes = space.shapes or cute.make_tensor(shapes,
      cute.make_layout({#problems, 3}, {3, 1})):to(place or "host")
    space.maps = cute.empty(cute.make_layout {16, #problems, 2 + o.consumers,
      grid[1] * grid[2] * grid[3]}, cute.i64, {device = place})
    return space
  end

  --- Reports whether TMA accepts these operands (rows at multiples of 16
  -- bytes); if not, also returns the reason.
  ---@return boolean, string?
  function self.takes(A, B, D)
    local why = tma_rules.reach(o, A, B, D)
    return not why, why
  end

  --- Returns the grid for a D of (m,n) on a device with `sms` multiprocessors.
  -- `batches` is the number of batches or groups; `place` is the operands'
  -- device, "host" when absent. For persistent blocks, the grid has at most the
  -- number of blocks that run at once.
  function self.grid(m, n, sms, batches, place)
    rules.integers(o.kernel, {sms = sms}, {"sms"}, 1, 1 << 20)
    local tm, tn = count(m, n)
    if o.groups then
      local cm = o.cluster[1]
      tm, batches = groups.most(o.groups, m, batches, bm * cm) * cm, 1
    end
    if o.turned then tm, tn = tn, tm end
    if o.split > 1 then return {o.split, tm, tn} end
    if o.blocked then
      local run = model.run(o, tm, tn)
      return {run, tn, tm // run}
    elseif not o.persistent then
      local cm, cn = o.cluster[1], o.cluster[2]
      return {(tm + cm - 1) // cm * cm, (tn + cn - 1) // cn * cn,
              batches or 1}
    end
    local params = utils.PersistentTileSchedulerParams({tm, tn, batches or 1},
                                                       self.cluster)
    local most = at_once(sms or 132, o.cluster[1] * o.cluster[2], place)
    if o.stream then return {o.cluster[1], o.cluster[2], most} end
    return params:get_grid_shape(most)
  end

  --- Allocates the data that blocks of a grid share, for one launch at a time.
  -- With split = "stream" it is {sums =, turns =}: partial sums of type o.acc
  -- for parts of tiles, and counters, i32 zeros. With scheduler = "dynamic" it
  -- is {counter =}, an i32 of 0.
  ---@param grid integer[]
  ---@param place? string the operands' device, "host" when absent
  function self.workspace(grid, place)
    local blocks = grid[1] * grid[2] * grid[3]
    local function space(n, dtype)
      return cute.zeros({n}, dtype, {device = place})
    end
    if o.dynamic then return {counter = space(1, cute.i32)} end
    return {sums = space(blocks * bm * bn, o.acc),
            turns = space(blocks, cute.i32)}
  end

  --- Prepares a launch. opts holds launch options, alpha, beta, and sms. With
  -- scales, the list opts.factors holds the factors of A and B. opts.workspace
  -- is the data that blocks share; it is allocated when absent.
  function self.prepare(A, B, D, opts)
    opts = opts or {}
    local args = self.arguments(A, B, D, opts.alpha, opts.beta,
                                table.unpack(opts.factors or {}))
    local all = {grid = self.grid(D.shape[1], D.shape[2], opts.sms,
      o.batches and cute.size(D, 2) or B.shape[3] or 1, D.device),
                 cluster = self.cluster, pdl = o.pdl or nil}
    for k, v in pairs(opts) do all[k] = v end
    all.sms, all.alpha, all.beta, all.workspace = nil, nil, nil, nil
    all.factors = nil
    if o.shares then
      args.n = args.n + 1
      args[args.n] = opts.workspace
        or self.workspace(all.grid, D.device)
    end
    return self.kernel(table.unpack(args, 1, args.n)):compile(all)
  end
  return self
end

return host
-- SPDX-License-Identifier: MIT
