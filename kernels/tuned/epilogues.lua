--- Epilogues for `cutelua tune gemm --epilogue NAME`: functions of a product's
-- operands that return the epilogue and additional options. A user's file
-- returns one such function (docs/tuning.md).
local cute = require "cute"

local epilogues = {}

function epilogues.bias(given)
  local bias = given:col()
  return function(acc, at) return acc + at:col(bias) end
end

for _, name in ipairs {"relu", "gelu", "gelu_tanh", "silu"} do
  local f = cute.ops[name]
  epilogues["bias_" .. name] = function(given)
    local bias = given:col()
    return function(acc, at) return f(acc + at:col(bias)) end
  end
end

function epilogues.residual(given)
  local R = given:tile()
  return function(acc, at) return acc + at:tile(R) end
end

function epilogues.bias_residual(given)
  local bias, R = given:col(), given:tile()
  return function(acc, at) return acc + at:col(bias) + at:tile(R) end
end

function epilogues.bias_silu_residual(given)
  local bias, R, silu = given:col(), given:tile(), cute.ops.silu
  return function(acc, at)
    return silu(acc + at:col(bias)) + at:tile(R)
  end
end

function epilogues.swiglu()
  local silu = cute.ops.silu
  return function(gate, up) return silu(gate) * up end, {gated = true}
end

--- Returns no epilogue, only the option C: D = A B^T + C.
function epilogues.C(given) return nil, {C = given:tile()} end

return epilogues
