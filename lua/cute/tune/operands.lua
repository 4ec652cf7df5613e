--- Operands of a problem to measure: normal numbers on the card, several sets
-- of them where one would stay in L2, and a look at what came out.
local core = require "cute.core"
local cute = require "cute"

local PERIOD = (1 << 20) - 3  -- a prime: data repeats, but at no tile's stride
local ALIGN = 256             -- elements between two operands' beginnings
local SMALL = 16 << 20        -- bytes: smaller operands stay in L2 when hot
local PLAY = 128 << 20        -- bytes of larger ones that take turns, at least
local SAMPLES = 16

local Operands = {}
Operands.__index = Operands

local operands = {}

--- A problem's words: "bf16 bf16 bf16 tn row 4096 4096 4096".
---@return table types of A, B, D, layouts "tn", D's order, m, n, k
function operands.parse(problem)
  local w = {}
  for word in problem:gmatch "%S+" do w[#w + 1] = word end
  local function of(name) return cute[name == "tf32" and "f32" or name] end
  return {a = of(w[1]), b = of(w[2]), d = of(w[3]), tf32 = w[1] == "tf32",
          layouts = w[4], order = w[5], m = math.tointeger(tonumber(w[6])),
          n = math.tointeger(tonumber(w[7])),
          k = math.tointeger(tonumber(w[8]))}
end

local function layout(rows, columns, dense_rows)
  return cute.make_layout({rows, columns},
                          dense_rows and {columns, 1} or {1, rows})
end

-- Layouts of A, B, D.
local function layouts(o)
  return layout(o.m, o.k, o.layouts:sub(1, 1) == "t"),
    layout(o.n, o.k, o.layouts:sub(2) == "n"),
    layout(o.m, o.n, o.order == "row")
end

--- Operands that have no memory to speak of: what is compiled asks for none.
function operands.without_memory(problem)
  local o = operands.parse(problem)
  local lA, lB, lD = layouts(o)
  local function stand_in(l, t)
    return cute.make_tensor(cute.empty({1}, t).iterator, l)
  end
  return {A = stand_in(lA, o.a), B = stand_in(lB, o.b), D = stand_in(lD, o.d),
          tf32 = o.tf32 or nil}
end

-- Of a type: its numbers on the card, how many, and a period of them.
local pools = {}

local function pool_of(dtype, elements)
  local name = tostring(dtype)
  local pool = pools[name]
  if pool and pool.count >= elements then return pool end
  pools[name] = nil
  local first = dtype.is_integer
    and cute.randint(-4, 4, {PERIOD}, dtype, {seed = 1})
    or cute.randn({PERIOD}, dtype, {seed = 1})
  local list = {}
  for i, x in first:elements() do list[i] = x end
  local count = (elements + PERIOD - 1) // PERIOD * PERIOD
  local all = cute.empty({count}, dtype, {device = "gpu"})
  local function part(at, n)
    return cute.make_tensor(all.iterator + at, cute.make_layout {n})
  end
  part(0, PERIOD):copy_from(first)
  local done = PERIOD
  while done < count do
    local n = math.min(done, count - done)
    part(done, n):copy_from(part(0, n))
    done = done + n
  end
  pool = {all = all, count = count, list = list}
  pools[name] = pool
  return pool
end

--- Sets of operands of so many bytes that take turns: as many as L2 never
-- holds, one of those that are small and stay there.
---@param bytes integer of A and B
---@return integer
function operands.sets(bytes)
  return bytes < SMALL and 1 or (PLAY + bytes - 1) // bytes
end

local CALM = 4e10  -- operations of a launch that no card's power limit meets

--- The part of a warm-up that a product wants: a card that runs into its power
-- limit takes long to come to rest.
function operands.warmth(m, n, k)
  return 2.0 * m * n * k > CALM and 1 or 0.25
end

local kept  -- the last problem's

--- The operands of a problem on the card.
function operands.of(problem)
  if kept and kept.problem == problem then return kept end
  kept = nil
  local o = setmetatable(operands.parse(problem), Operands)
  o.problem = problem
  local lA, lB, lD = layouts(o)
  local function room(x) return (x + ALIGN - 1) // ALIGN * ALIGN end
  local na, nb = room(o.m * o.k), room(o.n * o.k)
  local bytes = (na * o.a.bits + nb * o.b.bits) // 8
  local sets = operands.sets(bytes)
  local pa = pool_of(o.a, sets * (na + nb))
  local pb = pool_of(o.b, sets * (na + nb))
  o.sets, o.list_a, o.list_b, o.at_b = {}, pa.list, pb.list, na
  for i = 1, sets do
    local at = (i - 1) * (na + nb)
    o.sets[i] = {A = cute.make_tensor(pa.all.iterator + at, lA),
                 B = cute.make_tensor(pb.all.iterator + (at + na), lB)}
  end
  o.ready = {}  -- the worker's
  o.A, o.B = o.sets[1].A, o.sets[1].B
  o.D = cute.make_tensor(cute.empty({o.m * o.n}, o.d,
    {device = "gpu"}).iterator, lD)
  kept = o
  return o
end

--- Leaves nothing in D that could be right.
function Operands:spoil() core.param_memory(self.D):memset(0xff) end

-- Some elements of D, each with what it is: corners and others.
local function samples(o)
  local list = {{0, 0}, {o.m - 1, o.n - 1}, {o.m - 1, 0}, {0, o.n - 1}}
  for i = 5, SAMPLES do
    list[i] = {i * 0x9e3779b1 % o.m, i * 0x85ebca6b % o.n}
  end
  for _, s in ipairs(list) do
    local sum, A, B = 0, o.A.layout, o.B.layout
    local a, b = A(s[1], 0), B(s[2], 0) + o.at_b
    local da, db = A.stride[2], B.stride[2]
    for _ = 1, o.k do
      sum = sum + o.list_a[a % PERIOD] * o.list_b[b % PERIOD]
      a, b = a + da, b + db
    end
    s.want = sum
  end
  return list
end

--- What of D is not the product of the first set, in words; nil: nothing.
function Operands:wrong()
  self.samples = self.samples or samples(self)
  for _, s in ipairs(self.samples) do
    local at = cute.make_tensor(self.D.iterator + self.D.layout(s[1], s[2]),
                                cute.make_layout {1})
    local got = at:to "host"(0)
    local d = math.abs(got - s.want)
    -- rounded sums of k products of numbers near 1, in any order
    if d ~= d or d > 0.008 * math.abs(s.want) + 0.004 * math.sqrt(self.k) then
      return ("wrong: D(%d,%d) is %g and not %g"):format(s[1], s[2], got,
                                                        s.want)
    end
  end
end

return operands
