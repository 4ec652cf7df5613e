-- Tests what `cutelua bundle` records of a script, which scripts it rejects,
-- and the certificate. Oracles: the programs lz4 and sha256sum, integers in
-- Lua.
local made = require "spec.bundle.made"
local any = require "cutelua.bundle.any"
local core = require "cute.core"
local expression = require "cutelua.bundle.expression"
local json = require "cutelua.text.json"
local lz4 = require "cutelua.bundle.lz4"
local range = require "cutelua.bundle.range"
local support = require "spec.support"

local HEAD = [[
local cute = require "cute"
local twice = cute.kernel("twice", function(x, y, n)
  local i = cute.arch.thread_idx()
  for _ in cute.when(i:lt(n)) do y[i] = 2 * x[i] end
end)
local x, y = cute.rand({64}, cute.f32), cute.zeros({64}, cute.f32)
]]

local function with_folder(f)
  local folder = support.folder()
  local ok, why = pcall(f, folder)
  support.remove(folder)
  assert(ok, why)
end

-- Bundles a script and calls f with the certificate and the bundle's folder.
-- Returns the output, the errors and the exit code.
local function bundle(code, words, f)
  local out, err, rc
  with_folder(function(folder)
    local name = support.write(folder .. "/s.lua", HEAD, code)
    out, err, rc = made.bundle("-o " .. folder, words or "", name)
    if f then f(json.decode(support.read(folder .. "/s.json")), folder) end
  end)
  return out, err, rc
end

-- Returns n random bytes that contain repetitions, as machine code does.
local function some_bytes(n, seed)
  local out, past = {}, {}
  math.randomseed(seed)
  while #table.concat(out) < n do
    local old = #past > 0 and math.random() < 0.6
    local piece = old and past[math.random(#past)]
      or ("%c"):rep(math.random(40)):gsub("%%c", function()
        return string.char(math.random(0, 255))
      end)
    past[#past + 1] = piece
    out[#out + 1] = piece
  end
  return table.concat(out):sub(1, n)
end

describe("bundle's texts", function()
  it("are packed as LZ4 packs them #long", function()
    if not made.has "lz4" then pending "needs lz4" return end
    with_folder(function(folder)
      for i, n in ipairs {0, 1, 4, 5, 12, 13, 17, 100, 1000, 70000, 300000} do
        local bytes = n == 300000 and ("ab"):rep(150000) or some_bytes(n, i)
        local packed = lz4.pack(bytes)
        assert.truthy(n < 1000 or #packed < n)
        -- The lz4 program reads blocks inside a frame of the legacy format.
        support.write(folder .. "/x.lz4", string.pack("<I4I4", 0x184C2102,
          #packed), packed)
        made.must("lz4 -q -d -f", folder .. "/x.lz4", folder .. "/x")
        assert.equal(bytes, support.read(folder .. "/x"))
      end
    end)
  end)

  it("have the hashes that sha256sum computes", function()
    if not made.has "sha256sum" then pending "needs sha256sum" return end
    with_folder(function(folder)
      for i, n in ipairs {0, 1, 55, 56, 63, 64, 65, 1000} do
        local bytes = some_bytes(n, i)
        local name = support.write(folder .. "/x", bytes)
        assert.equal(core.sha256(bytes),
                     made.must("sha256sum", name):sub(1, 64))
      end
    end)
  end)

  it("compute in C what the grid's function computes", function()
    local x, y = expression.leaf "x", expression.leaf "y"
    local function f(a, b)
      return {(a + 127) // 128 * -b, expression.min(a % b, 5 - b) // -3,
              expression.max(-a % 7, expression.min(2, 3)) - b * b}
    end
    local out, helpers = {}, {}
    for _, e in ipairs(f(x, y)) do
      out[#out + 1] = ('printf("%%lld ", (long long)%s);'):format(
        expression.c(e))
    end
    for _, text in pairs(expression.code) do helpers[#helpers + 1] = text end
    with_folder(function(folder)
      local name = support.write(folder .. "/e.c", "#include <stdint.h>\n",
        "#include <stdio.h>\n", table.concat(helpers), "int main(void) {\n",
        "for (int64_t x = -9; x < 400; x += 7)\n",
        "for (int64_t y = -5; y < 12; y += 3) {\n", table.concat(out),
        "\n} }\n")
      made.must("cc -o", folder .. "/e", name)
      local want = {}
      for a = -9, 399, 7 do
        for b = -5, 11, 3 do
          for _, v in ipairs(f(a, b)) do want[#want + 1] = v end
        end
      end
      assert.equal(table.concat(want, " ") .. " ", made.must(folder .. "/e"))
    end)
  end)
end)

-- Returns a variant of a bundled function for any size from `from` on, in steps
-- of `step`. Its launches have one block for each `part` rows.
local function merged(part, from, step)
  local function at(m)
    return {m, {tensors = {{shape = {m}, stride = {1}, align = 1}},
      numbers = {}, apart = {}, regions = {}, steps = {{program = "k",
      grid = {(m + part - 1) // part, 1, 1}, values = {}}}}}
  end
  local list = {}
  for i, m in ipairs(any.sizes(from, step)) do list[i] = at(m) end
  return any.merged("f", list, from, step, at, function() return "" end)
end

describe("a grid for any size", function()
  it("is that of every size, by a formula that few sizes give #long", function()
    for _, step in ipairs {1, 8, 24} do
      for _, part in ipairs {1, 2, 7, 32, 56, 77, 80, 128, 184, 192, 208, 383,
                             500, 512, 1000, 2048} do
        local grid = merged(part, step, step).steps[1].grid
        -- Steps of 7 cover every remainder of a division by a power of two.
        local m = step
        while m <= 20000 do
          local blocks = range.is_formula(grid[1])
            and range.value(grid[1], m) or grid[1]
          assert.equal((m + part - 1) // part, blocks, m)
          m = m + (m < 600 and 1 or 7) * step
        end
        assert.equal(1, grid[2])
      end
    end
  end)

  it("is none if its formula is not known", function()
    for _, part in ipairs {2049, 3000, 16000} do
      local ok, why = pcall(merged, part, 1, 1)
      assert.is_false(ok, part)
      assert.truthy(why:find("no formula gives the launches", 1, true), why)
    end
  end)
end)

-- Each row: the mistake, the rest of the script, and texts of the message.
local WRONG = {
  {"nothing", "", "launched no kernel and added no function"},
  {"an error of the script", "error 'boom'", "boom"},
  {"a name", "cute.bundle.add('a b', twice, {x})", "'a b' is not a C identif"},
  {"no kernel launched", "cute.bundle.add('f', function() end, {x})",
   "f: the function launched no kernel"},
  {"an unknown option", "cute.bundle.add('f', twice, {x, grids = 1})",
   "grids"},
  {"memory that is not an argument", [[
    cute.bundle.add("f", function(a) twice(a, y, 64):launch {grid = 1,
      block = 64} end, {x})]], "kernel twice uses memory that is not an "
    .. "argument (y): pass the tensor to the function"},
  {"memory that the host fills", [[
    cute.bundle.add("f", function(a)
      local t = cute.full({64}, 1.0, cute.f32)
      twice(t, a, 64):launch {grid = 1, block = 64}
    end, {y})]], "reads memory that the host wrote during the call"},
  {"a number that the host computes with", [[
    cute.bundle.add("f", function(a, b, n)
      twice(a, b, n * 2):launch {grid = 1, block = 64}
    end, {x, y, cute.bundle.number("n", 3)})]],
   "the host computes argument n of kernel twice"},
  {"a number that chooses the launch", [[
    cute.bundle.add("f", function(a, b, n)
      twice(a, b, 64):launch {grid = n, block = 64}
    end, {x, y, cute.bundle.number("n", 3)})]],
   "the kernels that the function launches depend on the value of n"},
  {"two functions of one name", [[
    cute.bundle.add("f", twice, {x, y, 64, grid = 1, block = 64})
    cute.bundle.add("f", function(a) cute.ops.reduce(a, "sum") end, {x})]],
   "a function of this name has other arguments"},
  {"two launches for one size", [[
    cute.bundle.add("f", twice, {x, y, 64, grid = 1, block = 64})
    cute.bundle.add("f", twice, {x, y, 64, grid = 2, block = 64})]],
   "tensors of the same extents launch different kernels"},
  {"a result that is no tensor", [[
    cute.bundle.add("f", function(a, b)
      twice(a, b, 64):launch {grid = 1, block = 64}
      return 7
    end, {x, y})]], "the function returned 7"},
  {"a host function that reads a result", [[
    cute.bundle.add("f", function(a, b)
      twice(a, b, 64):launch {grid = 1, block = 64}
      twice(a, b, b(0) ~= 0 and 64 or 32):launch {grid = 1, block = 64}
    end, {x, y})]], "f: the launches depend on elements of tensors"},
  {"a host function that reads its tensors", [[
    cute.bundle.add("f", function(a, b)
      if a(3) == 0 then error "zero" end
      twice(a, b, 64):launch {grid = 1, block = 64}
    end, {x, y})]], "f: the launches depend on elements of tensors"},
  {"a name of the bundle", [[
    cute.bundle.add("load", twice, {x, y, 64, grid = 1, block = 64})]],
   "load: this name is reserved, because every bundle defines"},
  {"symbols without a grid", [[
    local s = cute.symbolic {dtype = cute.f32, shape = {"n"}}
    cute.bundle.add("f", twice, {s, s, 64, block = 64})]],
   "needs a function that returns the grid"},
  {"a grid that compares", [[
    local s = cute.symbolic {dtype = cute.f32, shape = {"n"}}
    cute.bundle.add("f", twice, {s, s, 64, block = 64, grid = function(t)
      return t[1] > 64 and 2 or 1
    end})]], "compares an extent"},
  {"a grid that branches on one value", [[
    local s = cute.symbolic {dtype = cute.f32, shape = {"n"}}
    cute.bundle.add("f", twice, {s, s, 64, block = 64, grid = function(t)
      if t[1] == 1 then return 7 end
      return t[1]
    end})]], "branches on its arguments"},
  {"a race", [[
    local race = cute.kernel("race", function(p)
      local s = cute.make_smem_tensor(cute.f32, 64)
      local i = cute.arch.thread_idx()
      s[i] = p[i]
      p[i] = s[63 - i]
    end)
    race(x):launch {grid = 1, block = 64}]], "race"},
  {"any extent where a kernel needs a static one", [[
    cute.bundle.add("f", cute.ops.softmax, {sizes = {1, "any"},
      arguments = function(n) return {cute.rand({64, n}, cute.f32)} end})]],
   "f: kernel softmax needs static extents, but argument 1 has the extents "
    .. "(64,?), argument 2 has the extents (64,?): "
    .. 'write the largest size in place of "any"'},
  {"any size of a kernel that loads vectors", [[
    cute.bundle.add("f", cute.ops.convert, {sizes = {1, "any"},
      arguments = function(n) return {cute.rand({n}, cute.f32), "bf16"} end})]],
   "f: no formula gives the launches for both sizes, 3 and 4: "
    .. 'write the largest size in place of "any", or use a larger step'},
  {"any size with a workspace", [[
    cute.bundle.add("f", function(A, B)
      return cute.ops.gemm(cute.ops.gemm(A, B), B)
    end, {sizes = {1, "any"}, arguments = function(n)
      return {cute.rand({n, 64}, cute.bf16), cute.rand({64, 64}, cute.bf16)}
    end})]], "f: the function needs a workspace, "
    .. "whose bytes would depend on the size of the call"},
  {"any size of another number of launches", [[
    cute.bundle.add("f", cute.ops.reduce, {sizes = {1, "any"},
      arguments = function(n) return {cute.rand({n, 512}, cute.f32), "sum"} end,
      examples = {1000}})]], "f: the function launches 2 kernels for size 1000 "
    .. 'and 1 for size 2: write the largest size in place of "any"'},
  {"any size of a kernel of the script", [[
    cute.bundle.add("f", function(a, b)
      twice(a, b, 64):launch {grid = 1, block = 64}
    end, {sizes = {1, "any"}, arguments = function(n)
      return {cute.rand({n}, cute.f32), cute.zeros({n}, cute.f32)}
    end})]], "f: the function launches kernel twice "
    .. "itself, but only kernels of cute.ops can be traced for any size"},
  {"an example beyond the largest size", [[
    cute.bundle.add("f", cute.ops.softmax, {sizes = {2, "any", 2},
      arguments = function(n) return {cute.rand({n, 64}, cute.f32)} end,
      examples = {4, 5}})]],
   "f: examples has the size 5, which is not among the sizes 2 to 33538048"},
  {"sizes of another form", [[
    cute.bundle.add("f", cute.ops.softmax, {sizes = {0, "any"},
      arguments = function(n) return {cute.rand({n, 64}, cute.f32)} end})]],
   'sizes or last = "any"'},
  {"an argument of the command", "", "no architecture 'sm_1'",
   words = "--arch sm_1", code = 2},
  {"a name of the command", "", "is not a C identifier", words = "--name 1",
   code = 2}}

describe("cutelua bundle rejects", function()
  for _, row in ipairs(WRONG) do
    it(row[1], function()
      local _, err, code = bundle(row[2], row.words)
      assert.equal(row.code or 1, code, err)
      assert.truthy(err:find(row[3], 1, true), err)
    end)
  end
end)

local CALL = "twice(x, y, 64):launch {grid = 1, block = 64}\n"

describe("a certificate", function()
  if not core.nvrtc_version() then return end

  it("has the hashes of the code and the verdicts of the check", function()
    bundle(CALL, "--ptx --cubin", function(c, folder)
      local k = c.kernels[1]
      for _, kind in ipairs {"ptx", "cubin"} do
        local name = ("%s/%s.%s"):format(folder, k.file, kind)
        assert.equal(k[kind .. "_sha256"],
                     made.must("sha256sum", name):sub(1, 64))
      end
      for _, f in ipairs(c.files) do
        assert.equal(f.sha256, made.must("sha256sum", folder .. "/"
          .. f.name):sub(1, 64))
      end
      assert.equal(core.version, c.cutelua)
      assert.equal(core.nvrtc_version(), k.nvrtc)
      local v = c.functions[1].variants[1]
      assert.equal("ok", v.checks[1].verdict)
      assert.same({1, 1, 1}, v.checks[1].grid)
      local kinds = {}
      for i, a in ipairs(v.steps[1].arguments) do kinds[i] = a.kind end
      assert.same({"pointer", "pointer", "number"}, kinds)
      assert.same({64}, v.tensors[1].extents)
      assert.falsy(v.tensors[1].written)
      assert.truthy(v.tensors[2].written)
    end)
  end)

  it("is verified, unless the files or the script changed #long", function()
    with_folder(function(folder)
      local name = folder .. "/s.lua"
      local function verify(code)
        support.write(name, HEAD, code)
        local out, err, rc = made.bundle("--verify -o " .. folder, name)
        assert.equal("", err)
        return rc, out
      end
      support.write(name, HEAD, CALL)
      assert.equal(0, select(3, made.bundle("-o " .. folder, name)))
      local rc, out = verify("-- a comment\n" .. CALL)
      assert.equal(0, rc, out)
      assert.truthy(out:find("verified: 1 kernel, 1 checked launch ok", 1,
                             true), out)
      rc, out = verify("x = cute.rand({128}, cute.f32)\n" .. CALL)
      assert.equal(1, rc)
      assert.truthy(out:find("launches of function twice differ", 1, true))
      rc, out = verify("local n = 64\n" .. CALL:gsub("64", "n * 1.0 // 1 | 0"))
      assert.equal(0, rc, out)
      support.write(name, (HEAD:gsub("2 %*", "3 *")), CALL)
      local changed = made.bundle("--verify -o " .. folder, name)
      assert.truthy(changed:find("kernel twice for sm_90a: the script makes "
        .. "another kernel now", 1, true), changed)
      local h = support.read(folder .. "/s.h")
      support.write(folder .. "/s.h", h, "\n")
      rc, out = verify(CALL)
      assert.equal(1, rc)
      assert.truthy(out:find("s.h was changed after it was written", 1, true))
      local certificate = folder .. "/s.json"
      for from, to in pairs {['"checks":'] = '"check":', ["^.*$"] = "7"} do
        local text = support.read(certificate)
        support.write(certificate, (text:gsub(from, to)))
        support.write(name, HEAD, CALL)
        local said, err, code = made.bundle("--verify -o " .. folder, name)
        assert.equal(1, code)
        assert.matches("the certificate [%l ]+", said .. err)
        assert.is_nil(err:find("[lua]", 1, true), err)
        support.write(certificate, text)
      end
    end)
  end)
end)

describe("cutelua bundle", function()
  if not core.nvrtc_version() then return end

  it("has code for each architecture", function()
    bundle([[cute.bundle.add("f", cute.ops.gemm, {cute.rand({64, 64},
      cute.bf16), cute.rand({64, 64}, cute.bf16), results = {"D"},
      names = {"A", "B"}})]], "--arch sm_80,sm_90a", function(c, folder)
      assert.same({"sm_90a", "sm_80"}, c.archs)
      assert.equal(2, #c.functions[1].variants)
      local names = {}
      for i, t in ipairs(c.functions[1].variants[2].tensors) do
        names[i] = t.name
      end
      assert.same({"A", "B", "D"}, names)
      made.must("cc -std=c11 -Wall -Wextra -Wconversion -Werror -fsyntax-only",
                folder .. "/s.c")
      local text = support.read(folder .. "/s.c")
      assert.truthy(text:find('{"sm_90a", 9, 0, 1}, {"sm_80", 8, 0, 0}', 1,
                              true))
    end)
  end)

  it("needs no more alignment than it is told #long", function()
    bundle([[
      cute.bundle.add("f", twice, {x, y, 64, grid = 1, block = 64, align = 8})
      cute.bundle.add("g", function(a, b)
        twice(a, b, 64):launch {grid = 1, block = 64}
      end, {x, y, align = 16})
      assert(y(63) == 2 * x(63))
      cute.bundle.add("h", twice, {x, y, 64, grid = 1, block = 64})]], "--test",
      function(c)
        for i, align in ipairs {8, 16, 256} do
          for _, t in ipairs(c.functions[i].variants[1].tensors) do
            assert.equal(align, t.align)
          end
        end
      end)
    local _, err = bundle([[cute.bundle.add("f", twice, {x, y, 64, grid = 1,
      block = 64, align = 12})]])
    assert.truthy(err:find("align = 12; a power of two", 1, true), err)
  end)

  it("does not run kernels with other numbers", function()
    -- A run with 65 elements would read beyond the tensors.
    bundle([[cute.bundle.add("f", function(a, b, n)
      twice(a, b, n):launch {grid = 1, block = 96}
    end, {x, y, cute.bundle.number("n", 64)})]], "", function(c)
      assert.same({{name = "n", dtype = "i32"}}, c.functions[1].numbers)
    end)
  end)

  it("names numbers of kernels", function()
    bundle([[cute.bundle.add("f", twice, {x, y, cute.bundle.number("count", 64),
      grid = 1, block = 64, names = {"from", "to"}})]], "", function(c)
      local f = c.functions[1]
      assert.equal("count", f.numbers[1].name)
      assert.equal("from", f.variants[1].tensors[1].name)
      assert.equal("to", f.variants[1].tensors[2].name)
    end)
  end)

  it("makes a function of each launch, with a name of its own", function()
    bundle(CALL .. CALL .. "twice(x, y, 64):launch {grid = 2, block = 64}",
           "", function(c)
      local names = {}
      for i, f in ipairs(c.functions) do names[i] = f.name end
      assert.same({"twice", "twice_2"}, names)
    end)
  end)

  it("bundles the scripts of docs/bundle.md #long", function()
    local text, count = support.read "docs/bundle.md", 0
    local block = "<!%-%- file (%w+)%.lua %-%->\n```lua\n(.-)```"
    for name, code in text:gmatch(block) do
      with_folder(function(folder)
        local file = support.write(("%s/%s.lua"):format(folder, name), code)
        local _, err, rc = made.bundle("--test -o " .. folder, file)
        assert.equal("", err)
        assert.equal(0, rc)
        local function plain(s) return (s:gsub("%s+", " ")) end
        local header = plain(support.read(("%s/%s.h"):format(folder, name)))
        for shown in text:gmatch("int " .. name .. "_%w+(%b()); *\n```") do
          assert.truthy(header:find(plain(shown), 1, true), header)
        end
        count = count + 1
      end)
    end
    assert.equal(4, count)
  end)

  it("leaves a script alone that runs otherwise", function()
    with_folder(function(folder)
      local name = support.write(folder .. "/s.lua", HEAD, [[
        cute.bundle.add("f", function() error "called" end, {x})
        print(cute.bundle.number("n", 3) + 1, cute.bundle.ceil_div(10, 4),
              cute.bundle.min(2, 3), cute.bundle.max(2, 3))]])
      local out, err, code = support.run {name}
      assert.equal("4\t3\t2\t3\n", out)
      assert.equal("", err)
      assert.equal(0, code)
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
