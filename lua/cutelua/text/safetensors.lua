--- Reads and writes safetensors files, the format of Hugging Face's safetensors
-- 0.8. A file consists of the header's length in 8 bytes, the header, and the
-- data. The header is JSON: {name = {dtype, shape, data_offsets = {from, to}}}.
--
--     local f = cute.safetensors.open {"model-1.safetensors",
--                                      "model-2.safetensors"}
--     local w = f:tensor "model.norm.weight"    -- a host tensor
--     cute.safetensors.write("out.safetensors", {w = w})
--
-- Only the headers are kept in memory. f:tensor maps a tensor's data, and reads
-- the data only if the system cannot map it.
local core = require "cute.core"
local cute = require "cute"
local json = require "cutelua.text.json"
local mapped = require "cutelua.text.mapped"
local output = require "cutelua.text.output"
local sign = require "cute.lang.signature"

local safetensors = {}

local MOST = 100000000  -- maximum number of bytes of a header
local TYPES = {F64 = "f64", F32 = "f32", F16 = "f16", BF16 = "bf16",
               F8_E4M3 = "e4m3", F8_E5M2 = "e5m2", F8_E8M0 = "ue8m0",
               F6_E2M3 = "e2m3", F6_E3M2 = "e3m2", F4 = "e2m1",
               I64 = "i64", I32 = "i32", I16 = "i16", I8 = "i8", U64 = "u64",
               U32 = "u32", U16 = "u16", U8 = "u8", BOOL = "boolean"}
local NAMES = {}
for name, t in pairs(TYPES) do NAMES[t] = name end

local function fail(path, text, ...)
  core.fail("io", ("safetensors.open: %s: %s"):format(core.visible(path),
    text:format(...)))
end

local function is_size(x) return math.type(x) == "integer" and x >= 0 end

-- Returns the position of a tensor's entry in the header as text: " (byte 10)".
local function position(header, name)
  local at = header:find('"' .. name .. '"', 1, true)
  return at and (" (byte %d)"):format(at + 7) or ""
end

-- Raises an error if one entry of the header is invalid. `size` is the number
-- of bytes of the data.
local function check(path, header, name, e, size)
  local what = core.visible(name) .. position(header, name)
  local shape = type(e) == "table" and e.shape
  local at = type(e) == "table" and e.data_offsets
  if type(shape) ~= "table" or type(at) ~= "table" or #at ~= 2 then
    fail(path, "%s has no shape or data_offsets", what)
  end
  local type_ = TYPES[e.dtype]
  if not type_ then fail(path, "%s has the type %s, which is not supported",
                         what, core.show(e.dtype)) end
  local bits = cute[type_].bits
  for i, n in ipairs(shape) do
    if not is_size(n) or n > 0 and bits > 0 and bits // 8 > size // n then
      fail(path, "%s: extent %d is %s; 0 or more, within the file's %d bytes "
           .. "of data, is needed", what, i, core.show(n), size)
    end
    bits = bits * n
  end
  if bits % 8 ~= 0 then
    fail(path, "%s: %d bits are not a whole number of bytes", what, bits)
  end
  if not (is_size(at[1]) and is_size(at[2])) or at[1] > at[2]
    or at[2] > size or at[2] - at[1] ~= bits // 8 then
    fail(path, "%s: data_offsets are %s to %s; a range of %d bytes inside the "
         .. "file's %d bytes of data is needed",
         what, core.show(at[1]), core.show(at[2]), bits // 8, size)
  end
end

-- Raises an error unless the entries cover all `size` bytes of the data without
-- overlap. The data begins at byte `from` of the file.
local function check_cover(path, entries, from, size)
  local list, at = {}, 0
  for name, e in pairs(entries) do
    list[#list + 1] = {name, e.data_offsets[1], e.data_offsets[2]}
  end
  table.sort(list, function(a, b)
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[3] < b[3] or a[3] == b[3] and a[1] < b[1]
  end)
  for _, e in ipairs(list) do
    if e[2] ~= at then
      fail(path, "%s begins at byte %d; byte %d is needed, since tensors have "
        .. "neither gaps nor overlaps", core.visible(e[1]), from + e[2],
        from + at)
    end
    at = e[3]
  end
  if at ~= size then
    fail(path, "no tensor covers the data from byte %d on", from + at)
  end
end

-- Parses a header. Returns the tensors' entries and the metadata.
local function parse(path, header)
  if header:sub(1, 1) ~= "{" then
    fail(path, "not a safetensors file: its header begins with %s at byte 8, "
      .. "not with {", core.show(header:sub(1, 1)))
  end
  local entries, message = json.decode(header, true)
  if type(entries) ~= "table" then
    message = (message or ""):gsub("^no JSON: ", ""):gsub("byte (%d+)",
      function(n) return ("byte %d"):format(n + 7) end)
    fail(path, "not a safetensors file: its header is not JSON: %s", message)
  end
  local metadata = entries.__metadata__
  for k, v in pairs(type(metadata) == "table" and metadata or {}) do
    if type(k) ~= "string" or type(v) ~= "string" then metadata = false end
  end
  if metadata ~= nil and type(metadata) ~= "table" then
    fail(path, "__metadata__%s must be an object of strings",
         position(header, "__metadata__"))
  end
  entries.__metadata__ = nil
  return entries, metadata or {}
end

-- Adds the tensors and the metadata of one file to self.
local function add(self, path)
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
  local header = n == 0 and "" or f:read(n)
  local found, metadata = parse(path, header)
  for name, e in pairs(found) do
    check(path, header, name, e, total - 8 - n)
  end
  check_cover(path, found, 8 + n, total - 8 - n)
  for k, v in pairs(metadata) do self.metadata[k] = v end
  for name, e in pairs(found) do
    if self.entries[name] then
      fail(path, "tensor %s is in two files", core.visible(name))
    end
    self.entries[name] = {file = f, path = path, dtype = TYPES[e.dtype],
      shape = e.shape, at = 8 + n + e.data_offsets[1],
      bytes = e.data_offsets[2] - e.data_offsets[1]}
  end
end

local Files = {}
Files.__index = Files

--- Opens files. Raises an error if a file is not valid safetensors, or if two
-- files contain tensors of the same name.
---@param paths string[]
---@return table files with the fields `entries` (the tensors by name) and
-- `metadata` (the strings by name)
function safetensors.open(paths)
  local files = setmetatable({entries = {}, metadata = {}}, Files)
  for _, path in ipairs(paths) do add(files, path) end
  return files
end

-- Raises the error for a tensor name that no file contains.
local function no_tensor(entries, name)
  local names = {}
  for n in pairs(entries) do names[#names + 1] = n end
  table.sort(names)
  local near = core.nearest(name, names)
  core.fail("unknown-name", ("no file has a tensor %s%s"):format(
    core.visible(name),
    near and (" (did you mean %s?)"):format(core.visible(near))
    or #names <= 12 and ": there are " .. core.visible(table.concat(names, " "))
    or (", of %d tensors"):format(#names)))
end

--- Returns a tensor on the host, with contiguous rows.
---@param name string
---@return any
function Files:tensor(name)
  local e = self.entries[name]
  if not e then no_tensor(self.entries, name) end
  return mapped.tensor(e, core.visible(name), e.dtype, e.shape)
end

-- Returns the shape of a tensor as a list, and its elements in row-major order
-- as a string of bytes.
local function contents(name, t)
  local shape = cute.shape(t)
  shape = type(shape) == "table" and shape or {shape}
  for _, n in ipairs(shape) do
    if math.type(n) ~= "integer" then
      core.fail("shape-mismatch", ("safetensors.write: the shape %s of %s is "
        .. "nested; extents must be integers"):format(core.show(shape), name))
    end
  end
  if not NAMES[tostring(t.dtype)] then
    core.fail("type-mismatch", ("safetensors.write: the format has no type for "
      .. "elements of %s (%s)"):format(t.dtype, name))
  end
  local buffer = cute.buffer(t.dtype, cute.size(t))
  local rows = cute.make_tensor(buffer,
                                cute.make_layout(shape, cute.LayoutRight))
  if #buffer > 0 then rows:copy_from(t:to "host") end
  if #buffer * t.dtype.bits % 8 ~= 0 then
    core.fail("shape-mismatch", ("safetensors.write: %d elements of %s (%s) "
      .. "are not a whole number of bytes"):format(#buffer, t.dtype, name))
  end
  return shape, buffer:bytes()
end

-- Returns the names of the tensors in the order of their data. Wide types come
-- first, so that every tensor is aligned.
local function ordered(tensors)
  local names = {}
  for name, t in pairs(tensors) do
    if type(name) ~= "string" or name == "__metadata__"
      or core.typename(t) ~= "tensor" then
      core.fail("bad-argument", ("safetensors.write: %s = %s is not a tensor "
        .. "with a name"):format(core.show(name), core.show(t)))
    end
    names[#names + 1] = name
  end
  table.sort(names, function(a, b)
    local x, y = tensors[a].dtype.bits, tensors[b].dtype.bits
    if x ~= y then return x > y end
    return a < b
  end)
  return names
end

--- Writes tensors to a file. The elements are written in row-major order, for
-- any strides and device of the tensor. Writes a temporary file first, and then
-- replaces the file.
---@param path string
---@param tensors table<string, any>
---@param metadata? table<string, string>
---@return boolean? ok, string? message
function safetensors.write(path, tensors, metadata)
  local fields, pieces, at = {}, {}, 0
  for k, v in pairs(metadata or {}) do
    if type(k) ~= "string" or type(v) ~= "string" then
      core.fail("bad-argument", ("safetensors.write: metadata has %s = %s; "
        .. "both must be strings"):format(core.show(k), core.show(v)))
    end
  end
  if metadata and next(metadata) then
    fields[1] = '"__metadata__":' .. json.encode(metadata)
  end
  for i, name in ipairs(ordered(tensors)) do
    local shape, bytes = contents(name, tensors[name])
    fields[#fields + 1] = ('%s:{"dtype":"%s","shape":[%s],"data_offsets":'
      .. '[%d,%d]}'):format(json.encode(name),
      NAMES[tostring(tensors[name].dtype)], table.concat(shape, ","), at,
      at + #bytes)
    pieces[i], at = bytes, at + #bytes
  end
  local header = "{" .. table.concat(fields, ",") .. "}"
  header = header .. (" "):rep(-#header % 8)
  return output.write_file(path, ("<I8"):pack(#header), header,
                           table.unpack(pieces))
end

sign.class("safetensors", Files, "tensor(name: string)")

return sign.public("safetensors.", safetensors, [[
  open(paths: table)
  write(path: string, tensors: table, metadata?: table)
]])
-- SPDX-License-Identifier: MIT
