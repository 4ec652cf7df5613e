--- The subject of `cutelua tune gemm`: matrix products. A problem is a text
-- such as "bf16 bf16 bf16 tn row 4096 4096 4096": a class, followed by M, N and
-- K. Classes are the keys of tuned tables (cute.ops.tuned).
local choose = require "cute.ops.choose"
local core = require "cute.core"
local epilogues = require "cutelua.tune.epilogues"
local gemm = require "cute.ops.gemm"
local operands = require "cutelua.tune.operands"
local worker = require "cutelua.tune.worker"

-- loops: the indices of M, N and K in the order of the nested loops, outermost
-- first.
local products = {section = "gemm", form = "M,N,K", count = 3,
                  loops = {2, 3, 1}, noun = "product"}

local TYPES = {bf16 = "bf16", f16 = "f16", tf32 = "f32", f32 = "f32",
               f64 = "f64", e4m3 = "bf16", e5m2 = "bf16", i8 = "i32",
               u8 = "i32", i32 = "i32"}

-- Converts "bf16:bf16:f32" to "bf16 bf16 f32".
local function types_of(text)
  local list = {}
  for name in (text .. ":"):gmatch "(.-):" do
    if not TYPES[name] then
      return nil, ("--types: no type '%s' of products; possible are bf16 f16 "
        .. "tf32 f32 f64 e4m3 e5m2 i8 u8 i32"):format(core.visible(name))
    end
    list[#list + 1] = name
  end
  if #list > 3 then
    return nil, ("--types: '%s' has more than three types"):format(text)
  end
  local a = list[1]
  return ("%s %s %s"):format(a, list[2] or a, list[3] or TYPES[a])
end

-- Returns the class of a product with the epilogue opt.epilogue (see
-- cute.ops.tuned). Sets opt.make to the function that creates the epilogue.
-- Returns nil and a reason on failure.
local function with_epilogue(opt, class, size)
  local name, make = epilogues.load(opt.epilogue)
  if not name then return nil, "--epilogue: " .. make end
  local ok, all = pcall(operands.class, ("%s %d %d %d"):format(class,
    table.unpack(size)), make, name)
  if not ok then
    return nil, "--epilogue: " .. (tostring(all):gsub("%s*%[[%l-]+%]$", ""))
  end
  opt.make = make
  return all
end

--- Returns the class of the products that the command line requests. Returns
-- nil and a reason if the options are not supported.
---@param opt table
---@param size integer[] {M, N, K} of the first product
---@return string? class
---@return string? why
function products.class(opt, size)
  if opt.causal then return nil, "--causal: an option of 'tune attention'" end
  local types, why = types_of(opt.types)
  if not types then return nil, why end
  local class = ("%s %s %s"):format(types, opt.layout,
    opt.columns and "column" or "row")
  if opt.epilogue then return with_epilogue(opt, class, size) end
  return class
end

--- Parses a problem's text.
---@param problem string
---@param make? function creates the epilogue
---@return table # the fields of operands.parse, and sizes, title
function products.parse(problem, make)
  local o = operands.parse(problem, make)
  o.sizes = {o.m, o.n, o.k}
  o.title = ("%dx%dx%d"):format(o.m, o.n, o.k)
  return o
end

--- Returns the names of the candidates to measure for a problem. Returns an
-- empty list and a reason if the problem is not supported.
---@param problem string
---@param card table {arch: string, sms: integer}
---@param job table the options of cutelua.tune.run
---@return string[]
---@return string? why
function products.names(problem, card, job)
  local o
  local ok, list = pcall(function()
    o = operands.without_memory(problem, job.make)
    o.options.device = worker.device(card.arch, card.sms)
    return select(2, gemm.offers(o.A, o.B, o.options, o.C))
  end)
  if not ok then
    return {}, (tostring(list):gsub("%s*%[[%l-]+%]$", "")
      :gsub("^[^\n]-:%d+: ", ""))
  elseif not list[1] then
    return {}, "no kernel supports these types"
  end
  local names, seen = {}, {}
  for _, c in ipairs(list) do
    local name = choose.name(c)
    if c.ns <= list[1].ns * job.slack and #names < job.most
      and not seen[name] then
      names[#names + 1], seen[name] = name, true
    end
  end
  return names
end

return products
-- SPDX-License-Identifier: MIT
