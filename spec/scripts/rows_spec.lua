-- Tests row kernels (softmax, norms, argmax, reductions, rope). With tiny,
-- partial and long rows, and any distribution of rows over threads, results
-- must equal plain Lua, without reports. The simulator must detect the removal
-- of any barrier, wait or predicate, and NVRTC must accept the text.
local core = require "cute.core"
local cute = require "cute"
local harness = require "cutelua.bench.harness"
local kernels = require "spec.kernels"
local rows = require "spec.rows"
local support = require "spec.support"

local function words(o)
  local list = {}
  for k, v in pairs(o) do list[#list + 1] = ("%s = %s"):format(k, v) end
  table.sort(list)
  return "{" .. table.concat(list, ", ") .. "}"
end

-- Checks that f(...) raises an error of a kind, with this text.
local function refused(text, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(tostring(err):find(text, 1, true), err)
  assert.truthy(tostring(err):find "%[[%l-]+%]", err)
end

-- Checks that a kernel with the options o is right for each size and type.
local function check(name, o, sizes, dtypes, device)
  for _, size in ipairs(sizes) do
    for _, dtype in ipairs(dtypes or {"bf16"}) do
      local p = harness.problem(rows[name](o), size, {dtype = dtype})
      local ok, reports, wrong = harness.try(p, device or "sim:sm_80")
      assert.is_true(ok, ("%s %s %s %s: %s\n%s"):format(name, words(o),
        harness.size(p), dtype, tostring(wrong), tostring(reports[1])))
    end
  end
end

-- Ways to distribute rows over threads: {options for the maker, sizes}.
local TINY = {{5, 1}, {7, 6}, {130, 8}}
local SOME = {{9, 1000}, {5, 333}, {3, 4096}}
local WAYS = {
  {{}, TINY}, {{}, SOME},
  {{threads = 64, values = 8}, {{3, 2056}}}, -- each thread loops along its row
  {{staged = true, values = 8, threads = 64}, {{9, 1000}, {2, 4096}}},
  {{persistent = true, resident = 2}, {{9, 1000}, {7, 6}}},
  {{persistent = true, resident = 2, staged = true, values = 8, threads = 32},
   {{9, 1000}, {21, 72}}},
  {{persistent = true, resident = 2, staged = true, values = 8, threads = 256},
   {{5, 4096}}},
}

local function every_way(name, more)
  for i, way in ipairs(WAYS) do
    local o = {}
    for k, v in pairs(more or {}) do o[k] = v end
    for k, v in pairs(way[1]) do o[k] = v end
    check(name, o, way[2], {({"bf16", "f32", "f16"})[i % 3 + 1]})
  end
end

local SQUARES = {
  of = function(a, b) return a + b end, init = 0,
  map = function(x) return x * x end, plain = function(x) return x * x end}

-- Ways to distribute rows over threads in backward kernels. Each thread or
-- block keeps its whole row in registers or shared memory ("staged").
local BACKWARD = {
  {{resident = 2}, {{9, 1000}, {7, 6}, {5, 1024}}},
  {{staged = true, values = 8, threads = 64, resident = 2},
   {{9, 1000}, {21, 72}, {3, 2048}}},
  {{weight = false, values = 8, threads = 32}, {{3, 1000}}},
  -- with weights, kernels store partial sums of the columns to the tensor Part
  {{values = 8, threads = 32, resident = 2}, {{5, 1000}}},
  {{staged = true, values = 8, threads = 32, resident = 2}, {{5, 1600}}},
  -- Several blocks work on one row.
  {{blocks = 2, threads = 64, stages = 2, resident = 4}, {{9, 1000}, {2, 16}}},
  {{blocks = 3, threads = 64, resident = 7}, {{11, 3080}}},
  {{blocks = 8, threads = 64, stages = 4, resident = 1}, {{6, 4096}}},
}

local function check_backward(layer, bias, device)
  for _, way in ipairs(BACKWARD) do
    for _, residual in ipairs {false, true} do
      check("norm", setmetatable({backward = true, layer = layer,
        residual = residual, bias = way[1].weight == nil and bias}, {
        __index = function(_, k)
          if way[1][k] ~= nil then return way[1][k] end
          if k == "weight" then return true end
        end}), way[2], nil, device)
    end
  end
end

-- Configurations that also run on a GPU; here NVRTC only compiles them.
local BOTH = {"sm_80", "sm_90a"}
local LARGE = {
  {"softmax", {}, {3, 8192}}, {"softmax", {}, {33, 1000}, BOTH},
  {"softmax", {}, {2, 70001}}, {"softmax", {}, {300, 65536}},
  {"softmax", {staged = true, values = 8, threads = 512, persistent = true,
               resident = 3}, {7, 32768}, BOTH},
  {"softmax_backward", {}, {9, 4096}},
  {"norm", {weight = true, bias = true, layer = true, residual = true,
            save = true}, {9, 5000}},
  {"norm", {weight = true}, {5, 65536}},
  {"norm", {weight = true, backward = true, resident = 3}, {64, 4096}},
  {"norm", {weight = true, backward = true, resident = 6}, {9, 33000}},
  {"norm", {weight = true, bias = true, layer = true, backward = true,
            residual = true, resident = 12}, {9, 65536}},
  {"argmax", {}, {9, 5000}}, {"reduce", {op = "sum"}, {9, 5000}},
  {"reduce", {op = "max", along = "columns"}, {300, 520}},
  {"reduce", {op = "sum", along = "all", fill = {-3, 3}}, {301, 5001}, BOTH},
  {"rope", {}, {64, 4, 128, 32}}, {"rope", {interleaved = true}, {5, 3, 64, 4}},
}

describe("kernels along rows", function()
  it("softmax is right however rows are spread #long", function()
    every_way "softmax"
    check("softmax", {}, {{9, 1000}, {2, 40001}}, {"f16"})
  end)

  it("softmax takes infinities and large numbers", function()
    local function fill(b)
      for i = 0, #b - 1 do
        b[i] = i % 5 == 0 and -math.huge or i % 7 == 0 and -1000 or i % 97
      end
      -- all elements of some warps are -inf
      for i = 0, 299 do b[i] = -math.huge end
      return b
    end
    for _, o in ipairs {{}, {threads = 64}, {threads = 64, values = 8},
                        {threads = 64, values = 8, staged = true}} do
      o.fill = fill
      local p = harness.problem(rows.softmax(o), {3, 512}, {dtype = "f32"})
      assert.is_true((harness.try(p, "sim")), words(o))
      p = harness.problem(rows.softmax(o), {3, 256}, {dtype = "f32"})
      local ok, reports = harness.try(p, "sim")
      assert.is_true(reports[1].ok)
      assert.is_true(ok, words(o))
      for i = 0, 255 do assert.is_true(p.y[i] ~= p.y[i]) end
    end
  end)

  it("softmax takes rows at the ends of f32", function()
    for _, o in ipairs {{}, {threads = 64, values = 8}} do
      for _, most in ipairs {-0x1.fffffep127, -2.5e38, 3e38, 0x1.fffffep127} do
        o.fill = function(b)
          for i = 0, #b - 1 do b[i] = i % 4 == 0 and most or -0x1.fffffep127 end
          return b
        end
        local p = harness.problem(rows.softmax(o), {3, 512}, {dtype = "f32"})
        assert.is_true((harness.try(p, "sim")), words(o))
        local equal = most == -0x1.fffffep127
        for i = 0, 3 * 512 - 1 do
          assert.equal(equal and 1 / 512 or i % 4 == 0 and 1 / 128 or 0, p.y[i])
        end
      end
    end
  end)

  it("softmax takes equal numbers of any size #long", function()
    local list = {}
    for e = 28, 127 do
      for _, f in ipairs {1, 1.125, 1.375, 1.75} do
        list[#list + 1], list[#list + 2] = f * 2.0 ^ e, -f * 2.0 ^ e
      end
    end
    for _, n in ipairs {8, 1000} do
      local k = require "kernels.softmax" {dtype = cute.f32, n = n}
      local x, y = cute.zeros({#list, n}, cute.f32),
                   cute.zeros({#list, n}, cute.f32)
      for r, v in ipairs(list) do
        for j = 0, n - 1 do x[{r - 1, j}] = v end
      end
      k.kernel(x, y):launch {grid = k.grid(#list), block = k.block,
                             device = "sim"}
      for r, v in ipairs(list) do
        local got = y(r - 1, n // 2)
        assert.is_true(math.abs(got * n - 1) < 1e-5, ("%g: %g"):format(v, got))
      end
    end
  end)

  it("softmax backward is right however rows are spread #long", function()
    every_way "softmax_backward"
  end)

  it("norms are right however rows are spread #long", function()
    every_way("norm", {weight = true})
    every_way("norm", {weight = true, bias = true, layer = true})
    for _, layer in ipairs {false, true} do
      check("norm", {layer = layer}, {{9, 1000}})
      check("norm", {layer = layer, weight = true, residual = true,
                     save = true}, {{9, 1000}, {1, 40001}})
    end
  end)

  it("layernorm stays accurate for large means", function()
    local function fill(b)
      for i = 0, #b - 1 do b[i] = 10000 + i * 7919 % 101 / 50 end
      b[0] = -30000  -- thread 0 reads this outlier first
      return b
    end
    for _, way in ipairs {{}, {threads = 64, values = 4}, {threads = 32},
                          {threads = 64, values = 4, staged = true}} do
      check("norm", setmetatable({layer = true, fill = fill,
        tolerance = {f32 = 5e-3}}, {__index = way}), {{3, 1000}, {2, 333}},
        {"f32"})
    end
  end)

  it("norms backward are right, their sums over rows too #long", function()
    check_backward(false)
    check_backward(true, true)
  end)

  it("argmax finds the first of the largest, and NaN #long", function()
    every_way("argmax", {fill = {-3, 3}})
    every_way("argmax", {smallest = true})
    local function fill(b)
      for i = 0, #b - 1 do b[i] = i % 2 == 0 and -0.0 or 0.0 end
      b[1003] = 0 / 0
      b[1017] = 0 / 0
      return b
    end
    check("argmax", {fill = fill}, {{4, 500}})
    check("argmax", {fill = fill, smallest = true}, {{4, 500}})
  end)
end)

describe("kernels along rows", function()
  it("reductions are right, of rows, columns and all #long", function()
    for _, op in ipairs {"sum", "max", "min", SQUARES} do
      check("reduce", {op = op}, {{9, 1000}, {3, 1}},
            {"f32", "bf16", "i32"})
      check("reduce", {op = op, along = "columns"}, {{9, 1000}, {300, 7}})
      check("reduce", {op = op, along = "all"}, {{9, 1000}, {1, 1}, {1, 3}})
      check("reduce", {op = op, along = "all", block = 64, steps = 2, grid = 3},
            {{9, 1001}})
    end
    check("reduce", {op = "prod", fill = {1, 2}}, {{3, 20}})
    every_way("reduce", {op = "sum"})
    refused("no op 'median'", require "kernels.reduce".rows,
            {op = "median", n = 8, dtype = cute.f32})
  end)

  it("the same numbers give the same sum", function()
    local lesson = rows.reduce {op = "sum", along = "all", block = 64,
                                grid = 5, fill = "normal"}
    lesson.tolerance = {f32 = 1}
    local first
    for seed = 0, 7 do
      local p = harness.problem(lesson, {7, 1000}, {dtype = "f32"})
      assert.is_true((harness.try(p, "sim", {seed = seed})))
      first = first or p.y:bytes()
      assert.equal(first, p.y:bytes())
    end
  end)

  it("rope turns halves and neighbours, to and fro", function()
    for _, o in ipairs {{}, {interleaved = true}, {inverse = true},
                        {at = true}} do
      check("rope", o, {{3, 2, 128, 3}, {5, 3, 6, 4}, {33, 1, 2, 7},
                        {10, 4, 80, 7}})
    end
  end)

  it("reject rows that blocks cannot share", function()
    local norm = require "kernels.norm"
    for _, o in ipairs {{blocks = 2, threads = 32}, {blocks = 2, n = 9},
                        {blocks = 2, n = 1 << 20}} do
      o.n, o.dtype, o.weight = o.n or 1024, cute.bf16, true
      refused(("rows of %d elements of bf16 cannot be divided among 2 blocks")
        :format(o.n), norm.rms_backward, o)
    end
    refused("blocks = 33; an integer from 1 to 32", norm.rms_backward,
            {blocks = 33, n = 1024, dtype = cute.bf16, weight = true})
    local k = require "kernels.softmax" {n = 1024, dtype = cute.f32, blocks = 2,
      staged = true, persistent = true, threads = 64}
    local x = cute.zeros({4, 1024}, cute.f32)
    refused("blocks = 2, but this kernel does not support rows divided among "
      .. "blocks",
      function()
        k.kernel(x, x):launch {grid = 2, block = k.block, device = "sim"}
      end)
  end)

  it("reject rows of another length, and columns", function()
    local k = require "kernels.softmax" {n = 64, dtype = cute.f32}
    for _, x in ipairs {cute.zeros({4, 32}, cute.f32),
        cute.zeros(cute.make_layout({4, 64}, {1, 4}), cute.f32)} do
      refused("rows of 64 contiguous elements", function()
        k.kernel(x, x):launch {grid = 4, block = k.block, device = "sim"}
      end)
    end
  end)

  for i, c in ipairs(LARGE) do
    it(("are accepted by NVRTC, %d: %s"):format(i, c[1]) .. support.long(i, 4),
       function()
      kernels.lesson_compiles(rows[c[1]](c[2]), c[3], "bf16",
                              c[4] or {"sm_90a"})
    end)
  end

  it("equal the simulator bit for bit, and are right on a GPU #gpu", function()
    local device = assert(cute.device "gpu")
    for _, c in ipairs(LARGE) do
      local p, both = nil, {}
      for i, where in ipairs {"sim:" .. device.arch, device} do
        p = harness.problem(rows[c[1]](c[2]), c[3], {dtype = "bf16"})
        assert.is_true((harness.try(p, where)))
        both[i] = p
      end
      for _, o in ipairs(p.operands) do
        if o.out and not o.scratch then
          assert.is_true(both[1][o.name]:equal(both[2][o.name]),
            ("%s %s %s: %s"):format(c[1], words(c[2]), harness.size(p), o.name))
        end
      end
    end
    check_backward(false, nil, "gpu")
    check_backward(true, true, "gpu")
  end)
end)

describe("kernels along rows report", function()
  -- Returns a module of kernels/ after the nth `from` in kernels/FILE.lua was
  -- replaced.
  local function changed(module, file, from, to, nth)
    local text = support.change(support.read("kernels/" .. file .. ".lua"),
                                from, nth or 1, to)
    local path = "kernels." .. file
    local kept = package.loaded[path]
    local made = assert(load(text, "@" .. file .. ".lua"))()
    if module == file then return made end
    package.loaded[path] = made
    local source = support.read("kernels/" .. module .. ".lua")
    local out = assert(load(source, "@" .. module .. ".lua"))()
    package.loaded[path] = kept
    return out
  end

  local function caught(kinds, name, maker, o, size)
    for seed = 0, 5 do
      local p = harness.problem(rows[name](o, maker), size, {dtype = "bf16",
                                                             seed = seed})
      local ok, reports = harness.try(p, "sim:sm_80", {seed = seed})
      if kinds.wrong and not ok then return true end
      for _, r in ipairs(reports[1].reports) do
        if kinds[r.kind] then return true end
      end
    end
    return false
  end

  local STAGED = {staged = true, values = 8, threads = 64}
  local WALKS = {persistent = true, resident = 2, threads = 64, values = 16}
  local RACE = {race = true, ["block-race"] = true, uninitialised = true}
  local OUT = {["out-of-bounds"] = true, uninitialised = true}
  local FLIGHT = {["async-in-flight"] = true}
  local SHARED = {backward = true, weight = true, blocks = 2, threads = 64,
                  stages = 3, resident = 4}

  -- Faults: title, module, file, text, its replacement, options, size, kinds of
  -- reports.
  local CASES = {
    {"softmax", "softmax", "rows", "cute.arch.sync_threads()", "",
     {threads = 64}, {4, 512}, RACE},
    {"softmax", "softmax", "rows", "turn = 1 - turn", "", WALKS, {9, 1000},
     RACE},
    {"softmax", "softmax", "rows",
     "cute.arch.cp_async_wait_group(groups)", "", STAGED,
     {4, 1024}, FLIGHT},
    {"softmax", "softmax", "rows",
     "cute.arch.cp_async_wait_group(groups)",
     "cute.arch.cp_async_wait_group(groups + 1)", STAGED,
     {4, 1024}, FLIGHT},
    {"softmax", "softmax", "rows", "to, pred and {pred = pred})", "to)",
     {}, {3, 1000}, OUT},
    {"softmax", "softmax", "rows", "to, pred and {pred = pred})", "to)",
     STAGED, {3, 1000}, OUT},
    {"norm", "norm", "rows", "cute.arch.sync_threads()", "",
     {threads = 64}, {4, 512}, RACE},
    {"norm", "norm", "norm",
     "at.inside and cute.where(at.inside, at.row, 0) or at.row", "at.row",
     {backward = true}, {3, 64}, OUT},
    {"norm", "norm", "multiblock_rows",
     "cute.arch.sync_threads()", "", SHARED,
     {9, 1024}, RACE},
    {"norm", "norm", "multiblock_rows",
     "| SAID, RELAXED)", "| SAID)", SHARED,
     {9, 1024}, RACE},
    {"norm", "norm", "multiblock_rows",
     "% plan.stages, 1 - turn", "% plan.stages, turn",
     SHARED, {9, 1024}, RACE},
    {"norm", "norm", "multiblock_rows",
     "(slot + 1) % plan.stages", "slot", SHARED,
     {9, 1024}, {wrong = true}},
    {"norm", "norm", "multiblock_rows",
     "cute.eq(w.var.value, 0)", "false", SHARED,
     {9, 1024}, {wrong = true}},
    {"norm", "norm", "multiblock_rows",
     "cute.eq(at, blocks - 1)", "false", SHARED,
     {9, 1024}, {wrong = true}},
    {"norm", "norm", "multiblock_rows",
     "there & cute.lt(tid, WARP)",
     "(there | cute.ge(tid, 0)) & cute.lt(tid, WARP)", SHARED, {9, 1024}, OUT},
    {"norm", "norm", "multiblock_rows",
     "at.inside = cute.lt(row, m)", "", SHARED,
     {9, 1024}, OUT},
    {"norm", "norm", "rows", "plan.stages - 2", "plan.stages - 1", SHARED,
     {9, 1024}, FLIGHT},
    {"argmax", "argmax", "rows", "cute.arch.sync_threads()", "",
     {threads = 64}, {4, 512}, RACE},
    {"reduce", "reduce", "rows", "cute.when(at.inside and first & at.inside "
     .. "or first, f)", "cute.when(first, f)", {op = "sum"}, {3, 64}, OUT},
    {"reduce", "reduce", "reduce", "cute.arch.sync_threads()", "",
     {op = "sum", along = "all", block = 64}, {4, 512}, RACE},
    {"reduce", "reduce", "reduce", '{sem = "acq_rel", scope = "gpu"}',
     '{sem = "relaxed", scope = "gpu"}',
     {op = "sum", along = "all", block = 64, steps = 1}, {4, 512}, RACE},
    {"reduce", "reduce", "reduce", "o.n // tile, o.grid)",
     "o.n // tile + 1, o.grid)",
     {op = "sum", along = "all", block = 64}, {4, 500}, OUT},
    {"reduce", "reduce", "reduce", "cute.arch.sync_threads()", "", 2,
     {op = "sum", along = "columns"}, {40, 512}, RACE},
    {"reduce", "reduce", "reduce", "cute.when(cute.lt(at, o.n), function()",
     "cute.when(cute.lt(at, o.n + 8), function()",
     {op = "sum", along = "columns"}, {40, 504}, OUT},
    {"rope", "rope", "rope", "if total % block == 0 then body()",
     "if true then body()", {}, {3, 2, 64, 3}, OUT},
  }

  for i, c in ipairs(CASES) do
    local nth = math.type(c[6]) and table.remove(c, 6) or 1
    it(("%s without %s (%s)"):format(c[1], c[4], words(c[6]))
       .. support.long(i, 3), function()
      assert.is_true(caught(c[8], c[1],
        changed(c[2], c[3], c[4], c[5], nth), c[6], c[7]))
    end)
  end
end)

describe("plans of rows", function()
  it("leave few threads without a vector", function()
    local plan = require "kernels.rows".plan
    for n = 512, 16384, 8 do
      local p = plan {n = n, dtype = cute.bf16}
      assert.equal(1, p.chunks, n)
      local slots = p.threads * p.steps * p.width
      assert.is_true(slots >= n and (n > 8192 or slots * 0.8 <= n), n)
    end
    for _, c in ipairs {{5120, "bf16", 1, 128, 5}, {5120, "bf16", 2, 256, 3},
                        {8192, "bf16", 1, 512, 2}, {12288, "bf16", 1, 512, 3},
                        {16384, "f32", 1, 512, 8}} do
      local p = plan {n = c[1], dtype = cute[c[2]], sources = c[3]}
      assert.same({c[4], c[5]}, {p.threads, p.steps})
    end
    for _, c in ipairs {{16384, "f32", 2}, {24576, "bf16", 1}} do
      assert.is_true(plan {n = c[1], dtype = cute[c[2]], sources = c[3]}.staged)
    end
  end)

  it("stage long rows of LayerNorm, unless there are few", function()
    local layer = require "kernels.norm".layer
    for _, c in ipairs {{16384, "bf16"}, {8192, "f32"}} do
      for _, few in ipairs {true, false} do
        local p = layer({n = c[1], dtype = cute[c[2]], pdl = few or nil}).plan
        assert.equal(512, p.threads)
        assert.equal(not few, p.staged)
      end
    end
  end)

  it("keep long tensors in L2 if rows are in registers", function()
    local norm = require "kernels.norm"
    for _, c in ipairs {{8192, 8192, "copy.L2::evict_last", 2},
                        {2048, 32768, "evict_last", 0},
                        {4096, 8192, "evict_last", 0}} do
      local k = norm.rms {n = c[2], dtype = cute.bf16}
      local function matrix()
        return cute.make_fake_compact_tensor(cute.bf16, {c[1], c[2]},
          {stride_order = {1, 0}, assumed_align = 16})
      end
      local p = k.kernel(matrix(), matrix(), 1e-5):trace {grid = k.grid(c[1]),
        block = k.block}
      assert.equal(c[4], select(2, p.ir:gsub(c[3], "")), c[3])
      if not kernels.compiles(p, {"sm_90a"}) then pending "needs NVRTC" end
    end
  end)
end)

describe("elementwise", function()
  local elementwise = require "kernels.elementwise"

  local function run(o, sizes, dtypes)
    for _, n in ipairs(sizes) do
      local k = elementwise(setmetatable({n = n}, {__index = o}))
      local args, list = {}, {}
      for i, t in ipairs(dtypes) do
        args[i] = core.buffer(t, n):fill_int(i, -9, 9)
        list[i] = cute.make_tensor(args[i], cute.make_layout {n})
      end
      for i = 1, o.scalars or 0 do list[#list + 1] = o.values[i] end
      local report = k.kernel(table.unpack(list)):launch {grid = k.grid,
        block = k.block, device = "sim:sm_80"}
      assert.is_true(report.ok)
      for i = 0, n - 1 do
        if not o.right(args, i) then error("element " .. i .. " of " .. n) end
      end
    end
  end

  local SIZES = {1, 7, 8, 100, 4096, 5001}

  it("computes a function of tensors of several types and scalars", function()
    run({f = function(a, b, s) return a * s + b, a end, scalars = 1,
         values = {2.0}, inputs = {cute.bf16, cute.f32},
         outputs = {cute.f32, cute.f16}, right = function(t, i)
      return t[1][i] * 2 + t[2][i] == t[3][i] and t[1][i] == t[4][i]
    end}, SIZES, {"bf16", "f32", "f32", "f16"})
  end)

  it("takes integers and several vectors a thread", function()
    for steps = 1, 4 do
      run({f = function(a, b) return a * 3 - b end, steps = steps, block = 64,
           inputs = {cute.i32, cute.i32}, right = function(t, i)
        return t[1][i] * 3 - t[2][i] == t[3][i]
      end}, {4096, 5001, 3}, {"i32", "i32", "i32"})
    end
  end)

  it("reports a missing predicate", function()
    local text = support.change(support.read "kernels/elementwise.lua",
      "cute.lt(v, o.count)", 1, "cute.le(v, o.count)")
    local k = assert(load(text))() {f = function(a) return a end, n = 1000,
                                    inputs = {cute.f32}}
    local x, y = cute.zeros({1000}, cute.f32), cute.zeros({1000}, cute.f32)
    local r = support.report(k.kernel(x, y):launch {grid = k.grid,
      block = k.block, device = "sim", faults = "return"})
    assert.equal("out-of-bounds", r.reports[1].kind)
  end)

  -- Traces sums of `inputs` tensors of n f16. Returns the threads of a block,
  -- whether the next launch begins before the stores, and the number of loads
  -- that L2 evicts last.
  local function traced(inputs, n)
    local types, list = {}, {}
    for i = 1, inputs do types[i] = cute.f16 end
    for i = 1, inputs + 1 do
      list[i] = cute.make_fake_compact_tensor(cute.f16, {n},
                                              {assumed_align = 16})
    end
    local k = elementwise {n = n, inputs = types, outputs = {cute.f16},
      pdl = true, f = function(a, b) return b and a + b or -a end}
    local ir = k.kernel(table.unpack(list)):trace {grid = k.grid,
      block = k.block}.ir
    local early = ir:find("griddepcontrol.launch_dependents", 1, true)
    local store = ir:find("copy 128 bits arg" .. inputs + 1, 1, true)
    return k.block, early and early < store or false,
      select(2, ir:gsub("copy.L2::evict_last", ""))
  end

  it("distributes elements by their bytes and by their inputs", function()
    for _, c in ipairs {
        {1, 1 << 18, 256, true, 0}, {1, 1 << 22, 128, false, 0},
        {2, 1 << 20, 256, true, 0}, {2, 1 << 22, 256, false, 0},
        {1, 1 << 25, 128, true, 0}, {1, 1 << 26, 128, true, 2},
        {2, 1 << 28, 256, true, 2}} do
      assert.same(c, {c[1], c[2], traced(c[1], c[2])})
    end
  end)

  it("rejects tensors with another order of elements", function()
    local k = elementwise {f = function(a) return a end, n = 12,
                           inputs = {cute.f32}}
    local x = cute.zeros({3, 4}, cute.f32)
    for _, y in ipairs {cute.zeros({4, 4}, cute.f32),
        cute.zeros(cute.make_layout({3, 4}, {1, 3}), cute.f32)} do
      refused("12 contiguous elements", function()
        k.kernel(x, y):launch {grid = 1, block = k.block, device = "sim"}
      end)
    end
  end)
end)

describe("the lessons of rows and elements", function()
  it("verify, count and report #long", function()
    for _, w in ipairs {
      {"softmax", "--n", "520"}, {"rmsnorm", "--dtype", "f32"},
      {"rmsnorm_backward", "--rows", "40"}, {"elementwise", "--f", "silu"},
      {"rmsnorm_backward", "--rows", "7", "--n", "33000"},
      {"elementwise", "--dtype", "f16", "--n", "33"},
      {"reduce", "--n", "5001"}} do
      w[1] = "scripts/" .. w[1] .. ".lua"
      table.move({"--device", "sim"}, 1, 2, #w + 1, w)
      local out, err, code = support.run(w)
      assert.equal("", err)
      assert.equal(0, code)
      assert.truthy(out:find("verified .-: ok"), out)
      assert.truthy(out:find("nothing to report", 1, true), out)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
