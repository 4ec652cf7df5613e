--- The gradients of sinks and of tensors that score_mod captures, for the
-- option `gradients` of ops.attention_backward. See
-- kernels/score_gradients.lua.
local calls = require "cute.ops.calls"
local capture = require "cute.ops.capture"
local core = require "cute.core"
local cute = require "cute"
local elementwise = require "cute.ops.elementwise"
local problem = require "cute.ops.attention.problem"
local score_gradients = require "kernels.score_gradients"
local scores = require "cute.ops.attention.scores"
local tiles = require "cute.tiles"

local captured = {}

-- Reports whether the captured value v is the tensor of the option `bias`, or
-- the view of this tensor that scores.traced_of made. A tensor and its view
-- begin at the same element of the same buffer.
local function is_bias(v, bias)
  if bias == nil or core.typename(v) ~= "tensor" then return false end
  local x = core.launch_values({v, n = 1})[1]
  local y = core.launch_values({bias, n = 1})[1]
  return rawequal(x[1], y[1]) and x[2] == y[2]
end

-- Returns the index in `values` (the captured values) of tensor t, which is
-- entry i of the option `gradients`. Raises an error unless t is there once.
local function position(refuse, o, values, t, i)
  local found
  for n, v in ipairs(values) do
    if rawequal(v, t) or rawequal(t, o.bias) and is_bias(v, t) then
      if found then
        refuse("gradients[%d], a tensor of %s, is read under two names; one "
          .. "is needed", i, t.layout)
      end
      found = n
    end
  end
  return found or refuse("gradients[%d], a tensor of %s, is neither sinks, "
    .. "alibi_slopes or bias, nor captured by score_mod", i, t.layout)
end

--- Returns the option `gradients`, a list of tensors, as text. The text has
-- each tensor's position among the values that f captures, or 0 for the tensor
-- `sinks`. `f` is the function from scores.traced_of.
function captured.positions(refuse, o, f)
  if type(o.gradients) ~= "table" then
    refuse("gradients is %s; a list of tensors is needed",
           core.show(o.gradients))
  end
  local values, list = f and capture.of(f).values or {}, {}
  for i, t in ipairs(o.gradients) do
    if core.typename(t) ~= "tensor" or not t.element_type.is_float then
      refuse("gradients[%d] is %s; a tensor of floats is needed", i,
             core.typename(t) == "tensor" and "a tensor of "
               .. t.element_type.name or core.show(t))
    end
    list[i] = rawequal(t, o.sinks) and 0 or position(refuse, o, values, t, i)
  end
  return table.concat(list, " ")
end

-- Returns the positions in the text of a call's option `gradients` (see
-- captured.positions), as a list of integers.
local function positions_of(call)
  local list = {}
  for n in (call.o.gradients or ""):gmatch "%d+" do
    list[#list + 1] = math.tointeger(n)
  end
  return list
end

--- Returns the tensors whose gradients a call requests.
function captured.tensors(call)
  local list = {}
  for i, at in ipairs(positions_of(call)) do
    local t = at == 0 and call.sinks or call.captured.values[at]
    list[i] = at > 0 and is_bias(t, call.o.bias) and call.o.bias or t
  end
  return list
end

--- Adds a step (launch) to plan p that computes the gradient of sinks, which is
-- result i. `delta(work)` returns each row's sum of O dO. For `padding` see
-- score_gradients.sinks.
function captured.sinks(p, q, i, delta, padding)
  local k = score_gradients.sinks(padding)
  p.steps[#p.steps + 1] = {kernel = k.kernel, block = k.block, ready = {},
    grid = k.grid(q.H), arguments = function(now, out, work)
      return {now.sinks, problem.view(now.LSE, 0, problem.rows_shape(q)),
              delta(work), out[i], now.cu_q, n = 5}
    end}
end

--- Adds steps (launches) to plan p that set the requested gradients, which are
-- results 4 and later, to zeros.
function captured.nothing(call, p)
  for i = 4, #p.results do problem.fill_result(call, p, i, 0) end
end

-- Raises an error if score_mod reads no element of a tensor of `list`. Also
-- raises an error if the call has `deterministic`, but gradients of some reads
-- of score_mod are added atomically.
local function check_reads(call, kinds, list)
  for i, x in ipairs(list) do
    local reads = 0
    for _, kind in ipairs(kinds) do
      if kind.tensor == i then
        reads = reads + 1
        if call.o.deterministic and not kind.shared then
          call:fail("deterministic = true, but score_mod reads tensor %d of "
            .. "the list gradients at indices that depend on at.q or at.k, and "
            .. "the gradient of such a tensor is summed in any order", x.number)
        end
      end
    end
    if reads == 0 then
      call:fail("score_mod must read elements of gradients[%d], whose gradient "
        .. "is requested", x.number)
    end
  end
end

-- The class of objects that add launches to a plan, before and after the
-- kernels of kernels/attention_bwd.lua. These launches and kernels together
-- compute the gradients of captured tensors.
local Extra = {}
Extra.__index = Extra

--- Adds a step (launch) to plan p that sets the memory of the sums to 0. `rows`
-- is the number of rows in a tile of the kernels.
function Extra:begin(p, rows)
  local first, q = p.floats, self.q
  for _, x in ipairs(self.list) do
    x.from, p.floats = p.floats, p.floats + x.count
  end
  self.parts_at = p.floats
  self.shape = {math.max(score_gradients.count(self.options.kinds), 1),
                tiles.count(q.S, rows), q.H, q.B}
  p.floats = p.floats + cute.product(self.shape)
  local k, n = score_gradients.clearing(), p.floats - first
  p.steps[#p.steps + 1] = {kernel = k.kernel, block = k.block, ready = {},
    grid = k.grid(n), arguments = function(_, _, work)
      return {problem.view(work, first, {n}), n = 1}
    end}
end

--- Sets the fields `parts` (partial sums) and `sums` of table m to views of the
-- memory `work`. The kernels of kernels/attention_bwd.lua receive m as their
-- argument `more`. Returns m, or a new table if m is nil.
function Extra:memory(work, m)
  m = m or {}
  m.parts, m.sums = cute.make_tensor(work.iterator + self.parts_at,
                                     cute.make_layout(self.shape)), {}
  for i, x in ipairs(self.list) do
    m.sums[i] = problem.view(work, x.from, {x.count})
  end
  return m
end

-- Returns a step (launch) that adds the partial sums of the gradient of tensor
-- i.
local function adding(self, i)
  local o, q = self.options, self.q
  local k = score_gradients.adding({modify = self.modify, kinds = o.kinds,
                                    at = o.at}, i)
  return {kernel = k.kernel, block = k.block, ready = {},
    grid = k.grid(q.H, q.B), arguments = function(now, _, work)
      local m = self:memory(work)
      return scores.push_captured(now, {m.parts, m.sums[i], n = 2})
    end}
end

-- Returns a step (launch) that converts the f32 sums of a gradient to its
-- result `to`. `x` describes the sums, which are in `work`, the memory that the
-- launches share. The step depends only on the layouts and types of `to` and
-- `work`.
local function converting(x, to, work, o)
  local function sums(memory)
    return cute.make_tensor(memory.iterator + x.from, x.layout)
  end
  local step = elementwise.converting(sums(work), to, {device = o.device,
                                                       arch = o.arch})
  local arguments = step.arguments
  function step.arguments(_, out, memory)
    return arguments({operands = {sums(memory)}}, {out[x.result]})
  end
  return step
end

--- Adds the steps (launches) that run after the kernels to plan p. `call` is
-- the call that is planned.
function Extra:finish(p, call)
  local work = calls.work(p.place, p.floats)
  for i, x in ipairs(self.list) do
    if score_gradients.count(self.options.kinds, i) > 0 then
      p.steps[#p.steps + 1] = adding(self, i)
    end
    local r = p.results[x.result]
    p.steps[#p.steps + 1] = converting(x, call.out[x.result]
      or calls.empty(r.shape, r.dtype, p.place), work, call.o)
  end
  work:close()
end

--- Traces the functions of a call (scores.trace_functions). If the call
-- requests gradients of captured tensors, returns an Extra: an object with the
-- methods begin, memory and finish. Its field `options` is the value for the
-- option `gradients` of kernels/attention_bwd.lua.
function captured.gradients(call, p, q, o)
  local list, at = {}, {}
  local tensors = captured.tensors(call)
  for i, n in ipairs(positions_of(call)) do
    if n > 0 then
      at[#at + 1] = n
      list[#at] = {number = i, result = 3 + i, layout = tensors[i].layout,
                   count = cute.cosize(tensors[i].layout)}
    end
  end
  local kinds = scores.trace_functions(call, o, p, at)
  if #at == 0 then return nil end
  check_reads(call, kinds, list)
  return setmetatable({options = {kinds = kinds, at = at}, modify = o.modify,
                       list = list, q = q}, Extra)
end

return captured
-- SPDX-License-Identifier: MIT
