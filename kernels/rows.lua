--- Rows of a matrix over threads: what kernels share whose every row is one
-- piece of work (softmax, norms, sums along rows).
--
-- A row belongs to `threads` neighbours, a power of two; `rows` rows to a
-- block. Of its row a thread has `steps` vectors of `width` elements, vector s
-- of thread t at (s * threads + t) * width: (W,S). Rows that are longer than
-- `steps` vectors of all threads are walked in `chunks` of so many.
local cute = require "cute"
local _ = cute._

local rows = {}
local Plan = {}
Plan.__index = Plan

local WARP = 32

local function up(a, b) return (a + b - 1) // b end

-- Elements of the widest access that cuts rows of n without a rest.
local function widest(bits, n)
  local width = 128 // bits
  while n % width ~= 0 do width = width // 2 end
  return width
end

--- How rows of n elements are spread. `values`: of a row that a thread may
-- hold (32); `threads`, `block`: in place of what follows from it; `most`: the
-- largest number of threads for a row (1024); persistent: blocks walk the rows.
---@param o {n: integer, dtype: any, values: integer?, threads: integer?,
-- block: integer?, most: integer?, persistent: boolean?}
---@return table
function rows.plan(o)
  local p = setmetatable({n = o.n, persistent = o.persistent}, Plan)
  p.width = widest(o.dtype.bits, o.n)
  local vectors, values = up(o.n, p.width), o.values or 32
  local steps = math.max(1, values // p.width)
  p.threads = o.threads or 1
  while not o.threads and p.threads < (o.most or 1024)
      and p.threads * steps < vectors do
    p.threads = p.threads * 2
  end
  p.steps = math.min(steps, up(vectors, p.threads))
  p.chunks = up(vectors, p.steps * p.threads)
  p.block = math.max(p.threads, o.block or 128)
  p.rows = p.block // p.threads
  return p
end

--- Blocks for m rows: all, or with persistent ones `resident`.
---@param m integer
---@param resident? integer
function Plan:grid(m, resident)
  local tiles = up(m, self.rows)
  return self.persistent and math.min(tiles, resident or tiles) or tiles
end

--- Calls f(row, inside, turn) for each row of this thread, of m: inside says
-- whether it is one, nil that it is. Blocks that walk take turns.
function Plan:each(m, f)
  local block, mine = (cute.arch.block_idx()), self:row()
  if not self.persistent then
    local row = block * self.rows + mine
    return f(row, self.rows > 1 and cute.lt(row, m) or nil)
  end
  local turn = 0
  for tile in cute.range(block, (m + self.rows - 1) // self.rows,
                         (cute.arch.grid_dim())) do
    local row = tile * self.rows + mine
    f(row, self.rows > 1 and cute.lt(row, m) or nil, turn)
    turn = 1 - turn
  end
end

--- Which of the block's rows is this thread's; its place in the row.
function Plan:row()
  if self.rows == 1 then return 0 end
  return (cute.arch.thread_idx()) // self.threads
end

function Plan:lane()
  if self.rows == 1 then return (cute.arch.thread_idx()) end
  return (cute.arch.thread_idx()) % self.threads
end

--- This thread's vectors of a row, (W,S), of chunk `chunk`. `t` is (M,N), or
-- (N) where there is no row.
function Plan:part(t, row, chunk)
  local of = row and t(row, _) or t
  local at = (self:lane() + (chunk or 0) * (self.steps * self.threads))
    * self.width
  return cute.make_tensor(of.iterator + at, cute.make_layout(
    {self.width, self.steps}, {1, self.threads * self.width}))
end

-- Which vectors lie inside of the row: (1,S), or nil where all do.
function Plan:inside(inside, chunk)
  local reach = self.threads * self.width * self.steps
  if not inside and reach * self.chunks == self.n then return nil end
  local pred = cute.make_rmem_tensor({1, self.steps}, cute.boolean)
  for s = 0, self.steps - 1 do
    local ok = inside or true
    local last = (self.chunks - 1) * reach + (s + 1) * self.threads * self.width
    if last > self.n then
      local at = (self:lane() + s * self.threads) * self.width
      ok = cute.lt(at + (chunk or 0) * reach, self.n)
      if inside then ok = ok & inside end
    end
    pred[{0, s}] = ok
  end
  return pred
end

local function atom(t, width)
  return cute.make_copy_atom("UniversalCopy", t.element_type,
                             width * t.element_type.bits)
end

--- This thread's elements of a row as a vector (W,S) of its type; `other` where
-- there are none.
function Plan:load(t, row, inside, other, chunk)
  local part, pred = self:part(t, row, chunk), self:inside(inside, chunk)
  local held = cute.make_rmem_tensor({self.width, self.steps}, t.element_type)
  if pred then
    held:fill(other)
    cute.copy(atom(t, self.width), part, held, {pred = pred})
  else
    cute.copy(atom(t, self.width), part, held)
  end
  return held:load()
end

--- Stores a vector (W,S), rounded to t's type, to a row.
function Plan:store(t, row, inside, vector, chunk)
  local part, pred = self:part(t, row, chunk), self:inside(inside, chunk)
  local held = cute.make_rmem_tensor({self.width, self.steps}, t.element_type)
  held:store(vector:to(t.element_type))
  cute.copy(atom(t, self.width), held, part, pred and {pred = pred})
end

---------------------------------------------------------------------------
-- Reductions
---------------------------------------------------------------------------

--- A vector (W,S) folded by "add", "max", ...: lanes of a vector side by side,
-- so that no sum waits for the one before it.
function rows.fold(vector, op, init)
  return vector:reduce(op, init, {_, 1}):reduce(op, init)
end

--- f over the lanes of a warp that share a row.
function Plan:warp(value, f)
  return cute.arch.warp_reduction(value, f, math.min(self.threads, WARP))
end

--- Values of each warp of a row, handed to all its threads: of warp
-- lane % warps. Folding them over `warps` lanes gives what all have.
---@param values any[] of a warp: all its lanes have them
---@param turn? any 0 or 1, in turn: the values before are still being read
---@return any[] values
---@return integer warps 1: the values given
function Plan:exchange(values, turn)
  local warps = self.threads // WARP
  if warps <= 1 then return values, 1 end
  local all = self.rows * warps
  local s = cute.make_smem_tensor(values[1].dtype, cute.make_layout(
    {#values, all, turn and 2 or 1}, {all, 1, #values * all}))
  local at = turn or 0
  local tid = (cute.arch.thread_idx())
  cute.when(cute.eq(tid % WARP, 0), function()
    for i, v in ipairs(values) do s[{i - 1, tid // WARP, at}] = v end
  end)
  cute.arch.sync_threads()
  local out, from = {}, self:row() * warps + tid % warps
  for i in ipairs(values) do out[i] = s[{i - 1, from, at}] end
  return out, warps
end

--- f over all threads of a row; all get the result.
function Plan:reduce(value, f, turn)
  local out, warps = self:exchange({self:warp(value, f)}, turn)
  return cute.arch.warp_reduction(out[1], f, warps)
end

function rows.add(a, b) return a + b end

--- Two tensors of rows are row-major and n wide.
function rows.check(plan, ...)
  for i, t in ipairs {...} do
    local n, stride = t.shape[#t.shape], t.stride[#t.stride]
    if n ~= plan.n or stride ~= 1 and n ~= 1 then
      error(("operand %d is %s, and rows of %d elements side by side are "
        .. "needed [bad-argument]"):format(i, tostring(t.layout), plan.n), 0)
    end
  end
end

return rows
