--- What is kept of a configuration: a kernel, its launches made ready, memory
-- that its blocks share.
--
--     local plan = plans.new(p, c, call)   -- of a problem and its choice
--     local D, ... = plan:run(call)
--
-- A call is {A, B, C, o, alpha, beta, f, values, out}: operands, options,
-- factors that count, the epilogue with what it captured, tensors for results.
local core = require "cute.core"
local cute = require "cute"
local epilogue = require "cute.ops.epilogue"
local operand = require "cute.ops.operand"
local partial = require "cute.ops.partial"
local report = require "cute.lang.report"
local scales = require "cute.ops.scales"

local plans = {}

local fail = operand.fail

---------------------------------------------------------------------------
-- Memory
---------------------------------------------------------------------------

-- What blocks share, of a device ("host", "gpu") or stream: launches of one
-- follow each other. The counts are 0 between launches.
local scratch = setmetatable({}, {__mode = "k"})

local function view(t, n) return cute.make_tensor(t.iterator,
                                                  cute.make_layout {n}) end

-- Memory for so many sums and counts, views of what there is or of more.
local function workspace(place, stream, sums, counts)
  local key = stream or place
  local s = scratch[key]
  if not s or cute.size(s.work) < sums or cute.size(s.turns) < counts then
    s = {work = cute.empty({2 * sums}, cute.f32, {device = place}),
         turns = cute.zeros({2 * counts}, cute.i32, {device = place})}
    scratch[key] = s
  end
  return view(s.work, sums), view(s.turns, counts)
end

---------------------------------------------------------------------------
-- Plans
---------------------------------------------------------------------------

-- How a family is made and called: its kernel, block, grid, cluster, the MMA
-- and tile of what leaves together, how much memory its blocks share (sums,
-- counts), and the first arguments of a call; space is the last one.
local FAMILIES = {}

function FAMILIES.gemm_sm80(p, c)
  local made = require("kernels." .. c.family)(c.options)
  return {kernel = made.kernel, block = made.block, mma = made.mma,
          tile = made.tile, grid = made.grid(p.m, p.columns, p.batches),
          arguments = function(A, B, D, _, _, call)
            if p.group then
              local SA, SB = scales.blocks(p, call.o, p.batch)
              return {A, B, D, SA, SB, n = 5}
            end
            return {A, B, D, n = 3}
          end}
end
FAMILIES.gemm_simt = FAMILIES.gemm_sm80

function FAMILIES.gemm_splitk(p, c)
  local made = require "kernels.gemm_splitk"(c.options, c.base)
  local grid, tile = made.grid(p.m, p.n, p.k), made.tile
  local blocks = grid[1] * grid[2]
  return {kernel = made.kernel, block = made.block, grid = grid,
          mma = made.mma, tile = tile,
          sums = blocks * c.options.splits * tile[1] * tile[2], counts = blocks,
          arguments = function(A, B, D, work, turns)
            return {A, B, D, work, turns, n = 5}
          end}
end

-- A tensor of that type and layout, without its memory.
local function like(t)
  return cute.make_tensor(cute.empty({1}, t.element_type).iterator, t.layout)
end

function FAMILIES.gemm_sm90(p, c)
  local made = require "kernels.gemm_sm90"(c.options)
  local m, n, known = p.m, p.columns, nil
  if c.swap then m, n = n, m end
  local grid = made.grid(m, n, p.sms, p.batches)
  return {kernel = made.kernel, block = made.block, cluster = made.cluster,
          grid = grid, mma = made.epi_mma, tile = made.options.epi,
          space = made.options.shares
            and made.workspace(grid, p.place ~= "host" and p.device or nil),
          arguments = function(A, B, D, _, _, call)
            if c.swap then A, B, D = B, A, operand.turned(D) end
            known = known or made.arguments(like(A), like(B), like(D))
            local list = made.with(known, A, B, D)
            if p.group then
              local SA, SB = scales.blocks(p, call.o, p.batch)
              list[13], list[14], list.n = SA or false, SB or false, 14
            end
            return list
          end}
end

function FAMILIES.gemm_int4(p, c)
  local made = require "kernels.gemm_int4"(c.options)
  local grid, work, turns = made.grid(p.m), made.scratch(p.m)
  return {kernel = made.kernel, block = made.block, grid = grid,
          sums = cute.size(work), counts = cute.size(turns),
          arguments = function(A, _, D, w, t, call)
            local o, list = call.o, {A, call.B.packed}
            list[3] = scales.turned(p, o.scale_b)
            if o.zeros then list[4] = scales.turned(p, o.zeros) end
            local n = #list
            list[n + 1], list[n + 2], list[n + 3], list.n = D, w, t, n + 3
            return list
          end}
end

local Plan = {}
Plan.__index = Plan

-- Result i of the epilogue: its shape and type; of a reduction also the extents
-- of its parts, and what folds them.
local function result(plan, p, c, r)
  local shape, b = {}, #p.batch
  for i = 1, b do shape[i] = p.shape[i] end
  if r.kind == "tile" then return {shape = p.shape, dtype = r.dtype} end
  local how = {mma = plan.mma, tile = plan.tile, m = p.m, n = p.columns}
  local kind = r.kind
  if c.swap then
    how.m, how.n = p.columns, p.m
    kind = epilogue.TURNED[kind]
  end
  local rows, parts = partial.extents(how, kind)
  local count = r.kind == "row" and p.columns or r.kind == "col" and p.m
    or p.m * p.columns * p.batches
  local all = r.kind == "all"
  if all then shape = {1} else shape[b + 1] = rows end
  return {shape = shape, dtype = cute.f32, rows = rows, parts = parts,
          all = all, op = r.op, count = count,
          floats = rows * parts * p.batches}
end

--- A plan for problem p by choice c.
function plans.new(p, c, call)
  local ending = epilogue.new(p, c, call)
  c.options.epilogue = ending.finish
  local plan = setmetatable(FAMILIES[c.family](p, c), Plan)
  plan.device, plan.place = p.device, p.place
  plan.batch, plan.batches = p.batch, p.batches
  plan.stream, plan.ending, plan.ready = call.o.stream, ending, {}
  plan.results = {{shape = p.shape, dtype = p.d}}
  for i = 2, #(p.results or {}) do
    plan.results[i] = result(plan, p, c, p.results[i])
  end
  local sums = plan.sums or 0
  for _, r in ipairs(plan.results) do
    if r.floats then r.at, sums = sums, sums + r.floats end
  end
  if sums > 0 then
    plan.work, plan.turns = workspace(p.place, plan.stream, sums,
                                      plan.counts or 1)
  end
  for _, r in ipairs(plan.results) do
    if r.floats then
      r.P = cute.make_tensor(plan.work.iterator + r.at, cute.make_layout
        {r.rows, r.parts, p.batches})
      r.folds = partial.folds(r, p.batches)
    end
  end
  return plan
end

-- Tensors for the results: those given, and new ones.
function Plan:outputs(call)
  local out = {}
  for i, r in ipairs(self.results) do
    local given = call.out[i]
    if given and i > 1 then
      local same = cute.rank(given) == #r.shape
      for mode, extent in ipairs(r.shape) do
        same = same and cute.size(given, mode - 1) == extent
      end
      if not same then
        fail("out %d is %s; result %d has extents (%s)", i, given.layout, i,
             table.concat(r.shape, ","))
      end
    end
    out[i] = given or cute.empty(r.shape, r.dtype, {device = self.place})
  end
  return out
end

--- All arguments of the kernel, of a call with tensors for the results.
function Plan:arguments_of(call, out)
  local batch, C = self.batch, call.C
  local B = call.B
  local list = self.arguments(operand.matrix(call.A, batch),
    type(B) ~= "table" and operand.matrix(B, batch) or nil,
    operand.matrix(out[1], batch), self.work, self.turns, call)
  self.ending.more(list, C and operand.matrix(C, batch), call)
  for i = 2, #out do
    local r = self.results[i]
    list[list.n + 1] = r.P or operand.matrix(out[i], batch)
    list.n = list.n + 1
  end
  if self.space then list[list.n + 1], list.n = self.space, list.n + 1 end
  return list
end

-- Memory of x that result `what` has, too; of C in another order or in part.
local function check_overlap(name, x, D, what)
  local _, _, _, together = core.kind({x, D, n = 2}, 0)
  if not together then return end
  local v = core.launch_values {x, D, n = 2}
  if name == "C" and rawequal(v[1][1], v[2][1]) and v[1][2] == v[2][2]
    and tostring(x.layout) == tostring(D.layout) then
    return
  end
  fail("%s shares memory with %s", what, name)
end

-- Operands and results that must not lie in each other.
local function check_memory(call, out)
  local B = call.B
  for i, D in ipairs(out) do
    local what = i == 1 and "out" or "out " .. i
    check_overlap("A", call.A, D, what)
    check_overlap("B", type(B) == "table" and B.packed or B, D, what)
    if call.C then check_overlap("C", call.C, D, what) end
    for j = 1, i - 1 do check_overlap("out " .. j, out[j], D, what) end
  end
end

local LAUNCHES = 4  -- that a plan keeps: operands that overlap are another one

-- Launches with these arguments, by what is ready or by a new one.
function Plan:launch(call, out)
  local list, seed = self:arguments_of(call, out), call.o.seed
  for _, ready in ipairs(self.ready) do
    -- what an epilogue reads through tables and functions may have changed
    if (not call.f or core.unchanged(ready.program.read))
      and ready:try(seed, table.unpack(list, 1, list.n)) then return end
  end
  check_memory(call, out)
  local ready, why = self.kernel(table.unpack(list, 1, list.n)):compile {
    grid = self.grid, block = self.block, cluster = self.cluster,
    device = self.device, stream = self.stream}
  if not ready then report.raise(why) end
  self.ready[LAUNCHES] = nil
  table.insert(self.ready, 1, ready)
  ready:launch {seed = seed}
  ready:forget()
end

--- Launches all; the results.
function Plan:run(call)
  local out = self:outputs(call)
  local ok, why = pcall(self.launch, self, call, out)
  if not ok then  -- counts may not be 0 again
    scratch[self.stream or self.place] = nil
    error(why, 0)
  end
  for i, r in ipairs(self.results) do
    for _, fold in ipairs(r.folds or {}) do
      fold.kernel(fold.P, fold.Y or operand.flat(out[i],
        r.all and 1 or self.batches)):launch {
        grid = fold.grid, block = fold.block, device = self.device,
        stream = self.stream, seed = call.o.seed}
    end
  end
  return table.unpack(out)
end

--- The kernel, traced for a call.
function Plan:trace(call)
  local list = self:arguments_of(call, self:outputs(call))
  return self.kernel(table.unpack(list, 1, list.n)):trace {
    block = self.block, cluster = self.cluster, arch = self.device.arch}
end

return plans
