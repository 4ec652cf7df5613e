--- Launches PTX on a GPU. The driver compiles the module's text. The arguments
-- are those of the launch on the simulator, converted for the driver.
local core = require "cute.core"

local card = {}

--- Name of the hidden variable for the workspace that the driver passes to
--- cooperative launches (core/ptx/calls.h).
card.WORKSPACE = "grid workspace"

--- Returns PTX in which no multiplication is contracted with an addition. The
-- compiler contracts `add`, `sub` and `mul` of floats only if they have no
-- rounding modifier. Adding `.rn`, the default rounding, thus prevents
-- contraction. For pairs of f32, ptxas 13.0 ignores the modifier. There an `or`
-- after the product prevents contraction; it costs no instruction.
---@param text string
---@return string
function card.exact(text)
  text = text:gsub("%f[%w_%.%$%%]([asm][duu][dbl])(%.[%w%.:]+)",
    function(op, modifiers)
      if (op == "add" or op == "sub" or op == "mul")
        and (modifiers:find "%.f%d+x?2?$" or modifiers:find "%.bf16x?2?$")
        and not modifiers:find "%.r[nzmp]%f[%W]" then
        return op .. ".rn" .. modifiers
      end
    end)
  return (text:gsub("%f[%w_%.%$%%]([mf][um][la]%.[%w%.]*f32x2%s+)"
    .. "([%w_%$%%]+)([^;]*;)", "%1%2%3 or.b64 %2, %2, 0;"))
end

--- Returns PTX in which no cp.async has a cache hint: in drivers before CUDA
-- 13.4, ptxas may make an illegal instruction of it (docs/cache.md).
---@param text string
---@return string
function card.unhinted(text)
  return (text:gsub("(%f[%w_%.%$%%]cp%.async%.c[ag][%w%.:]*)%.L2::cache_hint"
    .. "([%w%.:]*%s[^;]*),[^;,]*;", "%1%2;"))
end

-- Returns PTX in which all variables are visible, so that the driver finds them
-- by name.
local function visible(text)
  for _, space in ipairs {"global", "const"} do
    text = text:gsub("%f[^\n%z]([ \t]*%." .. space .. "%s)", ".visible %1")
  end
  return text
end

--- Returns the newest version of PTX that a driver supports, as 10 times the
-- major number plus the minor number.
---@param cuda integer the CUDA version of the driver, 13000 for 13.0
---@return integer
function card.newest(cuda)
  local major, minor = cuda // 1000, cuda % 1000 // 10
  -- PTX 7.0 came with CUDA 11.0, PTX 8.0 with CUDA 12.0, PTX 9.0 with CUDA
  -- 13.0. From CUDA 12.6 on, the minor number of PTX 8 is one less than that of
  -- CUDA 12.
  if major == 12 and minor >= 6 then minor = minor - 1 end
  return (major - 4) * 10 + minor
end

--- Returns the text of a module for a driver. If the text has a newer version
-- than the driver supports, its line `.version` is lowered, and the original
-- version is returned, too. The driver accepts such text if it contains no
-- newer instruction.
---@param text string
---@param cuda integer
---@param contract? boolean true to let the compiler contract products and sums
---@return string text, string? lowered
function card.text(text, cuda, contract)
  text = visible(contract and text or card.exact(text))
  if cuda < 13040 then text = card.unhinted(text) end
  local at, major, minor, after = text:match "()%.version%s+(%d+)%.(%d+)()"
  if not at then return text end
  local most = card.newest(cuda)
  local newer = major * 10 + minor > most
  local version = newer and ("%d.%d"):format(most // 10, most % 10)
    or major .. "." .. minor
  return (".version %s%s"):format(version, text:sub(after)),
    newer and major .. "." .. minor or nil
end

-- Converts v, a value {dtype, number} of a simulated launch, for the driver.
-- The simulator passes an f64 as an integer with the same bits.
local function scalar(v, kind, bits)
  if core.typename(v[1]) ~= "dtype" then return v end
  local name = kind == "f" and bits == 32 and "f32" or "i" .. bits
  return {core.find_dtype(name), v[2]}
end

-- Returns the bytes of a structure from the values of its fields. In a launch
-- on the simulator, integers of 8 and 16 bits are passed with 32 bits.
local function structure(p, values, fields)
  local bytes = ("\0"):rep(p.bits // 8 * p.count)
  for i, f in ipairs(fields) do
    local v = values[i]
    local packed
    if core.typename(v[1]) ~= "dtype" then
      packed = ("<I8"):pack(v[1].address + v[2])
    elseif v[1].is_integer then
      packed = ("<i8"):pack(v[2])
      local bits = f.bits > 0 and f.bits or v[1].bits
      packed = packed:sub(1, bits // 8)
    else
      packed = ("<f"):pack(v[2])
    end
    bytes = bytes:sub(1, f.at) .. packed .. bytes:sub(f.at + #packed + 1)
  end
  return bytes
end

--- Returns the functions and data with which a PTX program is launched on a
-- GPU.
---@param text string the PTX
---@param entry table of core.ptx_entry
---@param passed table how each parameter is passed: a string of its bytes; a
-- list of its fields, {at = byte offset, bits = size, or 0 for the size of the
-- value}; or false for a single value
---@param variables table[] of core.ptx_variables
---@param smem integer bytes of dynamic shared memory
---@param opts {optimize: integer?, contract: boolean?} of Module:kernel
---@return table
function card.new(text, entry, passed, variables, smem, opts)
  local made = {loaded = {}, smem = smem, contract = opts.contract,
                hidden = {[card.WORKSPACE] = true}}
  for _, v in ipairs(variables) do
    if #v.addresses > 0 then
      made.why = ("the module's variable %s holds addresses, which exist on "
        .. "the simulator only"):format(v.name)
    end
  end

  function made.load(dev)
    if made.why then
      core.fail("bad-launch", ("kernel %s: %s"):format(entry.name, made.why))
    end
    local f = made.loaded[dev]
    if f and f:usable() then return f end
    local major, minor = tostring(dev:info().cuda):match "^(%d+)%.(%d+)"
    local cuda = major * 1000 + minor * 10
    local own, lowered = card.text(text, cuda, opts.contract)
    local why
    f, why = dev:load(own, entry.name, #entry.parameters, opts.optimize)
    if not f and lowered then
      why = ("kernel %s is PTX %s, but this driver, of CUDA %d.%d, reads PTX "
        .. "up to %s\n  install a newer driver, or compile for the older "
        .. "version (Triton: ptx_version=%d)\n  %s"):format(entry.name,
        lowered, cuda // 1000, cuda % 1000 // 10,
        own:match "^.version (%S+)", card.newest(cuda), why)
    end
    made.loaded[dev] = f
    return f, why
  end

  -- The number of a launch's values that precede those for variables of the
  -- module.
  local before = 0
  for i = 1, #entry.parameters do
    local how = passed[i]
    before = before + (type(how) == "string" and 0 or how and #how or 1)
  end

  -- If value i of a launch stands for a variable of the module, returns the
  -- variable's memory on the GPU. Returns nil for other values; returns nil and
  -- a message if the driver fails.
  function made.place(dev, i)
    local v = variables[i - before]
    if not v or v.name == card.WORKSPACE then return nil end
    local f, why = made.load(dev)
    if not f then return nil, why end
    local memory
    memory, why = dev:variable(f, v.name)
    return memory, why and ("variable %s: %s"):format(v.name, why)
  end

  function made.pack(values)
    local out, at = {}, 1
    for i, p in ipairs(entry.parameters) do
      local how = passed[i]
      if type(how) == "string" then
        out[i] = how
      elseif how then
        out[i] = structure(p, {table.unpack(values, at, at + #how - 1)}, how)
        at = at + #how
      else
        out[i] = scalar(values[at], p.kind, p.bits)
        at = at + 1
      end
    end
    return out
  end

  return made
end

return card
-- SPDX-License-Identifier: MIT
