--- D = alpha A B^T + beta C by the kernel that serves it best.
--
-- What a call needs is decided once for each configuration: types, layouts and
-- alignment of the operands, options, device. The plan keeps its kernel and a
-- launch made ready; a later call of the configuration finds it by one key and
-- launches.
local core = require "cute.core"
local cute = require "cute"
local choose = require "cute.ops.choose"
local epilogue = require "cute.ops.epilogue"
local kernel = require "cute.lang.kernel"
local report = require "cute.lang.report"

local gemm = {}

local function fail(text, ...)
  core.fail("bad-argument", "ops.gemm: " .. text:format(...))
end

---------------------------------------------------------------------------
-- Operands
---------------------------------------------------------------------------

local OPTIONS = {
  alpha = "number", beta = "number", out = "tensor", accumulate = "boolean",
  dtype = "dtype string", tf32 = "boolean", deterministic = "boolean",
  device = "string table device", arch = "string", stream = "stream",
  epilogue = "function", seed = "integer"}

local function check_options(o)
  for name, v in pairs(o) do
    local want = OPTIONS[name]
    if not want then kernel.unknown("option of ops.gemm", name, OPTIONS) end
    local t = type(v) == "number" and "number" or core.typename(v)
    local fits = false
    for w in want:gmatch "%a+" do
      fits = fits or w == t or w == "integer" and math.type(v) == "integer"
    end
    if not fits then
      fail("%s = %s: a %s is needed", name, core.show(v),
           (want:gsub(" ", " or ")))
    end
  end
end

local function check_tensor(name, t)
  if core.typename(t) ~= "tensor" or t.memspace == "coord" then
    fail("%s is %s; a tensor is needed", name, core.show(t))
  end
  local rank = cute.rank(t)
  if rank < 2 then
    fail("%s is %s; modes (..., rows, columns) are needed", name, t.layout)
  end
end

-- Modes in front of a matrix's own two.
local function batch_modes(t)
  return {table.unpack(t.shape, 1, cute.rank(t) - 2)}
end

-- The batch that all operands are of: each mode is that of one, or 1.
local function common_batch(list)
  local out, owner = {}, {}
  for _, x in ipairs(list) do
    local modes = batch_modes(x.t)
    for i = 1, #modes do  -- from the last on
      local extent, have = cute.size(modes[#modes + 1 - i]), out[i] or 1
      if have ~= 1 and extent ~= 1 and extent ~= have then
        fail("%s is %s and %s is %s: their batches do not agree", owner[i].name,
             owner[i].t.layout, x.name, x.t.layout)
      end
      if out[i] == nil or have == 1 then out[i], owner[i] = extent, x end
    end
  end
  return out
end

-- A layout as the kernels take it: (rows, columns), and with batches
-- (rows, columns, L), the last batch mode fastest. batch: of common_batch;
-- strides of what there is one of are 0.
local function matrix(l, batch)
  local rank = cute.rank(l)
  if rank == 2 and #batch == 0 then return l end
  local shape, stride = l.shape, l.stride
  if cute.product(batch) == 1 then
    return cute.make_layout({shape[rank - 1], shape[rank]},
                            {stride[rank - 1], stride[rank]})
  end
  local extents, strides = {}, {}
  for i, extent in ipairs(batch) do
    local mode = rank - 1 - i
    extents[i] = extent
    strides[i] = mode >= 1 and cute.size(shape[mode]) ~= 1 and stride[mode] or 0
  end
  local L = cute.coalesce(cute.make_layout(extents, strides))
  return cute.make_layout({shape[rank - 1], shape[rank], L.shape},
                          {stride[rank - 1], stride[rank], L.stride})
end

-- The tensor so; of type tf32 it is f32 to memory.
local function as_matrix(t, batch)
  if t.element_type == cute.tf32 then t = cute.recast_tensor(t, cute.f32) end
  if cute.rank(t) == 2 and #batch == 0 then return t end
  return cute.make_tensor(t.iterator, matrix(t.layout, batch))
end

-- The types of sums, and of what leaves where nobody says.
local function sums_of(a, b)
  if a.name == "f64" or b.name == "f64" then return cute.f64, cute.f64 end
  if a.is_integer and b.is_integer then return cute.i32, cute.i32 end
  if a.bits == 8 then return cute.f32, cute.bf16 end
  return cute.f32, a.bits >= b.bits and a or b
end

local function same_extent(x, i, y, j)
  local a, b = cute.size(x.l, i), cute.size(y.l, j)
  if a ~= b then
    fail("%s is %s and %s is %s: %s of %d and of %d do not agree", x.name,
      x.t.layout, y.name, y.t.layout, x.modes[i + 1], a, b)
  end
end

---------------------------------------------------------------------------
-- Problems
---------------------------------------------------------------------------

local MODES = {A = {"M", "K"}, B = {"N", "K"}, C = {"M", "N"},
               out = {"M", "N"}}

-- A type as memory has it.
local function plain(dtype) return dtype == cute.tf32 and cute.f32 or dtype end

-- What a family has to know of an operand.
local function facts(l, dtype, alignment)
  return {layout = l, shape = l.shape, stride = l.stride, element_type = dtype,
          alignment = alignment}
end

local function device_of(A, o)
  local device, why
  if o.device then device, why = kernel.device(o.device, o.arch)
  elseif core.typename(core.launch_values({A, n = 1})[1][1]) == "devbuf" then
    device, why = kernel.device "gpu"
  else
    device, why = kernel.device("auto", o.arch)
  end
  if not device then report.raise(why) end
  return device
end

-- The operands that there are, with their matrices' layouts; by name, too.
local function operands(A, B, C, out)
  local list = {{"A", A}, {"B", B}, {"C", C}, {"out", out}}
  local all = {}
  for i = 1, 4 do
    local name, t = list[i][1], list[i][2]
    if t ~= nil then
      check_tensor(name, t)
      local x = {name = name, t = t, modes = MODES[name]}
      all[#all + 1], all[name] = x, x
    end
  end
  local batch = common_batch(all)
  for _, x in ipairs(all) do x.l = matrix(x.t.layout, batch) end
  same_extent(all.A, 1, all.B, 1)
  for _, name in ipairs {"C", "out"} do
    if all[name] then
      same_extent(all.A, 0, all[name], 0)
      same_extent(all.B, 0, all[name], 1)
    end
  end
  for i, n in ipairs(out and batch or {}) do
    local mode = cute.rank(out) - 1 - i
    if mode < 1 or cute.size(out.shape[mode]) ~= n then
      fail("out is %s; it lacks the batch of the others", out.layout)
    end
  end
  return all, batch
end

-- What a call asks for, checked: see cute.ops.choose. It holds no operand.
local function problem(A, B, C, o)
  check_options(o)
  local all, batch = operands(A, B, C, o.out)
  local p = {batch = batch, batches = 1, shape = {}}
  for i, n in ipairs(batch) do
    p.batches = p.batches * n
    p.shape[#batch + 1 - i] = n
  end
  p.m, p.k = cute.size(all.A.l, 0), cute.size(all.A.l, 1)
  p.n = cute.size(all.B.l, 0)
  p.shape[#batch + 1], p.shape[#batch + 2] = p.m, p.n
  p.a, p.b = plain(A.element_type), plain(B.element_type)
  p.tf32 = o.tf32 or A.element_type == cute.tf32 or nil
  local like
  p.sums, like = sums_of(p.a, p.b)
  p.d = plain(o.out and o.out.element_type or o.dtype
    and core.find_dtype(tostring(o.dtype)) or C and C.element_type or like)
  p.device = device_of(A, o)
  p.arch, p.sm = p.device.arch, p.device.sm
  p.sms = p.device.info and p.device.info.sms or 132
  p.A, p.B = facts(all.A.l, p.a, A.alignment), facts(all.B.l, p.b, B.alignment)
  p.D = facts(all.out and all.out.l or matrix(cute.make_layout(p.shape,
    cute.LayoutRight), batch), p.d, o.out and o.out.alignment or 256)
  p.c = C ~= nil
  return p
end

---------------------------------------------------------------------------
-- Memory
---------------------------------------------------------------------------

-- A tensor of its own, its last mode fastest.
local function new_tensor(device, shape, dtype, zero)
  if device.kind == "sim" then
    return (zero and cute.zeros or cute.empty)(shape, dtype)
  end
  local buffer, why = device.dev:buffer(dtype, cute.size(shape))
  if not buffer then report.raise(why) end
  if zero then buffer:memset(0) end
  return cute.make_tensor(buffer, cute.make_layout(shape, cute.LayoutRight))
end

-- What blocks share, of a device or stream: launches of one follow each other.
-- The counts are 0 between launches.
local scratch = setmetatable({}, {__mode = "k"})

local function view(t, n) return cute.make_tensor(t.iterator,
                                                  cute.make_layout {n}) end

-- Memory for so many sums and counts, views of what there is or of more.
local function workspace(device, stream, sums, counts)
  local s = scratch[stream or device]
  if not s or cute.size(s.work) < sums or cute.size(s.turns) < counts then
    s = {work = new_tensor(device, {2 * sums}, cute.f32),
         turns = new_tensor(device, {2 * counts}, cute.i32, true)}
    scratch[stream or device] = s
  end
  return view(s.work, sums), view(s.turns, counts)
end

---------------------------------------------------------------------------
-- Plans
---------------------------------------------------------------------------

-- How a family is made and called: its kernel, block, grid, cluster, and the
-- first arguments of a call.
local FAMILIES = {}

function FAMILIES.gemm_sm80(p, c)
  local made = require("kernels." .. c.family)(c.options)
  return {kernel = made.kernel, block = made.block,
          grid = made.grid(p.m, p.n, p.batches),
          arguments = function(A, B, D) return {A, B, D, n = 3} end}
end
FAMILIES.gemm_simt = FAMILIES.gemm_sm80

function FAMILIES.gemm_splitk(p, c, stream)
  local made = require "kernels.gemm_splitk"(c.options, c.base)
  local grid, tile = made.grid(p.m, p.n, p.k), made.tile
  local blocks = grid[1] * grid[2]
  local work, turns = workspace(p.device, stream,
    blocks * c.options.splits * tile[1] * tile[2], blocks)
  return {kernel = made.kernel, block = made.block, grid = grid,
          arguments = function(A, B, D) return {A, B, D, work, turns, n = 5}
          end}
end

-- A matrix with its modes exchanged.
local function turned(t)
  return cute.make_tensor(t.iterator, cute.select(t.layout, {1, 0}))
end

function FAMILIES.gemm_sm90(p, c)
  local made = require "kernels.gemm_sm90"(c.options)
  local m, n = p.m, p.n
  if c.swap then m, n = n, m end
  return {kernel = made.kernel, block = made.block, cluster = made.cluster,
          grid = made.grid(m, n, p.sms),
          arguments = function(A, B, D)
            if c.swap then A, B, D = B, A, turned(D) end
            return made.arguments(A, B, D)
          end}
end

local function refusal(p, refused)
  local out = {("ops.gemm: no kernel multiplies %s by %s on %s"):format(p.a,
    p.b, p.arch)}
  for _, r in ipairs(refused) do
    out[#out + 1] = ("  %s: %s"):format(r[1], r[2])
  end
  core.fail("bad-argument", table.concat(out, "\n"))
end

local function choice_of(p)
  local c, refused = choose.choose(p)
  if not c then refusal(p, refused) end
  return c
end

local Plan = {}
Plan.__index = Plan

local function new_plan(A, B, C, o, alpha, beta)
  local p = problem(A, B, C, o)
  local c = choice_of(p)
  local ending = epilogue.new(p, c, alpha, beta)
  c.options.epilogue = ending.finish
  local plan = FAMILIES[c.family](p, c, o.stream)
  plan.device, plan.shape, plan.dtype, plan.batch = p.device, p.shape, p.d,
    p.batch
  plan.ending, plan.ready = ending, {}
  return setmetatable(plan, Plan)
end

-- Operands as the kernels take them.
function Plan:matrices(A, B, C, D, o)
  local batch = self.batch
  return as_matrix(A, batch), as_matrix(B, batch), C and as_matrix(C, batch),
         as_matrix(D, batch), o
end

-- The list of all arguments of the kernel.
function Plan:all(A, B, C, D, o)
  local list = self.arguments(A, B, D)
  self.ending.more(list, C, o)
  return list
end

-- Memory of x that D has, too, in another order or in part.
local function check_overlap(name, x, D)
  local _, _, _, together = core.kind({x, D, n = 2}, 0)
  if not together then return end
  local v = core.launch_values {x, D, n = 2}
  if name == "C" and rawequal(v[1][1], v[2][1]) and v[1][2] == v[2][2]
    and tostring(x.layout) == tostring(D.layout) then
    return
  end
  fail("out shares memory with %s", name)
end

local LAUNCHES = 4  -- that a plan keeps: operands that overlap are another one

function Plan:run(A, B, C, D, o)
  local list = self:all(A, B, C, D, o)
  for _, ready in ipairs(self.ready) do
    if ready:try(o.seed, table.unpack(list, 1, list.n)) then return end
  end
  for name, x in pairs {A = A, B = B, C = C} do check_overlap(name, x, D) end
  local ready, why = self.kernel(table.unpack(list, 1, list.n)):compile {
    grid = self.grid, block = self.block, cluster = self.cluster,
    device = self.device, stream = o.stream}
  if not ready then report.raise(why) end
  self.ready[LAUNCHES] = nil
  table.insert(self.ready, 1, ready)
  ready:launch {seed = o.seed}
end

local plans, count, MOST = {}, 0, 1024

---------------------------------------------------------------------------
-- Calls
---------------------------------------------------------------------------

local NONE = {}

-- alpha and beta as they count: nil where they change nothing.
local function normal(C, o)
  local alpha, beta = o.alpha, o.beta
  if alpha == 1 then alpha = nil end
  if o.accumulate then
    if not o.out then fail "accumulate wants out, to which sums are added" end
    if C then fail "accumulate adds to out; C is another matrix" end
    C = o.out
  end
  if beta ~= nil and C == nil then fail "beta without C" end
  if beta == 0 then C, beta = nil, nil end
  if beta == 1 then beta = nil end
  return C, alpha, beta
end

local function given(C, o)
  if type(C) == "table" and o == nil then return nil, C end
  return C, o or NONE
end

--- D = alpha A B^T + beta C; see docs/ops.md.
---@param A any (...,M,K)
---@param B any (...,N,K)
---@param C? any (...,M,N)
---@param o? table
---@return any D (...,M,N)
function gemm.gemm(A, B, C, o)
  C, o = given(C, o)
  for name in next, o do
    if not OPTIONS[name] then check_options(o) end
  end
  local alpha, beta
  C, alpha, beta = normal(C, o)
  local key = core.kind_text(A, B, C, o.out, alpha, beta, o.dtype, o.tf32,
    o.arch, tostring(o.device), tostring(o.stream))
  local plan = plans[key]
  if not plan then
    plan = new_plan(A, B, C, o, alpha, beta)
    if count == MOST then plans, count = {}, 0 end
    plans[key], count = plan, count + 1
  end
  local D = o.out or new_tensor(plan.device, plan.shape, plan.dtype)
  plan:run(plan:matrices(A, B, C, D, o))
  return D
end

local Explained = {}
Explained.__index = Explained
function Explained.__tostring(e) return e.text end

--- The kernel that would run, traced: with .source, .ir, .resources.
function Explained:trace()
  local A, B, C, o, alpha, beta = table.unpack(self.call, 1, 6)
  local plan = new_plan(A, B, C, o, alpha, beta)
  local list = plan:all(plan:matrices(A, B, C,
    o.out or new_tensor(plan.device, plan.shape, plan.dtype), o))
  return plan.kernel(table.unpack(list, 1, list.n)):trace {
    block = plan.block, arch = plan.device.arch}
end

--- What gemm would do with the same arguments, and why: {kernel, tile, stages,
-- cluster, split, why, others, refused, text}; tostring gives the text,
-- trace() the kernel.
function gemm.explain(A, B, C, o)
  C, o = given(C, o)
  local alpha, beta
  C, alpha, beta = normal(C, o)
  local p = problem(A, B, C, o)
  local c = choice_of(p)
  return setmetatable({kernel = c.family, tile = {table.unpack(c.tile)},
    stages = c.stages, cluster = c.cluster or {1, 1}, split = c.split,
    why = c.why, refused = c.refused, others = c.others,
    text = choose.text(p, c), call = {A, B, C, o, alpha, beta}}, Explained)
end

return gemm
