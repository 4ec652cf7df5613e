-- luacheck: ignore 231 241 311 112 113 (tables only written, globals)
-- Tests fields of tables that loops and branches change: they become carried
-- variables, like locals. Changes that cannot be carried must raise errors with
-- the texts that users see.
local cute = require "cute"
local run = require "spec.kernels".run
local support = require "spec.support"

local function refused(want, f, ...)
  assert.equal(want, (support.message(run, 1, f, ...)))
end

-- A class like the pipeline states that users write.
local State = {}
State.__index = State
function State.new(stages)
  return setmetatable({stages = stages, index = 0, phase = 1}, State)
end
function State:advance()
  local next_index = self.index + 1
  local wraps = cute.eq(next_index, self.stages)
  self.index = cute.where(wraps, 0, next_index)
  self.phase = cute.where(wraps, self.phase ~ 1, self.phase)
end

local shared = {count = 0, nested = {last = 0}}
local function note(k)
  shared.count = shared.count + 1
  shared.nested.last = k
end

describe("fields that a loop changes", function()
  it("are carried, in methods of an object", function()
    assert.same({1, 0, 2}, run(3, function(out, n)
      local s = State.new(3)
      for _ in cute.range(n) do s:advance() end
      out[0], out[1] = s.index, s.phase
      s:advance()
      out[2] = s.index
    end, 4))
  end)

  it("in objects of objects, lists, helpers, upvalues and globals", function()
    _G.CARRIED = {n = 0}
    finally(function() _G.CARRIED = nil end)
    local function add(t, k, by) t[k] = t[k] + by end
    assert.same({10, 4, 3, 4, 1, 8, 5}, run(7, function(out, n)
      shared.count, shared.nested.last = 0, 0
      CARRIED.n = 0
      local o = {sum = {of = {all = 0}}, list = {0, 1, 2}}
      for k in cute.range(n) do
        o.sum.of.all = o.sum.of.all + k
        add(o.list, 1, 1)
        o.list[3] = o.list[2] + 2
        note(k)
        add(CARRIED, "n", 1)
      end
      out[0], out[1], out[2] = o.sum.of.all, o.list[1] - 1, o.list[3]
      out[3], out[4], out[5] = shared.nested.last, o.list[2], shared.count + 3
      out[6] = CARRIED.n
    end, 5))
  end)

  it("once for a table with two names, and visible by both", function()
    assert.same({6, 6, 6, 1}, run(4, function(out, n)
      local a = {n = 0}
      local b, holder = a, {a, inner = {same = a}}
      for _ in cute.range(n) do
        a.n = a.n + 1
        b.n = b.n + 1
      end
      out[0], out[1], out[2] = a.n, b.n, holder.inner.same.n
      out[3] = a == b and 1 or 0
    end, 3))
    local p = cute.kernel("k", function(out, n)
      local a = {n = 0}
      local b = a
      for k in cute.range(n) do b.n = b.n + k end
      out[0] = a.n
    end)(cute.zeros({1}, cute.i32), 3):trace {block = 32}
    local _, vars = p.ir:gsub("%f[%w]var ", "")
    assert.equal(1, vars, p.ir)
    assert.truthy(p.source:find("a_n", 1, true), p.source)
  end)

  it("of every kind that a local may be", function()
    local data = cute.tensor({{1, 2}, {10, 20}, {100, 200}}, cute.i32)
    assert.same({1, 111, 16, 7, 3}, run(5, function(out, t, n)
      local r = cute.make_rmem_tensor({2}, cute.i32)
      r[0], r[1] = 1, 2
      local o = {flag = false, row = t(0, cute._), sum = 0, v = r:load(),
                 at = {0, 7}}
      for k in cute.range(n) do
        o.flag = o.flag | k:eq(1)
        o.sum = o.sum + o.row[0]
        o.row = t(cute.min(k + 1, 2), cute._)
        o.v = o.v + o.v
        o.at = {o.at[1] + 1, o.at[2]}
      end
      r:store(o.v)
      out[0], out[1], out[2] = cute.where(o.flag, 1, 0), o.sum, r[1]
      out[3], out[4] = o.at[2], o.at[1]
    end, data, 3))
  end)

  it("found by a later pass, or an inner loop, or a branch", function()
    assert.same({4, 3, 12, 6}, run(4, function(out, n)
      local o = {first = 0, late = 0, inner = 0, even = 0}
      for k in cute.range(n) do
        cute.when(cute.gt(o.first, 0), function() o.late = o.late + 1 end)
        o.first = o.first + 1
        for _ in cute.range(3) do o.inner = o.inner + 1 end
        cute.when((k % 2):eq(0), function() o.even = o.even + k + 2 end)
      end
      out[0], out[1], out[2], out[3] = o.first, o.late, o.inner, o.even
    end, 4))
  end)

  it("through table functions, rawset and proxies", function()
    assert.same({2, 3, 1, 8, 40}, run(5, function(out, n)
      local list, raw, kept = {1, 2, 3}, {x = 0}, {y = 0}
      local proxy = setmetatable({}, {__index = kept, __newindex = kept})
      local calls = setmetatable({}, {__newindex = function(_, k, v)
        raw[k] = v * 10
      end})
      raw.z = 0
      for k in cute.range(n) do
        table.insert(list, table.remove(list, 1))
        rawset(raw, "x", raw.x + 2)
        proxy.y = proxy.y + 2
        calls.z = k + 1
      end
      out[0], out[1], out[2] = list[1], list[2], list[3]
      out[3], out[4] = (raw.x + proxy.y) // 2, raw.z
    end, 4))
  end)
end)

describe("fields that a loop changes", function()
  it("but not of tables made in the body", function()
    assert.same({6}, run(1, function(out, n)
      local sum = 0
      for k in cute.range(n) do
        local o = {n = k}
        o.n, o.more = o.n + 1, k
        local packed = table.pack(o.n, o.more)
        packed[1] = packed[1] - 1
        packed[3] = k
        sum = sum + packed[1]
      end
      out[0] = sum
    end, 4))
  end)

  it("of tables that a helper made, and of its caller's", function()
    local function repeated(n, f) for k in cute.range(n) do f(k) end end
    local function counter() return {n = 0} end
    assert.same({3, 6}, run(2, function(out, n)
      local a, b = counter(), counter()
      repeated(n, function(k) a.n = a.n + k end)
      repeated(n + 1, function() b.n = b.n + 1 end)
      out[0], out[1] = a.n, b.n + 2
    end, 3))
    assert.same({12}, run(1, function(out, n, ...)
      for _ in cute.range(n) do
        local o = ...
        o.x = o.x + 4
      end
      out[0] = (...).x
    end, 3, {x = 0}))
  end)

  it("of a module that the body alone names", function()
    package.loaded.carried = {count = 0}
    finally(function() package.loaded.carried = nil end)
    assert.same({10}, run(1, function(out, n)
      require "carried".count = 0
      for k in cute.range(n) do
        require "carried".count = require "carried".count + k
      end
      out[0] = require "carried".count
    end, 5))
    refused([[field 'require "carried".count' changes from i32 to f32 in ]]
      .. "this loop [loop-type-changed]\n  convert it with :to(dtype), or use "
      .. "another field", function(_, n)
        require "carried".count = n
        for _ in cute.range(n) do
          require "carried".count = n:to(cute.f32)
        end
      end, 5)
  end)

  it("in cute.loop, and visible to its condition", function()
    assert.same({8}, run(1, function(out, n)
      local o = {x = 1}
      cute.loop(function() return cute.lt(o.x, n) end, function()
        o.x = o.x * 2
      end)
      out[0] = o.x
    end, 5))
  end)

  it("in loops and branches of cute's own files", function()
    local count = load([[
      local cute = ...
      local last = {k = 0}
      return function(n)
        local all, odd = 0, 0
        local function add(x) all = all + x end
        cute.loop(function() return cute.lt(all, n) end, function()
          add(2)
          cute.when(cute.eq(all & 2, 2), function()
            odd, last.k = odd + 1, all
          end)
        end)
        for k in cute.range(n) do add(k) end
        return all, odd, last.k
      end]], "=[cute.counting]")(cute)
    assert.same({16, 2, 6}, run(3, function(out, n)
      out[0], out[1], out[2] = count(n)
    end, 5))
  end)

  it("by pipeline states, with no word about it", function()
    assert.same({1, 0, 4, 1, 0}, run(5, function(out, n)
      local pipe = cute.pipeline.PipelineCpAsync {num_stages = 3}
      local write, read = pipe:make_producer_state(), pipe:make_consumer_state()
      for _ in cute.range(n) do
        write:advance()
        cute.when(cute.lt(read.count, 3), function() read:advance() end)
      end
      out[0], out[1], out[2] = write.index, write.phase, write.count
      out[3], out[4] = read.phase, read.index
    end, 4))
  end)

  it("and an error that a kernel catches leaves them", function()
    assert.same({3, 7}, run(2, function(out, n)
      local o, seen = {n = 0, flag = 7}, {}
      for k in cute.range(n) do
        pcall(function()
          cute.when(k:lt(2), function() o.n = o.n + 100 error "x" end)
        end)
        pcall(function()
          for _ in cute.range(2) do o.flag, seen.x = k, k error "y" end
        end)
        o.n = o.n + 1
      end
      out[0], out[1] = o.n, seen.x == nil and o.flag or 0
    end, 3))
  end)
end)

describe("fields that a loop changes", function()
  it("while values that only Lua keeps stay available", function()
    local made, o = 0, cute.zeros({2}, cute.i32)
    local cache, lines = {}, {}
    local function layout(n)
      if not cache[n] then
        cache[n] = cute.make_layout {n}
      end
      return cache[n]
    end
    cute.kernel("k", function(out, n)
      local sum = 0
      for _ in cute.range(n) do sum = sum + cute.size(layout(4)) end
      cute.when(n:gt(2), function()
        layout(5)
        lines[1], lines[2] = 10, 20
        made = made + cute.size(layout(5)) + lines[1] + lines[2]
      end, function() lines[3] = 30 end)
      for _ in cute.range(n) do sum = sum + cute.size(layout(5)) end
      out[0], out[1] = sum, made
    end)(o, 3):launch {grid = 1, block = 1, device = "sim"}
    assert.same({27, 35}, {o[0], o[1]})
    assert.same({}, cache)
    assert.same({}, lines)
  end)
end)

describe("fields that a branch changes", function()
  it("are merged", function()
    assert.same({1, 20, 3, 6, 1}, run(5, function(out, n)
      local o = {a = 0, b = 0, c = 3, on = false}
      local function set(k, v) o[k] = v end
      cute.when(n:lt(10), function() set("a", 1) o.b = 10 o.on = n:gt(4) end,
                function() o.b = 2 end)
      cute.when(n:gt(10), function() o.c = 4 end, function() o.b = o.b * 2 end)
      cute.when(n:eq(5), function() o.d = 5 end, function() o.d = 6 end)
      out[0], out[1], out[2], out[3] = o.a, o.b, o.c, o.d + 1
      out[4] = cute.where(o.on, 1, 0)
    end, 5))
  end)

  it("have no value of it after an error", function()
    assert.same({1, 2}, run(2, function(out, n)
      local o = {a = 1}
      cute.when(n:gt(100), function() o.a = o.a + n end)
      cute.when(n:gt(100), function() out[1] = 5 end,
                function() out[1] = o.a + 1 end)
      out[0] = o.a
    end, 5))
  end)
end)

describe("CUTELUA_DEBUG=trace", function()
  it("reports each pass, newly carried values, and why", function()
    local folder = support.folder()
    finally(function() support.remove(folder) end)
    local script = support.write(folder .. "/s.lua", [[
local cute = require "cute"
cute.kernel("k", function(out, n)
  local o, sum = {at = 0}, 0
  for k in cute.range(n) do
    sum = sum + o.at
    o.at = (o.at + 1) % 3
    cute.when(k:gt(5), function() sum = 7 end)
  end
  out[0] = sum
end)(cute.zeros({1}, cute.i32), 4):trace {block = 1}
]])
    local _, said = support.run_lua({script}, {CUTELUA_DEBUG = "x,trace"})
    said = said:gsub("[^\n]*/s.lua", "s.lua")
    assert.same({
      "s.lua:4: this loop",
      "s.lua:7: cute.when",
      "  pass 1: upvalue 'sum' ends as 7 or 0: carried as i32 0 to 7",
      "  pass 2: nothing new",
      "  pass 1: local 'sum' changes from 0 to traced i32 'sum' (line 7): "
        .. "carried as i32 0 to 7",
      "  pass 1: field 'o.at' changes from 0 to 1: carried as i32 0 to 1",
      "s.lua:7: cute.when",
      "  pass 1: nothing new",
    }, support.lines(said:match ".-pass 1: nothing new\n"))
    assert.truthy(said:find("field 'o.at' may hold more values: i32 0 to "
      .. "any", 1, true))
    assert.equal("", (select(2, support.run_lua({script}))))
  end)
end)

describe("a table that a loop changes is rejected", function()
  it("when a field's type changes", function()
    refused("field 'state.phase' changes from i32 to f32 in this loop "
      .. "[loop-type-changed]\n  convert it with :to(dtype), or use another "
      .. "field", function(_, n)
        local state = {phase = n}
        for _ in cute.range(n) do state.phase = state.phase:to(cute.f32) end
      end, 4)
    refused("field 'state.phase' changes from f32 to i32 in cute.when "
      .. "[loop-type-changed]\n  convert it with :to(dtype), or use another "
      .. "field", function(_, n)
        local state = {phase = 0}
        cute.when(n:lt(3), function() state.phase = n:to(cute.f32) end,
                  function() state.phase = n end)
      end, 4)
    refused("which string 'o.mode' is cannot change in a traced loop "
      .. "[loop-type-changed]\n  unroll the loop with Lua's for, or select "
      .. "with Lua's if, by a condition known while tracing", function(_, n)
        local o = {mode = "a"}
        for _ in cute.range(n) do o.mode = o.mode .. "b" end
      end, 4)
  end)

  it("when it grows or shrinks", function()
    local new = " is nil before %s and has a value after it "
      .. "[loop-table-changed]\n  give it a value before, or keep it in a local"
    local gone = " has a value before this loop and is nil after it "
      .. "[loop-table-changed]\n  assign a value of the same type instead of "
      .. "nil"
    refused("field 'list[3]'" .. new:format "this loop", function(_, n)
      local list = {1, 2}
      for k in cute.range(n) do list[#list + 1] = k end
    end, 4)
    refused("field 'o.list[3]'" .. new:format "this loop", function(_, n)
      local o = {list = {"a", "b"}}
      for _ in cute.range(n) do table.insert(o.list, {}) end
    end, 4)
    refused("field 'shared.extra'" .. new:format "cute.when", function(_, n)
      cute.when(n:lt(3), function() shared.extra = n + 1 end)
    end, 4)
    refused("field 'list[2]'" .. gone, function(_, n)
      local list = {1, 2}
      for _ in cute.range(n) do table.remove(list) end
    end, 4)
    refused("field 'o.x'" .. gone:gsub("this loop", "cute.when"), function(_, n)
      local o = {x = 1}
      cute.when(n:lt(3), function() o.x = nil end)
    end, 4)
    assert.is_nil(shared.extra)
  end)

  it("when it is exchanged for another", function()
    refused("local 'a' holds a different table at the end of this loop than at "
      .. "its start [loop-type-changed]\n  keep one table and change its "
      .. "fields", function(_, n)
        local a, b = State.new(2), State.new(3)
        for _ in cute.range(n) do a, b = b, a end
      end, 4)
    refused("field 'o.first' holds a different table at the end of this loop "
      .. "than at its start [loop-type-changed]\n  keep one table and change "
      .. "its fields", function(_, n)
        local o = {first = State.new(2), second = State.new(3)}
        for _ in cute.range(n) do o.first, o.second = o.second, o.first end
      end, 4)
    local both = "'at' is a different table at the end of this loop, and "
      .. "'at[1]' of the original table changed [loop-table-changed]\n  either "
      .. "change the fields of one table, or create a new one each time"
    refused(both, function(_, n)
      local at = {1, 2}
      for _ in cute.range(n) do
        at[1] = at[1] + 1
        at = {at[1], at[2]}
      end
    end, 4)
    refused(both:gsub("%[1%]", "[2]"), function(_, n)
      local at, once = {1, 2}, 0
      -- From the second iteration on, the branch changes the table in place.
      for _ in cute.range(n) do
        cute.when(cute.gt(once, 0), function() at[2] = at[2] + 1 end)
        at, once = {at[1] + 1, at[2]}, once + 1
      end
    end, 4)
  end)

  it("under a traced key", function()
    refused("the traced value 'k' is a key of the plain table 't', which has "
      .. "no entry for it [traced-in-lua]\n  use a tensor, or "
      .. "cute.where(k:eq(i), x, y)", function(_, n)
        local t = {1, 2, 3, 4}
        for k in cute.range(n) do t[k] = 0 end
      end, 4)
  end)
end)

describe("a boolean that a loop carries", function()
  it("may be set before anything reads it", function()
    assert.same({1, 0}, run(2, function(out, n)
      local found, o = false, {seen = n:lt(0)}
      for k in cute.range(n) do
        found = k:eq(3)
        o.seen = found & k:eq(2)
        out[1] = cute.where(o.seen, 1, 0)
      end
      out[0] = cute.where(found, 1, 0)
    end, 4))
  end)

  it("is no condition of Lua's, in the loop or after it", function()
    local text = "this comparison was never used: a traced boolean is always "
      .. "true in Lua's if, and, or, not, while [unused-boolean]\n  branch "
      .. "with cute.when(cond, function() ... end), choose with cute.where, "
      .. "combine with & | ~"
    refused(text, function(out, n)
      local found = false
      for k in cute.range(n) do
        if found then out[0] = 1 end
        found = k:eq(3)
      end
    end, 4)
    refused(text, function(out, n)
      local found = false
      for k in cute.range(n) do found = found | k:eq(3) end
      if found then out[0] = 1 end
    end, 4)
    refused(text, function(out, n)
      local o = {found = false}
      cute.when(n:lt(3), function() o.found = n:gt(1) end)
      out[0] = not o.found and 1 or 2
    end, 4)
  end)

  it("is none as a vector, either", function()
    local function two(n)
      local r = cute.make_rmem_tensor({2}, cute.i32)
      r[0], r[1] = n, n + 1
      return r:load()
    end
    refused("this comparison was never used: a traced boolean is always true "
      .. "in Lua's if, and, or, not, while [unused-boolean]\n  branch with "
      .. "cute.when(cond, function() ... end), choose with cute.where, combine "
      .. "with & | ~", function(out, n)
      if two(n):gt(3) then out[0] = 1 end
    end, 4)
    -- Here the comparison is used, although only by a carried variable.
    assert.same({1, 5}, run(2, function(out, n)
      local most, found = two(n), two(n):gt(9)
      for _ in cute.range(n) do
        found = (most * 2):gt(9)
        most = cute.where(found, 5, 1)
      end
      out[0], out[1] = most[0], most[1]
    end, 4))
  end)
end)

describe("bodies in bodies", function()
  -- A trace of a loop repeats its body. When it repeats an outer loop, it must
  -- remember which variables the inner loops carry.
  it("run once or twice more for each level, and not twice as often", function()
    local level = {}
    function level.range(_, f) for _ in cute.range(2) do f() end end
    function level.when(n, f) cute.when(n:gt(1), f) end
    function level.loop(n, f)
      local i = 0
      cute.loop(function() return cute.lt(i, n) end, function()
        f()
        i = i + 1
      end)
    end
    for _, name in ipairs {"range", "when", "loop"} do
      local ran <close> = io.tmpfile()
      local function nest(depth, n, f)
        if depth == 0 then return f() end
        level[name](n, function() nest(depth - 1, n, f) end)
      end
      cute.kernel("k", function(out)
        local x, y = 0, 0
        nest(8, out[0], function()
          ran:write "."
          x, y = x + 1, y + x
        end)
        out[0] = x + y
      end)(cute.zeros({1}, cute.i32)):trace {block = 1}
      assert.is_true(ran:seek "end" <= 20, name)
    end
  end)
end)

describe("unrolled branches", function()
  -- For each variable of a loop, the tracer assumes bounds, and repeats the
  -- body until they hold. `range` unrolls the body. Bounds found after one copy
  -- of the body apply to the next copy in the same repetition, but not to later
  -- repetitions.
  it("converge if each changes what the previous one changed", function()
    local function body(out, at, when, range)
      local q, n = {n = 0}, 0
      for k in range(4) do
        when(at(k * 5 % 7, 2), function()
          for w = 1, 8 do
            when(at((k * 8 + w) * 7 % 12, w), function()
              q.n, n = q.n + 1, n - 3
              when(at(q.n, 2), function() q.n = q.n - 3 end)
            end)
          end
        end)
      end
      out[0], out[1] = q.n, n
    end
    local want = {}
    body(want, function(a, b) return a > b end, function(c, f)
      if c then f() end
    end, function(n)
      local k = -1
      return function()
        k = k + 1
        if k < n then return k end
      end
    end)
    assert.same({want[0], want[1]}, run(2, function(out)
      body(out, cute.gt, cute.when, cute.range)
    end))
    assert.is_true(want[1] < -9)
  end)
end)
-- SPDX-License-Identifier: MIT
