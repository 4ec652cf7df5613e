--- Operators on whole tensors outside of kernels, such as x + y and 2 * x. Each
-- operator runs like ops.elementwise.
local operator = require "cute.ops.elementwise".operator

local operators = {}

local BINARY = {
  ["+"] = function(x, y) return x + y end,
  ["-"] = function(x, y) return x - y end,
  ["*"] = function(x, y) return x * y end,
  ["/"] = function(x, y) return x / y end,
  ["//"] = function(x, y) return x // y end,
  ["%"] = function(x, y) return x % y end,
  ["^"] = function(x, y) return x ^ y end,
  ["&"] = function(x, y) return x & y end,
  ["|"] = function(x, y) return x | y end,
  ["~"] = function(x, y) return x ~ y end,
  ["<<"] = function(x, y) return x << y end,
  [">>"] = function(x, y) return x >> y end}
local UNARY = {unm = function(x) return -x end,
               bnot = function(x) return ~x end}

--- Applies an operator to each element of tensors and numbers that broadcast.
---@param sign string an operator, or "unm" or "bnot"
---@param x table|number
---@param y table|number
---@return table
function operators.apply(sign, x, y)
  local unary = UNARY[sign]
  if unary then return (operator(unary, x)) end
  return (operator(BINARY[sign], x, y))
end

return operators
-- SPDX-License-Identifier: MIT
