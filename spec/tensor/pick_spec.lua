-- Tests register fragments indexed by traced values. Random layouts, types and
-- coordinates are compared with plain tables. Also tests indices out of range,
-- unwritten registers, and local memory.
local cute = require "cute"
local kernels = require "spec.kernels"
local random = require "spec.random"
local T = require "spec.values"
local _ = cute._

local g = setmetatable({state = 77}, random.Gen)

-- Returns the shape and strides of a random fragment: at most 24 elements,
-- strides in any order, sometimes with gaps.
local function layout()
  local shape, n = {}, 1
  for k = 1, g:r(3) do
    shape[k] = g:r(4)
    if n * shape[k] > 24 then shape[k] = 1 end
    n = n * shape[k]
  end
  local order, stride, at = {}, {}, g:pick {1, 1, 2}
  for k = 1, #shape do table.insert(order, g:r(k), k) end
  for k = 1, #shape do
    stride[order[k]] = at
    at = at * shape[order[k]]
  end
  return shape, stride
end

-- Returns the value that a lane writes in step k: an integer that every type
-- can represent.
local function value(lane, k) return (lane * 7 + k * 3) % 100 end

local TYPES = {"i8", "u8", "i16", "u16", "f16", "bf16", "i32", "u32", "f32",
               "i64", "f64"}

-- Returns a random case: writes to and reads from a fragment, at constant
-- coordinates or at coordinates that depend on the lane.
local function case()
  local shape, stride = layout()
  local c = {shape = shape, stride = stride, type = g:pick(TYPES), steps = {}}
  for k = 1, 6 do
    local coord = {}
    for i, n in ipairs(shape) do
      coord[i] = {at = g:r(n) - 1, by = g:r(3), n = n, traced = g:chance(60)}
    end
    c.steps[k] = {write = g:chance(50), coord = coord}
  end
  return c
end

-- Returns a step's coordinate in lane t; it is traced if t is.
local function coordinate(step, t)
  local at = {}
  for i, c in ipairs(step.coord) do
    at[i] = c.traced and (t * c.by + c.at) % c.n or c.at
  end
  return at
end

local function offset(c, at)
  local o = 0
  for i, x in ipairs(at) do o = o + x * c.stride[i] end
  return o
end

-- Returns the results of lane t's reads, and the fragment's final
-- elements.
local function oracle(c, t)
  local r, log = {}, {}
  local function each(f, k, at)
    if k > #c.shape then return f(offset(c, at)) end
    for x = 0, c.shape[k] - 1 do
      at[k] = x
      each(f, k + 1, at)
    end
  end
  local count = 0
  each(function(o)
    r[o] = value(t, count)
    count = count + 1
  end, 1, {})
  for k, step in ipairs(c.steps) do
    local o = offset(c, coordinate(step, t))
    if step.write then r[o] = value(t, 50 + k) else log[#log + 1] = r[o] end
  end
  each(function(o) log[#log + 1] = r[o] end, 1, {})
  return log
end

local function body(c, out)
  local t = cute.arch.thread_idx()
  local r = cute.make_rmem_tensor(cute.make_layout(c.shape, c.stride), c.type)
  local dtype = r.dtype
  local function is(k) return ((t * 7 + k * 3) % 100):to(dtype) end
  local coords, n = {}, 0
  local function each(k, at)
    if k > #c.shape then
      coords[#coords + 1] = {table.unpack(at)}
      return
    end
    for x = 0, c.shape[k] - 1 do
      at[k] = x
      each(k + 1, at)
    end
  end
  each(1, {})
  for k, at in ipairs(coords) do r[at] = is(k - 1) end
  local function log(x)
    out[{t, n}] = x:to(cute.i32)
    n = n + 1
  end
  for k, step in ipairs(c.steps) do
    local at = coordinate(step, t)
    if step.write then r[at] = is(50 + k) else log(r[at]) end
  end
  for _, at in ipairs(coords) do log(r[at]) end
end

describe("fragments at traced indices", function()
  it("are read and written like tables #long", function()
    for k = 1, 60 do
      local c = case()
      local out = cute.zeros({32, 40}, cute.i32)
      local call = cute.kernel("k", function(o) body(c, o) end)(out)
      call:launch {grid = 1, block = 32, device = "sim"}
      for t = 0, 31 do
        for i, x in ipairs(oracle(c, t)) do
          assert.equal(x, out(t, i - 1), ("case %d, lane %d: %s %s"):format(k,
            t, c.type, tostring(cute.make_layout(c.shape, c.stride))))
        end
      end
      if k <= 4 then
        kernels.compiles(call:trace {block = 32}, {"sm_75", "sm_90a"})
      end
    end
  end)

  it("are sliced, filled, copied and recast at such indices", function()
    local out = cute.zeros({32, 12}, cute.i32)
    cute.kernel("k", function(o)
      local t = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({4, 4}, cute.i16)
      for i = 0, 15 do r[i] = (t + i):to(cute.i16) end
      r(_, t % 4):fill(5)
      local row = r(t % 4, _)
      local sum = row:load():reduce("add", 0):to(cute.i32)
      local copy = cute.make_rmem_tensor({4}, cute.i16)
      cute.autovec_copy(row, copy)
      local words = cute.recast_tensor(copy, cute.i32)
      local v = copy:load()
      cute.autovec_copy(copy, r(_, (t + 1) % 4))
      o[{t, 0}], o[{t, 1}] = sum, words[t % 2]
      o[{t, 2}] = v[t % 4]:to(cute.i32)
      o[{t, 3}] = v:reshape {2, 2}(1, t % 2):to(cute.i32)
      for i = 0, 3 do o[{t, 4 + i}] = r[{i, (t + 1) % 4}]:to(cute.i32) end
    end)(out):launch {grid = 1, block = 32, device = "sim"}
    for t = 0, 31 do
      local r, sum = {}, 0
      for i = 0, 3 do
        r[i] = i == t % 4 and 5 or t + t % 4 + 4 * i
        sum = sum + r[i]
      end
      local word = 2 * (t % 2)
      assert.same({sum, r[word] | r[word + 1] << 16, r[t % 4],
                   r[1 + 2 * (t % 2)], r[0], r[1], r[2], r[3]},
        {out(t, 0), out(t, 1), out(t, 2), out(t, 3), out(t, 4), out(t, 5),
         out(t, 6), out(t, 7)})
    end
  end)

  it("are reported if the index is out of bounds", function()
    local out = cute.zeros({32}, cute.f32)
    local fault = T.first_fault(T.launch(function(o)
      local t = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({4, 3}, cute.f32)
      r:fill(1)
      o[t] = r[{t - 1, 1}]
    end, {out}))
    assert.equal("out-of-bounds", fault.kind)
    assert.equal("read outside register tensor 'r': index -1 of 4",
                 fault.message)
    assert.same({0, 0, 0}, fault.thread)
    fault = T.first_fault(T.launch(function(o)
      local t = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({16}, cute.bf16)
      r:fill(1)
      r[t] = 2
      o[t] = r[3]:to(cute.f32)
    end, {out}))
    assert.equal("write outside register tensor 'r': index 16 of 16",
                 fault.message)
    assert.same({16, 0, 0}, fault.thread)
  end)

  it("are reported if the register is not written", function()
    local out = cute.zeros({32}, cute.f32)
    local function part(o)
      local t = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({4}, cute.f32)
      r[t % 2] = 1
      o[t] = r[t % 4]
    end
    local fault = T.first_fault(T.launch(part, {out}))
    assert.equal("uninitialised", fault.kind)
    assert.same({2, 0, 0}, fault.thread)
    T.ok(T.launch(function(o)
      local t = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({4}, cute.f32)
      r[t % 2] = 1
      o[t] = r[t & 1]
    end, {out}))
    fault = T.first_fault(T.launch(function(o)
      local t = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({4}, cute.i32)
      local f = cute.make_rmem_tensor({4}, cute.f32)
      f:fill(0)
      f[r[t % 4]] = 1
      o[t] = f[0]
    end, {out}))
    assert.equal("uninitialised", fault.kind)
  end)
end)

describe("fragments at traced indices", function()
  it("are noted if they lie in local memory", function()
    local function warnings(n)
      return cute.kernel("k", function(o)
        local t = cute.arch.thread_idx()
        local r = cute.make_rmem_tensor({n}, cute.f32)
        r:fill(0)
        o[t] = r[t % n]
      end)(cute.zeros({32}, cute.f32)):trace {block = 32}.warnings
    end
    assert.same({}, warnings(8))
    local text = warnings(9)
    assert.equal(1, #text)
    assert.is_truthy(text[1]:find("the fragment r (9):(1) of 9 f32 values "
      .. "lies in local memory: line ", 1, true))
  end)

  it("stay in registers if they are small", function()
    local program = cute.kernel("k", function(x)
      local t = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({8}, cute.f32)
      local h = cute.make_rmem_tensor({8}, cute.bf16)
      for i = 0, 7 do r[i], h[i] = x[t + i], x[t + i]:to(cute.bf16) end
      r[t % 8], h[t % 8] = 1, 1
      x[t] = r[(t + 3) % 8] + h[(t + 3) % 8]:to(cute.f32)
    end)(cute.zeros({64}, cute.f32)):trace {block = 32}
    local compiled = kernels.compiled(program, "sm_90a")
    if not compiled then return pending "needs NVRTC" end
    assert.equal(0, compiled.resources.stack)
  end)
end)
-- SPDX-License-Identifier: MIT
