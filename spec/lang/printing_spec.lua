-- Tests printing in kernels: tensors in all memory spaces, and all arguments of
-- printf. The output must equal that of the host's print_tensor, of plain Lua,
-- and of the emitted text.
local core = require "cute.core"
local cudahost = require "spec.cudahost"
local cute = require "cute"
local draw = require "cutelua.draw.print"
local kernels = require "spec.kernels"
local printing = require "spec.printing"
local T = require "spec.values"
local arch = cute.arch
local support = require "spec.support"
local lines, raises = support.lines, support.raises

-- Returns what f prints in one block.
local function printed(f, tensors, opts)
  return T.ok(T.launch(f, tensors or {}, opts or {block = 1})).output
end

-- Returns the text that the host's print_tensor prints for t, with `head` as
-- its first line.
local function as_on_host(t, head)
  return (draw.tensor_text(t):gsub("^[^\n]*:\n", function()
    return head .. ":\n"
  end))
end

-- Returns the rows of a matrix as [[a, b], [c, d]].
local function rows(t, m, n)
  local out = {}
  for i = 0, m - 1 do
    local row = {}
    for j = 0, n - 1 do
      local v = t(i, j)
      row[j + 1] = math.type(v) == "float" and ("%g"):format(v)
        or tostring(v)
    end
    out[i + 1] = "[" .. table.concat(row, ", ") .. "]"
  end
  return "[" .. table.concat(out, ", ") .. "]"
end

local function sorted_lines(text)
  local list = lines(text)
  table.sort(list)
  return list
end

describe("a filter of printing threads", function()
  it("may match no thread, which is known while tracing", function()
    for _, who in ipairs {{thread = {0, 5}}, {thread = 0, block = -1},
                          {thread = {0, 0, -1}}, {block = {0, 1}}} do
      assert.equal("", printed(function()
        who.when = arch.lane_idx():lt(7)
        cute.printf("{}\n", (arch.thread_idx()), who)
      end, {}, {block = 32}))
    end
    assert.equal("3\n", printed(function()
      cute.printf("{}\n", (arch.thread_idx()), {thread = {3, 0, 0}})
    end, {}, {block = 32}))
  end)

  it("prints Lua's integers as wide as a traced one", function()
    assert.equal((" "):rep(299) .. "5|" .. (" "):rep(299) .. "0",
      printed(function()
        cute.printf("%300d|%300d", 5, (arch.thread_idx()))
      end))
  end)
end)

describe("print_tensor in a kernel", function()
  for name, value in pairs(printing.types) do
    it("prints the same as on the host: " .. name, function()
      local t = printing.tensor(name, cute.make_layout({3, 4}, {4, 1}), value)
      local want = as_on_host(t, ("ptr[%s,gmem] o (3,4):(4,1)"):format(name))
      if name == "u64" then  -- A kernel prints a u64 as unsigned, but Lua on
                             -- the host prints it as signed.
        want = want:gsub(" %-%d+", "")
        assert.matches("^" .. want:sub(1, 40):gsub("%p", "%%%0"),
          printed(function(x) cute.print_tensor(x) end, {t}))
        return
      end
      local list = rows(t, 3, 4)
      assert.equal(want .. list .. "\n" .. list .. "\n",
        printed(function(x)
          cute.print_tensor(x)
          cute.printf("{}\n", x)
          cute.printf("{}\n", x:load())
        end, {t}))
    end)
  end

  it("shows modes, traced shapes and strides, offsets", function()
    for _, layout in ipairs {
      cute.make_layout {5}, cute.make_layout({2, 40}, {40, 1}),
      cute.make_layout({3, 2, 2}), cute.make_layout({2, 3, 2, 2}),
      cute.make_layout({{2, 2}, {3, 2}}, {{1, 12}, {2, 6}}),
      cute.make_layout({4, 90}), cute.make_layout({40, 3}, {3, 1})} do
      local t = printing.tensor("i32", layout)
      local want = as_on_host(t, "ptr[i32,gmem] o " .. tostring(layout))
      assert.equal(want, printed(function(x) cute.print_tensor(x) end, {t}))
      if core.rank(layout) < 3 then
        assert.equal(want, printed(function(x) cute.print_tensor(x) end,
                                   {t:mark_layout_dynamic()}))
      end
    end
  end)

  it("shows shared memory and registers as they are", function()
    local out = cute.zeros({8, 8}, cute.f32)
    local text = printed(function(o)
      local tid = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.composition(
        cute.make_swizzle(2, 0, 3), cute.make_layout({8, 8}, {8, 1})))
      local row = s(tid % 8, cute._)
      cute.when(tid:lt(8), function()
        for k = 0, 7 do row[k] = (tid * 8 + k):to(cute.f32) end
      end)
      arch.sync_threads()
      cute.print_tensor(s, {thread = 3})
      local r = cute.make_rmem_tensor({2, 3}, cute.f32)
      for k = 0, 5 do r[k] = s[tid + k] end
      cute.print_tensor(r, {thread = 1})
      cute.when(tid:lt(8), function() o(tid, cute._):store(row:load()) end)
    end, {out}, {block = 32})
    local r = printing.tensor("f32", cute.make_layout {2, 3}, function(k)
      return out[k + 1]
    end)
    assert.equal(as_on_host(out, "ptr[f32,smem] o Sw<2,0,3> o 0 o "
      .. "(8,8):(8,1)") .. as_on_host(r, "ptr[f32,rmem] o (2,3):(1,2)"), text)
  end)

  it("omits elements past its limit, and prints how many", function()
    local t = printing.tensor("i32", cute.make_layout({5, 4}, {4, 1}))
    local head = "ptr[i32,gmem] o (5,4):(4,1):\n"
    for _, c in ipairs {
      {20, "0123", "4567", "89AB", "CDEF", "GHIJ", left = 0},
      {19, "0123", "4567", "89AB", "CDEF", left = 4},
      {8, "0123", "4567", left = 12}, {4, "0123", left = 16},
      {3, "012 ...", left = 17}, {1, "0 ...", left = 19}} do
      local want = {head}
      for _, row in ipairs {table.unpack(c, 2)} do
        want[#want + 1] = row:gsub("%w", function(d)
          return (" %4d"):format(tonumber(d, 36))
        end) .. "\n"
      end
      if c.left > 0 then
        want[#want + 1] = ("... %d more\n"):format(c.left)
      end
      local function f(x) cute.print_tensor(x, {limit = c[1]}) end
      assert.equal(table.concat(want), printed(f, {t}))
      assert.equal(table.concat(want), printed(f, {t:mark_layout_dynamic()}))
    end
    local big = printing.tensor("i32", cute.make_layout({100, 20}, {20, 1}))
    local text = printed(function(x) cute.print_tensor(x) end, {big})
    assert.matches("\n%.%.%. 980 more\n$", text)
    assert.equal(53, select(2, text:gsub("\n", "")))
  end)

  it("loads nothing for filtered threads", function()
    local t = printing.tensor("i32", cute.make_layout {4})
    local text = printed(function(x)
      local tid = arch.thread_idx()
      local own = cute.local_tile(x, {1}, {tid})
      cute.print_tensor(own, {when = tid:lt(4)})
      cute.printf("{}\n", own, {when = tid:eq(3)})
    end, {t}, {block = 32})
    local want = {}
    for k = 0, 3 do
      want[k + 1] = ("ptr[i32,gmem]+%d o (1):(0):\n %4d\n"):format(k, k)
    end
    assert.equal(table.concat(want) .. "[3]\n", text)
  end)

  it("prints host values while tracing", function()
    local t = printing.tensor("i32", cute.make_layout {2})
    local dir = support.folder()
    finally(function()
      io.output(io.stdout)
      support.remove(dir)
    end)
    io.output(dir .. "/said")
    local text = printed(function() cute.print_tensor(t) end)
    io.output():close()
    assert.equal("", text)
    assert.equal(draw.tensor_text(t), support.read(dir .. "/said"))
  end)
end)

describe("printf", function()
  it("takes all that a kernel has", function()
    local t = printing.tensor("f32", cute.make_layout({2, 2}))
    local want = {
      "100% {} nil true 0.5 12 text|false|",
      "[[0, 2], [1, 3]] [[ 0.0,  4.0], [ 2.0,  6.0]] (1,(0,3)) ()",
      "(0,4):(1,0) (2,2):(1,2) f32 ptr[f32,gmem]+2 7%",
      "false 0 true", ""}
    assert.equal(table.concat(want, "\n"), printed(function(x)
      local tid = arch.thread_idx()
      cute.printf("{} {} {} {} {} %s|%5s|\n", "100% {}", nil, true, 0.5, 12,
                  "text", tid:eq(1))
      cute.printf("{} %4.1f {} {}\n", x, x:load() * 2, {1, {tid, 3}}, {})
      cute.printf("{} {} {} {} {}%%\n", cute.make_layout({tid, 4}), x.layout,
                  cute.f32, x.iterator + 2, tid + 7)
      cute.printf("{} %d {}\n", tid:eq(1), tid:eq(1), tid:eq(0))
    end, {t}))
  end)

  it("prints the offset of a layout's function", function()
    local text
    for _, c in ipairs(printing.cases) do
      if c.name:find "functions" then text = printing.run(c, "sim") end
    end
    assert.same({"f o (2,1) o (2,3):(1@0,1@1) [[18, 20, 22], [26, 28, 30]]",
                 "f o (3,1) o (2,3):(1@0,1@1) [[26, 28, 30], [34, 36, 38]]"},
                lines((text:gsub("<[^>]*>", ""))))
  end)

  it("prints for the threads and blocks that are named", function()
    local c = printing.cases[#printing.cases]
    assert.equal("(1,0) (3,1,2)\n(1,0) (2,0,0)\n(0,1,1)\n(1,1,1)\n"
      .. "(2,1,1)\n(3,1,1)\n", printing.run(c, "sim"))
  end)

  it("keeps the lines of a lane together", function()
    local text = printed(function()
      local tid = arch.thread_idx()
      local r = cute.make_rmem_tensor({3, 20}, cute.i32)
      r:fill(tid)
      cute.print_tensor(r)
      cute.printf("{} {}\n{}\n", tid, r:load(), r)
    end, {}, {block = 32})
    local at = 0
    for lane = 0, 31 do
      local line = ("    %d"):format(lane):sub(-5):rep(20) .. "\n"
      local one = "ptr[i32,rmem] o (3,20):(1,3):\n" .. line:rep(3)
      assert.equal(one, text:sub(at + 1, at + #one))
      at = at + #one
    end
    for lane = 0, 31 do
      local row = "[" .. tostring(lane) .. (", " .. lane):rep(19) .. "]"
      local one = ("%d [%s, %s, %s]\n"):format(lane, row, row, row)
      one = one .. one:gsub("^%d+ ", "")
      assert.equal(one, text:sub(at + 1, at + #one))
      at = at + #one
    end
    assert.equal(at, #text)
  end)

  it("has a limit of its own for each value", function()
    local t = printing.tensor("i32", cute.make_layout {100})
    local function f(x)
      cute.printf("{}\n", x)
      cute.printf("{} {}\n", x, x, {limit = 2})
      cute.printf("{}\n", {1, 2, 3}, {limit = 2})
    end
    local list = {}
    for k = 0, 63 do list[k + 1] = k end
    local want = "[" .. table.concat(list, ", ") .. ", ... 36 more]\n"
      .. "[0, 1, ... 98 more] [0, 1, ... 98 more]\n(1,2,3)\n"
    assert.equal(want, printed(f, {t}))
    assert.equal(want, printed(f, {t:mark_layout_dynamic()}))
  end)

  it("reports wrong options", function()
    local t = printing.tensor("i32", cute.make_layout {4})
    local function fails(want, f) raises(want, T.launch, f, {t}) end
    fails("printf: no option 'threads' (did you mean thread?): there are "
      .. "block limit thread when [unknown-name]", function(_)
      cute.printf("a\n", {threads = 1})
    end)
    fails("printf: limit = 0; 1 or more elements are needed", function(x)
      cute.printf("{}\n", x, {limit = 0})
    end)
    fails("print_tensor: when = 3; a boolean is needed", function(x)
      cute.print_tensor(x, {when = 3})
    end)
    fails("thread = \"x\"; one to three indices are needed", function(x)
      cute.print_tensor(x, {thread = "x"})
    end)
    fails("print_tensor prints tensors of rank 1 to 4", function(_)
      cute.print_tensor(cute.make_rmem_tensor({1, 1, 1, 1, 2}, cute.i32))
    end)
    fails("2 conversions and 1 value follows", function(x)
      cute.printf("{} {}\n", x, {limit = 2})
    end)
    fails("printf: a function cannot be printed", function(_)
      cute.printf("{}\n", {1, {function() return 5 end}})
    end)
    fails("printf: tables nest at most 32 deep", function(_)
      local list = {}
      list[1] = list
      cute.printf("{}\n", list)
    end)
    fails("a width or precision has at most three digits [limit]",
          function(_) cute.printf("%1234d\n", 5) end)
    raises("apply only inside a kernel", cute.print_tensor, t, {limit = 3})
    raises("only meaningful inside a kernel", cute.printf, "{}\n", t)
  end)
end)

describe("output of kernels", function()
  it("is the same as text and in the simulator", function()
    if not cudahost.compiler() then return pending "needs a C++ compiler" end
    local runs, want = {}, {}
    for _, c in ipairs(printing.cases) do
      if math.type(c.block) == "integer" and c.block < 32 then
        local args = {}
        for _, t in ipairs(c.args) do
          if core.typename(t) == "tensor" then
            args[#args + 1] = core.param_memory(t):bytes()
          else
            args[#args + 1] = ("<i4"):pack(t)
          end
        end
        local program = printing.call(c):trace {block = c.block}
        -- cudahost does not pass the parameters of dynamic extents.
        if #program.info.args == #args then
          runs[#runs + 1] = {text = program:cuda "sm_80", grid = 1,
                             block = c.block, args = args}
          want[#want + 1] = printing.run(c, "sim:sm_80")
        end
      end
    end
    assert.is_true(#runs > 17, #runs)
    -- The host runs threads in another order, so the lines are sorted.
    local _, said = cudahost.run(runs)
    assert.same(sorted_lines(table.concat(want)), sorted_lines(said))
  end)

  it("compiles", function()
    for _, c in ipairs(printing.cases) do
      if c.block ~= 1 or c.name:find "shape" then
        local program = printing.call(c):trace {block = c.block}
        if not kernels.compiles(program, {"sm_90a"}) then
          return pending "needs NVRTC"
        end
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
