--- Functions of epilogues: of vectors, values and numbers of a kernel, in f32.
local cute = require "cute"

local functions = {}

local LOG2E = math.log(math.exp(1), 2)

--- max(x, 0); of a NaN 0.
function functions.relu(x) return cute.max(x, 0) end

--- 1 / (1 + e^-x).
function functions.sigmoid(x) return cute.rcp(1 + cute.exp2(x * -LOG2E)) end

--- x / (1 + e^-x).
function functions.silu(x) return x * functions.sigmoid(x) end

--- x Phi(x), by the error function.
function functions.gelu(x)
  return 0.5 * x * (1 + cute.erf(x * math.sqrt(0.5)))
end

--- The approximation of gelu by tanh.
function functions.gelu_tanh(x)
  local y = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
  return x * functions.sigmoid(y)
end

return functions
