--- Returns the data of safetensors and GGUF files as host tensors.
--
-- An entry describes the data of one tensor. Its fields are `file` (the open
-- file), `path`, `at` (the position of the data) and `bytes` (the number of
-- bytes).
local core = require "cute.core"
local cute = require "cute"

local mapped = {}

--- Reads and returns the next n bytes of an entry's file. Raises an error if
-- the file cannot be read or is too short.
---@param e {file: userdata, path: string}
---@param n integer
---@param what string the tensor's name, for error messages
---@return string
function mapped.read(e, n, what)
  local bytes = n == 0 and "" or e.file:read(n)
  if not bytes or #bytes ~= n then
    core.fail("io", ("%s: %s could not be read"):format(core.visible(e.path),
      what))
  end
  return bytes
end

--- Returns the data of an entry as a tensor of the given type and shape, with
-- contiguous rows. Maps the file, or reads the data if the system cannot map
-- the file.
---@param e {file: userdata, path: string, at: integer, bytes: integer}
---@param what string the tensor's name, for error messages
---@param dtype string
---@param shape integer[]
---@return any
function mapped.tensor(e, what, dtype, shape)
  local layout = cute.make_layout(#shape == 0 and {1} or shape,
                                  cute.LayoutRight)
  local buffer, first = core.map_file(e.file, dtype, e.at, cute.size(layout))
  if buffer then
    local all = cute.make_tensor(buffer, cute.make_layout(#buffer))
    return cute.make_tensor(all.iterator + first, layout)
  end
  e.file:seek("set", e.at)
  return cute.make_tensor(cute.buffer_from(dtype, mapped.read(e, e.bytes,
    what)), layout)
end

return mapped
-- SPDX-License-Identifier: MIT
