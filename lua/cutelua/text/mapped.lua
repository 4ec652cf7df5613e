--- Returns the data of files of tensors (safetensors, GGUF) as tensors on the
-- host.
--
-- An entry e describes a tensor's data: its open file, the file's path, the
-- position `at`, and the number of bytes.
local core = require "cute.core"
local cute = require "cute"

local mapped = {}

--- Reads the next n bytes from the file of an entry, and returns them. Raises
-- an error if they cannot be read.
---@param e {file: userdata, path: string}
---@param n integer
---@param what string the tensor's name, as printed
---@return string
function mapped.read(e, n, what)
  local bytes = n == 0 and "" or e.file:read(n)
  if not bytes or #bytes ~= n then
    core.fail("io", ("%s: %s could not be read"):format(core.visible(e.path),
      what))
  end
  return bytes
end

--- Returns the data of an entry as a tensor of this type and shape, with
-- contiguous rows. Maps the data, and reads them only if the system cannot map
-- the file.
---@param e {file: userdata, path: string, at: integer, bytes: integer}
---@param what string the tensor's name, as printed
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
