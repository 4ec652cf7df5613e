--- Provides the weights of a model: tensors from safetensors files, or random
-- numbers.
--
--     local w = weights.open("a.safetensors,b.safetensors", "gpu", 1)
--     local qkv = w:matrix(6144, 4096, "q_proj", "k_proj", "v_proj")
--     local norm = w:vector(4096, "norm")
local cute = require "cute"
local safetensors = require "cutelua.text.safetensors"
local ops = cute.ops

local weights = {}

local Weights = {}
Weights.__index = Weights

--- Opens files whose paths are separated by commas. Without paths, matrices are
-- random and vectors are ones.
---@param paths string?
---@param device any
---@param seed integer
---@return table weights .bytes of all matrices so far
function weights.open(paths, device, seed)
  local list = {}
  for path in (paths or ""):gmatch "[^,]+" do list[#list + 1] = path end
  return setmetatable({files = paths and safetensors.open(list), seed = seed,
                       where = {device = device}, made = 0, bytes = 0}, Weights)
end

-- Returns n elements of w from `from` on, as a vector.
local function part(w, n, from)
  return cute.make_tensor(w.iterator + from, cute.make_layout({n}, {1}))
end

-- Copies the named tensors to w, one after the other, if files are open.
local function read(self, w, ...)
  local from = 0
  for _, name in ipairs(self.files and {...} or {}) do
    local t <close> = self.files:tensor(name .. ".weight"):to(self.where.device)
    local n = cute.size(t)
    ops.copy(part(t, n, 0), part(w, n, from), self.where)
    from = from + n
  end
  return w
end

--- Returns a matrix of bf16 whose rows are those of the named tensors, in
-- order. Without files, the elements are random with variance 1 / columns: each
-- is a hash of its position (the last step of PCG, O'Neill 2014).
---@param rows integer
---@param columns integer
---@param ... string
---@return any
function Weights:matrix(rows, columns, ...)
  self.made, self.bytes = self.made + 1, self.bytes + 2 * rows * columns
  local number = self.made + self.seed
  local scale = (12 / columns) ^ 0.5 / 2 ^ 24
  local w = cute.zeros({rows, columns}, cute.bf16, self.where)
  if self.files then return read(self, w, ...) end
  return ops.elementwise(function(_, at)
    local r, c = at:coords()
    local x = (r:to(cute.u32) * 65536 + c:to(cute.u32)) * 747796405 + number
    x = ((x >> 15) ~ x) * 277803737
    x = ((x >> 13) ~ x) * 747796405
    return ((x >> 8):to(cute.f32) - 8388607.5) * scale
  end, w, {out = w, device = self.where.device})
end

--- Returns a vector of f32: the named tensor, or ones.
---@param n integer
---@param name string
---@return any
function Weights:vector(n, name)
  self.made = self.made + 1
  return read(self, cute.full({n}, 1, cute.f32, self.where), name)
end

return weights
-- SPDX-License-Identifier: MIT
