--- Checks the arithmetic of tcgen05.mma against golden data of the folder
-- golden-blackwell. mma_b200.jsonl has results of a B200; mma_dense_*.jsonl and
-- mma_sparse_*.jsonl have results of a published model.
local golden = require "spec.golden"
local kernel = require "spec.umma_kernel"
local sim = require "spec.hardware.units"

local DTYPE = {s8 = "i8", u8 = "u8", s32 = "i32", ue4m3 = "e4m3"}

local function dtype(name) return DTYPE[name] or name end

local function words(text)
  local list = {}
  for w in (text or ""):gmatch "%x+" do list[#list + 1] = tonumber(w, 16) end
  return list
end

-- Returns part `step` (from 0) of a list that consists of `steps` equal parts.
local function part(list, step, steps)
  local n = #list // steps
  return {table.unpack(list, step * n + 1, (step + 1) * n)}
end

-- Returns the type of a line's scale factors and their number.
local function scale_of(case)
  local name, n = tostring(case.scale):match "^(%w+)%.(%d)X$"
  if not name then return nil, 0 end
  return dtype(name), math.tointeger(tonumber(n))
end

-- Checks the results of several steps, where each step's D is the next step's
-- C. Dense products with scale factors are also computed in a kernel.
local function check(case)
  local scale, scales = scale_of(case)
  local kind = {kind = case.kind, a = dtype(case.a_type),
                b = dtype(case.b_type), d = dtype(case.d_type), scale = scale,
                scales = scales, sparse = case.sparse, sat = case.saturate}
  local list = {}
  for _, name in ipairs {"a", "b", "sfa", "sfb", "meta"} do
    list[name] = words(case[name])
  end
  local got, d = {}, words(case.c)
  for step = 0, case.steps - 1 do
    local x = {}
    for name, all in pairs(list) do x[name] = part(all, step, case.steps) end
    local run = scale and not case.sparse
      and ("%x"):format(kernel.dot(kind, x.a, x.b, d[1], x.sfa, x.sfb))
    d = sim.umma_tile(kind, 1, 1, x.a, x.b, d, x.sfa, x.sfb, x.meta)
    got[#got + 1] = ("%x"):format(d[1])
    if run and run ~= got[#got] then return false, "in a kernel: " .. run end
  end
  for i, w in ipairs(words(case.d)) do
    if got[i] ~= ("%x"):format(w) then return false, table.concat(got, " ") end
  end
  return true
end

local any = setmetatable({}, {__index = function(_, kind)
  return type(kind) == "string" and check or nil
end})

-- This check applies to the files mma_b200, mma_dense_* and mma_sparse_*;
-- mma_numerics.jsonl and mma_atoms.jsonl have checks of their own.
local ops = golden.ops
setmetatable(ops, {__index = function(_, file)
  return (file == "mma_b200" or file:find "^mma_dense_" or
          file:find "^mma_sparse_") and any or nil
end})
setmetatable(golden.op_field, {__index = function(_, file)
  return ops[file] == any and "kind" or nil
end})

return golden
-- SPDX-License-Identifier: MIT
