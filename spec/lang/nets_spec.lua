-- luacheck: ignore 211 212 231 241 311 331 512 542 (kernels to be refused)
-- Tests mistakes that Lua accepts and the tracer must reject: `==` in all its
-- forms, traced values as keys of tables, coroutines, and pcall. Also tests the
-- values other than numbers that loops and branches carry.
local cute = require "cute"
local run = require "spec.kernels".run
local support = require "spec.support"
local _ = cute._

-- Returns the message of the error that f raises as a kernel, and the error's
-- line relative to f's first line.
local function refused(f, ...)
  local text, line = support.message(run, 1, f, ...)
  return text:match "[^\n]*", line - debug.getinfo(f, "S").linedefined
end

local function beside(name)
  return ("'==' or '~=' beside the traced value '%s' is always false or true "
    .. "in Lua [traced-in-lua]"):format(name)
end
local COMPUTED = "'==' or '~=' beside a traced value is always false or true "
  .. "in Lua [traced-in-lua]"

describe("== on a traced value is reported", function()
  local function found(text, f, ...)
    assert.same({text, 1}, {refused(f, ...)})
  end

  it("in a call's result, an element, an expression", function()
    found(COMPUTED, function(out)
      if cute.arch.thread_idx() == 0 then out[0] = 1 end
    end)
    found(COMPUTED, function(out)
      if out[0] == 0 then out[0] = 1 end
    end)
    found(COMPUTED, function(out, n)
      out[0] = (cute.min(n, 3)) + 1 ~= 2 and 1 or 2
    end, 5)
    found(COMPUTED, function(out)
      if 0 == cute.arch.lane_idx() then out[0] = 1 end
    end)
  end)

  it("in the result of a function of the script", function()
    local function tid() return cute.arch.thread_idx() end
    found(COMPUTED, function(out)
      if tid() == 0 then out[0] = 1 end
    end)
    local kept
    local function again() return kept end
    assert.same({beside "n", 2}, {refused(function(out, n)
      kept = n
      if again() == 0 then out[0] = n end
    end, 5)})
  end)

  it("in fields, upvalues, globals", function()
    assert.same({beside "n", 2}, {refused(function(out, n)
      local t = {x = {n}}
      if t.x[1] == 0 then out[0] = 1 end
    end, 5)})
    assert.same({beside "k", 2}, {refused(function(out, n)
      local k = n + 1
      local function zero() return k == 0 end
      if zero() then out[0] = 1 end
    end, 5)})
    assert.same({COMPUTED, 2}, {refused(function(out, n)
      _G.NETS = n + 1
      if NETS == 0 then out[0] = 1 end  -- luacheck: ignore 113
    end, 5)})
    _G.NETS = nil
  end)

  it("if the same line assigns it", function()
    found(beside "k", function(out, n)
      local k = n + 1 if k == 0 then out[0] = 1 end
    end, 5)
    found(beside "k", function(out, n)
      for k in cute.range(n) do if k == 0 then out[0] = 1 end end
    end, 5)
  end)

  it("over lines, in coroutines, after a pcall", function()
    assert.same({beside "k", 5}, {refused(function(out, n)
      local k = n + 1
      if out.element_type == cute.i32 and
        (k)
        ==
        0 then out[0] = 1 end
    end, 5)})
    local text = refused(function(out, n)
      local co = coroutine.wrap(function()
        local k = n + 1
        if k == 0 then out[0] = 1 end
      end)
      co()
    end, 5)
    assert.truthy(text:find(beside "k", 1, true), text)
    for _, bad in ipairs {
      function() for _ in cute.range(4) do error "x" end end,
      function() for _ in cute.range(1.5) do error "x" end end} do
      assert.same({beside "k", 3}, {refused(function(out, n)
        pcall(bad)
        local k = n + 1
        if k == 0 then out[0] = 1 end
      end, 5)})
    end
  end)

  it("on one line with the helper that returns it", function()
    local function row() return cute.arch.thread_idx() + 1 end
    found(beside "i", function(out)
      local i = row() if i ~= 0 then out[0] = 1 end
    end)
    found(beside "i", function(out, n)
      local i = n return i == 3
    end, 5)
    found(beside "n", function(out, n)
      return (function() return n == 3 end)()
    end, 5)
  end)
end)

describe("== on a traced value is reported", function()
  -- These chunks do not come from a file, or have no line numbers.
  it("in chunks of any name, and stripped ones", function()
    local text = [[
      local cute = require "cute"
      local function half(n) return n // 2 end
      return function(out, n)
        local t = {[3] = 1}
        %s
      end]]
    local sign, key = "'==' or '~=' beside ", " is a key of the plain table"
    for _, case in ipairs {
      {"if half(n) == 1 then out[0] = 1 end", sign .. "a traced value"},
      {"local h = half(n) if h ~= 0.5 then n = 1 end", sign .. "the"},
      {"local h, i = half(n), 2 local c = h == i", sign .. "the"},
      {"local h, i = half(n), 2 local c = i == h", sign .. "the"},
      {"local c = n == true", sign .. "the traced value 'n'"},
      {"local c = half(n):lt(3) ~= false", sign .. "a traced value"},
      {"local c = t[n]", "the traced value 'n'" .. key .. " 't'"},
      {"t[half(n)] = 1", "a traced value" .. key .. " 't'"},
      {"local r = cute.make_rmem_tensor({2}, cute.i32) r:fill(0) "
        .. "local c = r:load() == 0", sign .. "a traced value"},
      {"local v = cute.var(0) local c = v == 0", sign .. "the"},
      {"local v = cute.var(0) local c = n ~= v", sign .. "the"},
    } do
      local body, want = table.unpack(case)
      for _, chunk in ipairs {"=lib", "@nowhere.lua", "text"} do
        local f = assert(load(text:format(body), chunk))
        local function go(g)
          cute.kernel("k", g())(cute.zeros({4}, cute.i32), 5):trace {block = 1}
        end
        local ok, message = pcall(go, f)
        assert.is_false(ok, body)
        assert.truthy(message:find(want, 1, true), body .. ": " .. message)
        assert.truthy(message:find("[traced-in-lua]", 1, true), message)
        local stripped = support.message(go, load(string.dump(f, true)))
        assert.truthy(stripped:find(want:sub(1, #sign) == sign and sign or key,
                                    1, true), stripped)
      end
    end
  end)

  it("between two of them, with __eq, also for the same value", function()
    local text = refused(function(out, n) return n == n + 1 end, 5)
    assert.truthy(text:find("'==' on a traced value", 1, true), text)
    assert.same({1}, run(1, function(out, n)
      local m = n
      out[0] = m == n and 1 or 2
    end, 5))
  end)

  it("but not if its answer is right", function()
    local cases = {nil, "auto", cute._, cute.f32, cute.make_layout {4}, {}, run}
    assert.same({14}, run(1, function(out, n, same)
      local count, none = 0, nil
      if n == nil or n == none then count = 100 end
      if n ~= nil and none ~= n then count = count + 1 end
      if n == "auto" or n == {} then count = count + 100 end
      for i = 1, 7 do
        if n == cases[i] then count = count + 100 end
        if cases[i] ~= n then count = count + 1 end
      end
      if same then count = count + 6 end
      out[0] = count
    end, 5, true))
  end)

  it("nor for plain numbers, whatever the line computes", function()
    local mode = 1
    local function cast(a) if mode == 1 then return a:to(cute.f32) end end
    local function pair(a) if mode == 1 then return a + 1, a * 2 end end
    assert.same({7}, run(1, function(out, n)
      cast(n)
      local first = pair(n) if #"x" == 1 then cast(first) end
      out[0] = first + 1
    end, 5))
  end)

  it("and comparing only numbers is no error", function()
    assert.same({3, 5, 12, 7}, run(4, function(out, n)
      local mode, t = "a", {1, 2, k = 3}
      local function pick(i) if mode == "a" then return i + 1, i + 2 end end
      local x = mode == "a" and n + 1 or n + 2
      local y = n if #t == 2 then y = n + t.k end
      local s = 0
      for _ in cute.range(n) do if t[1] == 1 then s = s + n + 4 end end
      local z = pick(n * 3)
      out[0], out[1], out[2], out[3] = x, y, s, z
      if out.element_type == cute.i32 and n.dtype == cute.i32 then n = n + 1 end
    end, 2))
  end)
end)

describe("a traced key of a plain table is reported", function()
  local function text(key, t)
    return ("%s is a key of the plain table%s, which has no entry for it "
      .. "[traced-in-lua]"):format(key, t)
  end

  it("in reading and writing", function()
    local n_of_t = text("the traced value 'n'", " 't'")
    assert.same({n_of_t, 2}, {refused(function(out, n)
      local t = {1, 2}
      out[0] = t[n] or 5
    end, 1)})
    assert.same({text("the traced value 'n'", ""), 2}, {refused(function(out, n)
      local k, o = n + 1, {t = {}}
      o.t[k - 1] = 3
    end, 1)})
    assert.same({n_of_t, 1}, {refused(function(out, n)
      local t = {1, 2} out[0] = t[n] or 5
    end, 1)})
  end)

  it("except if a metatable handles it", function()
    assert.same({6}, run(1, function(out, n)
      local t = setmetatable({}, {__index = function(__, k) return k * 2 end})
      out[0] = t[n]
    end, 3))
  end)
end)

describe("Lua's library on a traced value", function()
  it("names the cute function if there is one", function()
    local function hint(f)
      local text = support.message(run, 1, f, 3)
      return text:match "%[traced%-in%-lua%]\n  ([^\n]*)"
    end
    assert.equal("use cute.floor(...)", hint(function(__, n)
      return math.floor(n)
    end))
    assert.equal("use cute.max(...), or methods such as a:lt(b)",
      hint(function(__, n) return math.max(n, 1) end))
    assert.equal("compare with methods such as a:lt(b)",
      hint(function(__, n) return table.sort {n, n + 1} end))
    assert.equal("a traced value exists only on the device",
      hint(function(__, n) return select(n, 1, 2) end))
    assert.equal("a traced value exists only on the device",
      hint(function(__, n) return #n end))
  end)
end)

describe("loops and branches carry", function()
  local data = cute.tensor({{1, 2}, {10, 20}, {100, 200}}, cute.i32)

  it("booleans", function()
    assert.same({1, 0}, run(2, function(out, n)
      local found, all = false, n:lt(100)
      for k in cute.range(n) do
        found = found | k:eq(3)
        all = all & k:lt(3)
      end
      out[0], out[1] = cute.where(found, 1, 0), cute.where(all, 1, 0)
    end, 5))
  end)

  it("register vectors", function()
    local out = cute.zeros({4}, cute.f32)
    cute.kernel("k", function(o, n)
      local r = cute.make_rmem_tensor({4}, cute.f32)
      for i = 0, 3 do r[i] = i end
      local x = r:load()
      local sum, last, i = x * 0, nil, 0
      for _ in cute.range(n) do sum = sum + x end                  -- 5 x
      cute.when(n:gt(3), function() sum = sum * 2 end)             -- 10 x
      cute.when(n:gt(9), function() last = x end,
                function() last = sum + 1 end)  -- now last = 10 x + 1
      cute.loop(function() return cute.lt(i, 3) end, function()
        last, i = last + i, i + 1                                  -- + 3
      end)
      o:store(last)
    end)(out, 5):launch {grid = 1, block = 1, device = "sim"}
    assert.same({4.0, 14.0, 24.0, 34.0}, {out[0], out[1], out[2], out[3]})
  end)

  it("tensors, with their dynamic extents", function()
    assert.same({20, 200, 20}, run(3, function(out, t, n)
      local row, i, none = t(0, _), 0, nil
      cute.when(n:gt(3), function() row = t(n - 4, _) end)
      out[0] = row[1]
      cute.loop(function() return cute.lt(i, 2) end, function()
        i = i + 1
        row = t(i, _)
      end)
      out[1] = row[1]
      cute.when(n:gt(3), function() none = t(n - 4, _) end,
                function() none = t(n, _) end)
      out[2] = none[1]
    end, data, 5))
    assert.same({17, 12}, run(2, function(out, t, n)
      local function prefix(size)
        return cute.make_tensor(t.iterator, cute.make_layout({size}, {2}))
      end
      local v, sum = prefix(n), 0
      for _ in cute.range(2) do
        sum = sum + cute.size(v)
        v = prefix(n + 7)
      end
      out[0], out[1] = sum, cute.size(v)
    end, data, 5))
  end)

  it("plain tables of them", function()
    assert.same({5, 10, 8}, run(3, function(out, n)
      local at, pos = {0, {0, 3}}, {row = 0, col = 1}
      for k in cute.range(n) do at = {at[1] + 1, {at[2][1] + k, 3}} end
      cute.when(n:gt(2), function() pos = {row = 7, col = pos.col} end)
      out[0], out[1], out[2] = at[1], at[2][1], pos.row + pos.col
    end, 5))
  end)

  it("changes by closures, recursion and varargs", function()
    local shared
    local function one() shared = shared + 1 end
    local function two() shared = shared * 2 end
    assert.same({30, 14, 15}, run(3, function(out, n)
      local steps = 0
      shared = 0
      for _ in cute.range(n) do
        one()
        two()
      end
      local function descend(d)
        if d == 0 then return end
        for _ in cute.range(2) do
          steps = steps + 1
          descend(d - 1)
        end
      end
      descend(3)
      local function total(...)
        local s = 0
        for _ in cute.range(n - 1) do
          for i = 1, select("#", ...) do s = s + (select(i, ...)) end
        end
        return s
      end
      out[0], out[1], out[2] = shared, steps, total(2, n - 1)
    end, 4))
  end)

  it("in one loop of a helper different locals for each call", function()
    local function sum(n, f)
      local s = 0
      for k in cute.range(n) do s = s + f(k) end
      return s
    end
    assert.same({5, 40, 10}, run(3, function(out, n)
      local extra = 0
      out[0] = sum(n, function(k) extra = extra + k return 1 end)
      out[1] = sum(n - 1, function() return extra end)
      out[2] = extra
    end, 5))
  end)
end)

describe("loops and branches carry", function()
  it("190 locals and 60 upvalues", function()
    local text = {"local cute = require 'cute'"}
    for i = 1, 60 do text[#text + 1] = ("local a%d = %d"):format(i, i) end
    text[#text + 1] = "return function(out, n)"
    for i = 1, 190 do text[#text + 1] = ("local b%d = %d"):format(i, i) end
    text[#text + 1] = "for k in cute.range(n) do"
    for i = 1, 190 do text[#text + 1] = ("b%d = b%d + k"):format(i, i) end
    for i = 1, 60 do text[#text + 1] = ("a%d = a%d + k"):format(i, i) end
    text[#text + 1] = "end out[0], out[1] = b1, b190 + a60 end"
    local f = assert(load(table.concat(text, "\n"), "@many.lua"))()
    assert.same({11, 270}, run(2, f, 5))
  end)

  it("and reject the others, by name", function()
    local text, line = refused(function(out, n)
      local p = setmetatable({n}, {})
      for _ in cute.range(n) do
        p = setmetatable({p[1] + 1}, {})
      end
    end, 3)
    assert.equal("local 'p' holds a different table at the end of this loop "
      .. "than at its start [loop-type-changed]", text)
    assert.equal(2, line)
    assert.equal("local 'p' changes from {a Lua integer} to {a Lua integer, "
      .. "a Lua integer} in this loop [loop-type-changed]",
      (refused(function(out, n)
        local p = {1}
        for _ in cute.range(n) do p = {1, 2} end
      end, 3)))
  end)
end)

describe("an error caught inside a kernel", function()
  it("leaves no state of its loop or branch", function()
    assert.same({5, 0}, run(2, function(out, n)
      local s, inner = 0, 0
      for k in cute.range(n) do
        pcall(function()
          cute.when(k:lt(2), function() s = s + 100 error "x" end)
        end)
        pcall(function()
          for _ in cute.range(3) do inner = inner + 1 error "y" end
        end)
        s = s + 1
      end
      out[0], out[1] = s, inner
    end, 5))
    assert.same({5}, run(1, function(out, n)
      pcall(function()
        for _ in cute.range(4) do out[0] = n < 3 and 1 or 2 end
      end)
      out[0] = n
    end, 5))
  end)
end)

describe("a coroutine of a kernel", function()
  it("may hold a loop, whole", function()
    assert.same({10}, run(1, function(out, n)
      local co = coroutine.wrap(function()
        local s = 0
        for k in cute.range(n) do s = s + k end
        coroutine.yield(s)
      end)
      out[0] = co()
    end, 5))
  end)

  it("may not leave a region open", function()
    assert.same({"a coroutine left this traced loop or branch, and nothing "
      .. "resumed it [loop-exit]", 2}, {refused(function(out, n)
        local co = coroutine.wrap(function()
          for k in cute.range(n) do
            coroutine.yield(k)
          end
        end)
        co()
        out[0] = 1
      end, 5)})
  end)

  it("may not interleave two regions", function()
    local goes_on = "a coroutine that started outside of this traced loop or "
      .. "branch continues inside it [loop-exit]"
    assert.truthy(refused(function(out, n)
      local co = coroutine.wrap(function()
        for k in cute.range(n) do coroutine.yield(k) end
      end)
      co()
      for _ in cute.range(n) do co() end
    end, 5):find(goes_on, 1, true))
  end)

  local function numbers()
    return coroutine.wrap(function()
      for i = 1, 4 do coroutine.yield(i) end
    end)
  end

  it("may begin and end in a loop's body, and continue around loops", function()
    assert.same({50}, run(1, function(out, n)
      local s = 0
      for _ in cute.range(n) do
        for x in numbers() do s = s + x end
      end
      out[0] = s
    end, 5))
    assert.same({50}, run(1, function(out, n)
      local s = 0
      for x in numbers() do
        for _ in cute.range(n) do s = s + x end
      end
      out[0] = s
    end, 5))
  end)

  it("may not pass values between two traces of a body", function()
    local function goes_on(f)
      return refused(f, 5):match "a coroutine that [^\n]*"
    end
    local left = "a coroutine that started in %s is still suspended at its end "
      .. "[loop-exit]"
    local before = "a coroutine that started outside of this traced loop or "
      .. "branch continues inside it [loop-exit]"
    assert.equal(left:format "this loop", goes_on(function(out, n)
      local next_of, s = numbers(), 0
      for _ in cute.range(n) do s = s + next_of() end
      out[0] = s
    end))
    assert.equal(before, goes_on(function(out, n)
      local next_of, s = numbers(), numbers()()
      next_of()
      for _ in cute.range(n) do s = s + next_of() end
      out[0] = s
    end))
    assert.equal(left:format "this loop", goes_on(function(out, n)
      local co = coroutine.create(function() coroutine.yield(1) end)
      for _ in cute.range(n) do
        out[0] = select(2, coroutine.resume(co))
      end
    end))
    assert.equal(left:format "cute.when", goes_on(function(out, n)
      local next_of, s = numbers(), 0
      cute.when(n:lt(9), function() s = s + next_of() end)
      out[0] = s
    end))
  end)
end)

describe("a kernel's name", function()
  it("is changed if C reserves it, and reported under its own name", function()
    for _, name in ipairs {"smem", "main", "float", "printf", "norm"} do
      local p = cute.kernel(name, function(out) out[0] = 1 end)(
        cute.zeros({1}, cute.i32)):trace {block = 1}
      local text, __, called = p:cuda()
      assert.not_equal(name, called)
      assert.truthy(text:find("\n" .. called .. "(int *", 1, true), text)
    end
  end)
end)

describe("on a GPU #gpu", function()
  it("such kernels run under the names that C leaves", function()
    for _, name in ipairs {"smem", "main", "float", "printf", "norm"} do
      local out = cute.zeros({32}, cute.i32)
      assert(cute.kernel(name, function(o)
        local tid = cute.arch.thread_idx()
        o[tid] = tid * 2
      end)(out):launch {grid = 1, block = 32, device = "gpu"})
      assert.equal(62, out[31])
    end
  end)

  it("vectors, tables and dynamic tensors are carried as simulated", function()
    local k = cute.kernel("k", function(o, mA, n)
      local r = cute.make_rmem_tensor({4}, cute.f32)
      cute.autovec_copy(cute.local_tile(mA, {1, 4}, {0, 0})(0, _), r)
      local x, at = r:load(), {0, 1.0}
      local sum, row, last = x * 0, mA(0, _), nil
      for i in cute.range(n) do
        sum = sum + x * at[2] + row[1]
        row = mA(i, _)
        at = {at[1] + 1, at[2] * 0.5}
      end
      cute.when(n:gt(3), function() last = sum * 2 end,
                function() last = x end)
      o:store(last + at[1])
    end)
    local A = cute.zeros({8, 4}, cute.f32)
    for i = 0, 7 do for j = 0, 3 do A[{i, j}] = i * 4 + j / 3 end end
    local function run_on(device)
      local out = cute.zeros({4}, cute.f32)
      assert(k(out, A:mark_layout_dynamic(), 5):launch {
        grid = 1, block = 1, device = device})
      return {out[0], out[1], out[2], out[3]}
    end
    assert.same(run_on "sim", run_on "gpu")
  end)
end)

describe("offsets of a tensor with over 2^31 elements", function()
  local N = 70000
  for _, form in ipairs {"static", "dynamic"} do
    it("have 64 bits: " .. form .. " #noasan #long", function()
      local A, out = cute.zeros({N, N}, cute.u8), cute.zeros({3}, cute.i32)
      A[{N - 1, 3}] = 7
      local a = form == "static" and A or A:mark_layout_dynamic()
      cute.kernel("k", function(mA, o, n)
        local bid, sum = cute.arch.block_idx(), 0
        local row = mA(n - 1 - bid, cute._)
        local gA = cute.local_tile(mA, {1, 100}, {n - 1 - bid, cute._})
        for k in cute.range(3) do
          sum = sum + row[3]:to(cute.i32)
          row = mA(n - 1 - k, cute._)
        end
        o[bid] = sum
        cute.when(bid:eq(0), function() o[2] = gA[{0, 3, 0}]:to(cute.i32) end)
        mA[{n - 1 - bid, n - 1}] = (bid + 1):to(cute.u8)
      end)(a, out, N):launch {grid = 2, block = 1, device = "sim"}
      assert.same({14, 7, 7, 1, 2}, {out[0], out[1], out[2],
                  A[{N - 1, N - 1}], A[{N - 2, N - 1}]})
    end)
  end

  it("use 32 bits for others, and one marked tensor serves both", function()
    local k = cute.kernel("k", function(mA) mA[{0, 1}] = mA[{1, 0}] end)
    local function text(rows, cols)
      return k(cute.empty({rows, cols}, cute.u8):mark_layout_dynamic())
        :trace({block = 1}).source
    end
    assert.truthy(text(N, N):find("long long mA_stride0", 1, true))
    assert.falsy(text(100, 100):find("long long", 1, true))
    assert.equal(text(100, 100), text(200, 300))
  end)
end)

describe("x, y and z passed to a call that needs x", function()
  local arch = cute.arch
  local function report(to, from)
    return ("%s gets x, y and z of cute.arch.%s [bad-argument]"):format(to,
                                                                          from)
  end
  local function found(to, from, f)
    assert.same({report(to, from), 1}, {refused(f)})
  end

  it("is found in loops, numbers, conditions, tiles", function()
    found("cute.range", "grid_dim", function(out)
      for i in cute.range(arch.grid_dim()) do out[i] = 1 end
    end)
    found("cute.range", "block_dim", function(out)
      for i in cute.range(0, arch.block_dim()) do out[i] = 1 end
    end)
    found("cute.min", "thread_idx", function(out)
      out[0] = cute.min(7, arch.thread_idx())
    end)
    found("cute.max", "cluster_idx", function(out)
      local n = cute.max(out[0], 2, arch.cluster_idx()) + 1
    end)
    found("cute.clamp", "block_idx", function(out)
      out[0] = cute.clamp(arch.block_idx())
    end)
    found("cute.arch.shuffle_sync", "block_in_cluster_idx", function(out)
      out[0] = arch.shuffle_sync(out[0], arch.block_in_cluster_idx())
    end)
    found("cute.product", "grid_dim", function(out)
      out[0] = cute.product(arch.grid_dim())
    end)
    found("value:eq", "thread_idx", function(out)
      return out[0]:eq(arch.thread_idx())
    end)
    found("cute.local_tile", "block_idx", function(out)
      local t = cute.local_tile(out, {2}, arch.block_idx())
    end)
    found("cute.make_layout", "block_in_cluster_dim", function(_)
      local l = cute.make_layout(arch.block_in_cluster_dim())
    end)
  end)

  it("is found through locals, fields, methods and helpers", function()
    local idx, least = arch.thread_idx, cute.min
    local lib = {at = {idx = idx}}
    local function tid() return arch.thread_idx() end
    local function cluster() return arch.cluster_dim() end
    found("cute.min", "thread_idx", function(out)
      out[0] = least(7, idx())
    end)
    found("cute.min", "thread_idx", function(out)
      out[0] = least(7, lib.at.idx())
    end)
    assert.same({report("cute.min", "thread_idx"), 1}, {refused(function(out)
      out[0] = least(out[0], 7, tid())
    end)})
    found("cute.range", "cluster_dim", function(out)
      for i in cute.range(1, cluster()) do out[i] = 1 end
    end)
  end)

  it("are accepted by coordinates, lists, prints, helpers", function()
    local function add(x, y, z) return x + 2 * y + 4 * z end
    local function all(...) return select("#", ...) end
    local function tid() return arch.thread_idx() end
    local seen
    run(4, function(out)
      local cube = cute.make_tensor(out.iterator, cute.make_layout {1, 1, 1})
      local x, y, z = arch.thread_idx()
      local block = {arch.block_idx()}
      seen = {#block, all(arch.block_dim()), #{7, tid()},
              select("#", tid()), select("#", add(tid()))}
      cute.when(x:eq(0), function() out[1] = add(arch.thread_idx()) + y + z end)
      cube(arch.block_idx())
      cute.when(x:gt(5), function()
        cute.printf("%d %d %d", arch.thread_idx())
      end)
      cute.ArithmeticTuple(arch.block_idx())
      cute.make_tiled_copy_tv(
        cute.make_copy_atom("UniversalCopy", cute.i32, 32),
        cute.make_layout(1), cute.make_layout(1)):get_slice(arch.thread_idx())
      local widest = cute.max(arch.block_dim())
      out[2] = cute.min(7, (arch.thread_idx()))
      for i in cute.range((arch.grid_dim())) do out[3] = i + widest end
    end)
    assert.same({3, 3, 4, 3, 1}, seen)
  end)
end)
-- SPDX-License-Identifier: MIT
