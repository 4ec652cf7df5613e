-- Tests kernels compiled for declared arguments: which arguments a launch
-- accepts, and the errors for all others. Also tests layouts and coordinates as
-- arguments.
local cute = require "cute"
local jit = require "cute.jit"
local support = require "spec.support"
local message = support.message

local NAN = 0 / 0
local SIM = {grid = 1, block = 32, device = "sim"}

local function options(more)
  local opts = {}
  for _, from in ipairs {SIM, more} do
    for k, v in pairs(from) do opts[k] = v end
  end
  return opts
end

-- Returns a kernel of y = x * s, which walks along the rows, and a table
-- `count`. count.traced is the number of traces.
local function scale()
  local count = {traced = 0}
  return cute.kernel("scale", function(x, y, s)
    count.traced = count.traced + 1
    local i = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
    cute.when(i:lt(cute.size(x, 1)), function()
      for r in cute.range(cute.size(x, 0)) do y[{r, i}] = x[{r, i}] * s end
    end)
  end), count
end

-- Returns a row-major matrix whose rows are `ld` elements apart.
local function matrix(m, n, ld)
  local t = cute.zeros({m, ld or n}, cute.f32)
  for i = 0, m - 1 do
    for k = 0, n - 1 do t[{i, k}] = i * 100 + k end
  end
  return cute.make_tensor(t.iterator,
                          cute.make_layout({m, n}, {ld or n, 1}))
end

describe("a kernel compiled for symbolic tensors", function()
  it("takes all arguments that match the declaration, in one program",
     function()
    local k, count = scale()
    local X = cute.symbolic {dtype = cute.f32, shape = {"m", "n"},
                             stride = {"ld", 1}}
    local run = assert(cute.compile(k, X, cute.symbolic {dtype = "f32",
      shape = {"m", "n"}}, 1.0, {block = 32, device = "sim"}))
    for _, size in ipairs {{1, 1}, {3, 31}, {2, 70, 80}, {5, 64, 65}} do
      local m, n, ld = table.unpack(size)
      local y = cute.zeros({m, n}, cute.f32)
      assert.is_true(run(matrix(m, n, ld), y, 2.0, {grid = (n + 31) // 32}).ok)
      for i = 0, m - 1 do
        for c = 0, n - 1 do assert.equal(2 * (i * 100 + c), y(i, c)) end
      end
    end
    -- The layout was already marked as dynamic, with another divisibility than
    -- the declaration has.
    local x = matrix(4, 8):mark_layout_dynamic {divisibility = {2, 4}}
    assert.is_true(run(x, cute.zeros({4, 8}, cute.f32), 2.0, {grid = 1}).ok)
    assert.equal(1, count.traced)
  end)

  it("equals that of real tensors with these marks", function()
    local k, count = scale()
    local x, y = matrix(4, 8), matrix(4, 8)
    local function marked(t)
      return t:mark_layout_dynamic {divisibility = {1, 8}}
    end
    local program = k(marked(x), marked(y), 1.0):trace {block = 32}
    local X = cute.symbolic {dtype = cute.f32, shape = {"m", "n%8"},
                             align = 256}
    local same = k(X, cute.symbolic {dtype = cute.f32, shape = {"m", "n%8"},
                                     align = 256}, 1.0):trace {block = 32}
    assert.equal(program, same)
    assert.equal(1, count.traced)
    local text = k(X, X, 1.0):trace({block = 32}).source
    -- x and y are the same tensor, so neither parameter is __restrict__.
    assert.is_nil(text:find "restrict")
    assert.equal(2, count.traced)
    if jit.version() then assert.is_truthy(program:compile "sm_90a") end
  end)

  it("rejects others, and reports how they differ", function()
    local k = scale()
    local X = cute.make_fake_tensor(cute.f32, {cute.sym_int(), "n%4"},
      {cute.sym_int {divisibility = 4}, 1}, {assumed_align = 16})
    local Y = cute.make_fake_compact_tensor(cute.f32, {"m", "n"},
                                            {stride_order = {1, 0}})
    local run = assert(cute.compile(k, X, Y, 1.0, options {grid = 1}))
    local x, y = matrix(4, 8), cute.zeros({4, 8}, cute.f32)
    assert.is_true(run(x, y, 1.0).ok)
    local takes = "; this launch takes a tensor of f32, (?,?{div=4}):(?{div=4},"
      .. "1), aligned to 16 bytes [bad-launch]"
    local function refused(want, ...)
      local args = table.pack(...)
      assert.equal("kernel scale: " .. want, (message(function()
        run(table.unpack(args, 1, args.n))
      end)))
    end
    refused("argument 1 is a tensor of f32, (4,7):(7,1), aligned to 256 bytes"
      .. takes, matrix(4, 7), y, 1.0)
    refused("argument 1 is a tensor of f32, (4,8):(9,1), aligned to 256 bytes"
      .. takes, matrix(4, 8, 9), y, 1.0)
    refused("argument 1 is a tensor of f32, (2,4):(8,1), aligned to 4 bytes"
      .. takes, cute.make_tensor(x.iterator + 1,
        cute.make_layout({2, 4}, {8, 1})), y,
      1.0)
    refused("argument 1 is a tensor of f32, (8):(1), aligned to 256 bytes"
      .. takes, cute.zeros({8}, cute.f32), y, 1.0)
    refused("argument 1 is a tensor of f16, (4,8):(8,1), aligned to 256 bytes"
      .. takes, cute.zeros({4, 8}, cute.f16), y, 1.0)
    refused("argument 1 is nil" .. takes, nil, y, 1.0)
    refused("argument 1 is a table of 1 field" .. takes, {x}, y, 1.0)
    refused("the same cute.sym_int is 8 in argument 1 and 12 in argument "
      .. "2 [bad-launch]", x, cute.zeros({4, 12}, cute.f32), 1.0)
    refused("argument 2 is a tensor of f32, (4,8):(1,4), aligned to 256 bytes; "
      .. "this launch takes a tensor of f32, (?,?):(?,1), aligned to 4 bytes "
      .. "[bad-launch]", x, cute.make_tensor(y.iterator,
      cute.make_layout {4, 8}), 1.0)
    refused("arguments 1 and 2 share memory, but this launch was compiled "
      .. "for arguments that do not [bad-launch]\n  compile another launch for "
      .. "arguments that share memory", x, x, 1.0)
    refused("argument 3 is nil; this launch takes a number (f32) [bad-launch]",
      x, y, nil)
    refused("this launch takes 3 arguments, got 2 [bad-launch]", x, y)
    refused("this launch takes 3 arguments, got 5 [bad-launch]", x, y, 1.0, 2,
      3)
    -- The view starts 16 bytes into the tensor, so it is 16-byte aligned.
    local row = cute.make_tensor(x.iterator + 4,
      cute.make_layout({2, 4}, {8, 1}))
    assert.is_true(run(row, cute.zeros({2, 4}, cute.f32), 1.0).ok)
  end)

  it("has no data, and only a given grid", function()
    local k = scale()
    local X = cute.symbolic {dtype = cute.f32, shape = {"m", "n"}}
    local Y = cute.symbolic {dtype = cute.f32, shape = {"m", "n"}}
    local run = assert(cute.compile(k, X, Y, 1.0, {block = 32,
                                                   device = "sim"}))
    assert.equal("kernel scale was compiled for symbolic arguments: pass "
      .. "tensors to launch it, run(X, ...) [bad-launch]",
      (message(function() run:launch() end)))
    assert.equal("kernel scale was compiled without a grid: pass one to launch "
      .. "it, run(X, ..., {grid = n}) [bad-launch]",
      (message(function() run(matrix(1, 1), matrix(1, 1), 1.0) end)))
    assert.equal("cute.size: an integer is needed here, not _ [bad-argument]",
                 (message(function() return cute.size(X) end)))
    assert.equal("ptr[f32,host] o (_,_):(_,1)", tostring(X))
  end)
end)

describe("a kernel compiled for symbolic tensors", function()
  it("takes numbers that are declared, of 32 or 64 bits", function()
    local o = cute.zeros({1}, cute.i64)
    local k = cute.kernel("k", function(out, a, b)
      out[0] = a:to(cute.i64) + b
    end)
    local run = assert(cute.compile(k, o, cute.sym_int(), cute.sym_int64(),
                                    SIM))
    for _, b in ipairs {5, -1, 1 << 40} do
      run(o, 3, b)
      assert.equal(3 + b, o[0])
    end
    assert.equal("kernel k: argument 2 is a number (i64); this launch takes a "
      .. "number (i32) [bad-launch]", (message(run, o, 1 << 40, 1)))
    local n = cute.sym_int()
    local same = assert(cute.compile(cute.kernel("k", function(x, m)
      x[m - 1] = 1
    end), cute.symbolic {dtype = cute.i32, shape = {n}}, n, SIM))
    assert.is_true(same(cute.zeros({9}, cute.i32), 9).ok)
    assert.equal("kernel k: the same cute.sym_int is 9 in argument 1 and 8 "
      .. "in argument 2 [bad-launch]",
      (message(same, cute.zeros({9}, cute.i32), 8)))
  end)

  it("uses divisibility of extents, and 64-bit strides", function()
    local copy = cute.kernel("copy", function(x, y)
      local t = cute.arch.thread_idx()
      cute.autovec_copy(cute.local_tile(x, {4}, {t}),
                        cute.local_tile(y, {4}, {t}))
    end)
    local function text(align)
      local function fake()
        return cute.symbolic {dtype = cute.f32, shape = {64}, align = align}
      end
      return copy(fake(), fake()):trace({block = 16}).source
    end
    assert.is_truthy(text(16):find("float4", 1, true))
    assert.is_nil(text(4):find("float4", 1, true))
    local k = scale()
    local function wide(opts)
      local fake = cute.make_fake_compact_tensor(cute.f32,
        {cute.sym_int(), cute.sym_int()}, opts)
      return k(fake, fake, 1.0):trace({block = 32}).source
    end
    assert.is_truthy(wide({use_32bit_stride = false}):find("long long x_stride",
                                                           1, true))
    assert.is_nil(wide({}):find("long long", 1, true))
    assert.is_truthy(k(cute.symbolic {dtype = cute.f32, shape =
      {"m", cute.sym_int64()}}, matrix(1, 1), 1.0):trace({block = 32}).source
      :find("long long x_stride", 1, true))
    local fake = cute.make_fake_compact_tensor
    for want, given in pairs {
      ["(_,4,_):(1,_,_)"] = fake(cute.f32, {"a", 4, "b"}),
      ["(_,4,_):(_,_,1)"] = fake(cute.f32, {"a", 4, "b"},
                                 {stride_order = {2, 1, 0}}),
      ["(2,4,_):(4,1,8)"] = fake(cute.f32, {2, 4, "b"},
                                 {stride_order = {1, 0, 2}}),
      ["((2,_),3):((3,6),1)"] =
        cute.symbolic {dtype = cute.f32, shape = {{2, "a"}, 3}, stride =
          {{3, 6}, 1}}} do
      assert.equal("ptr[f32,host] o " .. want, tostring(given))
    end
  end)
end)

describe("a kernel compiled for symbolic tensors", function()
  it("has checked declarations", function()
    for want, f in pairs {
      ["cute.symbolic: symbolic tensor: \"m?\" in its shape; an integer, "
        .. "cute.sym_int(), or a name such as \"m\" or \"m%8\" is needed "
        .. "[bad-argument]"]
        = function() cute.symbolic {dtype = cute.f32, shape = {"m?"}} end,
      ["cute.symbolic: symbolic tensor: -1 in its shape; 0 or more is needed "
        .. "[bad-argument]"] =
        function() cute.symbolic {dtype = cute.f32, shape = {4, -1}} end,
      ["cute.symbolic: divisibility = 0; an integer of at least 1 is needed "
        .. "[bad-argument]"] =
        function() cute.symbolic {dtype = cute.f32, shape = {"m%0"}} end,
      ["cute.symbolic: an alignment of 3 bytes; a power of two from 4 to 256 "
        .. "is needed [bad-argument]"] =
        function() cute.symbolic {dtype = cute.f32, shape = {4}, align = 3} end,
      ["cute.symbolic: no option 'alig' (did you mean align?): there are "
        .. "align dtype shape stride [unknown-name]"] =
        function() cute.symbolic {dtype = cute.f32, shape = {4}, alig = 3} end,
      ["cute.symbolic: symbolic tensor: no element type \"f33\" "
        .. "[bad-argument]"] =
        function() cute.symbolic {dtype = "f33", shape = {4}} end,
      ["cute.make_fake_compact_tensor: stride_order = {0, 0}; 0 to 1, once "
        .. "each, is needed [bad-argument]"] = function()
        cute.make_fake_compact_tensor(cute.f32, {4, 4}, {stride_order = {0, 0}})
      end,
      ["cute.make_fake_tensor: memspace = \"smem\"; argument tensors must be "
        .. "in gmem [bad-argument]"] = function()
        cute.make_fake_tensor(cute.f32, {4}, {1}, {memspace = "smem"})
      end,
      ["cute.make_fake_compact_tensor: stride_order = {" .. tostring(NAN)
        .. ", 0}; 0 to 1, once "
        .. "each, is needed [bad-argument]"] = function()
        cute.make_fake_compact_tensor(cute.f32, {4, 4},
                                      {stride_order = {NAN, 0}})
      end,
      ["cute.symbolic: a shape is needed, got nil [bad-argument]"] =
        function() cute.symbolic {dtype = cute.f32} end,
      ["cute.symbolic: {nil, 4} is not a tuple: a list of integers and names "
        .. "is needed [bad-argument]"] =
        function() cute.symbolic {dtype = cute.f32, shape = {nil, 4}} end,
      ["cute.make_fake_tensor: {m = 4} is not a tuple: a list of integers and "
        .. "names is needed [bad-argument]"] =
        function() cute.make_fake_tensor(cute.f32, {4}, {m = 4}) end,
      ["cute.symbolic: tuples nest at most 32 deep [limit]"] = function()
        local shape = {4}
        shape[2] = shape
        cute.symbolic {dtype = cute.f32, shape = shape}
      end,
      ["cute.symbolic: divisibility = \"99999999999999999999\"; an integer of "
        .. "at least 1 is needed [bad-argument]"] = function()
        cute.symbolic {dtype = cute.f32, shape = {"n%99999999999999999999"}}
      end,
      ["cute.sym_int of 16 bits; 32 or 64 is needed [bad-argument]"] =
        function() cute.sym_int(16) end} do
      assert.equal(want, (message(f)))
    end
  end)
end)

describe("layouts and coordinates are arguments", function()
  it("constants where they are static, numbers where they are dynamic",
     function()
    local traced = {n = 0}
    local o = cute.zeros({4}, cute.i32)
    local k = cute.kernel("k", function(l, c, out)
      traced.n = traced.n + 1
      local at = c[{1, 2}]
      out[0], out[1] = l(1, 2), cute.size(l)
      out[2], out[3] = at[1] * 10 + at[2], cute.size(c)
    end)
    local function both(n, dynamic)
      local l = cute.make_layout({n, 8 * n}, {8 * n, 1})
      local c = cute.make_identity_tensor {n, 2 * n}
      if not dynamic then return l, c end
      return l:mark_layout_dynamic {divisibility = {1, 8}},
        c:mark_layout_dynamic()
    end
    for i, dynamic in ipairs {false, true} do
      for n = 3, 5 do
        local l, c = both(n, dynamic)
        k(l, c, o):launch(SIM)
        assert.same({8 * n + 2, 8 * n * n, 12, 2 * n * n},
                    {o[0], o[1], o[2], o[3]})
      end
      assert.equal(i == 1 and 3 or 4, traced.n)
    end
    local l, c = both(3, true)
    local run = cute.compile(k, l, c, o, SIM)
    run(cute.make_layout({4, 16}, {24, 1}), cute.make_identity_tensor {9, 9}, o)
    assert.same({26, 64, 12, 81}, {o[0], o[1], o[2], o[3]})
    assert.equal("kernel k: argument 1 is the layout (4,9):(9,1); this launch "
      .. "takes the layout (?,?{div=8}):(?{div=8},1) [bad-launch]",
      (message(run, cute.make_layout({4, 9}, {9, 1}), c, o)))
    assert.equal("kernel k: argument 2 is the coordinates (0,0,0) o (9,9,2):"
      .. "(1@0,1@1,1@2); this launch takes the coordinates (0,0) o (?,?):(1@0,"
      .. "1@1) [bad-launch]",
      (message(run, l, cute.make_identity_tensor {9, 9, 2}, o)))
    assert.equal("(3,24):(24,1)", tostring(l))
    assert.equal(4, traced.n)
  end)
end)
-- SPDX-License-Identifier: MIT
