--- Kernels: Lua functions that are traced once for each argument key (types,
-- layouts, alignment and constants of the arguments), compiled once for each
-- architecture, and launched on the simulator or a GPU.
--
--     local add = cute.kernel("add", function(A, B, C) ... end)
--     add(A, B, C):launch {grid = 8, block = 128}             -- at once
--     local run = cute.compile(add, A, B, C, {grid = 8, block = 128})
--     run:launch()                                            -- many times
local sign = require "cute.lang.signature"
local unused = require "cute.lang.unused"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local report = require "cute.lang.report"
local history = require "cute.lang.history"
local source = require "cute.lang.source"

local kernel = {device = devices.device}

-- A hook of `cutelua debug` and `cutelua check`, or nil. Its function
-- run(program, options) replaces core.sim_run. The debugger also sets the field
-- record to cutelua.debug.locals.new.
kernel.runner = nil

local function recorder() return kernel.runner and kernel.runner.record end

local Device, opened = devices.Device, devices.opened

---------------------------------------------------------------------------
-- Programs: a traced kernel and its compiled forms
---------------------------------------------------------------------------

-- __closed: the object tracks its own contents (cute.lang.dependencies).
-- __host: the object cannot be passed to a kernel.
local Program = {__closed = true, __host = "traced program"}

-- Fields of a program that are computed when they are first read: source (CUDA
-- C), ir (text), resources, warnings (a list of sentences).
local MADE = {source = true, warnings = true, ir = true, resources = true}

function Program.__index(p, k)
  if k == "source" then return (p:cuda()) end
  if k == "warnings" then return p.fn:warnings() end
  if k == "ir" then return p.fn:dump() end
  if k == "resources" then
    local out, message = p:compile()
    if not out then report.raise(message) end
    return out.resources
  end
  return Program[k]
end

function Program.__tostring(p)
  return ("kernel %s: %d instructions, %d bytes of shared memory")
    :format(p.info.name, p.info.instructions, p.info.smem)
end

--- Returns the program's CUDA C for an architecture, and for each line of CUDA
-- C the line of the script that produced it.
---@param arch? string
---@return string text, string[] lines, string kernel's name in the text,
-- string[] options for the compiler
function Program:cuda(arch)
  arch = arch or self.arch
  local sm = devices.sm(arch)
  self.fn:check_arch(sm, arch)
  local made = self.texts[sm]
  if not made then
    self.fn:check_smem(sm)
    local text, lines, name, options = self.fn:emit(sm)
    for i, at in ipairs(lines) do
      lines[i] = at[2] > 0 and source.short(at[1]) .. ":" .. at[2] or ""
    end
    made = {text = text, lines = lines, name = name, options = {}}
    for option in options:gmatch "%S+" do table.insert(made.options, option) end
    self.texts[sm] = made
  end
  return made.text, made.lines, made.name, made.options
end

--- Reports whether the program has CUDA C. Some programs from PTX have none.
---@param program table
---@param arch string
---@return boolean
function kernel.has_cuda(program, arch)
  local ok, why = pcall(program.cuda, program, arch)
  return ok or not tostring(why):find("has no CUDA C", 1, true)
end

--- Compiles a program for an architecture. Returns the result of
-- cute.jit.compile: {cubin, resources, log, ...}.
---@param arch? string
---@param lines? boolean with line information, for tools that show the compiled
-- code
---@return table? compiled
---@return string? message
function Program:compile(arch, lines)
  arch = arch or self.arch
  local key = lines and arch .. " with lines" or arch
  local made = self.cubins[key]
  if made then return made end
  local text, places, name, options = self:cuda(arch)
  if lines then options = {"-lineinfo", table.unpack(options)} end
  local message
  made, message = require "cute.jit".compile(text, {
    arch = arch, name = name, lines = places, options = options})
  if not made then return nil, message end
  for _, loss in ipairs(lines and {} or made.losses) do
    io.stderr:write("cutelua: warning: ", loss, "\n")
  end
  self.cubins[key] = made
  return made
end

---------------------------------------------------------------------------
-- Launching
---------------------------------------------------------------------------

-- The hardware's limits on the extents of grids, blocks and clusters along x, y
-- and z.
local MOST = {grid = {(1 << 31) - 1, 65535, 65535},
              block = {math.huge, math.huge, 64},
              cluster = {math.huge, math.huge, math.huge}}
local ALL = {block = {1024, "threads"}, cluster = {16, "blocks"}}

--- Checks the one to three extents of a grid, block or cluster. Returns three
-- extents.
---@param what string "grid" "block" "cluster"
---@param v integer|integer[]
function kernel.extents(what, v)
  if v == nil then
    core.fail("bad-launch", ("the %s is missing: write {grid = g, block = b}")
      :format(what))
  end
  local list = type(v) == "table"
  -- Only a grid may have no blocks; launching it runs nothing.
  local least = what == "grid" and 0 or 1
  local out = list and {v[1], v[2] or 1, v[3] or 1} or {v, 1, 1}
  for k, n in next, list and v or out do
    if k ~= 1 and k ~= 2 and (k ~= 3 or list and v[2] == nil) then
      core.fail("bad-launch", ("%s has the field [%s] = %s; a list of one to "
        .. "three integers of at least %d is needed"):format(what, tostring(k),
        tostring(n), least))
    end
  end
  for i = 1, 3 do
    if math.type(out[i]) ~= "integer" or out[i] < least then
      core.fail("bad-launch", ("%s = %s; one to three integers of at least %d "
        .. "are needed%s"):format(what, core.show(out[i]), least,
        math.type(out[i]) == "float" and "\n  write a // b for an integer: a / "
        .. "b is a float" or ""))
    end
  end
  for i = 1, 3 do
    if out[i] > MOST[what][i] then
      core.fail("bad-launch", ("%s of %d along %s; the limit is "
        .. "%d"):format(what,
        out[i], ("xyz"):sub(i, i), MOST[what][i]))
    end
  end
  local all, most = 1.0 * out[1] * out[2] * out[3], ALL[what]
  if most and all > most[1] then
    core.fail("bad-launch", ("a %s of %.0f %s; the limit is %d")
      :format(what, all, most[2], most[1]))
  end
  return out
end

local extents = kernel.extents

--- Reports whether a grid from kernel.extents has no blocks. Launching it runs
-- nothing.
function kernel.empty(grid) return grid[1] * grid[2] * grid[3] == 0 end

--- Raises an error unless n is a valid number of launches.
---@param n integer
function kernel.times(n)
  if n < 0 or n > MOST.grid[1] then
    core.fail("bad-launch", ("%d launches; the number must be from 0 to "
      .. "%d"):format(n,
      MOST.grid[1]))
  end
end

--- Checks and returns the extents of a cluster, which must divide the grid's
-- extents. `grid` is nil if it is not known yet. Not every sm_90 GPU supports
-- clusters of more than 8 blocks; the driver decides.
---@param cluster? integer|integer[] 1 when absent
---@param grid? integer[]
---@return integer[]
function kernel.cluster(cluster, grid)
  cluster = extents("cluster", cluster or 1)
  for i = 1, grid and 3 or 0 do
    if grid[i] % cluster[i] ~= 0 then
      core.fail("bad-launch", ("a grid of %s blocks in clusters of %s: %d is "
        .. "not a multiple of %d along %s"):format(table.concat(grid, " x "),
        table.concat(cluster, " x "), grid[i], cluster[i], ("xyz"):sub(i, i)))
    end
  end
  return cluster
end

-- Types of the options of launch, compile and trace.
local LAUNCH = {
  grid = "integer table", block = "integer table", cluster = "integer table",
  pdl = "boolean", cooperative = "boolean", device = "string table",
  arch = "string", seed = "integer", threads = "integer", budget = "integer",
  faults = "string", progress = "function", output = "userdata table boolean",
  stream = "userdata table", fmad = "boolean", fastmath = "boolean",
  record = "boolean", strict = "boolean", fidelity = "boolean"}

kernel.OPTIONS = LAUNCH

local NUMERICS = {"fmad", "fastmath"}

-- Names of all launch options, separated by spaces. Fields with these names may
-- be absent from a prepared launch.
local OPTIONAL = ""
for name in pairs(LAUNCH) do OPTIONAL = OPTIONAL .. " " .. name end

-- Checks the value of an option beyond its type. If the value is not valid,
-- returns text that says which values are valid; else returns false or nil.
local function is_odd(name, value)
  if name == "faults" then
    return value ~= "return" and value ~= "raise"
      and '"raise" (the default) or "return"'
  elseif name == "stream" then
    return core.typename(value) ~= "stream" and not value.simulated
      and "a stream"
  elseif name == "output" then
    return value and not (io.type(value) == "file"
      or type(value) == "table" and value.write)
      and "a file, an object with a write method, or false"
  elseif name == "device" then
    return type(value) == "table" and getmetatable(value) ~= Device
      and "a name or the result of cute.device"
  end
end

--- Raises an error for an unknown option, or one with a wrong type.
---@param opts? table
---@param known? table<string, string> types of the allowed options; those of a
-- launch when absent
function kernel.check_options(opts, known)
  known = known or LAUNCH
  if opts ~= nil and type(opts) ~= "table" then
    core.fail("bad-argument", "launch options must be a table such as {grid = "
      .. "8, block = 128}, not " .. core.show(opts))
  end
  for name, value in pairs(opts or {}) do
    local types = known[name]
    if not types then sign.unknown("option", name, known) end
    local t = math.type(value) or type(value)
    if t == "integer" and value < 0 and name ~= "seed" and types == t then
      core.fail("bad-launch", ("%s of %d: 0 (the default) or more is needed")
        :format(name, value))
    elseif not MOST[name] and not types:find(t, 1, true)
    then
      core.fail("bad-launch", ("%s of %s: %s is needed")
        :format(name, core.show(value), name == "stream"
        and "a stream (the current one if the option is left out)"
        or types == "integer" and "an integer" or types == "integer float"
        and "a number" or "a " .. types:gsub(" ", " or ")))
    end
    local want = is_odd(name, value)
    if want then
      core.fail("bad-launch", ("%s of %s: %s is needed")
        :format(name, core.show(value), want))
    end
  end
end

local check_options = kernel.check_options

local Prepared = {__closed = true, __host = "prepared launch"}

function Prepared.__index(p, k)
  unused.launched(p)
  local program = rawget(p, "program")
  if program and not rawget(Prepared, k) and (MADE[k] or rawget(Program, k)
    or rawget(program, k) ~= nil) then return program[k] end
  return Prepared[k]
end

function Prepared.__tostring(p)
  unused.launched(p)
  return ("%s on %s"):format(tostring(p.program), tostring(p.device))
end

-- Raises an error if the kernel writes an argument whose memory another library
-- shares for reading only.
local function check_readonly(info, values)
  for i, v in ipairs(values) do
    local t = core.typename(v[1])
    if (t == "buffer" or t == "devbuf") and v[1].readonly
      and info.args[i].written
    then
      core.fail("bad-argument", ("kernel %s writes argument %d, whose memory "
        .. "another library shares for reading only\n  t:clone() is a copy "
        .. "that can be written"):format(info.name, v.argument or i))
    end
  end
end

--- Returns the table that describes a launch to core.sim_run.
---@param p table a prepared launch
---@param opts table
function kernel.sim_launch(p, opts, values, grid)
  devices.check_places(p.program.info.name, values, "host")
  check_readonly(p.program.info, values)
  if p.cooperative then
    require "cute.targets".check_resident(p, grid)
  end
  local resolve = rawget(p, "resolve")
  if resolve and resolve.before then resolve.before(p.cooperative) end
  return {
    grid = grid, block = p.block, pdl = p.pdl, args = values, sm = p.device.sm,
    cooperative = p.cooperative,
    seed = opts.seed or p.seed, threads = opts.threads or p.threads,
    budget = opts.budget or p.budget, record = opts.record or p.record,
    strict = opts.strict or p.strict,
    fidelity = opts.fidelity or p.fidelity,
    progress = opts.progress or p.progress or function() end}  -- for Ctrl-C
end

-- Returns a function that shows the progress of a run on a terminal, and an
-- object that ends the display when it is closed. Returns nil if no progress is
-- shown.
local function progress_of(p, opts)
  if opts.progress or p.progress or not core.isatty(2) then return end
  local progress = sign.workshop.progress
  if progress then return progress(p.program.info.name) end
end

local function run_sim(p, opts, values, grid)
  local launch = kernel.sim_launch(p, opts, values, grid)
  local found
  local show, _ <close> = progress_of(p, opts)
  launch.progress = show or launch.progress
  local observe = sign.workshop.relaunched
  local observed = observe and observe(p.program, values)
  if kernel.runner then found = kernel.runner.run(p.program, launch)
  else found = core.sim_run(p.program.fn, launch) end
  found.kernel, found.sm = p.program.info.name, p.device.sm
  found.file, found.line = core.script_line()
  local out = opts.output
  if out == nil then out = p.output end
  if found.output ~= "" and out ~= false then
    (out or io.stdout):write(found.output)
  end
  require "cute.lang.simreport".attach(found, p.program, values):tell_notes()
  if found.ok then unused.observed(found) end
  if observed then observed(found) end
  return found
end

-- Returns the result of a launch. If the launch failed, raises an error, or
-- with faults = "return" returns nil, the message and (on the simulator) the
-- report. Misuse raises an error in any case.
local function outcome(name, faults, ok, result, more)
  if ok then return result end
  local message = report.outcome(result)
  if not message then error(result, 0) end
  if not message:find("kernel " .. name, 1, true) then
    message = ("kernel %s: %s"):format(name, message)
  end
  if faults == "return" then unused.failure(message) end
  if faults == "return" and more then return nil, message, more end
  if faults == "return" then return nil, message end
  report.raise(message)
end

--- Reports whether a kernel may write the memory of its argument i. A store to
-- an address that the kernel computes may reach the memory of any argument.
---@param info table of a program
---@param i integer
---@return boolean
function kernel.may_write(info, i)
  local a = info.args[i]
  return a.written or info.addresses and a.pointer
end

--- Returns the arguments of a launch as the driver needs them, and the copies
-- of host tensors. A device tensor's buffer is passed directly. A host tensor's
-- buffer is copied to the device for the launch, and copied back afterwards if
-- the kernel writes that argument.
---@param name string the kernel's name
---@param device table
---@param values table[]
---@param written fun(i: integer): boolean
---@param place? fun(i: integer): table?, string? returns the device buffer into
-- which host argument i is copied, or nil and perhaps a message
function kernel.gpu_values(name, device, values, written, place)
  local dev = device.dev
  local args, copies, why = {}, {}, nil
  for i, v in ipairs(values) do
    local buffer, offset = v[1], v[2]
    args[i] = v
    if core.typename(buffer) == "buffer" then
      local copy = copies[buffer]
      if not copy then
        copy = {}
        local message
        if place then copy.buffer, message = place(i) end
        if not copy.buffer and not message then
          copy.buffer, message = dev:buffer(buffer.dtype, buffer.count)
        end
        why = why or message
        copies[buffer] = copy
      end
      copy.written = copy.written or written(i)
      args[i] = {copy.buffer, offset, tma = v.tma}
    end
  end
  if why then return nil, why end
  if next(copies) and dev:capturing() then
    core.fail("in-graph", ("kernel %s: tensors on the host are copied at each "
      .. "launch, which a graph cannot do\n  t:to \"%s\" copies a tensor to "
      .. "the device"):format(name, device.place))
  end
  return args, copies
end

-- Returns the program's kernel, loaded on GPU `dev`, or nil and a message. The
-- kernel is loaded once, and stays loaded until the program is collected or
-- the GPU's context is lost.
local function load_gpu(program, dev)
  if program.card then return program.card.load(dev) end
  local compiled, message = program:compile()
  if not compiled then return nil, message end
  compiled.loaded = compiled.loaded or {}
  local f = compiled.loaded[dev]
  if f and f:usable() then return f end
  f, message = dev:load(compiled.cubin, select(3, program:cuda()),
                        #program.info.args)
  compiled.loaded[dev] = f
  return f, message
end

local function gpu_values(p, values)
  local info = p.program.info
  check_readonly(info, values)
  devices.check_places(info.name, values, p.device.place)
  local f, message = load_gpu(p.program, p.device.dev)
  if not f then return nil, message end
  return kernel.gpu_values(info.name, p.device, values, function(i)
    return kernel.may_write(info, i) and not values[i][1].readonly
  end, p.program.card and function(i)
    return p.program.card.place(p.device.dev, i)
  end)
end

-- Makes the driver prepare a launch of p's kernel on p's GPU, with the
-- arguments `args` and a grid (p.grid when absent). Returns the prepared
-- launch, or nil and a message if the kernel cannot be loaded.
local function gpu_launch(p, args, grid)
  devices.check_stream(p.stream, p.device)
  local card = p.program.card
  local f, message = load_gpu(p.program, p.device.dev)
  if not f then return nil, message end
  if card then args = card.pack(args) end
  return f:prepare {args = args, grid = grid or p.grid or 1, block = p.block,
                    cluster = p.program.cluster, pdl = p.pdl,
                    cooperative = p.cooperative,
                    smem = card and card.smem or p.program.info.smem,
                    stream = p.stream}
end

-- Returns placeholders for the arguments of a launch that is prepared before
-- its arguments are known: zeros and null addresses of the right types.
local function no_values(program)
  local args = {}
  for i, a in ipairs(program.info.args) do
    args[i] = a.map and ("\0"):rep(128)
      or {a.pointer and core.u64 or a.dtype, 0}
  end
  return args
end

local function prepare_gpu(p)
  if p.program.card and not p.values then
    core.fail("bad-launch", ("kernel %s is PTX: pass its arguments to prepare "
      .. "a launch on a GPU"):format(p.program.info.name))
  elseif not p.values then
    local run, message = gpu_launch(p, no_values(p.program))
    if not run then return nil, message end
    p.launcher = not p.faults and core.launcher(run, p.kind, p.grid)
    return p
  end
  local args, copies = gpu_values(p, p.values)
  if not args then return nil, copies end
  local run, message = gpu_launch(p, args)
  if not run then return nil, message end
  p.run, p.copies = run, copies
  -- Without copies and without printf, p.launch only makes one call of the
  -- driver.
  if not next(copies) and not p.program.info.prints and not p.program.card then
    local launch, faults = run.launch, p.faults
    p.launcher = not faults and core.launcher(run, p.kind, true)
    p.launch = function(_, opts)
      if opts or faults then return Prepared.launch(p, opts) end
      return launch(run)
    end
    if not faults then
      p.launch_n = function(_, n) return run:launch_n(n) end
    end
  end
  return p
end

-- Stores a launch of the driver in the program. core.launch_known uses it to
-- launch the program again without running Lua.
local function keep_launch(p)
  local launches, device = p.program.launches, p.device
  if device.kind == "gpu" and not p.program.card and not next(p.copies) then
    launches[device] = gpu_launch(p, no_values(p.program))
  end
end

local function run_gpu(p, opts, values, grid)
  devices.check_stream(opts.stream, p.device)
  if kernel.empty(grid) then return true end
  local launch, copies = p.run, p.copies
  if values ~= p.values or grid ~= p.grid then
    local args, message
    args, copies = gpu_values(p, values)
    if not args then report.raise(copies) end
    launch, message = gpu_launch(p, args, grid)
    if not launch then report.raise(message) end
  end
  for buffer, copy in pairs(copies) do copy.buffer:upload(buffer) end
  history.launch(p, launch, opts.stream)
  for buffer, copy in pairs(copies) do
    if copy.written then copy.buffer:download(buffer) end
  end
  if p.program.info.prints and not p.device.dev:capturing() then
    -- After the synchronization, all output of the kernel has arrived.
    p.device.dev:sync()
  end
  return true
end

-- For each kind of device ("sim", "gpu"), the functions that prepare a launch
-- and run it.
local KINDS = {sim = {prepare = function(p) return p end, run = run_sim},
               gpu = {prepare = prepare_gpu, run = run_gpu}}

-- Returns, as text, the value of option k that the prepared launch p was
-- compiled for. Returns nil if a launch may have any value of this option.
local function compiled_for(p, k, v)
  local device = p.device
  if k == "fmad" or k == "fastmath" then return tostring(p.program.numerics[k])
  elseif k == "pdl" or k == "cooperative" then return tostring(p[k] or false)
  elseif k == "block" or k == "cluster" then
    return table.concat(p.program[k], " x ")
  elseif k == "arch" then return device.kind == "sim" and device.arch or nil
  elseif k == "device" and type(v) == "table" then
    return tostring(device)
  elseif k == "device" and v ~= "auto" then
    return device.place or v:find ":" and "sim:" .. device.arch
      or (v == "host" or v == "cpu") and v or "sim"
  end
end

-- Checks that the options of a launch agree with the options that it was
-- compiled with.
local function check_compiled(p, opts)
  for k, v in pairs(opts or {}) do
    local was = compiled_for(p, k, v)
    local text = (k == "block" or k == "cluster")
      and table.concat(extents(k, v), " x ") or tostring(v)
    if was and was ~= text then
      core.fail("bad-launch", ("%s = %s, but this launch was compiled with %s "
        .. "= %s")
        :format(k, text, k, was))
    end
  end
end

-- Raises an error if the options change the grid of a prepared launch whose
-- hidden arguments depend on the grid (see kernel.resolve).
local function check_grid(p, opts)
  local resolve = rawget(p, "resolve")
  if opts and opts.grid and resolve and resolve.options then
    core.fail("bad-launch", ("kernel %s has hidden arguments that depend on "
      .. "the grid of :compile; compile it again for another grid"):format(
      p.program.info.name))
  end
end

-- Returns the arguments with which the kernel is launched, for the arguments of
-- a call: the results of resolve.call (see kernel.resolve).
local function resolved(p, resolve, ...)
  local args = table.pack(resolve.call(...))
  if resolve.options then
    args.given = table.pack(...)
    resolve.options(args, nil, p.grid)
  end
  return table.unpack(args, 1, args.n)
end

local function run_now(p, opts, values, grid)
  local faults, name = opts.faults or p.faults, p.program.info.name
  local ok, result = pcall(KINDS[p.device.kind].run, p, opts, values, grid)
  if ok then history.note(p, result) end
  if not ok or result == true or result.ok then
    return outcome(name, faults, ok, result)
  end
  local _, fault = pcall(core.fail, "kernel-fault", result:details())
  return outcome(name, faults, false, fault, result)
end

-- Runs the prepared launch p. Its options have been checked. If `values` (the
-- arguments) or `grid` is nil, p's own are used.
local function run(p, opts, values, grid)
  core.outside()
  local name = p.program.info.name
  opts, values, grid = opts or {}, values or p.values, grid or p.grid
  if not values then
    core.fail("bad-launch", ("kernel %s was compiled for symbolic arguments: "
      .. "pass tensors to launch it, run(X, ...)"):format(name))
  elseif not grid then
    core.fail("bad-launch", ("kernel %s was compiled without a grid: pass one "
      .. "to launch it, run(X, ..., {grid = n})"):format(name))
  end
  kernel.cluster(p.program.cluster, grid)
  if p.device.kind == "sim" then
    local stream = opts.stream or p.stream
    devices.check_stream(stream, p.device)
    if stream and stream.closed then
      core.fail("closed", "the stream was closed")
    elseif core.capturing() then
      core.fail("in-graph", ("kernel %s runs on the simulator, but the graph "
        .. "is captured on a GPU: write cute.graph(f, {device = "
        .. "\"sim\"})"):format(name))
    elseif core.recorded(run_now, p, opts, values, grid) then
      return true
    end
  end
  return run_now(p, opts, values, grid)
end

--- Runs the prepared launch. On a GPU, returns true once the launch is queued.
-- If the kernel writes host tensors or prints output, first waits until these
-- have arrived. On the simulator, returns the report. Raises an error for a
-- fault of the kernel or an error of the driver. With faults = "return",
-- returns nil, a message and the simulator's report instead. (A launch that a
-- GPU has only queued may fail in a later statement, whose error names the
-- kernels that ran.) The kernel's output goes to the file `output`: standard
-- output when absent, nowhere when false.
---@param opts? {seed: integer, threads: integer, faults: string, output: any}
---@return table|true|nil result
---@return string? message
---@return table? report
function Prepared:launch(opts)
  check_options(opts)
  check_compiled(self, opts)
  check_grid(self, opts)
  return run(self, opts, nil, opts and opts.grid and extents("grid", opts.grid))
end

--- Launches n times in a row.
---@param n integer
---@return true
function Prepared:launch_n(n)
  kernel.times(n)
  for _ = 1, n do self:launch() end
  return true
end

local function is_options(x)
  return type(x) == "table" and getmetatable(x) == nil
    and (x.grid or x.block or x.device or x.arch) ~= nil
end

-- Launches p with other arguments, for launches that need more than one call of
-- the driver.
local function launch_with(p, ...)
  local n, opts = select("#", ...), nil
  local args = {...}
  local resolve = rawget(p, "resolve")
  local takes = resolve and resolve.takes or p.kind.arguments
  if n == takes + 1 and type(args[n]) == "table" then
    n, opts = n - 1, args[n]
  end
  check_options(opts)
  check_compiled(p, opts)
  check_grid(p, opts)
  if resolve then
    args = table.pack(resolved(p, resolve, table.unpack(args, 1, n)))
    n = args.n
  end
  local values = core.launch_fit(p.kind, table.unpack(args, 1, n))
  return run(p, opts, values, opts and opts.grid and extents("grid", opts.grid))
end

--- Runs the prepared launch with other arguments that have the same argument
-- key. Options may follow the arguments, as for launch.
function Prepared.__call(p, ...)
  local known = not rawget(p, "resolve") and rawget(p, "launcher")
  if known and known(p, ...) then return true end
  unused.launched(p)
  return launch_with(p, ...)
end

--- Releases the arguments of the prepared launch. Later launches have to pass
-- arguments.
---@return true
function Prepared:forget()
  self.values, self.copies, self.launch, self.launch_n = nil, nil, nil, nil
  if self.device.kind == "gpu" then
    self.run = assert(gpu_launch(self, no_values(self.program)))
    self.launcher = not self.faults and core.launcher(self.run, self.kind, true)
  end
  return true
end

--- Runs the prepared launch with other arguments and returns true if they have
-- the same argument key; else returns false.
---@param opts {seed: integer?, stream: any} options of this launch
---@return boolean
function Prepared:try(opts, ...)
  local resolve = rawget(self, "resolve")
  local known = not resolve and not opts.stream and rawget(self, "launcher")
  if known and known(self, ...) then return true end
  check_options(opts)
  local args = resolve and table.pack(pcall(resolved, self, resolve, ...))
    or {true, n = select("#", ...) + 1, ...}
  local fits, values = args[1], nil
  if fits then
    fits, values = pcall(core.launch_fit, self.kind,
                         table.unpack(args, 2, args.n))
  end
  if fits then run(self, opts, values) end
  return fits
end

local function prepare(program, kind, values, opts, device)
  local grid = (opts.grid or not kind.symbolic) and extents("grid", opts.grid)
  kernel.cluster(program.cluster, grid)
  if opts.pdl and not core.has(device.sm, "griddepcontrol") then
    core.fail("wrong-arch", ("pdl = true needs sm_90 or newer, but the target "
      .. "is %s"):format(device.arch))
  end
  local p = setmetatable({program = program, kind = kind, device = device,
                          values = values, block = program.block,
                          grid = grid or nil,
                          seed = opts.seed, threads = opts.threads,
                          faults = opts.faults, budget = opts.budget,
                          stream = opts.stream, progress = opts.progress,
                          output = opts.output, pdl = opts.pdl,
                          cooperative = opts.cooperative,
                          record = opts.record, fidelity = opts.fidelity,
                          strict = opts.strict}, Prepared)
  return KINDS[device.kind].prepare(p)
end

-- Returns a view of a program for one architecture: a copy of its fields with a
-- different `arch`. All views share the compiled forms.
local function view(program, arch)
  local p = program.views[arch]
  if p then return p end
  p = {}
  for k, v in next, program do p[k] = v end
  p.arch = arch
  program.views[arch] = p
  return setmetatable(p, Program)
end

--- Prepares, for another device, the launch that the table `launch` describes
-- (a launch on the simulator, see core.sim_run).
---@return table? prepared
---@return string? message
function kernel.elsewhere(program, launch, device)
  program = view(program, device.arch)
  program.fn:check_smem(device.sm)
  program.fn:check_arch(device.sm, device.arch)
  return prepare(program, program.kind, launch.args,
                 {grid = launch.grid, pdl = launch.pdl,
                  cooperative = launch.cooperative}, device)
end

---------------------------------------------------------------------------
-- Kernels and calls
---------------------------------------------------------------------------

local Kernel = {__closed = true, __host = "kernel"}

function Kernel.__index(k, key)
  if type(key) == "string" then return Kernel[key] end
  -- Returns nil to C functions such as ipairs and next, which may read any key.
  local reader = debug.getinfo(2, "S")
  if reader.what == "C" or core.own_source(reader.source) then return nil end
  local explain = sign.workshop.indexed_kernel
  core.fail("bad-argument", explain and explain(k, key)
    or ("kernel %s is not a list"):format(k.name))
end

function Kernel.__tostring(k) return "kernel " .. k.name end

-- The number of programs traced so far in this process.
local made = 0

local function new_program(k, args, kind, opts)
  function opts.missing(about_nil)
    local find = sign.workshop.missing_argument
    return find and find(k, args, about_nil)
  end
  opts.min_blocks = k.min_blocks
  opts.numbers, opts.in_table = kind.numbers, kind.in_table
  local locals
  if recorder() then locals, opts.record = recorder()() end
  local fn, read = require "cute.lang.trace".run(k.name, k.func, opts,
    table.unpack(args, 1, args.n))
  made = made + 1
  local program = setmetatable({
    fn = fn, kind = kind, read = read, info = fn:info(), texts = {},
    cubins = {}, launches = {}, block = opts.block, cluster = opts.cluster,
    views = {}, locals = locals, kernel = k, number = made, runs = {},
    card = k.card and k.card(),
    numerics = {fmad = opts.fmad, fastmath = opts.fastmath}}, Program)
  for _, text in ipairs(program.warnings) do
    io.stderr:write("cutelua: warning: kernel ", k.name, ": ", text, "\n")
  end
  local note = not program.warnings[1] and sign.workshop.note_traced
  if note then note(k, program) end
  return program
end

-- The largest number of programs kept for one argument key. A key can have
-- several programs, because the values that traces read may change from launch
-- to launch.
local MOST_PROGRAMS = 16

-- Packs the block, the cluster and the arithmetic options fmad and fastmath of
-- a launch into one number (see core/bind/launchlib.c).
local function launch_number(block, cluster, fmad, fastmath)
  return block[1] | block[2] << 11 | block[3] << 22
    | (fmad and 1 or 0) << 32 | (fastmath and 1 or 0) << 33
    | cluster[1] << 34 | cluster[2] << 39 | cluster[3] << 44
end

-- Returns a program of the kernel for these arguments, and the argument key.
-- Uses an existing program if the values that its trace read have not changed.
-- Otherwise traces a new one.
local function specialise(k, args, block, cluster, fmad, fastmath)
  local launch = launch_number(block, cluster, fmad, fastmath)
  local kind, hash, held, overlap = core.kind(args, launch)
  local program = core.find_program(k.programs, args, launch)
  if program and (program.locals or not recorder()) then
    return program, kind
  end
  local known = k.programs[hash] or {}
  k.programs[hash] = known
  program = new_program(k, args, kind, {block = block, cluster = cluster,
    overlap = overlap, fmad = fmad, fastmath = fastmath, held = held})
  known[MOST_PROGRAMS] = nil
  table.insert(known, 1, program)
  return program, kind
end

-- Returns the first of three values that is not nil.
local function either(a, b, c)
  if a ~= nil then return a end
  if b ~= nil then return b end
  return c
end

-- Returns the options fmad and fastmath of a launch. The kernel's options are
-- the defaults. fastmath implies fmad unless fmad = false.
local function numerics_of(k, opts)
  local fastmath = either(opts.fastmath, k.fastmath, false)
  return either(opts.fmad, k.fmad, fastmath), fastmath
end

local Call = {__closed = true, __host = "call of a kernel"}
Call.__index = Call
kernel.Call = Call

--- Returns the block of a launch, which is the kernel's own block if it has
-- one. Raises [bad-launch] if the launch names a different block.
---@param given? integer|integer[]
function Call:block(given)
  local own = self.kernel.block
  local block = extents("block", given or own)
  if own and given then
    for i, n in ipairs(extents("block", own)) do
      if n ~= block[i] then
        core.fail("bad-launch", ("kernel %s was created for a block of %s, not "
          .. "%s")
          :format(self.kernel.name, table.concat(extents("block", own), " x "),
          table.concat(block, " x ")))
      end
    end
  end
  return block
end

local function traced(call, opts)
  core.outside()
  unused.forget(call.kernel)
  check_options(opts)
  if opts.threads and not (opts.block or call.kernel.block) then
    core.fail("bad-launch", ("the block is missing: threads = %d is the number "
      .. "of the host's threads that simulate\n  write block = %d"):format(
      opts.threads, opts.threads))
  end
  return specialise(call.kernel, call, call:block(opts.block),
                    kernel.cluster(opts.cluster),
                    numerics_of(call.kernel, opts))
end

-- Returns the options of a launch. If the kernel has a function `options` (see
-- kernel.resolve), returns the result of this function.
local function completed(call, opts)
  local resolve = rawget(call.kernel, "resolve")
  if not (resolve and resolve.options) then return opts end
  check_options(opts)
  return resolve.options(call, opts)
end

--- Traces a kernel; no device is needed. Returns a program with .source, .ir
-- and .resources for `arch` (sm_90a when absent).
---@param opts table {block: integer|integer[], arch: string, fmad: boolean,
-- fastmath: boolean}
function Call:trace(opts)
  opts = completed(self, opts or {})
  return view((traced(self, opts)), opts.arch or devices.ARCH)
end

-- The implementation of Call:compile.
local function compiled(self, opts)
  opts = completed(self, opts or {})
  local program, kind = traced(self, opts)
  local values = not kind.symbolic and core.launch_values(self) or nil
  local device, why = devices.pick(values, opts,
                                   program.info.ptx and "sim" or "auto")
  if not device then return nil, why end
  program = view(program, device.arch)
  program.fn:check_smem(device.sm)
  program.fn:check_arch(device.sm, device.arch)
  local p, message = prepare(program, kind, values, opts, device)
  if not p then return nil, message end
  p.resolve = rawget(self.kernel, "resolve")
  return p
end

--- Prepares a launch: traces, compiles and packs everything that it needs.
---@param opts {grid: any, block: any, device: string}
function Call:compile(opts)
  local p, why = compiled(self, opts)
  if p and p.device.kind == "sim" then unused.prepared(p, self.kernel.name) end
  return p, why
end

local launch_anew = sign.guard("call:launch(opts?)", function(call, opts)
  local p, why = compiled(call, opts)
  if not p then
    return outcome(call.kernel.name, opts and opts.faults, false, why)
  end
  keep_launch(p)
  return run(p, opts)
end, Call)

--- Traces, compiles and runs: see Prepared:launch. A missing GPU or compiler
-- counts as a failed launch.
function Call.launch(call, ...)
  if core.launch_known(call, (...), Device, opened) then return true end
  local opts, block = ...
  local colon = getmetatable(call) == Call
  if colon and (block ~= nil or type(opts) == "number"
      or type(opts) == "table" and rawget(opts, 1) ~= nil)
    or type(call) == "table" and getmetatable(call) == nil
  then
    local explain = sign.workshop.odd_launch
    if explain then
      core.fail("bad-argument", explain(call, colon, opts, block))
    end
  end
  return launch_anew(call, ...)
end
core.name(Call.launch, "call:launch(opts?)")

Call.__call = unused.called

function Kernel:__call(...)
  local tracing, outer = core.tracing()
  if tracing then
    core.fail("inside-kernel", ("kernel '%s' was used inside kernel '%s'\n  "
      .. "call a plain Lua function instead"):format(self.name, outer))
  end
  local n = select("#", ...)
  if n > self.most then
    local explain = sign.workshop.number_of_arguments
    local last = select(n, ...)
    core.fail("bad-launch", explain
      and explain(self, n, is_options(last) and last)
      or ("kernel %s got %d arguments"):format(self.name, n))
  end
  local resolve = rawget(self, "resolve")
  local call = resolve and table.pack(resolve.call(...)) or {n = n, ...}
  call.kernel = self
  if resolve and resolve.options then call.given = table.pack(...) end
  if not rawget(self, "called") then
    unused.note(self)
    local crossed = sign.workshop.crossed
    if crossed then crossed(self, call) end
  end
  return setmetatable(call, Call)
end

local KERNEL = {block = true, min_blocks = true, fmad = true, fastmath = true}
kernel.OWN = KERNEL

local function check_kernel_options(name, opts)
  for k in pairs(opts or {}) do
    if not KERNEL[k] then sign.unknown("option", k, KERNEL) end
  end
  local n = opts and opts.min_blocks
  if n ~= nil and (math.type(n) ~= "integer" or n < 1 or n > 32) then
    core.fail("bad-argument", ("kernel %s: min_blocks = %s; an integer from 1 "
      .. "to 32 is needed")
      :format(name, tostring(n)))
  end
  for _, k in ipairs(NUMERICS) do
    local v = opts and opts[k]
    if v ~= nil and type(v) ~= "boolean" then
      core.fail("bad-argument", ("kernel %s: %s = %s; true or false is needed")
        :format(name, k, tostring(v)))
    end
  end
end

--- Gives a kernel a function `call` that replaces the kernel's arguments at
-- each call, for example to add hidden arguments.
---@param k table
---@param takes integer number of arguments that `call` takes
---@param call fun(...) returns the new arguments
---@param options? fun(call, opts, grid): table? returns the options of a launch
-- in place of `opts`, and may replace elements of the list of arguments `call`.
-- If it gets the grid of a prepared launch, its result is ignored.
---@param before? fun(cooperative: boolean?) prepares a launch on the simulator
function kernel.resolve(k, takes, call, options, before)
  rawset(k, "resolve", {takes = takes, call = call, options = options,
                        before = before})
end

-- Raises the error of cute.kernel for arguments without a name or a function.
local function not_a_kernel(name, opts, func)
  if type(name) ~= "string" then core.bad_argument(1, "string", name) end
  if func ~= nil or type(opts) == "table" and next(opts) ~= nil then
    core.bad_argument(3, "function", func)
  end
  core.bad_argument(2, "function", opts)
end

--- Makes a kernel of a Lua function. With fmad = true, a multiplication
-- followed by an addition becomes one FMA. fastmath = true implies fmad and
-- uses the hardware's approximations for f32.
---@param name string the kernel's name in CUDA C
---@param opts? table {block: any, min_blocks: integer, fmad: boolean,
-- fastmath: boolean}|fun(...)
---@param func? fun(...)
function kernel.kernel(name, opts, func)
  if type(name) == "function" then name, func = "kernel", name end
  if type(opts) == "function" then opts, func = {}, opts end
  if type(name) ~= "string" or type(func) ~= "function" then
    not_a_kernel(name, opts, func)
  end
  if not name:find "^[%a_][%w_]*$" then
    core.fail("bad-argument", ("cute.kernel: '%s' is not a C identifier")
      :format(name))
  end
  check_kernel_options(name, opts)
  source.names[func] = "kernel " .. name
  local u = debug.getinfo(func, "u")
  return setmetatable({name = name, func = func, programs = {},
                       takes = u.nparams,
                       most = u.isvararg and math.huge or u.nparams,
                       block = opts and opts.block,
                       fmad = opts and opts.fmad,
                       fastmath = opts and opts.fastmath,
                       min_blocks = opts and opts.min_blocks}, Kernel)
end

sign.strict("kernel", Kernel, "block min_blocks")

sign.class("call", Call, [[
  trace(opts?) compile(opts?) block(given?)
]])
sign.class("program", Program, [[
  cuda(arch?: string) compile(arch?: string, lines?: boolean)]],
  "arch grid device args run copies launch launch_n program " .. OPTIONAL)
sign.class("prepared", Prepared,
  "launch(opts?) launch_n(n: integer) try(opts: table, arguments...) "
  .. "forget()",
  "run copies program values " .. OPTIONAL)

--- Prepares a launch of a kernel with these arguments. If the last argument is
-- a plain table with a field grid, block, device or arch, it holds the launch's
-- options.
--
--     k = cute.kernel(function(x) x[0] = x[0] + 1 end)
--     x = cute.zeros({1}, cute.f32)
--     run = cute.compile(k, x, {grid = 1, block = 1, device = "sim"})
--     run:launch()
--     run:launch()
--     x(0)  --> 2.0
function kernel.compile(k, ...)
  local n = select("#", ...)
  local opts = n > 0 and select(n, ...)
  if not is_options(opts) then return k(...):compile {} end
  local args = {...}
  return k(table.unpack(args, 1, n - 1)):compile(opts)
end

return kernel
-- SPDX-License-Identifier: MIT
