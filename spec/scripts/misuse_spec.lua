-- Tests kernels of the library with options that they do not support. The error
-- must name the option or operand and the script's line. With options at their
-- limits, results must be right.
local cute = require "cute"
local support = require "spec.support"

local Z = cute.zeros

-- Checks that each line of a script raises the expected error, which must name
-- that line.
local function lines_refused(head, cases)
  for _, c in ipairs(cases) do
    local text, want = head .. "\n\n" .. c[1], c[2]
    local ok, err = pcall(assert(load(text, "=script")))
    assert.is_false(ok, c[1])
    local _, newlines = head:gsub("\n", "")
    local place = ("script:%d: "):format(newlines + 3)
    assert.equal(place .. want .. " [bad-argument]",
                 tostring(err):match "^[^\n]*", c[1])
  end
end

local HEAD = [[
local cute = require "cute"
local Z, f32, bf16 = cute.zeros, cute.f32, cute.bf16
local function view(shape, stride, t)
  return cute.make_tensor(Z({4096}, t or f32).iterator,
                          cute.make_layout(shape, stride))
end
local function of(name) return require("kernels." .. name) end
local function go(k, ...)
  return k.kernel(...):launch {grid = 1, block = k.block, device = "sim"}
end
]]

local function dense(i, layout, n)
  return ("operand %s is %s; %d contiguous elements are needed")
    :format(i, layout, n)
end

describe("a kernel of the library", function()
  it("has only the options of its maker", function()
    for _, c in ipairs {
      {"'softmax' {n = 9, dtypo = f32}", "softmax: no option 'dtypo' (did you "
        .. "mean dtype?): there are backward block "},
      {"'norm'.rms {n = 9, dtype = f32, wieght = true}",
       "rmsnorm: no option 'wieght' (did you mean weight?): there are bias "},
      {"'norm'.layer_backward {n = 9, dtype = f32, save = true}",
       "layernorm_backward: no option 'save': there are bias "},
      {"'argmax' {n = 9, dtype = f32, smalest = true}",
       "argmax: no option 'smalest' (did you mean smallest?)"},
      {"'reduce'.rows {n = 9, dtype = f32, opp = 'sum'}",
       "reduce.rows: no option 'opp' (did you mean op?)"},
      {"'reduce'.columns {m = 1, n = 9, dtype = f32, op = 'sum', warp = 1}",
       "reduce.columns: no option 'warp' (did you mean warps?)"},
      {"'reduce'.all {n = 9, dtype = f32, op = 'sum', grids = 1}",
       "reduce.all: no option 'grids' (did you mean grid?)"},
      {"'histogram' {n = 9, dtype = cute.u8, bims = 4}",
       "histogram: no option 'bims' (did you mean bins?)"},
      {"'rope' {positons = 2}", "rope: no option 'positons' (did you mean "
        .. "positions?)"},
      {"'scan' {n = 9, onepass = true}", "scan: no option 'onepass' (did you "
        .. "mean one_pass?)"},
      {"'selective_scan' {dtype = f32, state = 16}",
       "selective_scan: no option 'state' (did you mean states?)"},
      {"'topk' {n = 9, K = 2}", "topk: no option 'K' (did you mean k?)"},
      {"'transpose' {form = {1}}", "transpose: no option 'form' (did you mean "
        .. "from?)"},
      {"'elementwise' {n = 9, input = {f32}}",
       "elementwise: no option 'input' (did you mean inputs?)"},
      {"'reduce_tensor'.along {steps = 1, split = 2}",
       "reduce_tensor.along: no option 'split' (did you mean splits?)"},
      {"'attention' {head = 64, casual = true}",
       "attention: no option 'casual' (did you mean causal?)"},
      {"'attention_bwd' {head = 64, group = 2}",
       "attention_bwd: no option 'group': there are causal gradients "
        .. "head held list modify name tile warps"},
      {"'attention_decode' {head = 64, groups = 2}",
       "attention_decode: no option 'groups' (did you mean group?)"},
      {"'conv2d' {pading = 1}", "conv2d: no option 'pading' (did you mean "
        .. "padding?)"},
      {"'gemm_sm80' {tiles = {64, 64, 32}}",
       "gemm_sm80: no option 'tiles' (did you mean tile?)"},
      {"'gemm_simt' {a_type = f32}", "gemm_simt: no option 'a_type' (did you "
        .. "mean a_dtype?)"},
      {"'gemm_splitk' {split = 3}", "gemm_splitk: no option 'split' (did you "
        .. "mean splits?)"},
      {"'gemm_grouped' {forn = 1}", "gemm_grouped: no option 'forn' (did "
        .. "you mean form?)"},
      {"'gemm_skinny' {n = 64, k = 64, wraps = {1, 8}}",
       "gemm_skinny: no option 'wraps' (did you mean warps?)"},
      {"'gemm_int4' {n = 64, k = 64, zero = true}",
       "gemm_int4: no option 'zero' (did you mean zeros?)"},
      {"'gemm_sm90' {stage = 3}", "gemm_sm90: no option 'stage' (did you mean "
        .. "stages?)"},
      {"'softmax' {{n = 9}}", "softmax: no option 1: there are "},
      {"'softmax'(9)", "softmax: 9; a table of options is needed"},
    } do
      local ok, err = pcall(assert(load(HEAD .. "of " .. c[1], "=script")))
      assert.is_false(ok, c[1])
      local place = "script:11: "
      assert.equal(place .. c[2], tostring(err):sub(1, #place + #c[2]), c[1])
    end
  end)

  it("reports which option is wrong", function()
    lines_refused(HEAD, {
      {"of 'softmax' {n = 9, dtype = f32, threads = 3}",
       "rows: threads = 3; a power of two from 1 to 1024 is needed"},
      {"of 'softmax' {n = 9, dtype = f32, block = 100}",
       "rows: block = 100; a power of two from 32 to 1024 is needed"},
      {"of 'norm'.rms {n = 0, dtype = f32}",
       "rows: n = 0; an integer of 1 or more is needed"},
      {"of 'argmax' {n = 9}",
       "rows: dtype = nil; a type is needed, such as cute.bf16"},
      {"of 'softmax' {n = 9, dtype = bf16, width = 2}",
       "rows: width = 2; a power of two from 1 to 1 is needed"},
      {"of 'argmax' {n = 9, dtype = cute.f64}",
       "argmax: the element type must be a float of at most 32 bits, not f64"},
      {"of 'topk' {n = 9, k = 3, dtype = f32, warps = 3}",
       "topk: warps = 3; a power of two from 1 to 32 is needed"},
      {"of 'topk' {n = 9, k = 3, dtype = f32, block = 100}",
       "topk: block = 100; a power of two from 32 to 1024 is needed"},
      {"of 'scan' {n = 9, dtype = f32, block = 4096}",
       "scan: block = 4096; a power of two from 32 to 1024 is needed"},
      {"of 'reduce'.all {op = 'sum', n = 9, dtype = f32, block = 96}",
       "reduce: block = 96; a power of two from 32 to 1024 is needed"},
      {"of 'gemm_sm80' {stages = 1}",
       "gemm_sm80: stages = 1; an integer from 2 to 32 is needed"},
      {"of 'attention' {head = 32, warps = 3}",
       "attention: tile = {128, 64}; multiples of 48 (16 for each warp) and "
       .. "16 are needed"},
      {"of 'attention_bwd' {head = 32, tile = {16, 64}, warps = 1}",
       "attention_bwd: tiles of 64 columns; at most 32, one for each thread, "
       .. "are possible"},
      {"of 'selective_scan' {dtype = f32, time = 20}",
       "selective_scan: time = 20; a power of two from 4 to 256 is needed"},
      {"of 'selective_scan' {dtype = f32, channels = 4, lanes = 1}",
       "selective_scan: 4 threads for 4 channels and 32 steps; 32 to 1024 "
       .. "threads, and no fewer than steps, are needed"},
      {"of 'conv2d' {}.shape(Z({1, 2, 2, 8}, bf16), Z({8, 3, 3, 8}, bf16))",
       "conv2d: filters of (3,3) do not fit into (2,2)"}})
  end)
end)

describe("a kernel of the library", function()
  it("reports which operand is wrong", function()
    local made = HEAD .. [[
local soft = of "softmax" {n = 64, dtype = bf16}
local rms = of "norm".rms {n = 64, dtype = f32, weight = true}
local all = of "reduce".all {op = "sum", n = 64, dtype = f32}
local columns = of "reduce".columns {op = "sum", m = 4, n = 6, dtype = f32}
local rope = of "rope" {dtype = f32, m = 2, heads = 2, d = 8, positions = 4}
local hist = of "histogram" {n = 64, bins = 4, dtype = cute.u8}
local scan = of "scan" {n = 64, dtype = f32, one_pass = true}
local att = of "attention" {head = 32}
local conv = of "conv2d" {}
local topk = of "topk" {n = 64, k = 3, dtype = f32}
local gemm, K9 = of "gemm_sm80" {}, Z({5, 9}, bf16)
local a, b = Z({3, 8}, bf16), Z({5, 8}, bf16)
local same = of "elementwise" {f = function() end, n = 64, inputs = {f32}}
local x, y, c = Z({64}, f32), Z({1}, f32), Z({4, 4}, f32)
local q = Z({1, 5, 3, 32}, bf16)
]]
    lines_refused(made, {
      {"go(soft, view({3, 64}, {65, 1}, bf16), Z({3, 64}, bf16))",
       "softmax: operand 1 is (3,64):(65,1); rows at multiples of 8 elements "
       .. "are needed"},
      {"go(soft, Z({3, 64}, bf16))",
       "softmax: X, Y are needed, not 1 operands"},
      {"go(rms, Z({3, 64}, f32), Z({8}, f32), Z({3, 64}, f32), 1e-5)",
       "rmsnorm: operand 2 is (8):(1); rows of 64 contiguous elements are "
       .. "needed"},
      {"go(rms, Z({3, 64}, f32), x, Z({3, 64}, f32))",
       "rmsnorm: X, W, Y, eps are needed, not 3 operands"},
      {"go(all, view({64}, {2}), y, y, Z({1}, cute.u32))",
       "reduce: " .. dense("X", "(64):(2)", 64)},
      {"go(all, Z({80}, f32), y, y, Z({1}, cute.u32))",
       "reduce: " .. dense("X", "(80):(1)", 64)},
      {"go(columns, view({4, 6}, {9, 1}), Z({6}, f32))",
       "reduce: " .. dense("X", "(4,6):(9,1)", 24)},
      {"go(rope, Z({2, 2, 16}, f32), c, c, Z({2, 2, 16}, f32))",
       "rope: operand X is (2,2,16):(32,16,1); (2,2,8) with contiguous heads "
       .. "is needed"},
      {"go(hist, Z({64}, cute.u8), view({4}, {2}, cute.i32))",
       "histogram: " .. dense("H", "(4):(2)", 4)},
      {"go(scan, Z({2, 64}, f32), x, Z({9}, cute.u64))",
       "scan: " .. dense("X", "(2,64):(64,1)", 64)},
      {"go(topk, Z({3, 64}, f32), Z({3, 2}, f32), Z({3, 3}, cute.i32))",
       "topk: k is 3, and a row of Y 2; they must be equal"},
      {"go(gemm, a, K9, Z({3, 5}, f32))",
       "gemm_sm80: K of A is 8, and of B 9; they must be equal"},
      {"go(gemm, a, b, Z({3, 6}, f32))",
       "gemm_sm80: N of B is 5, and of C 6; they must be equal"},
      {"go(of 'gemm_sm80' {epilogue = function(acc, part, v) return acc + "
       .. "part.load(v) end}, a, b, Z({3, 5}, f32), Z({4}, f32))",
       "gemm_sm80: N is 5, and an epilogue loads of 4; they must be equal"},
      {"go(same, x, x)", "elementwise: f returned 0 results, not 1"},
      {"go(att, q, Z({1, 5, 2, 32}, bf16), Z({1, 5, 2, 32}, bf16), q, "
       .. "Z({1, 3, 5}, f32), 1.0)",
       "attention: Q has 3 heads and K has 2; Q needs a multiple of K's"},
      {"local w = Z({1, 5, 3, 64}, bf16) go(att, w, w, w, w, "
       .. "Z({1, 3, 5}, f32), 1.0)",
       "attention: a head is 32, and a row of Q 64; they must be equal"},
      {"go(conv, Z({1, 4, 4, 8}, bf16), Z({8, 3, 3, 16}, bf16), "
       .. "Z({1, 2, 2, 8}, bf16))",
       "conv2d: C of x is 8, and of w 16; they must be equal"}})
  end)
end)

describe("a kernel of the library", function()
  it("of Hopper reports which option is wrong", function()
    local function integer(name, x, most)
      return {("of 'gemm_sm90' {%s = %s}"):format(name, x), ("gemm_sm90: %s = "
        .. "%s; an integer from 1 to %d is needed"):format(name, x, most)}
    end
    local cases = {integer("stages", 0, 32), integer("stages", 1.5, 32),
      integer("epi_stages", 0, 32), integer("consumers", 0, 4),
      integer("consumers", 5, 4), integer("swizzle", 0, 1 << 20)}
    for text, want in pairs {
      ["3"] = "3; a table of options is needed",
      ["{tile = 128}"] = "tile = 128; 3 integers of 1 or more are needed",
      ["{tile = {128, 128}}"] =
        "tile = {128, 128}; 3 integers of 1 or more are needed",
      ["{tile = {-128, 128, 64}}"] =
        "tile = {-128, 128, 64}; 3 integers of 1 or more are needed",
      ["{tile = {100, 128, 64}}"] = "tile = {100, 128, 64}; rows must be a "
        .. "multiple of 128: 64 for each consumer that shares the tile",
      ["{tile = {100, 128, 64}, schedule = 'pingpong'}"] = "tile = {100, 128, "
        .. "64}; rows must be a multiple of 64: 64 for each consumer that "
        .. "shares the tile",
      ["{tile = {128, 100, 64}}"] = "tile = {128, 100, 64}; columns must be a "
        .. "multiple of 8, at most 256",
      ["{tile = {128, 264, 64}}"] = "tile = {128, 264, 64}; columns must be a "
        .. "multiple of 8, at most 256",
      ["{tile = {192, 208, 64}, consumers = 3}"] = "tile = {192, 208, 64} with "
        .. "3 consumers: each thread has 104 accumulators, but registers for "
        .. "only 96",
      ["{tile = {256, 136, 64}, consumers = 4}"] = "tile = {256, 136, 64} with "
        .. "4 consumers: each thread has 68 accumulators, but registers for "
        .. "only 64",
      ["{tile = {128, 128, 48}}"] = "tile = {128, 128, 48}; K of a tile must "
        .. "be a multiple of 32, 64 bytes of bf16",
      ["{cluster = 2}"] = "cluster = 2; 2 integers of 1 or more are needed",
      ["{cluster = {0, 1}}"] =
        "cluster = {0, 1}; 2 integers of 1 or more are needed",
      ["{cluster = {8, 4}}"] = "cluster = {8, 4}; at most 8 blocks, or 16 if "
        .. "the GPU supports them, are possible",
      ["{cluster = {3, 1}}"] = "cluster = {3, 1} with tile[2] = 128: 3 blocks "
        .. "load the tile of B together, so its extent must be a multiple of "
        .. "24 rows",
      ["{cluster = {1, 3}}"] = "cluster = {1, 3} with tile[1] = 128: 3 blocks "
        .. "load the tile of A together, so its extent must be a multiple of "
        .. "24 rows",
      ["{schedule = 'pong'}"] =
        'schedule = "pong"; "cooperative" or "pingpong" is needed',
      ["{schedule = 'pingpong', consumers = 1}"] = 'schedule = "pingpong" with '
        .. "1 consumer; at least two consumers are needed",
      ["{schedule = 'pingpong', persistent = false}"] = 'schedule = "pingpong" '
        .. "needs persistent blocks, but persistent = false gives one tile to "
        .. "each block",
      ["{split = 9}"] =
        'split = 9; "stream" or an integer from 1 to 8 is needed',
      ["{split = 3}"] = "tile = {128, 128, 64} with split = 3: each block "
        .. "stores a part of the columns, which must be a multiple of 8",
      ["{scheduler = 'x'}"] =
        'scheduler = "x"; "static" or "dynamic" is needed',
      ["{split = 2, cluster = {2, 1}}"] =
        'split = 2 cannot be combined with clusters or schedule = "pingpong"',
      ["{dtype = cute.f64}"] = "dtype = f64; bf16, f16, f32 (cut to tf32), "
        .. "e4m3, e5m2, i8 or u8 is needed",
      ["{b_dtype = cute.i32}"] = "b_dtype = i32; bf16, f16, f32 (cut to tf32), "
        .. "e4m3, e5m2, i8 or u8 is needed",
      ["{dtype = 'bf16'}"] =
        'dtype = "bf16"; a type is needed, such as cute.bf16',
      ["{b_dtype = cute.f16}"] = "A has type bf16, B f16; tensor cores need "
        .. "the same type, except 8-bit floats or bytes",
      ["{a_dtype = cute.i8, b_dtype = cute.e4m3}"] = "A has type i8, B e4m3; "
        .. "tensor cores need the same type, except 8-bit floats or bytes",
      ["{promote = 2}"] = "promote = 2 with A of bf16; only 8-bit floats "
        .. "(e4m3, e5m2) accumulate with fewer bits than f32",
      ["{d_major = 'x'}"] = 'd_major = "x"; "n" or "m" is needed',
      ["{epi = {32, 32}}"] = "epi = {32, 32}; 64 rows, and columns that are a "
        .. "multiple of 16 bytes and divide 128, are needed",
      ["{epi = {64, 48}}"] = "epi = {64, 48}; 64 rows, and columns that are a "
        .. "multiple of 16 bytes and divide 128, are needed",
      ["{epi = {64, 4}}"] = "epi = {64, 4}; 64 rows, and columns that are a "
        .. "multiple of 16 bytes and divide 128, are needed",
      ["{pdl = 3}"] = "pdl = 3; true or false is needed",
      ["{a_hint = 'soon'}"] =
        'a_hint = "soon"; a policy is needed, such as those of '
        .. "cpasync.CacheHint",
      ["{epi_loop = 1}"] = "epi_loop = 1; true or false is needed",
      ["{epilogue = 3}"] = "epilogue = 3; a function is needed"} do
      cases[#cases + 1] = {"of 'gemm_sm90'(" .. text .. ")",
                           "gemm_sm90: " .. want}
    end
    lines_refused(HEAD, cases)
  end)
end)

describe("a kernel of the library", function()
  it("of Hopper reports which operand is wrong", function()
    local made = HEAD .. [[
local g = of "gemm_sm90" {tile = {128, 64, 64}, stages = 2}
local function make(A, B, D, o)
  return g.prepare(A, B, D, o or {device = "sim"})
end
local a, b, d = Z({64, 64}, bf16), Z({72, 64}, bf16), Z({64, 72}, bf16)
]]
    local function case(call, want)
      return {("make(%s)"):format(call), "gemm_sm90: " .. want}
    end
    lines_refused(made, {
      case("a, Z({72, 128}, bf16), d", "K of A is 64, and of B 128; "
        .. "they must be equal"),
      case("Z({128, 64}, bf16), b, d", "M of A is 128, and of D 64; "
        .. "they must be equal"),
      case("a, b, Z({64, 64}, bf16)", "N of B is 72, and of D 64; "
        .. "they must be equal"),
      case("Z({64, 64}, cute.f16), b, d",
           "A has type f16, but this kernel needs bf16"),
      case("a, b, Z({64, 72}, f32)", "D has type f32, but this kernel needs "
        .. "bf16"),
      case("Z({64, 9}, bf16), Z({72, 9}, bf16), d", "rows of A are 18 bytes "
        .. "apart; TMA needs multiples of 16 (gemm_sm80 accepts any layout)"),
      case("a, b, view({64, 72}, {1, 64}, bf16)", "N of D is not contiguous: "
        .. "it is (64,72):(1,64) (gemm_sm80 accepts any layout)"),
      case("view({64, 64}, {1, 64}, bf16), b, d", "K of A is not contiguous: "
        .. "it is (64,64):(1,64) (gemm_sm80 accepts any layout)"),
      case("Z({2, 64, 64}, bf16), b, d",
           "A is (2,64,64):(4096,64,1); a matrix is needed"),
      case("a, b", "D is nil; a tensor is needed"),
      case("3, b, d", "A is 3; a tensor is needed"),
      case("a, b, d, {device = 'sim', sms = 0}",
           "sms = 0; an integer from 1 to 1048576 is needed")})
    local y = cute.make_tensor(Z({8192}, cute.bf16).iterator + 1,
                               cute.make_layout({64, 64}, {64, 1}))
    local _, err = pcall(require "kernels.gemm_sm90" {}.arguments, y, y, y)
    assert.matches("tensor map: the address 0x2 is not a multiple of 16 bytes "
      .. "%[misaligned%]", err)
    for arch, want in pairs {sm_80 = "a bulk copy (line %d+) needs sm_90 or "
        .. "newer, the target is sm_80", sm_90 = "wgmma (line %d+) is a "
        .. "feature of one chip: it needs sm_90a, the target is sm_90",
        sm_100 = "wgmma (line %d+) needs sm_90a or its own family, the target "
        .. "is sm_100"} do
      local x = Z({64, 64}, cute.bf16)
      local ok, why = pcall(require "kernels.gemm_sm90" {}.prepare, x, x, x,
                            {device = "sim:" .. arch})
      assert.is_false(ok)
      assert.matches(want:gsub("[()]", "%%%0") .. " %[wrong%-arch%]", why)
    end
  end)

  it("fits in shared memory, or a table lists where it does", function()
    local x = Z({64, 64}, cute.bf16)
    local _, why = pcall(require "kernels.gemm_sm90" {tile = {128, 256, 64},
      stages = 8}.prepare, x, x, x, {device = "sim"})
    for _, want in ipairs {"shared memory of %d+ bytes is over the budget of "
        .. "any GPU, 232448 bytes %(227 KiB%) %[smem%-budget%]",
        "\n  sA +bf16 [^\n]* 131072 bytes\n", "total, aligned +393216 bytes",
        "fewer stages or a smaller tile would fit"} do
      assert.matches(want, why)
    end
  end)

  it("does not take over cute's errors about its operands", function()
    local _, err = support.run {"-e", [[local cute = require "cute"
local k = require "kernels.histogram" {dtype = cute.u8, n = 64, bins = 4}
local x = cute.make_tensor(cute.zeros({80}, cute.u8).iterator + 1,
                           cute.make_layout {64})
k.kernel(x, cute.zeros({4}, cute.i32)):launch {grid = 1, block = k.block}]]}
    assert.truthy(err:find("aligned to 1 [misaligned]", 1, true), err)
    assert.truthy(err:find("\n  (command line):5 in main chunk\n", 1, true),
                  err)
  end)

  it("trusts values that only a launch knows", function()
    local function of(n) return {dtype = cute.f32, n = n} end
    local x = cute.symbolic {dtype = cute.f32, shape = {"m", 64},
                             stride = {"s%4", 1}, align = 16}
    for _, name in ipairs {"softmax", "scan"} do
      local k = require("kernels." .. name)(of(64))
      assert.equal(name, k.kernel(x, x):trace {block = k.block}.info.name)
    end
    local k = require "kernels.norm".rms(of(64))
    assert.equal("rmsnorm",
      k.kernel(x, x, 1e-5):trace {block = k.block}.info.name)
  end)

  it("leaves the table of its options alone", function()
    local o = {}
    require "kernels.gemm_sm80"(o)
    assert.is_nil(getmetatable(o))
    assert.is_nil(next(o))
  end)

  it("takes rows that begin anywhere, with width = 1", function()
    for _, n in ipairs {64, 9000} do
      local k = require "kernels.softmax" {dtype = cute.bf16, n = n, width = 1}
      local x = cute.make_tensor(Z({3 * n + 9}, cute.bf16).iterator + 1,
                                 cute.make_layout({3, n}, {n + 1, 1}))
      local y = Z({3, n}, cute.f32)
      local r = support.report(k.kernel(x, y):launch {grid = k.grid(3),
        block = k.block, device = "sim"})
      assert.is_true(r.ok)
      assert.near(1 / n, y(2, n - 1), 1e-6 / n)
    end
  end)
end)

describe("a kernel of the library", function()
  it("does not count values that are no bin", function()
    local function counts(t, list, bins)
      local k = require "kernels.histogram" {dtype = t, n = #list, bins = bins}
      local h, out = Z({bins}, cute.i32), {}
      k.kernel(cute.tensor(list, t), h):launch {grid = k.grid,
        block = k.block, device = "sim"}
      for i = 1, bins do out[i] = h(i - 1) end
      return table.concat(out, " ")
    end
    assert.equal("0 1 0", counts(cute.i64, {1 << 32, 1, -1 << 33}, 3))
    assert.equal("0 0 1 0", counts(cute.f32,
      {0 / 0, -0.5, 2.5, 1e30, -math.huge}, 4))
    assert.equal("1 0 0", counts(cute.bf16, {0 / 0, 0, -0.5}, 3))
    assert.equal("2", counts(cute.u8, {255, 7, 255}, 256):sub(-1))
  end)
end)
-- SPDX-License-Identifier: MIT
