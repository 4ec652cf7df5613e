-- A case of tools/ptx/seeds.lua: a kernel that another compiler made, with the
-- arguments of one launch.
local cute = require "cute"
local json = require "cutelua.text.json"
local npy = cute.npy

local case = {}
case.__index = case

--- Reads a case. Raises an error if the file cannot be read.
---@param path string of case.json; paths in it are relative to its folder
function case.read(path)
  local f <close> = assert(io.open(path))
  local self = setmetatable(assert(json.decode(f:read "a")), case)
  self.folder = path:match "^(.*/)[^/]*$" or ""
  self.kernel = cute[self.compiler](self.folder .. self.file)
  if self.entry then
    self.kernel = self.kernel:kernel(self.entry, {smem = self.smem})
  end
  return self
end

-- Returns a structure that begins with a tensor map, as CUTLASS passes it. The
-- map's boxes have a swizzle of 128 bytes.
local function boxed(t, box)
  local cpasync, rows = cute.nvgpu.cpasync, cute.make_layout(box,
    cute.LayoutRight)
  local smem = cute.composition(cute.make_swizzle(3, 3, 3), rows)
  return {[0] = (cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(),
                                             t, smem, box))}
end

-- Reads the tensors of a case. Returns the arguments of a launch, and a table
-- that has {buffer = ..., shape = ...} for the name of each tensor.
local function fill(self)
  local tensors, arrays, args = {}, {}, {}
  for name, path in pairs(self.tensors) do
    local dtype
    name, dtype = name:match "^(%w+):?(%w*)$"
    local a = assert(npy.read(self.folder .. path,
                              {dtype = dtype ~= "" and dtype or nil}))
    local buffer
    tensors[name], buffer = npy.tensor(a)
    arrays[name] = {buffer = buffer, shape = a.shape}
  end
  for i, a in ipairs(self.args) do
    if type(a) == "table" and a.box then
      args[i] = boxed(tensors[a.map], a.box)
    elseif type(a) == "table" then
      args[i] = {map = tensors[a.map], padding = a.padding}
    else
      args[i] = tensors[a] or a
    end
  end
  return args, arrays
end

--- Reads the tensors again, and launches the kernel on them. The default device
-- is the case's device.
---@param options table of the launch, besides grid, block and cluster
---@return boolean? ok
---@return string? why the text of a report
---@return table arrays by name: {buffer = ..., shape = ...}
function case:launch(options)
  local args, arrays = fill(self)
  options.grid, options.block = self.grid, self.block
  options.cluster = self.cluster
  options.device = options.device or self.device
  local ok, why = self.kernel(table.unpack(args)):launch(options)
  return ok, why, arrays
end

--- Writes the outputs to their files.
function case:write(arrays)
  for name, path in pairs(self.outputs) do
    local a = arrays[name]
    assert(npy.write(self.folder .. path, npy.of_buffer(a.buffer, a.shape)))
  end
end

return case
-- SPDX-License-Identifier: MIT
