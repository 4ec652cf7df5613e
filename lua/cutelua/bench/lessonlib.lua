--- Functions that all lessons share: exiting with a message, tables, progress,
-- .npy operands, and reports of the simulator and the compiler.
local core = require "cute.core"
local cute = require "cute"
local cli = require "cutelua.program.cli"
local devices = require "cute.lang.devices"
local source = require "cute.lang.source"

local lib = {}

---------------------------------------------------------------------------
-- Printing and exiting
---------------------------------------------------------------------------

--- The `cutelua check` session that runs this script; nil without a session.
lib.session = nil
--- True if the session tries an edit of the script. A trial needs only the
-- verdict, so the description of wrong elements is omitted.
lib.brief = false

-- Ends the script with exit code 1; under `cutelua check`, calls session:fail()
-- instead.
local function leave()
  if lib.session then lib.session:fail() end
  os.exit(1, true)
end

--- Ends the script with one sentence and exit code 1.
---@param job {name: string}
---@param message string
function lib.stop(job, message)
  if lib.session then core.fail("bad-launch", message) end
  require "cute.lang.report".tell(job.name .. ": " .. message)
  leave()
end

--- Returns value. If it is nil or false, ends the script with the message.
function lib.must(job, value, message)
  if value == nil or value == false then lib.stop(job, message) end
  return value
end

function lib.say(...)
  io.stdout:write(string.format(...), "\n")
end

--- Returns the sizes of a run: `list`. If a session of `cutelua check` asks for
-- them, returns other sizes around the first one, such as sizes that are no
-- multiples of a tile.
---@param list integer[][]
---@param tile? integer[]
---@return integer[][]
function lib.sizes(list, tile)
  if not lib.session then return list end
  return lib.session:sizes(list, tile)
end

--- Calls f, which runs one size. A session of `cutelua check` may continue with
-- other sizes if f fails.
---@param size integer[]
---@param f fun()
function lib.attempt(size, f)
  if lib.session then lib.session:attempt(size, f) else f() end
end

--- Passes the verdict on results to the session of `cutelua check`, if there is
-- one.
---@param p? table a problem, passed to `compared`
---@param ok boolean
---@param how? string how the results were compared; may be nil if ok is false
---@param wrong? string describes a wrong element
---@param compared fun(p?: table): table[] returns comparisons, as in
-- cutelua.check.compare
function lib.verified(p, ok, how, wrong, compared)
  if not lib.session then return end
  lib.session:verified {ok = ok, how = how, wrong = wrong,
                        compared = (ok or lib.brief) and {} or compared(p)}
end

--- Returns the simulator's report of a prepared launch, even if the launch has
-- a fault.
function lib.report(run)
  local ok, message, report = run:launch {faults = "return"}
  if not (ok or report) then require "cute.lang.report".raise(message) end
  return ok or report
end

--- Prints rows of cells as an aligned table, whose head is the first row.
-- Numbers are right-aligned; words are left-aligned.
---@param rows any[][]
---@param indent? string
function lib.print_table(rows, indent)
  local width = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      width[i] = math.max(width[i] or 0, utf8.len(core.visible(cell)))
    end
  end
  for _, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      local text = core.visible(cell)
      local pad = (" "):rep(width[i] - utf8.len(text))
      local left = text:find "^[%a_/(]" and i < 3
      cells[i] = left and text .. pad or pad .. text
    end
    lib.say("%s%s", indent or "", (table.concat(cells, "  "):gsub("%s+$", "")))
  end
end

--- Returns a function that takes the finished fraction (0 to 1) and shows it in
-- one line of a terminal; nil if there is no terminal.
function lib.progress_line(label)
  if not core.isatty(2) then return nil end
  return function(done)
    if done >= 1 then
      io.stderr:write("\r\27[K")
    else
      io.stderr:write(("\r\27[K%s %3d %%"):format(label, done * 100 // 1))
    end
    io.stderr:flush()
    return true
  end
end

--- Returns the bytes of memory available on this computer; math.huge if
-- unknown.
function lib.host_memory()
  local f <close> = io.open "/proc/meminfo"
  local kib = f and f:read "a":match "MemAvailable:%s*(%d+)"
  return kib and kib * 1024.0 or math.huge
end

--- Returns the script's name, from its command-line arguments.
function lib.script_name(words, default)
  return (source.short(words[0] or default):gsub("%.lua$", ""))
end

--- Returns the folder of the running script, with its slash.
function lib.folder() return (arg[0] or ""):match "^(.*/)[^/]*$" or "./" end

--- Returns the spec that a script passes to require(module)[method](arg, spec).
-- Runs the script, but the call only stores the spec.
---@param path string path of the script
---@param module string for example "cutelua.bench.lesson"
---@param method string for example "gemm"
---@param text? string source text to use instead of the file's
---@return table? spec or nil, message
function lib.script_spec(path, module, method, text)
  local chunk, message
  if text then chunk, message = load(text, "@" .. path)
  else chunk, message = loadfile(path) end
  if not chunk then return nil, message end
  local own, kept, spec = arg, require(module), nil
  package.loaded[module] = setmetatable({
    [method] = function(_, s) spec = s end}, {__index = kept})
  rawset(_G, "arg", {[0] = path})
  local ok, raised = pcall(chunk)
  rawset(_G, "arg", own)
  package.loaded[module] = kept
  if not ok then return nil, raised end
  return spec
end

---------------------------------------------------------------------------
-- Operands from files
---------------------------------------------------------------------------

--- Reads a matrix from an .npy file with cute.npy.
function lib.read_matrix(job, path)
  local array = lib.must(job, require "cutelua.text.npy".read(path,
    {dtype = {"f16", "f32", "f64"}, shape = {-1, -1}}))
  local rows, cols = table.unpack(array.shape)
  lib.must(job, rows * cols > 0, ("%s has no elements: its shape is (%d,%d) "
    .. "[io]"):format(core.visible(path), rows, cols))
  return array
end

--- Returns the elements of an .npy array as a row-major buffer of `dtype`.
function lib.npy_buffer(array, dtype)
  local b = core.buffer_from(array.dtype, array.bytes)
  if array.fortran and #array.shape == 2 then
    b = b:transpose(array.shape[2], array.shape[1])
  end
  return b:to(dtype)
end

--- Writes a buffer of (rows, cols), row-major, to --out as f32.
function lib.write_out(job, buffer, rows, cols)
  if not job.opt.out then return end
  lib.must(job, require "cutelua.text.npy".write(job.opt.out, {dtype = "f32",
    shape = {rows, cols}, bytes = buffer:to("f32"):bytes()}))
  lib.say("wrote       %s", core.visible(job.opt.out))
end

---------------------------------------------------------------------------
-- Counters of the simulator, compiler output
---------------------------------------------------------------------------

--- Returns memory traffic by source line, as rows for print_table. A request is
-- one access of one warp.
function lib.traffic_table(report)
  local rows = {{"line", "access", "requests", "bytes", "passes", "conflicts",
                 "sectors", "per request"}}
  for _, l in ipairs(report.lines) do
    local shared, global = l.wavefronts > 0, l.requests > 0
    rows[#rows + 1] = {
      source.short(l.file) .. ":" .. l.line, l.op, l.count, l.bytes,
      shared and l.wavefronts or "-", shared and l.conflicts or "-",
      global and l.sectors or "-",
      global and ("%.1f"):format(l.sectors / l.requests) or "-"}
  end
  return rows
end

--- Prints the memory traffic of a run; with --conflicts also the bank
-- conflicts, and a layout without them.
function lib.print_traffic(job, report)
  lib.print_table(lib.traffic_table(report), "  ")
  if not job.opt.conflicts then return end
  for _, c in ipairs(report:conflicts()) do lib.say("%s", tostring(c)) end
  lib.say("%s", tostring(report:find_swizzle()))
end

--- Prints the figures and the faults of a simulator run. Returns true if there
-- are no faults.
---@param report table
---@param traced? number seconds
function lib.say_simulated(report, traced)
  local how = traced and (" (trace %.1f ms)"):format(traced * 1e3) or ""
  lib.say("simulated   %.2f s%s, %d instructions of warps, %s", report.seconds,
    how, report.instructions,
    report.ok and "nothing to report"
      or require "cute.lang.report".plural(select(2, report:followers()),
        "fault") .. ":")
  if not report.ok then lib.say("%s", tostring(report)) end
  return report.ok
end

--- Prints performance losses that the compiler reported for a kernel, such as
-- spills. Returns true if there are none.
function lib.check_compiled(out)
  for _, text in ipairs(out.losses) do lib.say("SLOW        %s", text) end
  return #out.losses == 0
end

--- Prints registers and spills of a program for each of `archs`. Returns false
-- if the compiler reported performance losses. Under `cutelua check` it prints
-- nothing and returns true.
function lib.print_resources(program, archs)
  local ok = true
  if lib.session then return ok end
  for _, arch in ipairs(archs) do
    local can, out, why = pcall(program.compile, program, arch)
    if not can and not out:find("[wrong-arch]", 1, true) then error(out, 0) end
    if can and not out then
      if why:find("[no-nvrtc]", 1, true) then
        lib.say("registers   unknown: NVRTC was not found")
      else
        lib.say("%-11s %s", arch, why)
      end
      return ok
    elseif can then
      local r = out.resources
      lib.say("%-11s %d registers, %d bytes spilled", arch, r.registers or 0,
        (r.spill_stores or 0) + (r.spill_loads or 0))
      ok = lib.check_compiled(out) and ok
    end
  end
  return ok
end

--- Returns the number of tiles that cover an (m,n) matrix: one block computes
-- each.
function lib.tiles(tile, m, n)
  local bm, bn = tile[1], tile[2]
  return ((m + bm - 1) // bm) * ((n + bn - 1) // bn)
end

--- Writes the code of a kernel, traced for a call, to the output file. The
-- option --emit selects the form: "ir", "cu", "ptx", "sass" or "cubin".
function lib.emit(job, call, block, cluster)
  local kind = job.opt.emit
  local arch = job.opt.arch or job.arch or "sm_90a"
  local program = call:trace {block = block, cluster = cluster, arch = arch}
  local text
  if kind == "ir" then
    text = core.visible(program.ir, true)
  elseif kind == "cu" then
    text = core.visible(program:cuda(arch), true)
  elseif kind == "sass" then
    text = lib.must(job, require "cutelua.text.asm".sass_text(program, arch))
  else
    text = lib.must(job, program:compile(arch))[kind]
  end
  lib.must(job, cli.output(job.opt.output, text))
end

--- Returns the spread of a measurement: from its minimum to its maximum,
-- relative to the median.
function lib.spread(stat)
  return ("%.1f %%"):format(100 * (stat.max - stat.min) / stat.median)
end

--- Returns the speedup of result r over result `before`, by hot times: "+9.8
-- %".
function lib.gain(before, r)
  return ("%+.1f %%"):format(100 * (before.hot.median / r.hot.median - 1))
end

--- Writes the file that the option --record names: the device, and a line of
-- cells for each result, as tools/ladders.lua reads them.
---@param job table opt.record
---@param about string
---@param rows any[][]
function lib.record(job, about, rows)
  if not job.opt.record then return end
  local lines = {"# " .. about}
  for i, row in ipairs(rows) do lines[i + 1] = table.concat(row, "\t") end
  lib.must(job, cli.output(job.opt.record, table.concat(lines, "\n") .. "\n"))
end

-- Returns the device that the options name. Without a name, a script for a
-- specific target, such as sm_120a, runs on a GPU of that target. If there is
-- no such GPU, it runs on the simulator of that target.
local function device_for(job)
  local opt, own = job.opt, job.arch
  local auto = opt.device == nil or opt.device == "auto"
  if not own or opt.arch or not auto and opt.device ~= "sim" then
    return cute.device(not auto and opt.device or nil, opt.arch)
  end
  local device = cute.device(not auto and opt.device or nil)
  if device and device.kind == "gpu"
    and device.sm // 10 == devices.sm(own) // 10 then
    return device
  end
  return cute.device("sim", own)
end

--- Runs a script with its options: prints the form that --emit names, or runs
-- the kernels on the chosen device. Exits with code 1 on failure.
---@param job table name, opt; arch: a script's own target, or nil
---@param by table emit(job); gpu(job, device) and sim(job, device) -> ok
function lib.run(job, by)
  local opt = job.opt
  local target = opt.device and opt.device:match ":(.*)$"
  lib.must(job, not target or (opt.arch or target) == target,
           ("--device %s and --arch %s are two targets: write one"):format(
             opt.device, opt.arch))
  opt.arch = target or opt.arch
  if opt.emit then
    by.emit(job)
    return
  end
  local device, why = device_for(job)
  lib.must(job, device, why)
  if opt.out then lib.must(job, cli.writable(opt.out)) end
  if not by[device.kind](job, device) then leave() end
end

return lib
-- SPDX-License-Identifier: MIT
