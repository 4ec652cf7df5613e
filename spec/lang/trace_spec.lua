-- luacheck: ignore 241 331 512 (tables only written, loops left at once)
-- Tests tracing: loops, branches and all of their checks, with the error texts
-- that users see. Carried variables are checked in the IR and, where their
-- values matter, by a run of the kernel on the simulator.
local cute = require "cute"
local kernels = require "spec.kernels"
local run = kernels.run
local support = require "spec.support"

local function trace(f, ...)
  return cute.kernel("k", f)(...):trace {block = 32}
end

-- Returns the message of the error with which tracing f fails, and the line
-- that it names.
local function message(f, ...) return support.message(trace, f, ...) end

-- Checks that each kernel of `cases`, {text = kernel}, is rejected with a
-- message that begins with its text.
local function refused(cases, ...)
  for want, f in pairs(cases) do
    assert.equal(want, message(f, ...):sub(1, #want))
  end
end

describe("cute.range", function()
  it("takes integers, and checks its options", function()
    refused {
      ["bad argument #1 to 'cute.range' (number or traced value expected, got "
        .. "no value) [bad-argument]"] =
        function() for _ in cute.range() do error "never" end end,
      ["bad argument #1 to 'cute.range' (number or traced value expected, got "
        .. "nil) [bad-argument]"] =
        function() for _ in cute.range do error "never" end end,
      ["cute.range: no option 'unrol' (did you mean unroll?): there is unroll "
        .. "[unknown-name]"] =
        function() for _ in cute.range(4, {unrol = 2}) do error "no" end end,
      ["cute.range: unroll = 0: 1 to 1024 expected [bad-argument]"] =
        function() for _ in cute.range(4, {unroll = 0}) do error "no" end end,
      ["cute.range: unroll = 2: 1 to 1024 expected [bad-argument]"] =
        function() for _ in cute.range(4, {unroll = "2"}) do error "" end end,
    }
  end)

  it("carries locals that change, found by running the body", function()
    assert.same({45, 10, 7}, run(3, function(out)
      local sum, count, untouched = 0, 0, 7
      for k in cute.range(10) do
        sum = sum + k
        count = count + 1
      end
      out[0], out[1], out[2] = sum, count, untouched
    end))
  end)

  it("rotates locals as Lua's multiple assignment does", function()
    local function fib(n)
      local a, b = 0, 1
      for _ = 1, n do a, b = b, a + b end
      return a
    end
    assert.same({fib(20)}, run(1, function(out)
      local a, b = 0, 1
      for _ in cute.range(20) do a, b = b, a + b end
      out[0] = a
    end))
  end)

  it("takes traced limits and steps, and none at all", function()
    assert.same({3 + 5 + 7 + 9, 0}, run(2, function(out, n)
      local sum, none = 0, 0
      for k in cute.range(3, n, 2) do sum = sum + k end
      for k in cute.range(n, 3) do none = none + k end
      out[0], out[1] = sum, none
    end, 10))
  end)

  it("nests, and carries through both loops", function()
    assert.same({60, 12}, run(2, function(out)
      local sum, trips = 0, 0
      for i in cute.range(3) do
        local row = 0
        for j in cute.range(4) do
          row = row + j + i
          trips = trips + 1
        end
        sum = sum + row * 2
      end
      out[0], out[1] = sum, trips
    end))
  end)

  it("carries upvalues that a called closure changes", function()
    assert.same({5}, run(1, function(out)
      local n = 0
      local function bump() n = n + 1 end
      for _ in cute.range(5) do bump() end
      out[0] = n
    end))
  end)

  it("carries a local that only a later pass changes", function()
    -- On the first pass, `first` is a number of the host, so the condition is
    -- false and `late` does not change. On later passes `late` changes.
    assert.same({4, 3}, run(2, function(out)
      local first, late = 0, 0
      for _ in cute.range(4) do
        cute.when(cute.gt(first, 0), function() late = late + 1 end)
        first = first + 1
      end
      out[0], out[1] = first, late
    end))
  end)

  it("carries sliced tensors by their offset", function()
    local src = cute.tensor({{1, 2}, {10, 20}, {100, 200}}, cute.i32)
    assert.same({1 + 10 + 100, 200}, run(2, function(out, t)
      local row, sum, last = t(0, cute._), 0, 0
      for k in cute.range(3) do
        sum = sum + row[0]
        last = row[1]
        row = t(cute.min(k + 1, 2), cute._)
      end
      out[0], out[1] = sum, last
    end, src))
  end)

  it("uses bounds of loop variables: no floor fix-ups", function()
    local p = trace(function(out)
      local slot = 0
      for _ in cute.range(9) do slot = (slot + 1) % 3 end
      out[0] = slot
    end, cute.zeros({1}, cute.i32))
    assert.is_nil(p.source:find("floor", 1, true), p.source)
  end)
end)

describe("cute.range", function()
  it("converts an integer to the type of its operand", function()
    local out = cute.zeros({1}, cute.f32)
    cute.kernel("k", function(o)
      local acc = 0
      for k in cute.range(4) do acc = acc + k:to(cute.f32) * 0.5 end
      o[0] = acc
    end)(out):launch {grid = 1, block = 1, device = "sim"}
    assert.equal(3.0, out[0])
  end)

  it("is a plain loop outside kernels", function()
    local seen = {}
    for k in cute.range(1, 6, 2) do seen[#seen + 1] = k end
    assert.same({1, 3, 5}, seen)
  end)

  it("rejects a local whose type changes", function()
    assert.equal("local 'x' changes from i32 to f32 in this loop "
      .. "[loop-type-changed]\n  convert it with :to(dtype), or use another "
      .. "local", (message(function(out)
        local x = cute.arch.thread_idx()
        for _ in cute.range(4) do x = x:to(cute.f32) end
        out[0] = x
      end, cute.zeros({1}, cute.i32))))
  end)

  it("rejects values that it cannot carry", function()
    local text = message(function()
      local name = "a"
      for _ in cute.range(4) do name = name .. "b" end
    end)
    assert.equal("which string 'name' is cannot change in a traced loop "
      .. "[loop-type-changed]", text:match "[^\n]+")
  end)

  it("rejects break, and return", function()
    local expected = "break, return or goto out of a traced loop: its body is "
      .. "traced once for all iterations [loop-exit]\n  "
      .. "cute.break_if(condition) leaves the loop"
    assert.equal(expected, (message(function()
      for k in cute.range(4) do
        if k then break end
      end
    end)))
    assert.equal(expected, (message(function()
      for _ in cute.range(4) do
        do return end
      end
    end)))
  end)

  it("passes an error out of the body through", function()
    local text = message(function()
      for _ in cute.range(4) do error "mine" end
    end)
    assert.equal("mine", text)
  end)

  it("names the limit that is no integer", function()
    assert.equal("cute.range: a limit is 1.5, not an integer [bad-argument]\n  "
      .. "write a // b for an integer: a / b is a float",
      (message(function() for _ in cute.range(1.5) do return end end)))
  end)
end)

describe("cute.when", function()
  it("merges the assignments of its branches", function()
    assert.same({1, 20, 3, 5}, run(4, function(out, n)
      local a, b, c, d = 0, 0, 3, nil
      cute.when(n:lt(10), function() a, b = 1, 10 end,
                function() b = 2 end)
      cute.when(n:gt(10), function() c = 4 end, function() b = b * 2 end)
      cute.when(n:eq(5), function() d = 5 end, function() d = 6 end)
      out[0], out[1], out[2], out[3] = a, b, c, d
    end, 5))
  end)

  it("takes plain booleans, and decides then", function()
    local p = trace(function(out)
      cute.when(cute.lt(1, 2), function() out[0] = 1 end,
                function() out[0] = 2 end)
    end, cute.zeros({1}, cute.i32))
    assert.is_nil(p.ir:find("\n *if ", 1), p.ir)
  end)

  it("nests in loops and in itself", function()
    local expect = 0
    for k = 0, 9 do
      if k % 2 == 0 then
        if k > 4 then expect = expect + 10 * k else expect = expect + k end
      end
    end
    assert.same({expect}, run(1, function(out)
      local sum = 0
      for k in cute.range(10) do
        cute.when((k % 2):eq(0), function()
          cute.when(k:gt(4), function() sum = sum + 10 * k end,
                    function() sum = sum + k end)
        end)
      end
      out[0] = sum
    end))
  end)

  it("rejects branches that disagree", function()
    local text = message(function(out)
      local n = cute.arch.thread_idx()
      local x = n
      cute.when(n:lt(3), function() x = n:to(cute.f32) end)
      out[0] = x
    end, cute.zeros({1}, cute.i32))
    assert.equal("local 'x' changes from i32 to f32 in cute.when "
      .. "[loop-type-changed]", text:match "[^\n]+")
  end)

  it("rejects empty functions, and results of one branch only",
    function()
    local out = cute.zeros({1}, cute.i32)
    local skips = "the function contains only `return`, which does not leave "
      .. "the kernel [bad-argument]\n  write cute.return_if(condition) to "
      .. "leave the kernel, cute.break_if(condition) to leave a loop"
    local given = "the function returned a value, which is not used "
      .. "[bad-argument]\n  assign it to a local of the kernel, which keeps "
      .. "its value after the loop"
    local function counts(first, second)
      return ("cute.when: the first function returns %s, %s [bad-argument]\n  "
        .. "return the same number of values from both, or assign to a local "
        .. "of the kernel, which keeps its value after the "
        .. "branch"):format(first, second)
    end
    local function set(o) o[0] = 1 end
    refused({
      ["cute.when: " .. skips] = function(_, n)
        cute.when(n:lt(3), function() return end)
      end}, out, 5)
    refused({
      ["cute.when: " .. skips] = function(o, n)
        cute.when(n:lt(3), function() set(o) end, function() return end)
      end}, out, 5)
    refused({
      ["cute.when: " .. skips] = function(o, _)
        cute.when(true, function() return end, function() set(o) end)
      end,
      [counts("1 value", "but there is no second function")] = function(o, n)
        cute.when(n:lt(3), function() set(o) return 5 end)
      end,
      ["cute.loop: " .. skips] = function(_, n)
        cute.loop(function() return n:lt(3) end, function() return end)
      end,
      ["cute.loop: " .. given] = function(o, n)
        cute.loop(function() return n:lt(3) end, function()
          set(o)
          return nil
        end)
      end,
      ["cute.when: the function is empty, so the condition has no effect "
        .. "[bad-argument]"] = function(_, n)
        cute.when(n:lt(3), function() end)
      end}, out, 5)
    refused({
      [counts("2 values", "the second no values")] = function(o, n)
        cute.when(n:lt(3), function() return 5, n end, function() set(o) end)
      end,
      [counts("no values", "the second 1 value")] = function(o, n)
        cute.when(n:lt(3), function() set(o) end, function() return n end)
      end,
      [counts("1 value", "but there is no second function")] = function(_, _)
        cute.when(true, function() return 1 end)
      end}, out, 5)
    assert.same({3}, run(1, function(o, n)
      o[0] = 1
      cute.when(n:lt(3), function() end, function()
        o[0] = 3
        if o then return end
        o[0] = 4
      end)
      cute.loop(function() return n:lt(3) end, function() end)
    end, 5))
  end)
end)

describe("cute.when", function()
  it("rejects a condition that is no boolean", function()
    assert.equal("cute.when: the condition is i32, not a boolean "
      .. "[type-mismatch]", (message(function(n)
        cute.when(n, function() end)
      end, 5)))
    assert.equal("bad argument #1 to 'cute.when' (boolean or traced value "
      .. "expected, got nil) [bad-argument]\n  use cute.when(condition, f?, "
      .. "g?)",
      (message(function()
        cute.when(nil, function() end)
      end)))
  end)
end)

describe("cute.loop and cute.var", function()
  it("need a boolean", function()
    refused {
      ["cute.loop: the condition is number, not a boolean [type-mismatch]"] =
        function() cute.loop(function() return 1 end, function() end) end,
      ["cute.loop: the condition is nil, not a boolean [type-mismatch]"] =
        function() cute.loop(function() end, function() end) end,
      ["cute.loop: the condition is i32, not a boolean [type-mismatch]"] =
        function()
          cute.loop(cute.arch.lane_idx, function() end)
        end,
    }
  end)

  it("is not itself a number", function()
    local text = "a cute.var was used as a number [type-mismatch]\n  write "
      .. "v.value for its current value"
    for _, f in ipairs {
      function(v) return v + 1 end, function(v) return 2 * v end,
      function(v) return cute.arch.lane_idx() - v end,
      function(v) return v < 3 end, function(v) return -v end,
      function(v) cute.when(v:lt(3), function() end) end} do
      local got = message(function() f(cute.var(1)) end)
      assert.equal(text, (got:gsub("^var:lt: ", "")))
    end
  end)

  it("repeat while the condition holds", function()
    local steps, n = 0, 27
    while n ~= 1 do
      n = n % 2 == 0 and n // 2 or 3 * n + 1
      steps = steps + 1
    end
    assert.same({steps}, run(1, function(out, start)
      local x, count = start, 0
      cute.loop(function() return x:ne(1) end, function()
        x = cute.where((x % 2):eq(0), x // 2, 3 * x + 1)
        count = count + 1
      end)
      out[0] = count
    end, 27))
  end)

  it("keep an explicit mutable scalar", function()
    assert.same({6, 12}, run(2, function(out)
      local v = cute.var(0)
      local holder = {v = v}
      for k in cute.range(4) do holder.v.value = v.value + k end
      out[0] = v.value
      v:set(v:get() * 2)
      out[1] = v.value
    end))
  end)
end)

describe("traced values in Lua's own operators", function()
  it("compare with methods only", function()
    for sign, method in pairs {["<"] = "lt", ["<="] = "le"} do
      local f = assert(load(("return function(n) if n %s 3 then end end")
        :format(sign), "@spec/lang/trace_spec.lua"))()
      assert.equal(("'%s' on a traced value: Lua would need the result "
        .. "during the trace [traced-in-lua]\n  write a:%s(b), and "
        .. "cute.when(...) to branch on it"):format(sign, method),
        (message(f, 5)))
    end
  end)

  it("are reported beside ==, which Lua evaluates itself", function()
    local text, line = message(function(n)
      local k = n + 1
      if k == 0 then return end
    end, 5)
    assert.equal("'==' or '~=' beside the traced value 'k' is always false "
      .. "or true in Lua [traced-in-lua]\n  write k:eq(x) or k:ne(x), and "
      .. "cute.when(...) to branch on it", text)
    assert.is_truthy(line)
    assert.is_truthy(message(function(n)
      local t = {}
      t.x = (n % 2) ~= 0
    end, 5):find "beside a traced value is")
  end)

  it("are not reported beside == in calls and fields", function()
    trace(function(out, n)
      if out.element_type == cute.i32 and n.dtype == cute.i32
        and type(n) == "userdata" then
        out[0] = n
      end
    end, cute.zeros({1}, cute.i32), 5)
  end)

  it("must not stay unused as booleans", function()
    local text, line = message(function(out, n)
      if n:lt(3) then out[0] = 1 end
    end, cute.zeros({1}, cute.i32), 5)
    assert.matches("^this comparison was never used: a traced boolean is "
      .. "always true in Lua's if, and, or, not, while %[unused%-boolean%]\n"
      .. "  branch with cute%.when", text)
    assert.equal(debug.getinfo(1, "l").currentline - 5, line)
  end)

  it("end a while that cannot end", function()
    local text = message(function(n)
      local k = n
      while k:lt(100) do k = k + 1 end
    end, 5)
    assert.equal("this line traced over 131072 operations: Lua loops are "
      .. "unrolled, and a `while` on a traced boolean never ends "
      .. "[runaway-trace]\n  write cute.range(n) or cute.loop(cond, body) for "
      .. "a loop of the kernel", text)
  end)

  it("have no other fields", function()
    refused({
      ["a traced value has no field 'ltt' (did you mean lt?): its fields are "
        .. "lt le gt ge eq ne to bitcast dtype; functions are called as in "
        .. "cute.sqrt(x) [unknown-name]"] =
        function(n) cute.when(n:ltt(3), function() end) end,
      ["a traced value has no field 'sqrt': its fields are lt le gt ge eq ne "
        .. "to bitcast dtype; functions are called as in cute.sqrt(x) "
        .. "[unknown-name]"] =
        function(n) return n.sqrt end,
    }, 5)
  end)

  it("index tensors as integers only", function()
    local text = "an integer is needed, got a traced %s: convert it with "
      .. ":to(cute.i32) [type-mismatch]"
    refused({
      [text:format "f32"] = function(x, n) x[n:to(cute.f32)] = 1 end,
      [text:format "boolean"] = function(x, n) return x(n:lt(3)) end,
    }, cute.zeros({4}, cute.f32), 5)
  end)

  it("are not divided by a constant 0", function()
    refused({
      ["an integer // 0 [bad-argument]"] = function(n) return n // 0 end,
      ["an integer % 0 [bad-argument]"] = function(n) return n % 0 end,
    }, 5)
    trace(function(n) return n:to(cute.f32) / 0 end, 5)
  end)

  it("are shifted by less than they are wide", function()
    local function text(n, t, most)
      return ("a shift by %d of a value of %s: the shift must be 0 to %d "
        .. "[bad-argument]")
        :format(n, t, most)
    end
    for t, bits in pairs {i8 = 8, u8 = 8, i16 = 16, i32 = 32, u32 = 32,
                          i64 = 64, u64 = 64} do
      for _, n in ipairs {-1, 1 << 40, -(1 << 40)} do
        assert.truthy(message(function(x) return x:to(cute[t]) << n end, 5))
      end
      for _, n in ipairs {bits, bits + 1, 99} do
        refused({[text(n, t, bits - 1)] = function(x)
          return x:to(cute[t]) << n
        end}, 5)
        refused({[text(n, t, bits - 1)] = function(x)
          return x:to(cute[t]) >> n
        end}, 5)
      end
      trace(function(x)
        for n = 0, bits - 1 do x = ((x:to(cute[t]) << n) >> n):to(cute.i32) end
      end, 5)
    end
    refused({[text(32, "i32", 31)] = function(_)
      return cute.make_rmem_tensor({2}, cute.i32):load() << 32
    end, [text(40, "i32", 31)] = function(x) return 5 << x * 0 + 40 end}, 5)
  end)
end)

describe("traced values in Lua's own operators", function()
  it("report the wrong operand", function()
    refused({
      ["bad operand #2 of 'add' (number or traced value expected, got nil) "
        .. "[bad-argument]"] = function(_, n) return n + nil end,
      ["an element was set to a bad value (number or traced value expected, "
        .. "got nil) [bad-argument]"] = function(x, _) x[0] = nil end,
      ["bad index (integer or tuple expected, got true) [bad-argument]"] =
        function(x, _) x[true] = 1 end,
      ["coordinate -1 of the tensor is negative [bad-argument]"] =
        function(x, _) x[-1] = 1 end,
    }, cute.zeros({4}, cute.f32), 5)
  end)

  it("cannot be limits of a numeric for", function()
    local text = message(function(n) for _ = 0, n do n:to(cute.f32) end end, 5)
    assert.matches("'for' limit .*%[traced%-in%-lua%]\n  a traced "
      .. "limit needs `for k in cute.range%(n%) do`", text)
  end)

  it("suggest a replacement in Lua's libraries", function()
    local text = message(function(n) return math.min(n, 3) end, 5)
    assert.matches("^'min' on a traced value: .*\n  use cute%.min%(", text)
    text = message(function(n) return ("%d"):format(n) end, 5)
    assert.matches("%[traced%-in%-lua%]\n.*cute%.printf", text)
    text = message(function(n)
      return setmetatable({}, {})[n] + 1
    end, 5)
    assert.matches("%[traced%-in%-lua%]\n  a traced value cannot be the "
      .. "key", text)
    text = message(function(n) return "n = " .. n end, 5)
    assert.matches("^'%.%.' on a traced value", text)
  end)

  it("take the type of the other operand, or report that it does not fit",
    function()
      assert.equal("the number 0.5 does not fit in i32: write an integer, or "
        .. "convert the traced value with :to(cute.f32) [type-mismatch]",
        (message(function(n) return (n + 1) * 0.5 end, 5)))
      assert.equal("5000000000 does not fit in i32 [type-mismatch]",
        (message(function(n) return n + 5000000000 end, 5)))
    end)

  it("answer // and % as Lua does", function()
    local values = {-7, -4, -1, 0, 1, 4, 7}
    for _, b in ipairs {3, -3, 4, -4} do
      local expect, out = {}, cute.zeros({14}, cute.i32)
      for i, a in ipairs(values) do
        expect[2 * i - 1], expect[2 * i] = a // b, a % b
      end
      cute.kernel("k", function(o, src, d)
        for i in cute.range(7) do
          local a = src[i]
          o[2 * i], o[2 * i + 1] = a // d, a % d
        end
      end)(out, cute.tensor(values, cute.i32), b):launch {
        grid = 1, block = 1, device = "sim"}
      local got = {}
      for i = 0, 13 do got[i + 1] = out[i] end
      assert.same(expect, got)
    end
  end)
end)

describe("where a value may be used", function()
  it("is the region that made it", function()
    local text = message(function(out)
      local last
      for k in cute.range(4) do last = k * 2 end
      out[0] = last
    end, cute.zeros({1}, cute.i32))
    assert.matches("^value '%w+' of line %d+ was computed inside a loop or "
      .. "branch that has ended %[out%-of%-region%]\n  carry it out", text)
  end)

  it("is the kernel that made it", function()
    local kept
    trace(function(n) kept = n + 1 end, 5)
    assert.matches("^a value traced in another kernel was used in 'k' "
      .. "%[foreign%-value%]", (message(function(n) return n + kept end, 5)))
    support.raises("a traced value was used outside its kernel "
      .. "[foreign-value]", function() return kept + 1 end)
  end)

  it("is not after the loop pass that made it", function()
    local text = message(function()
      local n = 0
      -- The suspended coroutine keeps a traced value in a local that the tracer
      -- cannot search.
      local asleep = coroutine.create(function(x)
        coroutine.yield()
        return x
      end)
      coroutine.resume(asleep, false)
      for k in cute.range(4) do
        local _, first = debug.getlocal(asleep, 1, 1)
        if not first then debug.setlocal(asleep, 1, 1, k) end
        n = n + (first or k)
      end
    end)
    assert.matches("%[out%-of%-region%]", text)
  end)
end)

describe("the facts of cute.assume", function()
  -- Returns 1 if the fact n < 4 is still assumed after f(n), else 2. f assumes
  -- that n is 0 to 3, although n is 9.
  local function behind(f)
    return run(2, function(out, n)
      f(n, out)
      out[1] = cute.where(n:lt(4), 1, 2)
    end, 9)[2]
  end
  local function known(n, out)
    out[0] = cute.where(cute.assume(n, 0, 3, 1):lt(4), 1, 2)
  end

  it("end with the branch or loop that states them", function()
    assert.equal(2, behind(function(n, out)
      cute.when(n:lt(4), function() known(n, out) end)
    end))
    assert.equal(2, behind(function(n, out)
      cute.when(n:ge(4), function() out[0] = 1 end,
                function() known(n, out) end)
    end))
    assert.equal(2, behind(function(n, out)
      local sum = n * 0
      -- The loop may have no iteration or several.
      for i in cute.range(n - 9) do
        sum = sum + i
        cute.when(n:lt(4), function() known(n, out) end)
        known(n, out)
      end
      out[0] = sum
    end))
    -- The launch passes 9, so the assumption that n is 0 to 3 fails.
    local ok, err = pcall(behind, known)
    assert.is_false(ok)
    assert.matches("assumed to lie in %[0,3%] is 9", tostring(err))
  end)
end)

describe("bounds of a loop's variable", function()
  it("are known in the text, too", function()
    local text = cute.kernel("k", function(out, n, d)
      cute.assume(d, 1, 100, 1)
      local i = cute.arch.thread_idx()
      cute.loop(function() return i:lt(n) end, function()
        out[i % d] = i // d
        i = i + 32
      end)
    end)(cute.zeros({100}, cute.i32), 400, 100):trace {block = 32}.source
    assert.matches("out%[i_1 %% d%] = i_1 / d;", text)
  end)
end)

describe("a conversion between integers", function()
  -- The result of a conversion has the operand's bounds only if these bounds
  -- fit the result's type.
  for from, cases in pairs {
    i32 = {{"i8", 100, 228, -28}, {"i16", 0, 40000, -25536}, {"u8", 0, 300, 44},
           {"u16", 0, 70000, 4464}, {"i8", -300, 0, -44}},
    u32 = {{"i32", 0, 0xfffffff0, -16}, {"i8", 0, 0x180, -128}},
    u8 = {{"i8", 0, 250, -6}}, i64 = {{"i32", 0, (1 << 32) - 5, -5}}} do
    for _, c in ipairs(cases) do
      local to, least, value, want = table.unpack(c)
      it(("of %s, %d, to %s wraps, and comparisons know"):format(from, value,
        to), function()
        local x = cute.full({1}, value, cute[from])
        local o = cute.zeros({3}, cute.i32)
        cute.kernel("k", function(a, b)
          local v = cute.max(a[0], least)
          if least < 0 then v = cute.min(a[0], least) end
          local n = v:to(cute[to])
          b[0] = n:to(cute.i32)
          b[1] = cute.where(n:lt(0), 1, 0)
          b[2] = cute.where(n:gt(99), 1, 0)
        end)(least < 0 and cute.full({1}, least, cute[from]) or x, o):launch {
          grid = 1, block = 1, device = "sim"}
        assert.same({want, want < 0 and 1 or 0, want > 99 and 1 or 0},
                    {o[0], o[1], o[2]})
      end)
    end
  end
end)

describe("a kernel", function()
  it("that raises an error does not disturb later traces", function()
    for _ = 1, 3 do
      assert.is_false(pcall(trace, function() error "no" end))
    end
    assert.is_nil(trace(function(out) out[0] = 1 end,
      cute.zeros({1}, cute.i32)).ir:find "error")
    support.raises("only meaningful inside a kernel [not-tracing]",
                   cute.arch.sync_threads)
  end)

  it("cannot be launched inside another kernel", function()
    local inner = cute.kernel("inner", function() end)
    assert.matches("^kernel 'inner' was used inside kernel 'k' "
      .. "%[inside%-kernel%]", (message(function()
        inner():trace {block = 32}
      end)))
  end)

  it("is launched only with existing options", function()
    local k = cute.kernel("k", function() end)
    local closed = io.tmpfile()
    closed:close()
    for text, opts in pairs {
      ["no option 'sed' (did you mean seed?): there are arch block "
        .. "budget cluster cooperative device fastmath faults "
        .. "fidelity fmad grid output pdl progress record seed stream strict "
        .. "threads [unknown-name]"] = {sed = 1},
      ['seed of "x": an integer is needed [bad-launch]'] = {seed = "x"},
      ["threads of 1.5: an integer is needed [bad-launch]"] = {threads = 1.5},
      ["the block is missing: write {grid = g, block = b} "
        .. "[bad-launch]"] = {},
      ["grid = -1; one to three integers of at least 0 are needed "
        .. "[bad-launch]"] =
        {block = 1, grid = -1},
      ["grid has the field [4] = 2; a list of one to three integers of at "
        .. "least 0 is needed [bad-launch]"] =
        {block = 1, grid = {1, 1, 1, 2}},
      ["grid of 65536 along y; the limit is 65535 [bad-launch]"] =
        {block = 1, grid = {1, 65536}},
      ["block of 65 along z; the limit is 64 [bad-launch]"] =
        {block = {1, 1, 65}, grid = 1},
      ["threads of -1: 0 (the default) or more is needed [bad-launch]"] =
        {block = 1, grid = 1, threads = -1},
      ["progress of 3: a function is needed [bad-launch]"] =
        {block = 1, grid = 1, progress = 3},
      ['output of "x": a userdata or table or boolean is needed [bad-launch]'] =
        {block = 1, grid = 1, output = "x"},
      ["output of true: a file, an object with a write method, or false is "
        .. "needed [bad-launch]"] = {block = 1, grid = 1, output = true},
      ['faults of "maybe": "raise" (the default) or "return" is needed '
        .. "[bad-launch]"] = {block = 1, grid = 1, faults = "maybe"},
      ["stream of a FILE*: a stream is needed [bad-launch]"] =
        {block = 1, grid = 1, stream = closed},
      ["grid has the field [x] = 2; a list of one to three integers of at "
        .. "least 0 is needed [bad-launch]"] =
        {block = 1, grid = {1, x = 2}}} do
      opts.device = "sim"
      assert.equal("call:launch: " .. text,
                   (support.message(function() k():launch(opts) end)))
    end
    local p = cute.compile(k, {grid = 1, block = 1, device = "sim"})
    assert.equal("prepared:try: progress of \"x\": a function is needed "
      .. "[bad-launch]", (support.message(function()
        p:try {progress = "x"}
      end)))
  end)

  it("takes options in tables", function()
    local function says(text, f)
      assert.equal(text, (support.message(f)))
    end
    local k = cute.kernel("k", function() end)
    says("call:launch: launch options must be a table such as {grid = 8, block "
      .. "= "
      .. '128}, not "sim" [bad-argument]', function() k():launch "sim" end)
    says("call:launch: device of 5: a string or table is needed [bad-launch]",
      function() k():launch {grid = 1, block = 1, device = 5} end)
    says("cute.kernel: no option 'blok' (did you mean block?): there "
      .. "are block fastmath fmad min_blocks [unknown-name]", function()
      cute.kernel("k", {blok = 3}, function() end)
    end)
    says("kernel k: min_blocks = x; an integer from 1 to 32 is needed "
      .. "[bad-argument]",
      function() cute.kernel("k", {min_blocks = "x"}, function() end) end)
  end)

  it("is traced once per kind of arguments", function()
    local count = 0
    local k = cute.kernel("k", function(out, n)
      count = count + 1
      out[0] = n
    end)
    local out = cute.zeros({1}, cute.i32)
    for n = 1, 3 do
      k(out, n):launch {grid = 1, block = 1, device = "sim"}
      assert.equal(n, out[0])
    end
    assert.equal(1, count)
    k(cute.zeros({2}, cute.i32), 1):launch {grid = 1, block = 1,
                                            device = "sim"}
    assert.equal(2, count)
  end)

  it("shows the result for the requested architecture", function()
    local k = cute.kernel("k", function(out) out[0] = 1 end)
    local out = cute.zeros({1}, cute.i32)
    local function arch(p) return p.source:match "^// k for (sm_%d+)" end
    local old = k(out):trace {block = 1, arch = "sm_80"}
    local new = k(out):trace {block = 1}
    local launch = cute.compile(k, out, {grid = 1, block = 1,
                                         device = "sim:sm_75"})
    assert.same({"sm_80", "sm_90", "sm_75"},
                {arch(old), arch(new), arch(launch)})
  end)
end)

describe("cute.where of two numbers", function()
  local function chosen(dtype, a, b, f)
    local x = cute.zeros({8}, dtype)
    cute.kernel("k", function(t)
      local i = cute.arch.thread_idx()
      local w = cute.where(i:lt(3), a, b)
      f(t, i, w)
    end)(x):launch {grid = 1, block = 8, device = "sim"}
    local list = {}
    for i = 0, 7 do list[i + 1] = x(i) end
    return list
  end
  local function put(t, i, w) t[i] = w end

  it("takes the type of its operand", function()
    for _, dtype in ipairs {"u8", "i32", "i64", "f32", "f64", "bf16"} do
      assert.same({1, 1, 1, 2, 2, 2, 2, 2}, chosen(dtype, 1, 2, put), dtype)
      assert.same({2, 2, 2, 3, 3, 3, 3, 3}, chosen(dtype, 1, 2,
        function(t, i, w) t[i] = w + t[i] + 1 end), dtype)
    end
    assert.same({0.1, 0.1, 0.1, 0.3, 0.3, 0.3, 0.3, 0.3},
                chosen("f64", 0.1, 0.3, put))
  end)

  it("is i32 or f32 without one, and rejected if both do not fit",
     function()
    chosen("i32", 1, 2, function(t, i, w)
      assert.equal("i32", tostring(w.dtype))
      t[i] = w
    end)
    chosen("f32", 1, 0.5, function(t, i, w)
      assert.equal("f32", tostring(w.dtype))
      t[i] = w
    end)
    support.raises("300 does not fit in u8 [type-mismatch]",
                   function() chosen("u8", 1, 300, put) end)
    support.raises("the number 1.5 does not fit in i32", function()
      chosen("i32", 1, 1.5, put)
    end)
    support.raises("a value of type f32 is needed, got i32", function()
      chosen("f32", 1, 2, function(t, i, w)
        t[i] = cute.where(i:lt(2), w, 5)
      end)
    end)
  end)
end)

describe("an index", function()
  it("is of any type of integers", function()
    for _, dtype in ipairs {"u8", "i8", "i16", "u16", "u32", "u64", "i64"} do
      local x, y = cute.zeros({8}, "f32"), cute.zeros({8}, "i32")
      local k = cute.kernel("k", function(a, b)
        local i = cute.arch.thread_idx():to(cute[dtype])
        local s = cute.make_smem_tensor("f32", cute.make_layout {8})
        s[i] = cute.arch.thread_idx():to(cute.f32)
        a[i] = s[i] + 1
        cute.arch.atomic_add(b.iterator + i, 2)
      end)
      k(x, y):launch {grid = 1, block = 8, device = "sim"}
      for i = 0, 7 do assert.same({i + 1.0, 2}, {x(i), y(i)}, dtype) end
      kernels.compiles(k(x, y):trace {block = 8}, {"sm_80"})
    end
  end)
end)
-- SPDX-License-Identifier: MIT
