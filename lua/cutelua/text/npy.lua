--- Reads and writes NumPy .npy files of versions 1 to 3 in little-endian order.
--
-- An array is {dtype = "f32", shape = {M, K}, fortran = false, bytes = ...}.
-- `bytes` contains the elements in the order of the file, without conversion.
-- In C order the last index varies fastest; with `fortran` the first index
-- varies fastest. `npy.read` returns nil and one sentence if a file cannot be
-- read.
local core = require "cute.core"
local output = require "cutelua.text.output"
local sign = require "cute.lang.signature"

local npy = {}

local MAGIC = "\x93NUMPY"
local MAX_HEADER = 1 << 20  -- bytes
local MAX_RANK = 64         -- NumPy's limit on the number of modes
-- The number of bytes per read from an input of unknown size.
local PIECE = 1 << 24

-- The types that NumPy has: {type description (descr) without byte order, name
-- in cute, bytes per element}.
local TYPES = {
  {"b1", "boolean", 1}, {"i1", "i8", 1}, {"u1", "u8", 1},
  {"i2", "i16", 2}, {"u2", "u16", 2}, {"i4", "i32", 4}, {"u4", "u32", 4},
  {"i8", "i64", 8}, {"u8", "u64", 8}, {"f2", "f16", 2}, {"f4", "f32", 4},
  {"f8", "f64", 8}, {"c16", "complex_f64", 16},
}
-- The types that NumPy does not have, with the descr that ml_dtypes 0.6.0
-- writes for them. Several types have the same descr, so the caller must
-- specify the type.
local BY_READER = {
  {"V2", "bf16", 2}, {"V1", "e4m3", 1}, {"f1", "e5m2", 1}, {"V1", "ue8m0", 1},
}
local by_descr, by_name = {}, {}
for _, t in ipairs(TYPES) do
  by_descr[t[1]], by_name[t[2]] = t, t
end
for _, t in ipairs(BY_READER) do by_name[t[2]] = t end

local function shape_text(shape)
  local text = table.concat(shape, ",")
  return "(" .. text .. (#shape == 1 and ",)" or ")")
end

-- ---- the header: a Python dict in a line of text ----

-- Parses the Python value at position `at`. Returns the value and the position
-- after it. A string is returned as {text}, True and False as booleans, and a
-- tuple or list as its text.
local function parse_value(text, at)
  local _, to, _, inside = text:find("^(['\"])([^'\"\\]*)%1", at)
  if to then return {inside}, to end
  for word, value in pairs {True = true, False = false} do
    _, to = text:find("^" .. word .. "%f[^%w_]", at)
    if to then return value, to end
  end
  _, to = text:find("^%b()", at)
  if not to then _, to = text:find("^%b[]", at) end
  if to then return text:sub(at, to), to end
end

-- Converts the text of a Python dictionary, {key: value, ...}, to a table.
-- Returns nil for any other text.
local function parse_dict(text)
  local inside = text:match "^%s*{(.*)}%s*$"
  if not inside then return nil end
  local dict, at = {}, 1
  while inside:find("%S", at) do
    local _, to, _, key = inside:find("^%s*(['\"])([%w_]+)%1%s*:%s*", at)
    if not to or dict[key] ~= nil then return nil end
    dict[key], to = parse_value(inside, to + 1)
    if dict[key] == nil then return nil end
    at = inside:match("^%s*,()", to + 1) or inside:match("^%s*()$", to + 1)
    if not at then return nil end
  end
  return dict
end

-- Returns the element type of a file whose header contains the type description
-- `descr`. Several types share a description. The result is the first type in
-- `names` that ml_dtypes writes as `descr`. Returns nil if there is none; also
-- returns a reason if ml_dtypes writes `descr` for other types.
local function type_by_reader(descr, base, names)
  for _, name in ipairs(names) do
    local t = by_name[tostring(name)]
    if t and t[1] == base and not by_descr[base] then return t end
  end
  local fits = {}
  for _, t in ipairs(BY_READER) do
    if t[1] == base then fits[#fits + 1] = ("\"%s\""):format(t[2]) end
  end
  if #fits == 0 then return nil end
  return nil, ("element type '%s' does not define its bytes: pass dtype = "
    .. "%s"):format(core.visible(descr), table.concat(fits, " or "))
end

local function parse_descr(descr, names)
  if type(descr) == "string" then
    return nil, "structured element types are not supported"
  end
  local order, base = descr[1]:match "^([<>|=]?)(%w+)$"
  local t, why = by_descr[base or ""], nil
  if not t and base then t, why = type_by_reader(descr[1], base, names) end
  if not t then
    return nil, why or ("element type '%s' is not supported"):format(
      core.visible(descr[1]:sub(1, 40)))
  elseif order == ">" and t[3] > 1 then
    return nil, ("big-endian elements ('%s') are not supported: in Python, "
      .. "a.astype('<%s') converts them"):format(descr[1], base)
  end
  return t
end

-- Returns the element types that the caller expects, as a list.
local function expected(dtype)
  return type(dtype) == "table" and dtype or {dtype}
end

-- Converts the text of a Python tuple, such as "()", "(3,)" or "(2, 3)", to a
-- list of extents. Returns nil for any other text.
local function parse_shape(text)
  local inside, shape = text:match "^%((.*)%)$", {}
  if not inside then return nil end
  if not inside:find "%S" then return shape end
  -- Without a comma, the text is a parenthesized number, not a tuple.
  if not inside:find "," then return nil end
  for item in (inside:gsub(",%s*$", "") .. ","):gmatch "([^,]*)," do
    local x = math.tointeger(tonumber(item:match "^%s*(%d+)L?%s*$"))
    if not x then return nil end
    shape[#shape + 1] = x
  end
  return shape
end

-- Returns the number of elements of an array. Returns nil if this number or a
-- stride exceeds 63 bits.
local function count(shape)
  local n, empty = 1, false
  for _, extent in ipairs(shape) do
    empty = empty or extent == 0
    if extent > 0 and n > math.maxinteger // extent then return nil end
    n = n * math.max(extent, 1)
  end
  return empty and 0 or n
end

-- Returns the position and the length of the header's text in the first bytes
-- of a file. Returns nil and a reason if the bytes are not a .npy header.
local function header_range(bytes)
  if bytes:sub(1, 6) ~= MAGIC then
    return nil, "is not a .npy file (it does not start with \\x93NUMPY)"
  elseif #bytes < 10 then
    return nil, "ends within its header"
  end
  local major, minor = bytes:byte(7, 8)
  if major < 1 or major > 3 then
    return nil, ("has the unknown .npy version %d.%d")
      :format(major, minor)
  end
  local from, length = 11, (("<I2"):unpack(bytes, 9))
  if major > 1 then
    if #bytes < 12 then return nil, "ends within its header" end
    from, length = 13, (("<I4"):unpack(bytes, 9))
  end
  if length > MAX_HEADER then
    return nil, ("has a header of %d bytes; the limit is %d")
      :format(length, MAX_HEADER)
  end
  return from, length
end

local function broken(text)
  text = text:gsub("%s+$", "")
  if text == "" then return "has an empty header" end
  local cut = #text > 200 and text:sub(1, 200) .. "..." or text
  return "has a broken header: " .. core.visible(cut)
end

--- Parses the header of a .npy file. `bytes` must contain the whole header,
-- which has at most 1 MiB.
---@param bytes string
---@param dtype? string|string[] the expected type; bf16 and 8-bit floats, which
-- NumPy does not have, are recognized only if it is given
---@return table? array without its bytes, integer|string offset or message
function npy.header(bytes, dtype)
  local from, length = header_range(bytes)
  if not from then return nil, length end
  local text = bytes:sub(from, from + length - 1)
  if #text < length then return nil, "ends within its header" end
  local dict = parse_dict(text)
  local descr, order = dict and dict.descr, dict and dict.fortran_order
  local shape = dict and type(dict.shape) == "string"
    and parse_shape(dict.shape)
  for _, key in ipairs {"descr", "fortran_order", "shape"} do
    if dict and dict[key] == nil then
      return nil, ("has no '%s' in its header"):format(key)
    end
  end
  if not shape or type(order) ~= "boolean" or type(descr) == "boolean"
      or descr == nil then
    return nil, broken(text)
  end
  local t, why = parse_descr(descr, expected(dtype))
  if not t then return nil, why end
  if #shape > MAX_RANK then
    return nil, ("has %d dimensions; the limit is %d"):format(#shape,
      MAX_RANK)
  end
  local n = count(shape)
  if not n or n > math.maxinteger // t[3] then
    return nil, "has a shape too large to count: " .. shape_text(shape)
  end
  return {dtype = t[2], shape = shape, fortran = order,
    size = n * t[3]}, from + length
end

local function check_shape(shape)
  local ok = type(shape) == "table"
  for _, n in ipairs(ok and shape or {}) do
    ok = ok and math.type(n) == "integer" and n >= 0
  end
  if not (ok and count(shape)) then
    core.fail("bad-argument", ("a shape must be a list of extents, not %s")
      :format(core.show(shape)))
  end
end

--- Returns the header of a .npy file. The version is 1, or 2 for a long header.
---@param dtype string a name such as "f32"
---@param shape integer[]
---@param fortran boolean?
---@return string
function npy.make_header(dtype, shape, fortran)
  local t = by_name[tostring(dtype)]
  if not t then
    core.fail("unknown-name", ("NumPy has no element type for %s")
      :format(core.show(dtype)))
  end
  check_shape(shape)
  local order = by_descr[t[1]] and t[3] == 1 and "|" or "<"
  local text = ("{'descr': '%s%s', 'fortran_order': %s, 'shape': %s, }")
    :format(order, t[1], fortran and "True" or "False",
      (shape_text(shape):gsub(",%f[%d]", ", ")))
  local head = 10
  if #text > 65000 then head = 12 end
  text = text .. (" "):rep(-(head + #text + 1) % 64) .. "\n"
  return MAGIC .. (head == 10 and ("BB<I2"):pack(1, 0, #text)
    or ("BB<I4"):pack(2, 0, #text)) .. text
end

-- ---- files ----

local function listed(names)
  if #names == 1 then return names[1] end
  return table.concat(names, ", ", 1, #names - 1) .. " or " .. names[#names]
end

local function check_wanted(array, opt)
  local fits = not opt.dtype
  local names = expected(opt.dtype)
  for _, name in ipairs(names) do
    fits = fits or tostring(name) == array.dtype
  end
  if not fits then
    return nil, ("holds %s, %s expected"):format(array.dtype, listed(names))
  end
  local shape = opt.shape
  if not shape then return true end
  local same = #shape == #array.shape
  for i, n in ipairs(shape) do
    same = same and (n < 0 or n == array.shape[i])
  end
  if not same then
    return nil, ("has shape %s, %s expected"):format(
      shape_text(array.shape), (shape_text(shape):gsub("%-%d+", "?")))
  end
  return true
end

-- Reads n bytes from file f, or fewer at the end of the file. Returns nil and a
-- reason on failure. `sized` means that the size of the input is known, so the
-- memory is allocated at once. The size of a pipe is unknown and its header may
-- be wrong, so the memory grows with the bytes that arrive.
local function read_bytes(f, n, sized)
  local pieces, left = {}, n
  while left > 0 do
    local ok, piece, why = pcall(f.read, f, sized and left
      or math.min(left, PIECE))
    if not ok then return nil, "does not fit into memory" end
    if why then return nil, "cannot be read: " .. why end
    if not piece then break end
    pieces[#pieces + 1] = piece
    left = left - #piece
  end
  if #pieces < 2 then return pieces[1] or "" end
  local ok, bytes = pcall(table.concat, pieces)
  if not ok then return nil, "does not fit into memory" end
  return bytes
end

-- Reads the first bytes of f, up to the end of the header. Returns nil and a
-- reason on failure.
local function read_header(f)
  local head, why = read_bytes(f, 12)
  if not head then return nil, why end
  if head == "" then return nil, "is empty" end
  local from, length = header_range(head)
  if not from then return nil, length end
  local rest
  rest, why = read_bytes(f, from - 1 + length - #head)
  if not rest then return nil, why end
  return head .. rest
end

local function read_open(f, opt)
  local head, why = read_header(f)
  if not head then return nil, why end
  local array, from = npy.header(head, opt.dtype)
  if not array then return nil, from end
  local ok
  ok, why = check_wanted(array, opt)
  if not ok then return nil, why end
  -- The elements that were read together with the header.
  local early = head:sub(from)
  local here = f:seek()
  local size = here and f:seek "end"
  -- A device file may report a size of 0 although it contains data.
  local sized = size and size > 0
  if sized then
    f:seek("set", here)
    local got = size - here + #early
    if got < array.size then
      return nil, ("is too short: %d bytes of elements expected for shape %s "
        .. "of %s, got %d"):format(array.size, shape_text(array.shape),
        array.dtype, got)
    end
  end
  local bytes
  bytes, why = read_bytes(f, array.size - #early, sized)
  if not bytes then return nil, why end
  array.bytes = early:sub(1, array.size) .. bytes
  if #array.bytes < array.size then
    return nil, ("is too short: %d bytes of elements expected, got %d")
      :format(array.size, #array.bytes)
  end
  return array
end

-- The metatable of arrays. It raises an error for an index that is a number,
-- because only the tensor gives access to the elements.
local Array = {}

function Array.__index(_, key)
  if math.type(key) then
    core.fail("bad-argument", "an array of a .npy file cannot be indexed: "
      .. "its elements are packed bytes\n  write cute.npy.tensor(array) for a "
      .. "tensor")
  end
end

--- Reads a file. The path may also name a pipe or a device. The types bf16,
-- e4m3, e5m2 and ue8m0 are recognized only if `dtype` is given. ml_dtypes
-- writes them as '<V2', '<V1', '<f1' and '<V1'.
---@param path string
---@param opt? {dtype: string|string[]?, shape: integer[]?} the expected array;
-- an extent of -1 matches any extent
---@return table? array, string? message
function npy.read(path, opt)
  local f <close>, why = core.open_input(path)
  if not f then
    return nil, ("cannot open %s: %s [io]"):format(core.visible(path), why)
  end
  local array
  array, why = read_open(f, opt or {})
  if not array then
    return nil, ("%s %s [io]"):format(core.visible(path), why)
  end
  return setmetatable(array, Array)
end

--- Returns the contents of a .npy file for an array.
---@param array table {dtype: string, shape: integer[], fortran: boolean?,
-- bytes: string}
---@return string
function npy.text(array)
  local t = by_name[tostring(array.dtype)]
  local header = npy.make_header(array.dtype, array.shape, array.fortran)
  local n = count(array.shape)
  if type(array.bytes) ~= "string" or n * t[3] ~= #array.bytes then
    core.fail("shape-mismatch", ("shape %s of %s needs %d bytes, got %s")
      :format(shape_text(array.shape), array.dtype, n * t[3],
      type(array.bytes) == "string" and #array.bytes
      or core.show(array.bytes)))
  end
  return header .. array.bytes
end

--- Writes a .npy file. Writes a temporary file first, and then replaces the
-- file.
---@param path string
---@param array table {dtype: string, shape: integer[], fortran: boolean?,
-- bytes: string}
---@return boolean? ok, string? message
function npy.write(path, array)
  return output.write_file(path, npy.text(array))
end

-- ---- buffers and tensors ----

--- Returns the stride of each mode of an array, in elements.
---@param array table
---@return integer[]
function npy.strides(array)
  local strides, step, shape = {}, 1, array.shape
  check_shape(shape)
  for i = 1, #shape do
    local mode = array.fortran and i or #shape + 1 - i
    strides[mode] = step
    -- An extent of 0 would make all following strides 0.
    step = step * math.max(shape[mode], 1)
  end
  return strides
end

--- Returns a tensor over a host buffer that contains the array's elements in
-- the order of the file. A coordinate selects the same element as in NumPy, in
-- C and Fortran order.
---@param array table
---@return userdata tensor, userdata buffer
function npy.tensor(array)
  local cute = require "cute"
  check_shape(array.shape)
  local buffer = cute.buffer_from(array.dtype, array.bytes)
  local layout = #array.shape == 0 and cute.make_layout({1})
    or cute.make_layout(array.shape, npy.strides(array))
  return cute.make_tensor(buffer, layout), buffer
end

--- Returns an array with the elements of a host buffer, which are in C or
-- Fortran order. The elements are converted to f32 if NumPy does not have their
-- type, such as bf16.
---@param buffer userdata
---@param shape integer[]
---@param fortran boolean?
---@return table array
function npy.of_buffer(buffer, shape, fortran)
  check_shape(shape)
  local t = by_name[tostring(buffer.dtype)]
  if not (t and by_descr[t[1]]) then buffer = buffer:to "f32" end
  return {dtype = tostring(buffer.dtype), shape = shape, fortran = fortran,
    bytes = buffer:bytes()}
end

return sign.public("npy.", npy, [[
  read(path: string, opts?: {dtype shape})
  write(path: string, array: {bytes dtype fortran shape})
  text(array: {bytes dtype fortran shape})
  header(bytes: string, dtype?) strides(array: table) tensor(array: table)
  make_header(dtype: string|dtype, shape: table, fortran?: boolean)
  of_buffer(buffer: buffer, shape: table, fortran?: boolean)
]])
-- SPDX-License-Identifier: MIT
