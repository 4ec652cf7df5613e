--- `cutelua --watch SCRIPT`: runs a script again whenever the script, or a
-- module that it required from a file, is saved. It prints the differences from
-- the previous run.
--
-- Each run is a separate process, so a crash ends only that run. Before the
-- process ends, it writes the names of its modules, and its launches, to a file
-- (watch.child).
local bytes = require "cute.lang.files"
local core = require "cute.core"
local diff = require "cutelua.program.diff"
local lines = require "cutelua.program.lines"
local literal = require "cutelua.text.literal"
local events = require "cutelua.program.events"
local history = require "cute.lang.history"
local reads = require "cutelua.mcp.reads"
local show = require "cutelua.program.show"
local sys = require "cute.sys"

local watch = {}

-- Seconds between two checks whether files were saved.
local PAUSE = 0.1
-- A file counts as saved if it did not change for this many seconds.
local SETTLED = 0.05
-- The largest number of bytes of a run's output that are kept for comparison.
local MOST_OUTPUT = 1 << 20
-- The largest number of changed lines that are shown of the output, and of the
-- CUDA C of each kernel.
local MOST_LINES = 12
-- The longest CUDA C of a kernel, in bytes, that is kept for comparison.
local MOST_CUDA = 1 << 18

---------------------------------------------------------------------------
-- In the child process
---------------------------------------------------------------------------

local function add_counters(kernel, last)
  kernel.launches = (kernel.launches or 0) + 1
  for name, v in pairs(last) do
    if type(v) == "number" then kernel[name] = (kernel[name] or 0) + v end
  end
end

local function registers(program)
  local _, made = next(program.cubins)
  return made and made.resources and made.resources.registers
end

-- Returns the CUDA C of a launched program; nil if it is too long or cannot be
-- emitted.
local function cuda_of(program)
  local ok, text = pcall(diff.cuda, program)
  return ok and #text <= MOST_CUDA and text or nil
end

local function write_report(path, files, kernels)
  local f <close> = io.open(path, "w")
  if not f then return end
  f:write "return {files = {"
  for _, name in ipairs(files) do f:write(("%q, "):format(name)) end
  f:write "}, kernels = {"
  for _, k in ipairs(kernels) do
    k.numbers.registers = registers(k.program)
    f:write(("{kernel = %q"):format(k.name))
    if k.cuda then f:write((", cuda = %q"):format(k.cuda)) end
    for name, v in pairs(k.numbers) do
      f:write((", %s = %q"):format(name, v))
    end
    f:write "}, "
  end
  f:write "}}\n"
end

--- Records the files that this process requires, and its launches by kernel,
-- and writes them to a file as a report.
---@param path string
function watch.child(path)
  local files, kernels, by_name = {}, {}, {}
  local function write() write_report(path, files, kernels) end
  reads.watch_modules(function(file)
    files[#files + 1] = file
    write()
  end)
  history.watcher = function(p, last)
    local name = p.program.info.name
    local k = by_name[name]
    if not k then
      k = {name = name, numbers = {}}
      by_name[name], kernels[#kernels + 1] = k, k
    end
    if k.program ~= p.program then
      k.program, k.cuda = p.program, cuda_of(p.program)
    end
    events.seconds(last)
    add_counters(k.numbers, last)
  end
  local exit = os.exit
  rawset(os, "exit", function(...)
    write()
    exit(...)
  end)
  watch.last_words = setmetatable({}, {__gc = write})
end

---------------------------------------------------------------------------
-- Files
---------------------------------------------------------------------------

local function stamps(files)
  local out = {}
  for _, file in ipairs(files) do out[file] = sys.stamp(file) or false end
  return out
end

local function same(now, before)
  for file, stamp in pairs(now) do
    if before[file] ~= stamp then return false end
  end
  return true
end

-- Reports whether files were saved since their stamps `before` were taken.
-- Waits until the files no longer change. While the script does not exist,
-- because an editor is replacing it, nothing counts as saved.
local function saved(files, before)
  local now = stamps(files)
  if same(now, before) or not now[files[1]] then return false end
  repeat
    local last = now
    sys.poll({}, SETTLED)
    now = stamps(files)
  until same(now, last)
  return now[files[1]] and not same(now, before)
end

---------------------------------------------------------------------------
-- Runs
---------------------------------------------------------------------------

local function read_report(path)
  local text = bytes.read(path, nil, "private")
  local report = text and literal.read(text)
  return type(report) == "table" and report or nil
end

local function say(text)
  if not (io.stdout:write(text) and io.stdout:flush()) then
    error("cannot write standard output [io]", 0)
  end
end

-- Runs the script once in a separate process. Returns {output, code, seconds,
-- report}, or nil if the run was stopped because a file was saved.
local function run(words, path, files, before)
  os.remove(path)
  local start = core.clock()
  local child <close> = assert(sys.spawn(words))
  child:finish()  -- gives the script an empty standard input
  local kept, size = {}, 0
  while true do
    if sys.poll({child}, PAUSE) then
      local text = child:receive()
      if not text then break end
      say(text)
      if size < MOST_OUTPUT then kept[#kept + 1] = text end
      size = size + #text
    elseif saved(files, before) then
      say "-- file saved: the run was stopped\n"
      return nil
    end
  end
  local how, code = child:wait()
  return {output = table.concat(kept), seconds = core.clock() - start,
          code = how == "signal" and 128 + code or code,
          report = read_report(path)}
end

local function kernels_of(r)
  local by_name = {}
  for _, k in ipairs(r.report and r.report.kernels or {}) do
    by_name[k.kernel] = k
  end
  return by_name
end

-- Adds lines about each kernel whose launches changed since the previous run.
local function kernel_lines(out, before, now)
  local old = kernels_of(before)
  for _, k in ipairs(now.report and now.report.kernels or {}) do
    local was = old[k.kernel]
    if not was then
      out[#out + 1] = "   kernel " .. k.kernel .. ": new"
    else
      local head = "   kernel " .. k.kernel
      if was.launches ~= k.launches then
        head = ("%s: %d -> %d launches"):format(head, was.launches, k.launches)
      end
      if k.registers and was.registers and k.registers ~= was.registers then
        head = ("%s, %d -> %d registers"):format(head, was.registers,
          k.registers)
      end
      if k.seconds and was.seconds then
        head = ("%s, ran for %s, before: %s"):format(head,
          show.seconds(k.seconds), show.seconds(was.seconds))
      end
      out[#out + 1] = head
      if k.cuda and was.cuda then
        out[#out + 1] = lines.changes(was.cuda, k.cuda, "     ", MOST_LINES)
      end
      for _, line in ipairs(diff.counters(was, k)) do
        out[#out + 1] = "   " .. line
      end
    end
    old[k.kernel] = nil
  end
  for name in pairs(old) do
    out[#out + 1] = "   kernel " .. name .. ": no longer launched"
  end
end

-- Returns a summary of a run, with its differences from the last successful
-- run.
local function summary(script, n, now, before)
  local head = ("-- run %d of %s: %s"):format(n, core.visible(script),
    show.seconds(now.seconds))
  if before then head = head .. ", before: " .. show.seconds(before.seconds) end
  if now.code ~= 0 then head = head .. ("; exit code %d"):format(now.code) end
  local out = {head}
  if before and now.code == 0 then
    out[2] = lines.changes(before.output, now.output, "   ", MOST_LINES)
      or "   the same output"
    kernel_lines(out, before, now)
  end
  return core.visible(table.concat(out, "\n"), true) .. "\n"
end

-- Returns the files to watch after a run, the script first. If the run wrote no
-- report, these are the files known before.
local function files_of(script, result, known)
  if not (result and result.report) then return known end
  local list, seen = {script}, {[script] = true}
  for _, file in ipairs(result.report.files) do
    if not seen[file] then list[#list + 1], seen[file] = file, true end
  end
  return list
end

local function forever(words, script, path)
  local files, before, n = {script}, nil, 0
  while true do
    local known = stamps(files)
    local result = run(words, path, files, known)
    files = files_of(script, result, files)
    if result then
      n = n + 1
      say(summary(script, n, result, before))
      if result.code == 0 then before = result end
      -- Files that this run was the first to require get their stamps only now.
      for _, file in ipairs(files) do
        if known[file] == nil then known[file] = sys.stamp(file) or false end
      end
      while not saved(files, known) do
        sys.heard()
        sys.poll({}, PAUSE)
      end
    end
  end
end

--- Runs a script at every save until Ctrl-C; returns an exit code.
---@param options string[] the program's options for each run
---@param words string[] the script and its arguments
---@return integer
function watch.main(options, words)
  local path = os.tmpname()
  local all = {sys.program(), "-e",
               ("require 'cutelua.program.watch'.child(%q)"):format(path)}
  table.move(options, 1, #options, #all + 1, all)
  table.move(words, 1, #words, #all + 1, all)
  local ok, why = sys.call(forever, function(e) return e end, all, words[1],
                           path)
  os.remove(path)
  if ok then return 0 end
  local interrupted = tostring(why):find "interrupted$"
  if not interrupted then
    require "cute.lang.report".tell("cutelua: " .. tostring(why))
  end
  return interrupted and 130 or 1
end

return watch
-- SPDX-License-Identifier: MIT
