--- The GPU: availability, properties and memory statistics. The package cutelua
-- adds measurements of launches, and products by cuBLAS for comparison.
--
-- A GPU is represented by a device object, whose methods make buffers and
-- kernels:
--
--     local dev = assert(gpu.open())
--     local a = dev:buffer(host)              -- or dev:buffer("bf16", n)
--     local f = dev:load(compiled.cubin, "gemm")
--     local run = f:prepare {args = {a, b, c}, grid = {8, 8}, block = 128}
--     run:launch()
--     dev:sync()
--
-- Functions that request something (a GPU, a buffer) return nil and a message
-- if it is not available. Functions that use the GPU (launch, launch_n, copies,
-- memset, sync, record) raise an error if the driver reports one. The error's
-- message names the kernels that may be at fault.
-- @module cute.gpu

local sign = require "cute.lang.signature"
local core = require "cute.core"
local devices = require "cute.lang.devices"

local gpu = {}

-- Opens the GPU with this number, and calls a method of its device object.
-- Returns nil and a message if there is no such GPU.
local function ask(ordinal, method, ...)
  local dev, why = core.gpu_open(ordinal)
  if not dev then return nil, why end
  return dev[method](dev, ...)
end

--- Returns the device object of a GPU.
---@param ordinal integer|nil 0 is the first
---@return table|nil device
---@return string|nil message
function gpu.open(ordinal)
  return core.gpu_open(ordinal)
end

--- Reports whether a GPU can be used. If not, also returns the reason.
---@param ordinal integer|nil
---@return boolean
---@return string|nil reason
function gpu.available(ordinal)
  local dev, why = core.gpu_open(ordinal)
  if not dev then return false, why end
  return true
end

--- Returns a table of the GPU's properties: name, arch (such as "sm_90a"), sms
-- (number of multiprocessors), memory, smem, l2, cuda (the driver's version).
---@param ordinal integer|nil
---@return table|nil
---@return string|nil reason
function gpu.info(ordinal)
  return ask(ordinal, "info")
end

--- Returns a table of memory statistics. These fields are in bytes: used (by
-- tensors and buffers), peak (the largest value of `used`), pool (allocated
-- from the driver, whether used or kept for reuse), free and total (as the
-- driver reports). The field hits counts allocations served by the pool, and
-- misses counts those served by the driver.
---@param ordinal integer|nil
---@return table|nil
---@return string|nil reason
function gpu.memory(ordinal)
  return ask(ordinal, "memory")
end

--- Collects garbage and returns unused memory of the pool to the driver.
---@param ordinal integer|nil
---@return integer|nil bytes
---@return string|nil reason
function gpu.trim(ordinal)
  for _, f in ipairs(devices.trims) do f() end
  return ask(ordinal, "trim")
end

-- Cached results of gpu.clusters: clusters[GPU number][cluster size].
local clusters = {}

local function ask_clusters(dev, size)
  local info = dev:info()
  local made, why = require "cute.jit".compile(
    'extern "C" __global__ void empty() {}',
    {arch = info.arch, name = "empty"})
  if not made then return nil, why end
  local f, run
  f, why = dev:load(made.cubin, "empty")
  if not f then return nil, why end
  run, why = f:prepare {grid = size, block = 128, cluster = size,
                        smem = info.smem}
  if not run then return nil, why end
  return run:max_active_clusters()
end

--- Returns the number of clusters that a GPU runs at once if each
-- multiprocessor has one block. The driver's answer is cached.
---@param size integer number of blocks of a cluster
---@param ordinal integer|nil
---@return integer|nil
---@return string|nil reason
function gpu.clusters(size, ordinal)
  ordinal = ordinal or 0
  local dev, why = core.gpu_open(ordinal)
  if not dev then return nil, why end
  local known = clusters[ordinal] or {}
  clusters[ordinal] = known
  if not known[size] then
    known[size], why = ask_clusters(dev, size)
    if not known[size] then return nil, why end
  end
  return known[size]
end

return sign.public("gpu.", gpu, [[
  open(ordinal?: integer) available(ordinal?: integer) info(ordinal?: integer)
  memory(ordinal?: integer) trim(ordinal?: integer)
  clusters(size: integer, ordinal?: integer)
]])
-- SPDX-License-Identifier: MIT
