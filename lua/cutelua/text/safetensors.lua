--- Reads tensors of safetensors files: 8 bytes with the header's length n, n
-- bytes of JSON {name = {dtype, shape, data_offsets = {from, to}}}, then the
-- data. (https://huggingface.co/docs/safetensors, format of version 0.4)
--
--     local f = safetensors.open {"model-1.safetensors", "model-2.safetensors"}
--     local w = f:tensor "model.norm.weight"    -- a host tensor
--
-- Only the headers are kept in memory. f:tensor maps a tensor's data, and reads
-- it only if the system cannot map it.
local core = require "cute.core"
local cute = require "cute"
local json = require "cutelua.text.json"

local safetensors = {}

local MOST = 100000000  -- maximum number of bytes of a header
local TYPES = {F64 = "f64", F32 = "f32", F16 = "f16", BF16 = "bf16",
               F8_E4M3 = "e4m3", F8_E5M2 = "e5m2", I64 = "i64", I32 = "i32",
               I16 = "i16", I8 = "i8", U64 = "u64", U32 = "u32", U16 = "u16",
               U8 = "u8", BOOL = "boolean"}

local function fail(path, text, ...)
  core.fail("io", ("%s: %s"):format(core.visible(path), text:format(...)))
end

local function is_size(x) return math.type(x) == "integer" and x >= 0 end

-- Checks one entry of the header; `size` is the number of bytes of data.
local function check(path, name, e, size)
  local what = core.visible(name)
  local shape = type(e) == "table" and e.shape
  local at = type(e) == "table" and e.data_offsets
  if type(shape) ~= "table" or type(at) ~= "table" or #at ~= 2 then
    fail(path, "%s has no shape or data_offsets", what)
  end
  local type_ = TYPES[e.dtype]
  if not type_ then fail(path, "%s has the type %s, which is not supported",
                         what, core.show(e.dtype)) end
  local bytes = cute[type_].bits // 8
  for i, n in ipairs(shape) do
    if not is_size(n) or n > 0 and bytes > size // n and bytes > 0 then
      fail(path, "%s: extent %d is %s", what, i, core.show(n))
    end
    bytes = bytes * n
  end
  if not (is_size(at[1]) and is_size(at[2])) or at[1] > at[2]
    or at[2] > size or at[2] - at[1] ~= bytes then
    fail(path, "%s: data_offsets are %s to %s; a range of %d bytes inside the "
         .. "file's %d bytes of data is needed",
         what, core.show(at[1]), core.show(at[2]), bytes, size)
  end
end

-- Adds the tensors of one file to the entries.
local function add(entries, path)
  local f, why = core.open_input(path)
  if not f then fail(path, "%s", why) end
  local head = f:read(8)
  if not head or #head < 8 then
    fail(path, "not a safetensors file: it has less than 8 bytes")
  end
  local n, total = string.unpack("<I8", head), f:seek "end"
  if not total then fail(path, "a file is needed; this is a pipe or device") end
  if not math.ult(n, MOST + 1) or n > total - 8 then
    fail(path, "not a safetensors file: a header of %u bytes in a file of %d",
         n, total)
  end
  f:seek("set", 8)
  local header, message = json.decode(f:read(n))
  if type(header) ~= "table" then
    fail(path, "not a safetensors file: %s",
         message or "the header is no object")
  end
  header.__metadata__ = nil
  for name, e in pairs(header) do
    check(path, name, e, total - 8 - n)
    if entries[name] then
      fail(path, "%s is in two files", core.visible(name))
    end
    entries[name] = {file = f, path = path, dtype = TYPES[e.dtype],
      shape = e.shape, at = 8 + n + e.data_offsets[1],
      bytes = e.data_offsets[2] - e.data_offsets[1]}
  end
end

local Files = {}
Files.__index = Files

--- Opens files. Raises an error if one is not a valid safetensors file, or if
-- two have a tensor of one name.
---@param paths string[]
---@return table files with the field `entries`, tensors by name
function safetensors.open(paths)
  local entries = {}
  for _, path in ipairs(paths) do add(entries, path) end
  return setmetatable({entries = entries}, Files)
end

--- Returns a tensor on the host, with contiguous rows.
---@param name string
---@return any
function Files:tensor(name)
  local e = self.entries[name]
  if not e then core.fail("io", "no file has " .. core.visible(name)) end
  local layout = cute.make_layout(#e.shape == 0 and {1} or e.shape,
                                  cute.LayoutRight)
  local buffer, first = core.map_file(e.file, e.dtype, e.at, cute.size(layout))
  if buffer then
    local all = cute.make_tensor(buffer, cute.make_layout(#buffer))
    return cute.make_tensor(all.iterator + first, layout)
  end
  e.file:seek("set", e.at)
  local bytes = e.bytes == 0 and "" or e.file:read(e.bytes)
  if not bytes or #bytes ~= e.bytes then
    fail(e.path, "%s could not be read", core.visible(name))
  end
  return cute.make_tensor(cute.buffer_from(e.dtype, bytes), layout)
end

return safetensors
-- SPDX-License-Identifier: MIT
