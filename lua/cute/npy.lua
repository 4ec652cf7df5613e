--- NumPy .npy files, versions 1 to 3, little endian.
--
-- An array is {dtype = "f32", shape = {M, K}, fortran = false, bytes = ...}:
-- `bytes` are the elements as they lie in the file, C order (last index
-- fastest) or, with `fortran`, first index fastest. Nothing is converted.
-- `npy.read` gives nil and one sentence for a file that will not do.
local cli = require "cute.cli"

local npy = {}

local MAGIC = "\x93NUMPY"

-- NumPy's descr without its byte order, our name, bytes an element.
local TYPES = {
  {"b1", "boolean", 1}, {"i1", "i8", 1}, {"u1", "u8", 1},
  {"i2", "i16", 2}, {"u2", "u16", 2}, {"i4", "i32", 4}, {"u4", "u32", 4},
  {"i8", "i64", 8}, {"u8", "u64", 8}, {"f2", "f16", 2}, {"f4", "f32", 4},
  {"f8", "f64", 8}, {"c16", "complex_f64", 16},
}
local by_descr, by_name = {}, {}
for _, t in ipairs(TYPES) do
  by_descr[t[1]], by_name[t[2]] = t, t
end

local function shape_text(shape)
  local text = table.concat(shape, ",")
  return "(" .. text .. (#shape == 1 and ",)" or ")")
end

-- ---- the header: a Python dict in a line of text ----

local function parse_descr(text)
  local descr = text:match "['\"]descr['\"]%s*:%s*['\"]([^'\"]*)['\"]"
  if not descr then
    return nil, "structured element types are not supported"
  end
  local order, base = descr:match "^([<>|=]?)(%w+)$"
  local t = base and by_descr[base]
  if not t then
    return nil, ("element type '%s' is not supported"):format(descr)
  elseif order == ">" and t[3] > 1 then
    return nil, ("big-endian elements ('%s') are not supported")
      :format(descr)
  end
  return t
end

local function parse_shape(text)
  local inside = text:match "['\"]shape['\"]%s*:%s*%(([%d%s,L]*)%)"
  if not inside then return nil end
  local shape = {}
  for n in inside:gmatch "%d+" do
    local x = math.tointeger(tonumber(n))
    if not x then return nil end
    shape[#shape + 1] = x
  end
  return shape
end

local function count(shape)
  local n = 1
  for _, extent in ipairs(shape) do
    if extent ~= 0 and n > math.maxinteger // extent then return nil end
    n = n * extent
  end
  return n
end

-- Where the header's text lies in the first bytes: from, length.
local function header_range(bytes)
  if bytes:sub(1, 6) ~= MAGIC then
    return nil, "is no .npy file (it does not start with \\x93NUMPY)"
  elseif #bytes < 12 then
    return nil, "is cut off in its header"
  end
  local major, minor = bytes:byte(7, 8)
  if major < 1 or major > 3 then
    return nil, ("has .npy version %d.%d, of which nothing is known")
      :format(major, minor)
  elseif major == 1 then
    return 11, (("<I2"):unpack(bytes, 9))
  end
  return 13, (("<I4"):unpack(bytes, 9))
end

--- Reads the header from the first bytes of a file (all of it, at most 64
-- KiB, must be there).
---@param bytes string
---@return table? array without its bytes, integer|string offset or message
function npy.header(bytes)
  local from, length = header_range(bytes)
  if not from then return nil, length end
  local text = bytes:sub(from, from + length - 1)
  if #text < length then return nil, "is cut off in its header" end
  local t, why = parse_descr(text)
  if not t then return nil, why end
  local order = text:match "['\"]fortran_order['\"]%s*:%s*(%a+)"
  local shape = parse_shape(text)
  if not shape or order ~= "True" and order ~= "False" then
    return nil, "has a broken header: " .. text:gsub("%s+$", "")
  end
  local n = count(shape)
  if not n or n > math.maxinteger // t[3] then
    return nil, "has a shape too large to count: " .. shape_text(shape)
  end
  return {dtype = t[2], shape = shape, fortran = order == "True",
    size = n * t[3]}, from + length
end

--- The bytes of a .npy file's header (version 1, or 2 where it is long).
---@param dtype string such as "f32"
---@param shape integer[]
---@param fortran boolean?
---@return string
function npy.make_header(dtype, shape, fortran)
  local t = by_name[tostring(dtype)]
  if not t then
    error(("npy: NumPy has no element type for %s"):format(dtype), 2)
  end
  local text = ("{'descr': '%s%s', 'fortran_order': %s, 'shape': %s, }")
    :format(t[3] == 1 and "|" or "<", t[1], fortran and "True" or "False",
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
  local names = type(opt.dtype) == "table" and opt.dtype or {opt.dtype}
  for _, name in ipairs(names) do
    fits = fits or tostring(name) == array.dtype
  end
  if not fits then
    return nil, ("holds %s, %s expected"):format(array.dtype, listed(names))
  end
  local shape = opt.shape
  if not shape then return true end
  if count(array.shape) == 0 then
    return nil, "has no elements: its shape is " .. shape_text(array.shape)
  end
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

local function read_open(f, opt)
  local head, why = f:read(12)
  if not head then
    return nil, why and "cannot be read: " .. why or "is empty"
  end
  local from, length = header_range(head)
  if not from then return nil, length end
  if length > 1 << 24 then return nil, "has an oversized header" end
  local rest = f:read(from - 1 + length - #head) or ""
  local array
  array, why = npy.header(head .. rest)
  if not array then return nil, why end
  local ok
  ok, why = check_wanted(array, opt)
  if not ok then return nil, why end
  local here = f:seek()
  local size = here and f:seek "end"
  if size and size - here < array.size then
    return nil, ("is cut off: %d bytes of elements expected for shape %s "
      .. "of %s, got %d"):format(array.size, shape_text(array.shape),
      array.dtype, size - here)
  end
  if size then f:seek("set", here) end
  array.bytes = array.size == 0 and "" or f:read(array.size)
  if #(array.bytes or "") < array.size then
    return nil, ("is cut off: %d bytes of elements expected, got %d")
      :format(array.size, #(array.bytes or ""))
  end
  return array
end

--- Reads a file.
---@param path string
---@param opt? {dtype: string|string[]?, shape: integer[]?} what is expected;
-- an extent of -1 is any
---@return table? array, string? message
function npy.read(path, opt)
  local f <close>, why = io.open(path, "rb")
  if not f then return nil, ("cannot open %s [io]"):format(why) end
  local array
  array, why = read_open(f, opt or {})
  if not array then return nil, ("%s %s [io]"):format(path, why) end
  return array
end

--- Writes a file, aside first.
---@param path string
---@param array {dtype: string, shape: integer[], fortran: boolean?,
-- bytes: string}
---@return boolean? ok, string? message
function npy.write(path, array)
  local t = by_name[tostring(array.dtype)]
  local header = npy.make_header(array.dtype, array.shape, array.fortran)
  local n = count(array.shape)
  if n * t[3] ~= #array.bytes then
    error(("npy: shape %s of %s needs %d bytes, got %d"):format(
      shape_text(array.shape), array.dtype, n * t[3], #array.bytes), 2)
  end
  return cli.write_file(path, header, array.bytes)
end

-- ---- buffers and tensors ----

--- Strides of the elements in an array's bytes.
---@param array table
---@return integer[]
function npy.strides(array)
  local strides, step, shape = {}, 1, array.shape
  for i = 1, #shape do
    local mode = array.fortran and i or #shape + 1 - i
    strides[mode] = step
    step = step * shape[mode]
  end
  return strides
end

--- A tensor over a host buffer that holds the array's elements as they lie:
-- coordinates mean the same as in NumPy, for C and Fortran order.
---@param array table
---@return userdata tensor, userdata buffer
function npy.tensor(array)
  local cute = require "cute"
  local buffer = cute.buffer_from(array.dtype, array.bytes)
  local layout = #array.shape == 0 and cute.make_layout({1})
    or cute.make_layout(array.shape, npy.strides(array))
  return cute.make_tensor(buffer, layout), buffer
end

--- The array of a host buffer whose elements lie in C order (or Fortran's).
-- A type that NumPy has not, such as bf16, becomes f32.
---@param buffer userdata
---@param shape integer[]
---@param fortran boolean?
---@return table array
function npy.of_buffer(buffer, shape, fortran)
  if not by_name[tostring(buffer.dtype)] then buffer = buffer:to "f32" end
  return {dtype = tostring(buffer.dtype), shape = shape, fortran = fortran,
    bytes = buffer:bytes()}
end

return npy
