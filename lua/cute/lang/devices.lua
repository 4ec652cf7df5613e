--- Devices: the simulator and GPUs, and checks that a launch's memory and
-- stream belong to its device.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local devices = {}

-- With __closed, cute.lang.dependencies does not examine a device's fields.
local Device = {__closed = true,
                -- `__host` marks objects that cannot be passed to a kernel.
                __host = "device"}
devices.Device = Device
Device.__index = Device
Device.__tostring = function(d) return d.name end

--- The architecture that the device name "sim" selects.
devices.ARCH = "sm_90a"

local ARCHS = core.archs()

-- Returns the known architecture that is most similar to the unknown `arch`:
-- the one with the nearest number, or with the nearest name if `arch` does not
-- have the form sm_NN or sm_NNN.
local function nearest_arch(arch)
  local n = tonumber(arch:match "^sm_(%d%d%d?)$")
  local best, least
  for _, known in ipairs(n and ARCHS or {}) do
    local far = math.abs(tonumber(known:match "%d+") - n)
    if not least or far < least then best, least = known, far end
  end
  return best or core.nearest(arch, ARCHS)
end

function devices.sm(arch)
  if not ARCHS[arch] then
    local near = nearest_arch(tostring(arch))
    core.fail("wrong-arch", ("no architecture '%s'%s: there are %s"):format(
      tostring(arch), near and " (did you mean " .. near .. "?)" or "",
      table.concat(ARCHS, " ")))
  end
  return ARCHS[arch]
end

local function simulator(arch)
  return setmetatable({kind = "sim", arch = arch, sm = devices.sm(arch),
                       name = "simulator (" .. arch .. ")"}, Device)
end

-- GPUs opened so far, by number from 0.
local opened = {}
devices.opened = opened

local function gpu_device(ordinal)
  local known = opened[ordinal]
  if known then
    local ok, why = known.dev:alive()
    if not ok then return nil, why end
    return known
  end
  local gpu = require "cute.gpu"
  local dev, why = gpu.open(ordinal)
  if not dev then return nil, why end
  local info = dev:info()
  known = setmetatable({kind = "gpu", arch = info.arch, dev = dev,
                        info = info, sm = devices.sm(info.arch),
                        place = ordinal > 0 and "gpu:" .. ordinal or "gpu",
                        name = info.name .. " (" .. info.arch .. ")"}, Device)
  opened[ordinal] = known
  return known
end

-- If set, the device "auto" always means the simulator. A string is the reason
-- why there is no GPU.
devices.simulates = nil

--- The session of `cutelua compile`, or nil. During a session, launches on a
-- GPU do nothing. The session's method defer(source, opts) returns a
-- placeholder for a kernel that is compiled later, or nil.
devices.dry = nil

--- Returns the device with this name: "sim", "sim:sm_80", "gpu", "gpu:1" (the
-- second GPU), or "auto" (a GPU if there is one, else the simulator). "host", a
-- tensor's location, means "sim". Returns nil and a message when there is no
-- GPU.
---@param name? string
---@param arch? string the architecture that "sim" selects
function devices.device(name, arch)
  if getmetatable(name) == Device then return name end
  name = name or "auto"
  local text = type(name) == "string" and name or ""
  local ordinal = text == "gpu" and "0" or text:match "^gpu:(%d%d?%d?)$"
  if ordinal and type(devices.simulates) == "string" then
    return nil, devices.simulates .. " [no-gpu]"
  elseif ordinal and devices.simulates then
    core.fail("bad-launch", ("device %s: this command runs kernels on the "
      .. "simulator only"):format(name))
  end
  if ordinal then return gpu_device(math.tointeger(ordinal)) end
  if name == "auto" then
    local d = not arch and not devices.simulates and gpu_device(0)
    return d or simulator(arch or devices.ARCH)
  end
  if name == "sim" or name == "host" or name == "cpu" then
    return simulator(arch or devices.ARCH)
  end
  local target = text:match "^sim:(.+)$"
  if not target then
    core.fail("bad-argument", ("no device %s: use sim, sim:sm_80, gpu, gpu:1 "
      .. "or auto"):format(type(name) == "string" and "'" .. name .. "'"
      or core.show(name)))
  end
  return simulator(target)
end

-- Returns the device that holds an argument's memory, or nil if the argument
-- has no memory.
local function place_of(v)
  local kind = core.typename(v[1])
  return kind == "buffer" and "host" or kind == "devbuf" and v[1].device or nil
end

local MOVE = "\n  t:to \"%s\" copies a tensor there"

local function said(place) return place == "host" and "the host" or place end

--- Checks that all memory that a launch uses is on its GPU or, for the
-- simulator, on the host.
function devices.check_places(name, values, device)
  local first, at
  for i, v in ipairs(values) do
    local place, n, text = place_of(v), v.argument or i, nil
    if place and place ~= "host" and place ~= device then
      text = ("kernel %s runs on %s, but its argument %d is on %s"):format(name,
        device == "host" and "the simulator" or device, n, place)
    elseif place and first and place ~= first then
      text = ("kernel %s: argument %d is on %s, argument %d on %s: all "
        .. "arguments of a launch must be on one "
        .. "device"):format(name, at, said(first), n,
        said(place))
    elseif place and not first then
      first, at = place, n
    end
    if text then core.fail("bad-launch", text .. MOVE:format(device)) end
  end
end

--- Checks that a launch's stream belongs to its device.
function devices.check_stream(stream, device)
  local here = device.kind == "sim" and "sim" or device.place
  if stream and stream.device ~= here then
    core.fail("bad-launch", ("the stream belongs to %s, but the launch is on "
      .. "%s")
      :format(stream.device, here))
  end
end

local function picked(values, opts, default)
  local named = opts.device
  if named and named ~= "auto" then return devices.device(named, opts.arch) end
  for _, v in ipairs(values or {}) do
    local place = place_of(v)
    if place and place ~= "host" then return devices.device(place) end
  end
  return devices.device(named or default, opts.arch)
end

--- Returns the device of a launch: the device named in its options, else the
-- GPU that holds an argument's memory, else the default. If it is a GPU, starts
-- the creation of the GPU's context, which continues while the launch is traced
-- and compiled.
---@param values? table[]
---@param opts table
---@param default string
function devices.pick(values, opts, default)
  local device, why = picked(values, opts, default)
  local gpu = device and not devices.dry and device.dev
  if gpu then gpu:begin() end
  return device, why
end

-- The functions that cute.gpu.trim calls before it frees memory.
devices.trims = {}

--- Registers a function f that drops cached memory. cute.gpu.trim calls f.
function devices.on_trim(f) table.insert(devices.trims, f) end

sign.strict("device", Device, "dev info place")

return devices
-- SPDX-License-Identifier: MIT
