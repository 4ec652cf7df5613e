--- Helpers for specs of cute.ops.grouped_gemm. They make random problems of
-- groups of rows, and compute the expected products in plain Lua.
local families = require "cute.ops.families"
local core = require "cute.core"
local cute = require "cute"
local gemm_grouped = require "kernels.gemm_grouped"
local gemm_sm100 = require "kernels.gemm_sm100"
local gemm_sm90 = require "kernels.gemm_sm90"
local ops = require "spec.ops"

local grouped = {}

local UNTOUCHED = 77

-- Returns a row-major tensor of small whole numbers.
local function numbers(dtype, seed, ...)
  local shape, n = {...}, 1
  for _, extent in ipairs(shape) do n = n * extent end
  local b = core.buffer(dtype, n)
  b:fill_int(seed, -2, 3)
  return cute.make_tensor(b, cute.make_layout(shape, cute.LayoutRight))
end

-- Returns a tensor of powers of two. Scale factors that are powers of two keep
-- the products exact.
local function factors(seed, ...)
  local t = numbers("f32", seed, ...)
  local flat = cute.make_tensor(t.iterator, cute.make_layout(cute.size(t)))
  for i = 0, cute.size(t) - 1 do flat[i] = 2.0 ^ flat(i) end
  return t
end

local OURS = {gemm_sm100 = true, gemm_sm90 = true, gemm_sm80 = true}

--- Calls f(...) with only the named family of kernels enabled: "gemm_sm100",
-- "gemm_sm90" or "gemm_sm80".
function grouped.by(name, f, ...)
  assert(OURS[name])
  local all = table.move(families, 1, #families, 1, {})
  local list = families
  for i = #list, 1, -1 do
    if list[i].name ~= name then table.remove(list, i) end
  end
  local out = table.pack(pcall(f, ...))
  table.move(all, 1, #all, 1, list)
  if not out[1] then error(out[2], 0) end
  return table.unpack(out, 2, out.n)
end

-- Returns a tensor with the first row of each group of case c, followed by the
-- end of the last group. Also returns the total number of rows. c.sizes has
-- each group's number of rows. c.skip rows before the first group, and as many
-- after the last one, belong to no group.
local function offsets(c)
  local list = {c.skip or 0}
  for i, n in ipairs(c.sizes) do list[i + 1] = list[i] + n end
  return cute.tensor(list, c.where or cute.i32),
         math.max(list[#list] + (c.skip or 0), 1)
end

--- Makes the operands of case c on the device `place`. Fields of c: form,
-- sizes, N, K, dtype, d, where, most, skip, gated, epilogue, scales, alpha.
-- Returns A, B, the groups' offsets, and the options. If form is "masked",
-- returns numbers of rows instead of offsets. The last result is a function
-- that describes the first wrong element of the results.
function grouped.problem(c, place)
  local E, N, K = #c.sizes, c.N, c.K
  local dtype, masked = c.dtype or "bf16", c.form == "masked"
  local where, M
  if masked then where, M = cute.tensor(c.sizes, c.where or cute.i64), c.most
  else where, M = offsets(c) end
  local NB = c.gated and 2 * N or N
  local A = masked and numbers(dtype, 1, E, M, K) or numbers(dtype, 1, M, K)
  local B = numbers(dtype, 2, E, NB, K)
  local o = {alpha = c.alpha, gated = c.gated}
  local shape = masked and {E, M, N} or {M, N}
  o.out = cute.full(shape, UNTOUCHED, core.find_dtype(c.d or "f32"))
  local sa, sb
  if c.scales == "each" then
    sa = masked and factors(3, E, M) or factors(3, M)
    sb = factors(4, E, NB)
    o.scale_a, o.scale_b = sa, sb
  elseif c.scales then
    local groups = (K + 127) // 128
    local bn = c.scales == "blocks" and (N + 127) // 128 or N
    if masked then sa = factors(3, E, M, groups)
    else sa = factors(3, M, groups) end
    sb = factors(4, E, bn, groups)
    o.scale_a, o.scale_b = sa, sb
  end
  local bias, shift = numbers("f32", 5, E, N), numbers("f32", 6, N)
  local by = masked and numbers("f32", 7, E, M) or numbers("f32", 7, M)
  local rest = masked and numbers("f32", 8, E, M, N) or numbers("f32", 8, M, N)
  local function there(t) return t and t:to(place or "host") end
  local b, s, r, t = there(bias), there(shift), there(by), there(rest)
  if c.gated then
    o.epilogue = function(gate, up, at)
      return cute.max(gate, 0) * up + at:col(s)
    end
  elseif c.epilogue then
    o.epilogue = function(acc, at)
      local rows, cols = at:coords()
      local y = acc + at:col(b) + at:row(r) * at:col(s)
      return y + at:tile(t), (rows * 2 + cols):to(cute.f32)
    end
  end
  o.out, o.scale_a, o.scale_b = there(o.out), there(sa), there(sb)

  local function differs(D, second)
    local host, other = D:to "host", second and second:to "host"
    local rounded, seen = ops.rounded(D.element_type), {}
    local function at(x, g, ...)
      if masked then return x(g, ...) end
      return x(...)
    end
    local function element(x, ...) return x(...) end
    -- Returns the elements of row i of group g of x as a list, which is kept
    -- in `rows`.
    local function row_of(x, rows, g, i, read)
      local key = g << 32 | i
      if not rows[key] then
        local list = {}
        for k = 0, K - 1 do list[k + 1] = read(x, g, i, k) end
        rows[key] = list
      end
      return rows[key]
    end
    local a_rows, b_rows = {}, {}
    local function sums(g, row, j)
      local sum = 0
      local left = row_of(A, a_rows, g, row, at)
      local right = row_of(B, b_rows, g, j, element)
      for k = 0, K - 1 do
        local x = left[k + 1] * right[k + 1]
        if sa and c.scales ~= "each" then
          x = x * at(sa, g, row, k // 128)
            * sb(g, c.scales == "blocks" and j // 128 or j, k // 128)
        end
        sum = sum + x
      end
      if c.scales == "each" then sum = sum * at(sa, g, row) * sb(g, j) end
      return sum * (c.alpha or 1)
    end
    local function wanted(g, i, row, j)
      local y = sums(g, row, j)
      if c.gated then
        return math.max(y, 0) * sums(g, row, j + N) + shift(j)
      elseif c.epilogue then
        y = y + bias(g, j) + at(by, g, row) * shift(j) + at(rest, g, row, j)
        local z = at(other, g, row, j)
        if z ~= 2 * i + j then
          return nil, ("coordinates of (%d,%d): %s"):format(i, j, z)
        end
      end
      return y
    end
    -- Checks every fifth column of a row. The first one differs from row to
    -- row.
    local step = 5
    for g, n in ipairs(c.sizes) do
      local first = masked and 0 or where(g - 1)
      for i = 0, n - 1 do
        seen[masked and (g - 1) * M + i or first + i] = true
        for j = i % step, N - 1, step do
          local want, why = wanted(g - 1, i, first + i, j)
          if why then return why end
          local got = at(host, g - 1, first + i, j)
          if got ~= rounded(want) then
            return ("group %d, (%d,%d) is %s, not %s"):format(g - 1, i, j, got,
              rounded(want))
          end
        end
      end
    end
    for i = 0, (masked and E or 1) * M - 1 do
      for j = 0, seen[i] and -1 or N - 1 do
        local x = masked and host(i // M, i % M, j) or host(i, j)
        if x ~= UNTOUCHED then
          return ("row %d, which is no group's, has %s at %d"):format(i, x, j)
        end
      end
    end
  end
  return there(A), there(B), there(where), o, differs
end

--- Runs a case with the kernels of a family on a device. Returns a description
-- of what is wrong, or nil.
function grouped.wrong(c, family, device)
  local A, B, where, o, differs = grouped.problem(c, device == "gpu" and "gpu")
  o.device = device
  return differs(grouped.by(family, cute.ops.grouped_gemm, A, B, where, o))
end

--- Passes unvalidated offsets and counts to the kernel. Checks that the kernel
-- limits them to the matrix, and that it computes the rows of the groups and
-- writes no others. Returns a description of the first mistake, or nil.
function grouped.wild(list, family, device)
  for _, form in ipairs {"rows", "masked"} do
    local E, M, N, K = #list - (form == "rows" and 1 or 0), 70, 24, 64
    local A = form == "rows" and numbers("bf16", 1, M, K)
      or cute.select(numbers("bf16", 1, E, M, K), {1, 2, 0})
    local B = cute.select(numbers("bf16", 2, E, N, K), {1, 2, 0})
    local D = cute.full(form == "rows" and {M, N} or {E, M, N}, UNTOUCHED,
                        cute.bf16)
    local where = cute.tensor(list, cute.i64)
    local to = form == "rows" and D or cute.select(D, {1, 2, 0})
    if family ~= "gemm_sm80" then
      local name = form == "rows" and "offsets" or "counts"
      local gemm = family == "gemm_sm90"
        and gemm_sm90 {tile = {64, 24, 64}, consumers = 1, groups = form}
        or gemm_sm100 {tile = {128, 32, 64}, groups = form}
      local run = assert(gemm.prepare(A, B, to, {device = device, sms = 3,
        workspace = {[name] = where}}))
      run:launch()
    else
      local k = gemm_grouped {form = form, tile = {64, 64, 64},
                              atoms = {2, 2, 1}, permutation = {32, 32, 16}}
      k.kernel(A, B, to, where):launch {grid = k.grid(M, N, E),
        block = k.block, device = device}
    end
    local stop, seen = math.min(math.max(list[1], 0), M), {}
    for e = 0, E - 1 do
      local from, rows = stop, math.min(math.max(list[e + 1], 0), M)
      if form == "rows" then
        stop = math.max(stop, math.min(math.max(list[e + 2], 0), M))
        rows = stop - from
      end
      for i = 0, rows - 1 do
        local row = form == "rows" and from + i or i
        seen[form == "rows" and row or e * M + row] = true
        for j = 0, N - 1, 5 do
          local sum = 0
          for k = 0, K - 1 do
            sum = sum + (form == "rows" and A(row, k) or A(row, k, e))
              * B(j, k, e)
          end
          local x = form == "rows" and D(row, j) or D(e, row, j)
          if x ~= sum then
            return ("%s: row %d of group %d has %s at %d, not %s"):format(form,
              i, e, x, j, sum)
          end
        end
      end
    end
    for i = 0, (form == "rows" and 1 or E) * M - 1 do
      for j = 0, seen[i] and -1 or N - 1, 5 do
        local x = form == "rows" and D(i, j) or D(i // M, i % M, j)
        if x ~= UNTOUCHED then
          return ("%s: row %d, which is no group's, has %s at %d"):format(form,
            i, x, j)
        end
      end
    end
  end
end

--- Returns the nth random case.
function grouped.random(n)
  local pick = ops.random(n)
  local c = {form = pick {"rows", "masked"}, sizes = {},
             N = 8 * (1 + pick(20)), K = 16 * (1 + pick(20)),
             dtype = pick {"bf16", "f16", "bf16", "e4m3"},
             d = pick {"bf16", "f32"}, skip = pick {0, 0, 5},
             where = pick {cute.i32, cute.i64}}
  for e = 1, 1 + pick(6) do
    c.sizes[e] = pick {0, 0, 1, 7, 63, 64, 65, 100, 128, 130, 200}
  end
  c.most = pick {200, 201, 256}
  if pick(3) == 0 then c.epilogue = true
  elseif pick(4) == 0 and c.dtype ~= "e4m3" then c.gated = true
  elseif pick(3) == 0 then c.alpha = 2.0 end
  if c.dtype == "e4m3" and pick(2) == 0 then
    c.scales, c.K = pick {"blocks", "rows", "each"}, 128 * (1 + pick(3))
  end
  if c.d == "bf16" and c.epilogue then c.d = "f32" end
  return c
end

function grouped.text(c)
  return ("%s of %s, N %d, K %d, %s to %s%s%s%s%s"):format(c.form,
    table.concat(c.sizes, ","), c.N, c.K, c.dtype or "bf16", c.d or "f32",
    c.epilogue and ", epilogue" or "", c.gated and ", gated" or "",
    c.scales and ", factors of " .. c.scales or "",
    c.alpha and ", alpha" or "")
end

return grouped
-- SPDX-License-Identifier: MIT
