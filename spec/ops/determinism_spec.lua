-- Tests the reproducibility guarantees of cute.ops.gemm. Configurations that
-- add in the same order must give the same bits. A row must have the same bits
-- in any batch. A GPU must give the bits of the simulator.
local card = require "spec.card"
local core = require "cute.core"
local record = require "kernels.tuned.cublas"
local cute = require "cute"
local gemm = require "cute.ops.gemm"
local gpu = require "cute.gpu"
local plans = require "cute.ops.plan"
local specops = require "spec.ops"
local support = require "spec.support"
local ops = cute.ops

local function none() end

-- Returns a tensor of normal numbers, whose sums depend on the order of
-- additions.
local function normal(shape, dtype, seed)
  if dtype.is_integer then
    return specops.tensor(specops.random(1), shape, dtype, seed, "k")
  end
  return cute.randn(shape, dtype, {seed = seed})
end

-- Returns the rows of D, (...,M[,N]), as strings that are equal if the bits
-- are.
local function rows_of(D, vector)
  D = D:to "host"
  local rank, out = cute.rank(D), {}
  if vector then
    local n = D.shape[rank]
    for i = 0, cute.size(D) - 1 do
      out[i + 1] = string.pack("d", rank == 1 and D(i) or D(i // n, i % n))
    end
    return out
  end
  local M, N = D.shape[rank - 1], D.shape[rank]
  for l = 0, cute.size(D) // (M * N) - 1 do
    local at, crd = l, {}
    for i = rank - 2, 1, -1 do
      crd[i], at = at % D.shape[i], at // D.shape[i]
    end
    for i = 0, M - 1 do
      local row = {}
      for j = 0, N - 1 do
        crd[rank - 1], crd[rank] = i, j
        row[j + 1] = string.pack("d", D(table.unpack(crd)))
      end
      out[#out + 1] = table.concat(row)
    end
  end
  return out
end

---------------------------------------------------------------------------
-- Orders of additions
---------------------------------------------------------------------------

-- Each problem has the types of its operands, M, N, K, the options of ops.gemm,
-- and the least number of different orders of addition that its configurations
-- must have.
local PROBLEMS = {
  {"bf16", "bf16", 66, 72, 384, {}, 4}, {"f16", "f16", 24, 72, 264, {}, 3},
  {"f32", "f32", 33, 40, 300, {}, 3},
  {"f32", "f32", 40, 40, 200, {tf32 = true}, 3},
  {"e4m3", "e4m3", 40, 72, 768, {}, 4}, {"f64", "f64", 20, 24, 40, {}, 1},
  {"bf16", "i8", 33, 64, 256, {}, 2}, {"f16", "i8", 20, 64, 256, {}, 3},
  {"i8", "i8", 20, 32, 256, {}, 1},
}

local MOST = 2  -- most configurations of one family and order that a test
                -- uses

-- Returns configurations for a problem in a table, by the text of their order
-- of addition: {words, rows, name}.
local function all_choices(c, device)
  local a, b, m, n, k, more = table.unpack(c)
  local o = {dtype = cute.f32, device = device}
  for name, v in pairs(more) do o[name] = v end
  local A = normal({m, k}, cute[a], 1)
  local B = normal({n, k}, cute[b], 2)
  if device == "gpu" then A, B = A:to "gpu", B:to "gpu" end
  local _, list = gemm.offers(A, B, o)
  local out, some = {}, {}
  for i, x in ipairs(list) do
    local key = x.family .. x.order
    some[key] = (some[key] or 0) + 1
    if some[key] <= MOST then
      -- plans.new changes and keeps its tables, so each plan gets new
      -- ones
      local p, again, call = gemm.offers(A, B, o)
      local chosen = again[i]
      out[#out + 1] = {chosen.order,
        rows_of((plans.new(p, chosen, call):run(call, none))),
        chosen.family .. " " .. table.concat(chosen.tile, "x")}
    end
  end
  return out
end

local function check_orders(c, device)
  local first, kinds, patterns = {}, 0, {}
  for _, x in ipairs(all_choices(c, device)) do
    local words, rows, name = table.unpack(x)
    if first[words] then
      assert.is_true(table.concat(rows) == table.concat(first[words][1]),
        ("%s beside %s: %s"):format(name, first[words][2], words))
    else
      first[words], kinds = {rows, name}, kinds + 1
      patterns[table.concat(rows)] = true
    end
  end
  local different = 0
  for _ in pairs(patterns) do different = different + 1 end
  assert.is_true(different >= c[7], ("%d orders, %d results"):format(kinds,
    different))
end

describe("orders of sums #long", function()
  for _, c in ipairs(PROBLEMS) do
    local name = ("%s x %s, %dx%dx%d"):format(table.unpack(c, 1, 5))
    it("with equal descriptions give equal bits: " .. name, function()
      check_orders(c, "sim:sm_90a")
    end)
    it("with equal descriptions give equal bits on a GPU: " .. name .. " #gpu",
       function() check_orders(c, "gpu") end)
  end
end)

---------------------------------------------------------------------------
-- Rows in other batches
---------------------------------------------------------------------------

local M = 110

-- Returns a view of `count` rows of t (M,...), from row `first` on.
local function rows(t, first, count)
  local shape, stride = {count}, {}
  for i = 1, cute.rank(t) do
    shape[i] = i == 1 and count or t.shape[i]
    stride[i] = cute.flatten_to_tuple(t.stride)[i]
  end
  return cute.make_tensor(t.iterator + first * stride[1],
                          cute.make_layout(shape, stride))
end

-- Returns a copy of the matrix t in new memory. The copy begins `skip` elements
-- after the start of the memory, and the padding between two rows is `apart`
-- elements. With `turned`, the columns are contiguous instead of the rows, and
-- the padding is between two columns.
local function copied(t, skip, apart, turned)
  local m, k = t.shape[1], t.shape[2]
  local along = (turned and m or k) + apart
  local room = cute.zeros({skip + (turned and k or m) * along}, t.element_type,
                          {device = t.device})
  local to = cute.make_tensor(room.iterator + skip, cute.make_layout({m, k},
    turned and {1, along} or {along, 1}))
  return to:copy_from(t)
end

-- Returns a view of t as a batch of two tensors: the first and the second half
-- of its rows.
local function halves(t)
  local shape, stride = {2, t.shape[1] // 2}, {t.shape[1] // 2 * t.stride[1],
                                               t.stride[1]}
  if cute.rank(t) == 2 then shape[3], stride[3] = t.shape[2], t.stride[2] end
  return cute.make_tensor(t.iterator, cute.make_layout(shape, stride))
end

-- Parts of a product, each of which a separate call computes: {index of the
-- first row, number of rows, function that copies A to another layout,
-- function that makes D in another layout}.
local function odd(t) return copied(t, 1, 1) end
local PLACES = {
  {0, 1}, {109, 1}, {3, 8}, {5, 17}, {11, 64}, {20, 90},
  {7, 33, function(t) return copied(t, 0, 16) end}, {7, 33, odd},
  {16, 24, function(t) return copied(t, 0, 0, true) end, turned = true},
  {8, 24, nil, function(m, n, dtype, where)
    return cute.make_tensor(cute.zeros({m * n}, dtype,
      {device = where}).iterator, cute.make_layout({m, n}, {1, m}))
  end},
  {10, 36, halves, batch = true},
}

-- Cases: {name, types of A and B, N, K, f(part, all)}. f returns the options of
-- a call, including C. part(t) returns the rows of tensor t that the call uses,
-- and all(t) returns all rows. turned: the error message for transposed rows,
-- if their bits would differ.
local bias = normal({160}, cute.f32, 7)
local residual, factors = normal({M, 160}, cute.bf16, 8),
  normal({M}, cute.f32, 9)
local strips = normal({M, 3}, cute.f32, 10)
local blocks = normal({1, 3}, cute.f32, 11)
local groups = cute.make_tensor(normal({640}, cute.bf16, 12).iterator,
  cute.make_layout({160, 4}, {1, 160}))
local function plain() return {} end
local function gelu(part, all)
  local r, b = part(residual), all(bias)
  return {epilogue = function(acc, at)
    return ops.gelu(acc * 0.3 + at:col(b)) + at:tile(r)
  end}
end
local function norms(part)
  local r = part(residual)
  return {epilogue = function(acc, at)
    local y = acc + at:tile(r)
    return y, at:row_reduce("rms", y), at:row_reduce("max", y)
  end}
end
local CASES = {
  {"bf16", "bf16", "bf16", 160, 520, plain},
  {"f16", "f16", "f16", 40, 256, plain},
  {"alpha and beta", "bf16", "bf16", 160, 300, function(part)
    return {alpha = 0.7, beta = -1.3, C = part(residual)}
  end},
  {"a bias, gelu, a residual", "bf16", "bf16", 160, 264, gelu},
  {"sums of rows", "bf16", "bf16", 160, 264, norms},
  {"gates", "bf16", "bf16", 160, 264, function()
    return {gated = true, epilogue = function(g, up)
      return ops.silu(g) * up
    end}
  end},
  {"f32", "f32", "f32", 48, 200, plain},
  {"tf32", "f32", "f32", 48, 200, function() return {tf32 = true} end},
  {"f64", "f64", "f64", 32, 40, plain},
  {"e4m3", "e4m3", "e4m3", 160, 640, plain},
  {"blocks of factors", "e4m3", "e4m3", 128, 384, function(part, all)
    return {scale_a = part(strips), scale_b = all(blocks)}
  end, batch = false},
  {"factors of rows", "e4m3", "e5m2", 160, 256, function(part, all)
    return {scale_a = part(factors), scale_b = all(bias)}
  end, batch = false},
  {"8-bit weights", "bf16", "i8", 64, 200, plain},
  {"4-bit weights", "bf16", "i4", 160, 512, function(_, all)
    return {scale_b = all(groups)}
  end, turned = "gemm_int4 needs contiguous rows of A"},
  {"whole numbers", "i8", "i8", 64, 200, plain},
}

-- Returns B of a case.
local function weights(c)
  local n, k = c[4], c[5]
  if c[3] ~= "i4" then return normal({n, k}, cute[c[3]], 4) end
  return ops.int4(function(i, j) return (i * 7 + j * j) % 16 end, n, k)
end

-- Computes the product of a case for the rows of one element of PLACES. Returns
-- these rows, and the other results of the call.
local function product(c, X, B, place, device)
  local first, count, lay, make = table.unpack(place, 1, 4)
  local where = device == "gpu" and "gpu" or "host"
  local function all(t) return t:to(where) end
  local A = rows(X, first, count)
  local o = c[6](function(t)
    t = rows(all(t), first, count)
    return place.batch and halves(t) or t
  end, all)
  local C = o.C
  o.C, o.device, o.batch_invariant = nil, device, true
  if make then
    o.out = make(count, o.gated and c[4] // 2 or c[4], c[2] == "i8" and cute.i32
      or A.element_type.bits == 8 and cute.bf16 or A.element_type, where)
  end
  local out = table.pack(ops.gemm(lay and lay(A) or A, B, C, o))
  local list = {rows_of(out[1])}
  for i = 2, out.n do list[i] = rows_of(out[i], true) end
  return list
end

-- Checks a case at every second element of PLACES, and the first case at all of
-- them. On a GPU it checks every fifth element, and compares with the
-- simulator's bits.
local function check_rows(c, index, device)
  local X, B = normal({M, c[5]}, cute[c[2]], 3), weights(c)
  local on_card = device == "gpu"
  local all = product(c, X, B, {0, M}, on_card and "sim:sm_90a" or device)
  if on_card then X, B = X:to "gpu", B:to "gpu" end
  local each = on_card and 5 or index > 1 and 2 or 1
  for number, place in ipairs(PLACES) do
    local expect = place.turned and c.turned
    local skip = place.batch and c.batch == false
      or not place.batch and (number + index) % each ~= 0
      or support.skipped((number + index) // each, 3)
    if expect then
      support.raises(expect, function() product(c, X, B, place, device) end)
    elseif not skip then
      local part = product(c, X, B, place, device)
      for i, list in ipairs(part) do
        for row, bits in ipairs(list) do
          assert.is_true(bits == all[i][place[1] + row],
            ("place %d, result %d, row %d"):format(number, i, row - 1))
        end
      end
    end
  end
end

---------------------------------------------------------------------------
-- Repeated calls
---------------------------------------------------------------------------

local function three()
  cute.synchronize "gpu"
  return {cute.stream "gpu", cute.stream "gpu", cute.stream "gpu"}
end

-- Runs a call `times` times on each of several streams at once. Returns the
-- number of different results.
local function repeated(run, streams, times)
  local kinds, n, kept = {}, 0, {}
  for i = 1, streams * times do
    kept[i] = run(i % streams + 1)
  end
  cute.synchronize "gpu"
  for _, D in ipairs(kept) do
    local text = table.concat(rows_of(D))
    if not kinds[text] then kinds[text], n = true, n + 1 end
  end
  return n
end

describe("the same call", function()
  it("gives the same bits, on several streams at once #gpu", function()
    local streams, seen = three(), {}
    for _, size in ipairs {{64, 256, 8192}, {200, 320, 4096},
                           {16, 1024, 4096}, {300, 300, 2048}} do
      local m, n, k = table.unpack(size)
      local A = normal({m, k}, cute.bf16, 1):to "gpu"
      local B = normal({n, k}, cute.bf16, 2):to "gpu"
      cute.synchronize "gpu"
      local _, list = gemm.offers(A, B, {device = "gpu"})
      for i, c in ipairs(list) do
        local kind = c.family .. " " .. tostring(c.split)
        if not seen[kind] and c.split ~= 1 then
          seen[kind] = true
          local made = {}
          for s, stream in ipairs(streams) do
            local p, again, call = gemm.offers(A, B, {device = "gpu",
                                                      stream = stream})
            made[s] = {plans.new(p, again[i], call), call}
          end
          assert.equal(1, repeated(function(s)
            return (made[s][1]:run(made[s][2], none))
          end, 3, 6), kind)
        end
      end
    end
    assert.is_truthy(next(seen))
  end)

  it("has the same reductions, on several streams at once #gpu", function()
    local A = normal({500, 256}, cute.bf16, 1):to "gpu"
    local B = normal({320, 256}, cute.bf16, 2):to "gpu"
    local streams = three()
    assert.equal(1, repeated(function(s)
      local _, rms = ops.gemm(A, B, {device = "gpu", stream = streams[s],
        epilogue = function(acc, at)
          return acc, at:col_reduce("rms", acc)
        end})
      return cute.make_tensor(rms.iterator, cute.make_layout({1, 320}))
    end, 3, 6))
  end)

  it("gives the same bits whatever order blocks run in", function()
    local A, B = normal({40, 1024}, cute.bf16, 1), normal({48, 1024}, cute.bf16,
                                                          2)
    local kinds = {}
    for seed = 1, 4 do
      local D, s = ops.gemm(A, B, {device = "sim:sm_80", seed = seed,
        epilogue = function(acc, at) return acc, at:reduce("sum", acc) end})
      kinds[table.concat(rows_of(D)) .. rows_of(s, true)[1]] = true
    end
    assert.is_nil(next(kinds, next(kinds)))
  end)
end)

describe("batch_invariant", function()
  for index, c in ipairs(CASES) do
    it("has rows with their bits anywhere: " .. c[1] .. support.long(index, 8),
       function()
      check_rows(c, index, "sim:sm_90a")
    end)
    it("has the simulator's bits on a card, anywhere: " .. c[1] .. " #gpu",
       function() check_rows(c, index, "gpu") end)
  end

  it("is the same in a card's way of mma.sync #long", function()
    check_rows(CASES[1], 1, "sim:sm_80")
  end)

  -- {types of A and B, N, K, options}
  for _, c in ipairs {{"bf16", 72, 264}, {"e4m3", 256, 512},
                      {"e4m3", 128, 384, strips}} do
    local t, n, k, by = table.unpack(c)
    local ends = {0, 40, 41, M}
    local X, W = normal({M, k}, cute[t], 3), normal({3, n, k}, cute[t], 4)
    local function grouped(device, where)
      return rows_of(ops.grouped_gemm(X:to(where), W:to(where),
        cute.tensor(ends, cute.i32):to(where), {device = device,
        batch_invariant = true, scale_a = by and by:to(where)}))
    end
    local name = t .. (by and ", with factors" or "")
    it(("has rows of groups with their bits: %s #long"):format(name), function()
      local o = {device = "sim:sm_90a", batch_invariant = true}
      local D = grouped("sim:sm_90a", "host")
      for e = 1, 3 do
        local B = cute.make_tensor(W.iterator + (e - 1) * n * k,
                                   cute.make_layout({n, k}, {k, 1}))
        local first, count = ends[e], ends[e + 1] - ends[e]
        o.scale_a = by and rows(by, first, count)
        local own = rows_of(ops.gemm(rows(X, first, count), B, o))
        for i, bits in ipairs(own) do
          assert.is_true(bits == D[first + i], ("row %d"):format(first + i))
        end
      end
    end)
    if not by then it(("has them in a list: %s #long"):format(name), function()
      local o = {device = "sim:sm_90a", batch_invariant = true}
      local list = {}
      for i, size in ipairs {{30, n}, {7, n}, {1, n}} do
        list[i] = {rows(X, 10 * i, size[1]), rows(cute.make_tensor(W.iterator,
          cute.make_layout({3 * n, k}, {k, 1})), 20 * i, size[2])}
      end
      for i, D in ipairs(ops.grouped_gemm(list, o)) do
        local own = ops.gemm(list[i][1], list[i][2], o)
        assert.is_true(table.concat(rows_of(own)) == table.concat(rows_of(D)),
                       "problem " .. i)
      end
    end) end
    it("has the simulator's bits of groups on a card: " .. name .. " #gpu",
       function()
      assert.is_true(table.concat(grouped("gpu", "gpu"))
        == table.concat(grouped("sim:sm_90a", "host")))
    end)
  end

  it("requires one order of sums for any M", function()
    local B = cute.zeros({1024, 8192}, cute.bf16)
    local o = {device = "sim:sm_90a", batch_invariant = true}
    local free = {device = "sim:sm_90a"}
    local orders, others = {}, {}
    for _, m in ipairs {1, 16, 128, 4096} do
      local A = cute.zeros({m, 8192}, cute.bf16)
      orders[ops.explain(A, B, o).order] = true
      others[ops.explain(A, B, free).order] = true
    end
    assert.same({["16 products at once"] = true}, orders)
    assert.is_truthy(next(others, next(others)), "the same without it")
  end)

  it("describes its guarantee, and the order of sums", function()
    local A = cute.zeros({256, 256}, cute.e4m3)
    local e = ops.explain(A, A, {device = "sim:sm_90a", batch_invariant = true})
    assert.equal("batch_invariant", e.promise)
    assert.equal("32 products at once, kept to 13 bits; those of 128 in f32",
                 e.order)
    assert.is_truthy(tostring(e):find("sums: " .. e.order
      .. "; batch_invariant", 1, true))
  end)

  it("rejects calls for which it cannot hold", function()
    local A, B = cute.zeros({8, 64}, cute.bf16), cute.zeros({16, 64}, cute.bf16)
    local function raises(want, o)
      o.device, o.batch_invariant = "sim:sm_90a", true
      support.raises(want, function() ops.gemm(A, B, o) end)
    end
    raises("batch_invariant = true cannot be combined with deterministic = "
      .. "false", {deterministic = false})
    raises("excludes sums over rows, but result 2 is the sum over rows",
      {epilogue = function(acc, at) return acc, at:col_reduce("sum", acc) end})
    raises("excludes sums over rows, but result 3 is the rms over rows",
      {epilogue = function(acc, at)
        return acc, at:reduce("amax", acc), at:reduce("rms", acc)
      end})
  end)
end)

---------------------------------------------------------------------------
-- cuBLAS's order
---------------------------------------------------------------------------

-- Returns the FNV-1a hash of a buffer's bytes, 8 at a time.
local function hash(bytes)
  local h = 0xcbf29ce484222325
  for at = 1, #bytes - 7, 8 do
    h = (h ~ string.unpack("<i8", bytes, at)) * 0x100000001b3
  end
  return ("%016x"):format(h)
end

-- {M, N, K, type, hash of cuBLAS's D on an H200}
local RECORDED = {
  {1, 1024, 4096, "bf16", "cf4b1c27f7e99bda"},
  {16, 1024, 8192, "bf16", "7c4ea76f8175e904"},
  {64, 64, 16384, "bf16", "74f95dbd5aa0fea4"},
  {128, 128, 8192, "bf16", "675290f32c0ed79a"},
  {64, 1024, 4096, "f16", "26c38589c09da6b1"},
}

local function explained(m, n, k, t, o)
  local A, B = cute.empty({m, k}, cute[t]), cute.empty({n, k}, cute[t])
  o = o or {}
  o.like, o.device = "cublas", o.device or "sim:sm_90a"
  return ops.explain(A, B, o)
end

local function f32(x) return (string.unpack("f", string.pack("f", x))) end

describe("like = cublas", function()
  it("takes a kernel that divides K so", function()
    local e = explained(8, 10240, 8192, "bf16")
    assert.same({"gemm_splitk", 5, "16 products at once, in parts of 1664 of K",
      "like cuBLAS"}, {e.kernel, e.split, e.order, e.promise})
    e = explained(8, 28672, 4096, "f16")
    assert.same({1, "16 products at once"}, {e.split, e.order})
    e = explained(4096, 4096, 4096, "bf16")
    assert.same({"gemm_sm90", 1, "16 products at once"},
                {e.kernel, e.split, e.order})
  end)

  it("does not split K of batches, like cuBLAS", function()
    local function explained_batch(a, b)
      return ops.explain(cute.empty(a, cute.bf16), cute.empty(b, cute.bf16),
                         {like = "cublas", device = "sim:sm_90a"})
    end
    for _, c in ipairs {{{3, 16, 8192}, {3, 1024, 8192}},
        {{3, 16, 8192}, {1024, 8192}}, {{2, 3, 16, 256}, {2, 3, 8, 256}}} do
      local e = explained_batch(c[1], c[2])
      assert.same({1, "16 products at once", "like cuBLAS"},
                  {e.split, e.order, e.promise})
    end
    for _, c in ipairs {
        {{3, 1, 16, 256}, {2, 8, 256}, "the distance between its matrices is "
          .. "not constant"},
        {{3, 16, 100}, {3, 8, 100}, "without a GPU, the split of K"}} do
      support.raises(c[3], function() explained_batch(c[1], c[2]) end)
    end
    local far = cute.make_tensor(cute.empty({4096}, cute.bf16).iterator,
      cute.make_layout({3, 16, 64}, {1028, 64, 1}))
    support.raises("matrices of A are 1028 elements apart, which is not a "
      .. "multiple of 16 bytes", function()
        ops.explain(far, cute.empty({3, 8, 64}, cute.bf16),
                    {like = "cublas", device = "sim:sm_90a"})
      end)
    support.raises("batches are supported only for 16-bit floats, not "
      .. "e4m3", function()
      ops.explain(cute.empty({3, 16, 64}, cute.e4m3),
                  cute.empty({3, 16, 64}, cute.e4m3),
                  {like = "cublas", device = "sim:sm_90a"})
    end)
  end)

  -- {batches, M, N, K, layout}
  for _, c in ipairs {{3, 128, 128, 512, "tn"}, {16, 16, 128, 4096, "tn"},
      {2, 64, 64, 16384, "tn"}, {8, 128, 128, 4096, "nt"},
      {64, 1, 64, 1024, "tn"}, {12, 197, 64, 200, "tn"},
      {4, 512, 512, 4096, "tt"}, {3, 64, 4096, 1024, "tn"}} do
    local l, m, n, k, layout = table.unpack(c)
    local am, bn = layout:sub(1, 1) == "n", layout:sub(2) == "t"
    it(("has its bits on a card in batches: %dx%dx%dx%d %s #gpu"):format(l, m,
        n, k, layout), function()
      local dev = cute.device "gpu".dev
      local function batch(b, count, columns, first, step)
        local t = card.tensor(b, 1, b.count)
        return cute.make_tensor(t.iterator, cute.make_layout(
          {l, count, columns}, {step or count * columns,
           first and 1 or columns, first and count or 1}))
      end
      for _, t in ipairs {"bf16", "f16"} do
        for _, by in ipairs {{}, {one = true}, {0.7, -1.3}} do
          local A = card.matrix(dev, t, l * m * k, 1)
          local B = card.matrix(dev, t, l * n * k, 1 << 40)
          local C = card.matrix(dev, t, l * m * n, 3)
          local D, want = card.matrix(dev, t, l * m * n),
            card.matrix(dev, t, l * m * n)
          batch(want, m, n):copy_from(batch(C, m, n))
          gpu.cublas({m = m, n = n, k = k, A = A, B = B, D = want, batches = l,
                      layout = layout, step_B = by.one and 0 or nil,
                      alpha = by[1], beta = by[2]}):launch()
          ops.gemm(batch(A, m, k, am), batch(B, n, k, bn, by.one and 0),
            by[2] and batch(C, m, n), {device = "gpu", like = "cublas",
            alpha = by[1], beta = by[2], out = batch(D, m, n)})
          dev:sync()
          local _, wrong = card.difference(dev, D, want, 0, 0)
          assert.equal(0, wrong, ("%s %s %s"):format(t, by.one, by[1]))
        end
      end
    end)
  end

  for _, c in ipairs {{512, 512, 512}, {16, 1024, 8192}, {8, 10240, 8192},
                      {64, 1024, 4096}, {1000, 1000, 1000}, {300, 520, 2000},
                      {128, 128, 8192}} do
    local m, n, k = table.unpack(c)
    it(("has its bits on a card with a bias: %dx%dx%d #gpu"):format(m, n, k),
       function()
      local dev = cute.device "gpu".dev
      local relu = ops.relu
      for _, kind in ipairs {"bias", "relu"} do
        local A, B = card.matrix(dev, "bf16", m * k, 1),
          card.matrix(dev, "bf16", n * k, 1 << 40)
        local D, want = card.matrix(dev, "bf16", m * n),
          card.matrix(dev, "bf16", m * n)
        local by = card.matrix(dev, "bf16", n, 7)
        local added = cute.make_tensor(card.tensor(by, 1, n).iterator,
                                       cute.make_layout {n})
        gpu.cublaslt({m = m, n = n, k = k, A = A, B = B, D = want, bias = by,
          epilogue = kind == "relu" and kind or nil, algos = 1,
          workspace = 32 << 20})[1]:launch()
        ops.gemm(card.tensor(A, m, k), card.tensor(B, n, k), {device = "gpu",
          like = "cublas", out = card.tensor(D, m, n),
          epilogue = kind == "relu"
            and function(x, at) return relu(x + at:col(added)) end
            or function(x, at) return x + at:col(added) end})
        dev:sync()
        local _, wrong = card.difference(dev, D, want, 0, 0)
        assert.equal(0, wrong, kind)
      end
    end)
  end
end)

describe("like = cublas", function()
  it("reports the products that it does not know", function()
    local function raises(want, m, n, k, t, o)
      support.raises("like = \"cublas\": " .. want, function()
        explained(m, n, k, t, o)
      end)
    end
    raises("without a GPU, the split of K for 3 x 72 x 64 is unknown: no "
      .. "measurement was recorded", 3, 72, 64, "bf16")
    raises("without a GPU, the split of K for 129 x 4096 x 4096 is unknown",
           129, 4096, 4096, "bf16")
    raises("without a GPU, the order is known only for 16-bit floats with K "
      .. "contiguous", 16, 4096, 4096, "e4m3")
    raises("only products of bf16, f16 and e4m3 are supported, not f32 by "
      .. "f32", 16,
           4096, 4096, "f32")
    raises("only D = alpha A B^T + beta C is supported, without "
      .. "scales", 16, 4096,
           4096, "bf16", {scale_a = 2})
    raises("the only epilogue supported is a bias for each column, optionally "
      .. "followed by relu", 16,
           4096, 4096, "bf16", {epilogue = function(acc) return acc end})
    local narrow = cute.empty({4096}, cute.bf16)
    local wide = cute.empty({4096}, cute.f32)
    local function biased(by)
      return function(acc, at) return acc + at:col(by) end
    end
    assert.equal(explained(16, 4096, 4096, "bf16").order,
      explained(16, 4096, 4096, "bf16", {epilogue = biased(narrow)}).order)
    raises("without a GPU, the split of K", 16, 4096, 4104, "bf16",
           {epilogue = biased(narrow)})
    local half = cute.empty({8192}, cute.f16)
    for _, f in ipairs {{nil, 3}, {biased(half), 2}} do
      assert.equal(f[2], explained(104, 8192, 28672, "f16",
                                   {epilogue = f[1]}).split)
    end
    raises("the bias has type f32, D bf16, the operands bf16; all need the "
      .. "same 16-bit type", 16, 4096, 4096, "bf16", {epilogue = biased(wide)})
    raises("a bias cannot be combined with alpha, C or batches, and D's rows "
      .. "must be dense", 16, 4096, 4096, "bf16", {alpha = 2,
                                           epilogue = biased(narrow)})
    support.raises("like = \"cublas\": beta = 1: without a split of K, cuBLAS "
      .. "does not add C to its accumulators", function()
        local A, B = cute.empty({16, 4096}, cute.bf16),
          cute.empty({6144, 4096}, cute.bf16)
        ops.explain(A, B, cute.empty({16, 6144}, cute.bf16),
                    {like = "cublas", device = "sim:sm_90a"})
      end)
    raises("the order of additions is known only on sm_90a, but the device is "
      .. "sm_80", 16,
           4096, 4096, "bf16", {device = "sim:sm_80"})
    local A = cute.empty({16, 4104}, cute.bf16)
    local part = cute.make_tensor(A.iterator, cute.make_layout({16, 4096},
                                                               {4104, 1}))
    local B = cute.empty({4096, 4096}, cute.bf16)
    local function of(A_, o)
      o.device = "sim:sm_90a"
      return function() ops.gemm(A_, B, o) end
    end
    support.raises("A is (16,4096):(4104,1), which has gaps between its "
      .. "elements",
                   of(part, {like = "cublas"}))
    support.raises("like = \"cudnn\"; only \"cublas\" is possible",
                   of(part, {like = "cudnn"}))
    support.raises("batch_invariant = true cannot be combined with like = "
      .. "\"cublas\": cuBLAS's sums depend on M",
                   of(part, {like = "cublas", batch_invariant = true}))
    support.raises("like = \"cublas\" cannot be combined with "
      .. "deterministic = false",
                   of(part, {like = "cublas", deterministic = false}))
  end)

  for i, c in ipairs(RECORDED) do
    local m, n, k, t, want = table.unpack(c)
    it(("has its bits: %dx%dx%d of %s"):format(m, n, k, t)
       .. support.long(i), function()
      local A, B = normal({m, k}, cute[t], 1), normal({n, k}, cute[t], 2)
      local b = core.buffer(t, m * n)
      cute.ops.gemm(A, B, {like = "cublas", device = "sim:sm_90a",
        out = cute.make_tensor(b, cute.make_layout({m, n}, {n, 1}))})
      assert.equal(want, hash(b:bytes()))
    end)
  end

  -- {M, N, K, parts into which cuBLAS divides K}. The test shows where cuBLAS
  -- rounds when it applies alpha and beta.
  for _, c in ipairs {{1, 6144, 4096, 1}, {1, 1024, 4096, 3}} do
    local m, n, k, parts = table.unpack(c)
    it(("rounds alpha and beta as it does: %dx%dx%d #long"):format(m, n, k),
       function()
      local A, B = normal({m, k}, cute.bf16, 1), normal({n, k}, cute.bf16, 2)
      local C, o = normal({m, n}, cute.bf16, 3), {device = "sim:sm_90a"}
      local want = explained(m, n, k, "bf16")
      assert.equal(parts, want.split)
      o.dtype = cute.f32
      local _, list = gemm.offers(A, B, o)
      local sums
      for i, x in ipairs(list) do
        if x.order == want.order and not sums then
          local p, again, call = gemm.offers(A, B, o)
          sums = plans.new(p, again[i], call):run(call, none)
        end
      end
      local alpha, beta = f32(0.7), f32(-1.3)
      local rounded = cute.zeros({m, n}, cute.bf16)
      local D = ops.gemm(A, B, C, {alpha = 0.7, beta = -1.3, like = "cublas",
                                   device = "sim:sm_90a"})
      local single = ops.gemm(A, B, {alpha = 0.7, like = "cublas",
                                     device = "sim:sm_90a"})
      for j = 0, n - 1 do
        local x, was = sums(0, j), C(0, j)
        rounded[{0, j}] = f32(parts == 1 and alpha * x + f32(beta * was)
          or beta * was + f32(alpha * x))
        assert.equal(rounded(0, j), D(0, j), j)
        rounded[{0, j}] = f32(alpha * x)
        assert.equal(rounded(0, j), single(0, j), j)
      end
    end)
  end
end)

describe("like = cublas", function()
  for _, c in ipairs {{8, 10240, 8192, true}, {16, 1024, 8192, true},
                      {64, 1024, 4096, true}, {512, 512, 512},
                      {1000, 1000, 1000}, {2048, 2048, 2048},
                      {128, 8192, 8192}, {4096, 4096, 128}} do
    local m, n, k, divided = table.unpack(c)
    it(("has its bits on a card with alpha and C: %dx%dx%d #gpu"):format(m, n,
        k), function()
      local dev = cute.device "gpu".dev
      for _, t in ipairs {"bf16", "f16"} do
        local A, B = card.matrix(dev, t, m * k, 1),
          card.matrix(dev, t, n * k, 1 << 40)
        local D, want = card.matrix(dev, t, m * n), card.matrix(dev, t, m * n)
        local C = card.matrix(dev, t, m * n, 3)
        for _, by in ipairs {{0.7, -1.3}, {0.3}, {1, 0.4},
                             divided and {1, 1}} do
          card.tensor(want, m, n):copy_from(card.tensor(C, m, n))
          gpu.cublas({m = m, n = n, k = k, A = A, B = B, D = want,
                      alpha = by[1], beta = by[2]}):launch()
          ops.gemm(card.tensor(A, m, k), card.tensor(B, n, k),
            by[2] and card.tensor(C, m, n), {device = "gpu", like = "cublas",
            alpha = by[1], beta = by[2], out = card.tensor(D, m, n)})
          dev:sync()
          local _, wrong = card.difference(dev, D, want, 0, 0)
          assert.equal(0, wrong, ("%s, alpha %s, beta %s"):format(t, by[1],
                                                                  by[2]))
        end
      end
    end)
  end

  -- {M, N, K, type of A, type of D}
  for _, c in ipairs {
    {1, 4096, 4096, "bf16", "bf16"}, {16, 1024, 8192, "f16", "f16"},
    {8, 10240, 8192, "bf16", "bf16"}, {64, 4096, 14336, "bf16", "bf16"},
    {128, 128, 8192, "bf16", "f32"}, {512, 512, 512, "f16", "f16"},
    {512, 1024, 4096, "bf16", "bf16"}, {1000, 1000, 1000, "bf16", "bf16"},
    {2048, 2048, 2048, "bf16", "bf16"}, {4096, 4096, 128, "bf16", "f32"},
    {128, 8192, 8192, "bf16", "bf16"}, {16, 4096, 4096, "e4m3", "bf16"},
    {512, 512, 512, "e4m3", "f32"}} do
    local m, n, k, t, d = table.unpack(c)
    it(("has its bits on a card: %dx%dx%d of %s, D of %s #gpu"):format(m, n, k,
        t, d), function()
      local dev = cute.device "gpu".dev
      local A, B = card.matrix(dev, t, m * k, 1),
        card.matrix(dev, t, n * k, 1 << 40)
      local D, want = card.matrix(dev, d, m * n), card.matrix(dev, d, m * n)
      local how = {m = m, n = n, k = k, A = A, B = B, D = want, algos = 1,
                   workspace = 32 << 20}
      local theirs = t == "e4m3" and gpu.cublaslt(how)[1] or gpu.cublas(how)
      theirs:launch()
      ops.gemm(card.tensor(A, m, k), card.tensor(B, n, k), {device = "gpu",
        like = "cublas", out = card.tensor(D, m, n)})
      dev:sync()
      local _, wrong = card.difference(dev, D, want, 0, 0)
      assert.equal(0, wrong)
    end)
  end

  it("agrees with its description on a GPU #gpu", function()
    local device = cute.device "gpu"
    if device.name ~= "NVIDIA H200"
      or device.dev:cublas_version() ~= record.version then
      return pending "needs an H200 and the recorded cuBLAS"
    end
    local function check(t, m, r, parts)
      local function asked(by)
        local said = gpu.cublaslt_first {m = m, n = r[1], k = r[2], A = t,
                                         B = t, D = t, bias = by}
        return {said.algorithm, said.split}
      end
      local what = ("%dx%dx%d of %s"):format(m, r[1], r[2], t)
      assert.same({66, parts}, asked(), what)
      local other = r.biased and r.biased[t] and r.biased[t][m]
      assert.same({66, other or parts}, asked(device.dev:buffer(t, r[1])), what)
    end
    for _, r in ipairs(record) do
      for _, t in ipairs {"bf16", "f16"} do
        local last
        for from, parts in r[t]:gmatch "(%d+):(%d+)" do
          from, parts = math.tointeger(from), math.tointeger(parts)
          if last then check(t, from - 1, r, last) end
          check(t, from, r, parts)
          last = parts
        end
        check(t, record.rows, r, last)
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
