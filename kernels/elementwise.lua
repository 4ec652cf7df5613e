--- A function of the elements of tensors.
--
--     local k = elementwise {f = function(a, b, s) return a * s + b end,
--                            inputs = {cute.bf16, cute.f32}, scalars = 1,
--                            n = 4096 * 4096}
--     k.kernel(A, B, C, 2.0):launch {grid = k.grid, block = k.block}
--
-- Tensors have n elements side by side, in any shape; the kernel takes inputs,
-- results, scalars. f gets a vector of each input, as f32 where it is a
-- narrower float, then the scalars; it gives a vector for each result, which
-- is rounded to the result's type. Vectors compute element by element, with
-- each other and with scalars.
local cute = require "cute"
local check = require "kernels.check"

-- Vectors of `width` elements of a thread: {t, width, where it begins}.
local function vector(t, at, width)
  return cute.make_tensor(t.iterator + at, cute.make_layout({width}))
end

local function load(t, at, width)
  local held = cute.make_rmem_tensor({width}, t.element_type)
  cute.autovec_copy(vector(t, at, width), held)
  return held:load()
end

local function widened(v)
  local d = v.dtype
  return d.is_float and d.bits < 32 and v:to(cute.f32) or v
end

-- The results' vectors at element `at`.
local function compute(o, inputs, scalars, at, width)
  local args = {}
  for i, t in ipairs(inputs) do args[i] = widened(load(t, at, width)) end
  for i = 1, o.scalars do args[#inputs + i] = scalars[i] end
  local results = {o.f(table.unpack(args, 1, #inputs + o.scalars))}
  check.need(#results == #o.outputs, "elementwise",
    "f gave %d results, not %d", #results, #o.outputs)
  return results
end

local function store(outputs, results, at, width)
  for i, t in ipairs(outputs) do
    local held = cute.make_rmem_tensor({width}, t.element_type)
    held:store(results[i]:to(t.element_type))
    cute.autovec_copy(held, vector(t, at, width))
  end
end

local function piece(o, inputs, outputs, scalars, at, width)
  store(outputs, compute(o, inputs, scalars, at, width), at, width)
end

-- `steps` vectors of this thread, all loads before the first store; the last
-- elements one by one where they fill no vector.
local function body(o, inputs, outputs, scalars)
  local tid, block = (cute.arch.thread_idx()), (cute.arch.block_idx())
  local width, reach = o.width, o.block * o.width
  local first = block * (reach * o.steps) + tid * width
  if o.n % (reach * o.steps) == 0 then
    local results = {}
    for s = 0, o.steps - 1 do
      results[s] = compute(o, inputs, scalars, first + s * reach, width)
    end
    for s = 0, o.steps - 1 do
      store(outputs, results[s], first + s * reach, width)
    end
    return
  end
  for s = 0, o.steps - 1 do
    local at = first + s * reach
    cute.when(cute.le(at + width, o.n), function()
      piece(o, inputs, outputs, scalars, at, width)
    end, o.n % width ~= 0 and function()
      for i in cute.range(at, o.n) do
        piece(o, inputs, outputs, scalars, i, 1)
      end
    end or nil)
  end
end

-- Elements that the narrowest type has in 16 bytes.
local function widest(o)
  local bits = 128
  for _, list in ipairs {o.inputs, o.outputs} do
    for _, t in ipairs(list) do bits = math.min(bits, t.bits) end
  end
  return 128 // bits
end

--- A kernel of inputs, results and scalars, and what its launch needs.
---@param o {f: function, n: integer, inputs: any[], outputs: any[]?,
-- scalars: integer?, steps: integer?, block: integer?, width: integer?,
-- fastmath: boolean?, name: string?}
-- outputs: types of the results (one of the first input's); steps: vectors of
-- a thread
---@return {kernel: any, grid: integer, block: integer}
return function(o)
  check.given("elementwise", o, "n")
  check.integers("elementwise", o, {"block"}, 1, 1024)
  check.integers("elementwise", o, {"steps", "width"}, 1, 1024)
  local p = setmetatable({outputs = o.outputs or {o.inputs[1]},
    scalars = o.scalars or 0, block = o.block or 128}, {__index = o})
  p.width = o.width or widest(p)
  p.steps = o.steps or p.width > 4 and 2 or 1
  local per = p.block * p.width * p.steps
  return {block = p.block, grid = (o.n + per - 1) // per, kernel = cute.kernel(
    o.name or "elementwise", {fastmath = o.fastmath ~= false},
    function(...)
      local args = {...}
      local ins, outs, more = #p.inputs, #p.outputs, {}
      for i = 1, ins + outs do
        check.dense("elementwise", i, args[i], o.n)
      end
      table.move(args, ins + outs + 1, #args, 1, more)
      body(p, {table.unpack(args, 1, ins)},
           {table.unpack(args, ins + 1, ins + outs)}, more)
    end)}
end
