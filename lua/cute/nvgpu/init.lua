--- cute.nvgpu: what one family of GPUs has, by the Python DSL's names.
local sign = require "cute.lang.sign"

local nvgpu = {}

for _, part in ipairs {"warpgroup"} do
  nvgpu[part] = sign.namespace(require("cute.nvgpu." .. part),
                               "cute.nvgpu." .. part)
end

return nvgpu
