--- Kernels that are PTX of anybody's: read, translated and launched on the
-- simulator as traced ones are.
--
--     local saxpy = cute.ptx "saxpy.ptx":kernel "saxpy"
--     saxpy(n, 2.0, x, y):launch {grid = 8, block = 128}
local core = require "cute.core"
local kernel = require "cute.lang.kernel"
local sign = require "cute.lang.sign"

local ptx = {}

local Module = {}
Module.__index = Module

local function arguments(entry, given, n)
  local list, params = {}, entry.parameters
  if n ~= #params then
    core.fail("bad-argument", ("entry %s has %d parameters, got %d"):format(
      entry.name, #params, n))
  end
  for i, p in ipairs(params) do
    list[i] = {p.offset, given[i], p.kind, p.bits}
  end
  return list
end

--- The entry of that name as a kernel; smem: bytes of dynamic shared memory.
---@param name string
---@param opts? table {smem: integer}
function Module:kernel(name, opts)
  local entry = core.ptx_entry(self.module, name)
  local smem = opts and opts.smem or 0
  local k = kernel.kernel(entry.name:gsub("[^%w_]", "_"), {block = entry.reqntid},
    function(...)
      core.ptx_translate(self.module, entry.name,
        arguments(entry, {...}, select("#", ...)), smem, self.file)
    end)
  return k
end

--- Reads PTX: a text, or the path of a file.
---@param text string
function ptx.ptx(text)
  local file = "=ptx"
  if not text:find "\n" then
    local f <close> = assert(io.open(text, "rb"))
    file, text = "@" .. text, f:read "a"
  end
  return setmetatable({module = core.ptx_parse(text), file = file}, Module)
end

return ptx
