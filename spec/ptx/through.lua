--- Launches a kernel of the language through the PTX that NVRTC compiles from
-- its CUDA C. The line information of the PTX names the script's lines.
local core = require "cute.core"
local cute = require "cute"
local kernel = require "cute.lang.kernel"

local through = {}

-- Returns CUDA C in which a #line directive precedes each line that comes from
-- a script.
local function marked(text, lines)
  local out, i = {}, 0
  for line in text:gmatch "([^\n]*)\n" do
    i = i + 1
    local file, n = (lines[i] or ""):match "^(.*):(%d+)$"
    if file and not line:find "\\$" then
      out[#out + 1] = ("#line %d \"%s\""):format(n, file)
    end
    out[#out + 1] = line
  end
  return table.concat(out, "\n") .. "\n"
end

-- Assigns the script's lines to instructions of helper functions, which are not
-- in the script. NVRTC's `inlined_at` names the line of the call.
local function of_calls(ptx, lines)
  local script, own = {}, {}
  for _, at in ipairs(lines) do own[at:match "^(.*):%d+$" or 0] = true end
  for n, name in ptx:gmatch '%.file%s+(%d+)%s+"([^"]*)"' do
    if own[name:match "[^/]*$"] then script[n] = true end
  end
  return (ptx:gsub("(%.loc%s+)(%d+)( [^\n]*)", function(loc, file, rest)
    while not script[file] do
      local call, more = rest:match "inlined_at (%d+)( [^\n]*)"
      if not call then break end
      file, rest = call, more
    end
    return loc .. file .. rest
  end))
end

--- Returns the PTX that NVRTC compiles from a traced program.
---@param program table
---@param arch string
---@return string? ptx
---@return string? message
function through.ptx(program, arch)
  local text, lines, _, options = program:cuda(arch)
  local made, why = core.jit_compile(marked(text, lines),
    (arch:gsub("^sm", "compute")), {"-lineinfo", table.unpack(options)})
  if not made then return nil, why end
  return of_calls(made.ptx or made.cubin, lines)
end

--- Returns the PTX that NVRTC compiles from a call's kernel, and its bytes of
-- dynamic shared memory.
---@param call cute.Call
---@param opts table options of the launch
---@param arch string
---@return string ptx
---@return integer smem
function through.call(call, opts, arch)
  local program = call:trace {block = opts.block, cluster = opts.cluster,
                              arch = arch}
  local text, why = through.ptx(program, arch)
  if not text then error(why, 0) end
  return text, program.info.smem
end

-- Returns the part of a buffer from byte `at` on as a tensor.
local function tensor_of(buffer, at, bytes)
  local bits = buffer.dtype.bits
  local whole = cute.make_tensor(buffer, cute.make_layout(#buffer))
  return cute.make_tensor(whole.iterator + at * 8 // bits,
                          cute.make_layout(bytes * 8 // bits))
end

-- Returns the layout and the element type of a program's argument i, with the
-- launch's numbers in place of its dynamic ones. Returns nil for a pointer
-- without a layout.
local function layout_of(program, values, i)
  for _, m in ipairs(program.info.mems) do
    if m.arg == i and m.space == "gmem" and m.layout ~= ""
        and not m.layout:find "_" then
      local at = i
      local text = m.layout:gsub("%?{[^}]*}", "?"):gsub("%?", function()
        at = at + 1
        return tostring(values[at][2])
      end)
      return cute.layout(text), m.dtype
    end
  end
end

--- Returns the arguments of the PTX entry, one for each of the launch's values.
---@param values table[] as core.launch_values returns them
---@param program? table gives tensors the layouts that its arguments have, so
-- that gaps between their elements are no outputs
function through.arguments(values, program)
  local given = {}
  for i, v in ipairs(values) do
    if v.tma then
      given[i] = v.tma
    elseif core.typename(v[1]) == "buffer" then
      local layout, dtype
      if program then layout, dtype = layout_of(program, values, i) end
      given[i] = tensor_of(v[1], v[2], v[3])
      if layout then
        given[i] = cute.make_tensor(cute.recast_ptr(given[i].iterator, dtype),
                                    layout)
      end
    else
      given[i] = v[2]
    end
  end
  return table.unpack(given, 1, #values)
end

--- Returns the only entry of a PTX text as a kernel.
---@param ptx string
---@param smem integer bytes of dynamic shared memory
---@param opts? table further options of module:kernel
function through.kernel(ptx, smem, opts)
  local module, all = cute.ptx(ptx), {smem = smem}
  for k, v in pairs(opts or {}) do all[k] = v end
  return module:kernel(module:entries()[1], all)
end

--- Returns the program and the launch, in the form of core.sim_run, that run a
-- given launch of a program through PTX.
---@param program table
---@param launch table in the form of core.sim_run
---@param ptx string
---@param opts? table further options of module:kernel
---@return table program
---@return table launch
function through.launch(program, launch, ptx, opts)
  local all = {undefined_ok = {}}
  for name, x in pairs(opts or {}) do all[name] = x end
  for _, m in ipairs(program.info.mems) do
    if m.undefined_ok and m.arg then table.insert(all.undefined_ok, m.arg) end
  end
  local k = through.kernel(ptx, program.info.smem, all)
  local p = assert(k(through.arguments(launch.args, program)):compile {
    block = launch.block, cluster = program.cluster, grid = launch.grid,
    cooperative = launch.cooperative, pdl = launch.pdl,
    device = "sim:" .. program.arch})
  local own = kernel.sim_launch(p, {seed = launch.seed}, p.values, launch.grid)
  own.strict = launch.strict
  return p.program, own
end

return through
-- SPDX-License-Identifier: MIT
