--- Runs scripts in the workshop. A script runs on the simulator; the answer has
-- its pictures, its errors and the page of its kernels. The prompt continues
-- with the script's globals.
local core = require "cute.core"
local draw = require "cutelua.draw"
local globals = require "cutelua.workshop.globals"
local html = require "cutelua.draw.html"
local tokens = require "cutelua.text.tokens"
local npy = require "cutelua.text.npy"
local page = require "cutelua.page"
local repl = require "cutelua.program.repl"
local errors = require "cutelua.text.errors"
local report = require "cute.lang.report"
local script = require "cutelua.program.script"
local watch = require "cutelua.page.watch"

local has_sys, sys = pcall(require, "cute.sys")
local call = has_sys and sys.call or xpcall

local run = {}

local MOST_PICTURES = 64
-- The maximum length of a script's name. Lua truncates longer chunk names.
local LONGEST_NAME = 40
-- The maximum size of a script in bytes.
local LARGEST = 64 << 20
local NO_GPU = "the workshop has only the simulator: a page cannot reach a GPU"

--- The page of the last run (cutelua.page). It is nil if no kernel was
-- launched.
run.page = nil

-- The arrays that the page read from .npy files, in order: {name = the file's
-- name, global = the name of the global that holds the tensor}.
local arrays = {}

-- The prompt that continues after the last run, or nil if it is not created
-- yet.
local prompt

-- ---- runs ----

-- Returns a function for draw.screen. It appends pictures to the answer in the
-- form that the page's JavaScript needs.
local function screen(answer)
  return function(picture)
    if #answer.pictures == MOST_PICTURES then
      core.fail("limit", ("a run can show at most %d pictures")
        :format(MOST_PICTURES))
    end
    local data = html.data(picture)
    data.title = picture.title
    answer.pictures[#answer.pictures + 1] = data
  end
end

-- Returns an error message of Lua. Appends the memory limit of a page if the
-- message is about memory.
local function said(message)
  if message ~= "not enough memory" then return message end
  local most = has_sys and sys.memory
  return message .. (most and (": a page has %.3g GiB at most"):format(
    most / (1 << 30)) or "") .. " [out-of-memory]"
end

--- Calls f as a script. Launches run on the simulator and are observed, os.exit
-- ends the script, pictures are collected, and errors are returned in the
-- answer.
---@param f fun(): table? may return a failure (of errors.capture) to report
---@param seed? integer schedule seed of launches without a seed
---@return table answer {ok =, code =, seconds =, error =, page =, pictures =}
function run.call(f, seed)
  local answer = {pictures = {}}
  local shown = page.new(true)
  local w = watch.start(shown, nil, seed, NO_GPU)
  draw.screen = screen(answer)
  globals.keep()
  local changed
  local function capture(failure)
    changed = globals.mend()
    return errors.capture(failure, 1)
  end
  local start = core.clock()
  local ok, failure = call(f, capture)
  local more = globals.mend()
  changed = changed or more
  for name, v in pairs(changed) do run.prompt().env[name] = v end
  answer.seconds = core.clock() - start
  ok, draw.screen = ok and not failure, nil
  local left = type(failure) == "table" and failure.value == w.stop
  if not ok and not left then
    -- If memory is exhausted, the failure is a string, not a table.
    if type(failure) ~= "table" then
      failure = {message = said(tostring(failure)), frames = {}}
    end
    answer.error = errors.told(failure)
    w:finish(failure.message)
  else
    w:finish()
  end
  io.stdout:flush()
  answer.code = w.code or ok and 0 or 1
  answer.ok = answer.code == 0
  if #shown.kernels > 0 then
    run.page = shown
    answer.page = shown:plain()
    answer.page.left = w.left
  end
  return answer
end

-- ---- scripts ----

-- Returns a script's name for reports: without folders and control characters,
-- and truncated to LONGEST_NAME bytes.
local function name_of(text)
  local name = tostring(text or ""):gsub("%c", ""):match "[^/]*$"
  if name == "" then return "script.lua" end
  if #name > LONGEST_NAME then
    name = name:sub(1, utf8.offset(name, 0, LONGEST_NAME) - 1)
  end
  return name
end

local function words_of(request, name)
  local words = {[0] = name}
  for i, word in ipairs(request.words or {}) do words[i] = tostring(word) end
  return words
end

-- Creates a tensor for each array that was read from a file, as a global in
-- `env`. If the file of an array can no longer be read, removes the array from
-- the list and raises an error.
local function put_arrays(env)
  for i, one in ipairs(arrays) do
    local array, why = npy.read(one.name)
    if not array then
      table.remove(arrays, i)
      error(why, 0)
    end
    rawset(env, one.global, (npy.tensor(array)))
  end
end

local function new_prompt()
  local r = repl.new()
  r:preset()
  return r
end

local function check_text(text)
  if type(text) ~= "string" then
    core.fail("bad-argument", "the script's text is missing")
  elseif text:sub(1, 1) == "\27" then
    core.fail("bad-argument", "this is compiled Lua: the workshop runs source "
      .. "text")
  elseif #text > LARGEST then
    core.fail("limit", ("a script of %d bytes; the limit is 64 MiB")
      :format(#text))
  end
end

local function check_seed(seed)
  if seed ~= nil and (math.type(seed) ~= "integer" or seed < 0) then
    core.fail("bad-argument", ("seed = %s; an integer of at least 0 is needed")
      :format(core.show(seed)))
  end
end

--- Runs a script with fresh globals, which the prompt then uses.
---@param request table {name: string?, text: string, words: string[]?,
-- seed: integer?}
---@return table answer of run.call
function run.script(request)
  globals.restore()
  run.page, prompt = nil, nil
  -- Frees the tensors of the previous run.
  collectgarbage()
  local name = name_of(request.name)
  prompt = new_prompt()
  return run.call(function()
    check_text(request.text)
    check_seed(request.seed)
    local f = script.add(script.plain(request.text), "@" .. name, prompt.env)
    local words = words_of(request, name)
    rawset(_G, "arg", words)
    put_arrays(_G)
    f(table.unpack(words))
  end, request.seed)
end

--- Returns the line and the message of a syntax error in a script. Returns an
-- empty table if there is none.
---@param request {name: string?, text: string}
---@return table answer {line =, message =}, or empty
function run.syntax(request)
  local f, message = script.compile(script.plain(request.text),
                                    "@" .. name_of(request.name))
  if f then return {} end
  local parts = report.parse(message)
  return {line = parts.line, message = parts.sentence}
end

-- ---- the prompt ----

--- Returns the prompt that continues after the last run. Creates it if
-- necessary.
---@return table
function run.prompt()
  if not prompt then
    prompt = new_prompt()
    put_arrays(prompt.env)
  end
  return prompt
end

--- Lets the prompt read the variables in `env`. Assignments in the prompt do
-- not change `env`.
---@param env table
function run.behind(env)
  prompt = new_prompt()
  setmetatable(prompt.last, {__index = env})
end

--- Runs an input of the prompt with the globals of the last run.
---@param text string
---@return table answer of run.call, or {unfinished = true}
function run.input(text)
  local r = run.prompt()
  local asked = text:find("?", 1, true) and require "cutelua.doc".asked(text)
  if not asked and select(3, r:compile(text)) then
    return {ok = true, unfinished = true}
  end
  return run.call(function()
    local failure
    r.tell = function(_, f) failure = failure or f end
    r:eval(text)
    return failure
  end)
end

-- ---- arrays ----

local PRESET = {cute = true, _ = true, X = true, arg = true}

-- Returns the name of the global for a file's tensor: my_data for "my
-- data.npy", print_ for print.npy.
local function global_of(file)
  local name = file:match "[^/]*$":gsub("%.npy$", ""):gsub("[^%w_]+", "_")
    :gsub("^%d", "_%0")
  if name == "" or tokens.KEYWORDS[name] or PRESET[name]
    or globals.had(name) then
    name = name .. "_"
  end
  return name
end

--- Reads a .npy file. Its tensor becomes a global in all runs and in the
-- prompt.
---@param file string
---@return table answer {ok =, dtype =, shape =, global =}
function run.array(file)
  local array, why = npy.read(file)
  if not array then error(why, 0) end
  local ok, tensor = pcall(npy.tensor, array)
  if not ok then error(("%s: %s"):format(file, tensor), 0) end
  local global = global_of(file)
  for i = #arrays, 1, -1 do
    if arrays[i].global == global then table.remove(arrays, i) end
  end
  arrays[#arrays + 1] = {name = file, global = global}
  if prompt then prompt.env[global] = tensor end
  return {ok = true, dtype = array.dtype, shape = array.shape, global = global}
end

return run
-- SPDX-License-Identifier: MIT
