--- Runs the scripts of spec/faults/KIND/, each of which has a fault. Comments
-- at the head of a script give its command and its report; comments in its
-- text give the repair:
--  -- run: WORDS     `cutelua WORDS FILE`; without this line `cutelua FILE`
--  -- run: notes     `cutelua FILE`, whose notes are the report
--  -- needs: WHAT    what a machine must have (faults.NEEDS)
--  -- expect: TEXT   a line of the report; `--   TEXT` continues it; `…` is
--                    any text; `ok` means no report
--  CODE  -- wrong    a line that the repaired script lacks
--  -- mend: CODE     a line that the repaired script adds
-- A script runs unchanged, in the process of the spec.
local check = require "cutelua.check"
local core = require "cute.core"
local cute = require "cute"
local kernel = require "cute.lang.kernel"
local errors = require "cutelua.text.errors"
local simreport = require "cute.lang.simreport"
local texts = require "cutelua.text.faults"
local source = require "cute.lang.source"
local support = require "spec.support"

local faults = {}

local SEEDS = 4  -- schedules (seeds) under which a repaired script runs
-- options of `cutelua check` for a repaired script
local BOUNDS = {gpu = false, orders = 200, seconds = 10}

--- Requirements of scripts (-- needs:), and whether this machine meets them. A
-- script with another requirement never runs.
faults.NEEDS = {
  NVRTC = cute.jit.version() ~= nil,
}

-- Returns the lines that a script's head expects.
local function expected(text)
  local list, open = {}, false
  for line in text:gmatch "[^\n]+" do
    local first, more = line:match "^%-%- expect: (.*)$",
      open and line:match "^%-%-   +(.*)$"
    if not line:find "^%-%-" then break end
    if more then list[#list] = list[#list] .. " " .. more
    else list[#list + 1] = first end
    open = (first or more) and true
  end
  return list
end

--- Returns a script's text without its marks, either faulty or repaired.
---@param text string
---@param mend boolean
---@return string text
---@return integer count of lines that differ
function faults.version(text, mend)
  local out, n = {}, 0
  for line in text:gmatch "([^\n]*)\n" do
    local wrong, added = line:match "^(.-)  %-%- wrong$",
      line:match "^%s*%-%- mend: " and line:gsub("%-%- mend: ", "", 1)
    if wrong or added then n = n + 1 end
    if mend then line = added or not wrong and line
    else line = wrong or not added and line end
    if line then out[#out + 1] = line .. "\n" end
  end
  return table.concat(out), n
end

--- Reads the script of a fault.
---@param path string
---@return {path: string, text: string, mended: string?, run: string,
-- needs: string?, expect: string[]}
function faults.read(path)
  local text = assert(support.read(path), path)
  local mended, n = faults.version(text, true)
  local f = {path = path, text = text, mended = n > 0 and mended or nil,
             expect = expected(text),
             run = text:match "^%-%- run: ([^\n]*)"
               or text:match "\n%-%- run: ([^\n]*)" or "",
             needs = text:match "\n%-%- needs: ([^\n]*)"}
  assert(f.expect[1], path .. " expects nothing")
  return f
end

--- Returns the scripts of all kinds, or of one kind, sorted by path.
---@param kind? string
---@return table[]
function faults.list(kind)
  local list = {}
  local p <close> = io.popen(("ls spec/faults/%s/*.lua"):format(kind or "*"))
  for path in p:lines() do list[#list + 1] = faults.read(path) end
  return list
end

faults.STOP = {}  -- a value that is thrown to stop a script at its first fault

-- Runs a text as if it were the script. Returns nil, or the program's message
-- for the script's error. (The error faults.STOP is ignored.)
function faults.execute(path, text)
  local chunk, env = "@" .. path, {arg = {[0] = path}}
  source.add(chunk, text)
  local script = assert(load(text, chunk, "t",
                             setmetatable(env, {__index = _G})))
  local ok, failure = xpcall(script, errors.capture)
  local said = not ok and failure.value ~= faults.STOP
    and errors.format(failure, {prefix = "cutelua: "}) or nil
  source.add(chunk, nil)
  return said
end

-- Runs a launch on the simulator. Drops the notes that the program does not
-- print.
local function quiet(program, launch)
  local found = core.sim_run(program.fn, launch)
  simreport.attach(found, program)
  for _, note in ipairs(found:notes()) do
    texts.new_note(program.info.name, note)
  end
  return found
end

-- Runs a text with a seed, or if `seed` is nil, with the seed that the text
-- itself sets. Returns the program's output, and whether a launch reached the
-- simulator. For runs without faults, the output has the notes on behaviour
-- that PTX does not guarantee or, if `all` is set, all notes.
local function plain(path, text, seed, all)
  local said, launched = {}, false
  local before = kernel.runner
  kernel.runner = {run = function(program, launch)
    launched, launch.seed = true, seed or launch.seed
    local found = quiet(program, launch)
    for _, r in ipairs(found.ok and not all and found.relies or {}) do
      said[#said + 1] = "note: " .. texts.reliance(r)
    end
    for _, note in ipairs(all and found:notes() or {}) do
      said[#said + 1] = "note: " .. note
    end
    return found
  end}
  local why = faults.execute(path, text)
  said[#said + 1] = why
  kernel.runner = before
  return table.concat(said, "\n"), launched
end

-- Returns what `cutelua check` prints for a text.
local function checked(path, text, opt)
  local said, before = {}, kernel.runner
  kernel.runner = {run = function(program, launch)
    local v = check.launch(program, launch, opt)
    said[#said + 1] = tostring(v)
    if v.verdict == "bug" then error(faults.STOP, 0) end
    return quiet(program, launch)
  end}
  local why = faults.execute(path, text)
  said[#said + 1] = why
  kernel.runner = before
  return table.concat(said, "\n")
end

-- Parses the options of a check: --orders 200 --no-gpu --surgeon.
local function options(words)
  local opt = {gpu = false}
  for name, value in words:gmatch "%-%-(%l+) ?(%d*)" do
    if name ~= "no" then opt[name] = tonumber(value) or true end
  end
  return opt
end

--- Returns what the program prints for a script.
---@param f table
---@return string
function faults.report(f)
  if f.run == "" or f.run == "notes" then
    return (plain(f.path, f.text, nil, f.run == "notes"))
  end
  local words = f.run:match "^check(.*)"
  assert(words, f.path .. ": run: " .. f.run)
  return checked(f.path, f.text, options(words))
end

-- Reports whether a script must expect this line of a report, if it occurs.
local function counts(line)
  return line:find " %[[%l-]+%]$" or line:find "^note: "
    or line:find "^check: kernel " or line:find "^fixed by "
end

local function fits(want, line)
  if not want then return false end
  local pattern = want:gsub("%p", "%%%0"):gsub("…", ".-")
  return line:find("^" .. pattern .. "$") ~= nil
end

--- Compares a report with a script's expected lines. They must occur in this
-- order, and every line with a kind, a verdict, a note or a repair must be
-- expected.
---@param f table
---@param text string
---@return string? difference
function faults.differs(f, text)
  local want = f.expect[1] == "ok" and {} or f.expect
  local i, surplus = 1, nil
  for line in text:gmatch "[^\n]+" do
    line = line:gsub("%s+", " "):match "^ ?(.-) ?$"
    if fits(want[i], line) then i = i + 1
    elseif counts(line) then surplus = surplus or line end
  end
  if not surplus and not want[i] then return nil end
  return ("%s: expected\n    %s\ngot\n%s"):format(f.path,
    want[i] or "nothing behind the lines expected", text)
end

-- set of repaired texts that already passed; several scripts can have the same
-- repaired text, which then runs only once
local silent = {}

--- Runs a repaired script under several schedules, and then checks it with
-- `cutelua check`. Returns nil, or the text of a report.
---@param f table
---@return string?
function faults.mended(f)
  local body = f.mended:match "\n([^%-].*)$"  -- text after the head
  if silent[body] then return nil end
  local launched
  for seed = 1, SEEDS do
    local text
    text, launched = plain(f.path, f.mended, seed, f.run == "notes")
    if text ~= "" then return text end
    if not launched then break end
  end
  if launched then
    local text = checked(f.path, f.mended, BOUNDS)
    for _, sign in ipairs {": bug\n", "\n  note: ", "cutelua: "} do
      if text:find(sign, 1, true) then return text end
    end
  end
  silent[body] = true
end

return faults
-- SPDX-License-Identifier: MIT
