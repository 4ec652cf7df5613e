--- The workshop in a browser. It answers the JSON requests of the page, whose
-- scripts are in web/.
--
-- A request is {ask = NAME, ...}. An answer is a table of plain data. The
-- answer to a failed request is {ok = false, error = {message =, kind =, file
-- =, line =, hint =, text =}} (cutelua.text.errors.told). The requests and
-- their answers are:
--
--   run: {name =, text =, words =, seed =} -> {ok =, code =, seconds =,
--     error =, page =, pictures =}. page is the data of cutelua.page without
--     pictures and costs, and is present if a kernel was launched. page.left
--     is the number of launches left out. pictures are those of cute.draw.
--   prompt: {text =} -> as for run, or {unfinished = true}. The text runs
--     with the globals of the last run.
--   costs: {kernel = n} -> {kernel =}: the nth kernel of the last page, with
--     its estimate.
--   picture: {number = n} -> {picture =}: a picture of the last page.
--   timeline: {kernel = n} -> {picture =, text =} of cutelua.profile.timeline.
--   syntax: {name =, text =} -> {line =, message =} of a syntax error, or {}.
--   complete: {text = up to the cursor} -> {word =, list = {{text =, about =},
--     ...}, more = true if there are more candidates}.
--   about: {name =} -> {text =}.
--   hello: -> {version =, lua =}.
--   npy: {name = a file's name} -> {ok =, dtype =, shape =, global =}.
--   lesson, block, exercise: see cutelua.workshop.lessons.
local core = require "cute.core"
local json = require "cutelua.text.json"
local errors = require "cutelua.text.errors"
local run = require "cutelua.workshop.run"
local sign = require "cute.lang.signature"

local workshop = {}

-- ---- requests ----

local asks = {run = run.script, syntax = run.syntax}

-- Returns a field of a request. Raises an error if its type is wrong.
local function field(request, name, want)
  local v = request[name]
  if (math.type(v) or type(v)) ~= want then
    core.fail("bad-argument", ("%s: %s = %s: %s is needed"):format(request.ask,
      name, core.show(v), want == "integer" and "an integer" or "a " .. want))
  end
  return v
end

function asks.prompt(request)
  return run.input(field(request, "text", "string"))
end

-- Returns the page of the last run. Raises an error if there is none.
local function last_page()
  if not run.page then
    core.fail("bad-argument", "nothing was launched yet: run a script first")
  end
  return run.page
end

-- Returns `found`, the kernel or picture with the number request[name]. Raises
-- an error if `found` is nil, because the last page has no such kernel or
-- picture.
local function numbered(request, name, found)
  if found == nil then
    core.fail("bad-argument", ("%s: the last run has no %s %d"):format(
      request.ask, name == "number" and "picture" or name, request[name]))
  end
  return found
end

function asks.costs(request)
  local n = field(request, "kernel", "integer")
  local k = numbered(request, "kernel", last_page():costs(n))
  return {kernel = require "cutelua.page".plain(k)}
end

function asks.picture(request)
  local n = field(request, "number", "integer")
  return {picture = numbered(request, "number", last_page():picture(n))}
end

function asks.timeline(request)
  local n = field(request, "kernel", "integer")
  local t = numbered(request, "kernel", last_page():timeline(n))
  local draw, html = require "cutelua.draw", require "cutelua.draw.html"
  return {picture = html.data(draw.picture(t, {})), text = tostring(t)}
end

-- Returns the first sentence of the doc comment of a public name.
local function about(name)
  local item = require "cutelua.doc.names".find(name)
  local doc = item and item.doc
  return doc and require "cutelua.doc.comments".summary(doc) or nil
end

local MOST_FOUND = 200

function asks.complete(request)
  local text = field(request, "text", "string")
  local complete = require "cutelua.program.complete"
  local found, word, place = complete.find(text, run.prompt().env)
  local list = {}
  for i = 1, math.min(#found, MOST_FOUND) do list[i] = {text = found[i]} end
  local owner = place == "name"
    and text:sub(1, #text - #word):match "([%a_][%w_.]*[.:])$"
  for _, entry in ipairs(owner and list or {}) do
    entry.about = about(owner .. entry.text)
  end
  return {word = word, list = list, more = #found > MOST_FOUND or nil}
end

function asks.about(request)
  local name = field(request, "name", "string")
  local doc = require "cutelua.doc"
  local v, text = rawget(run.prompt().env, name), nil
  if v ~= nil and type(v) ~= "string" then text = doc.lookup(v) end
  if text then return {text = text} end
  local found, message = doc.lookup(name)
  return {text = found, message = message}
end

function asks.npy(request)
  return run.array(field(request, "name", "string"))
end

function asks.hello()
  local ok, sys = pcall(require, "cute.sys")
  -- Loads the modules of the prompt in advance, so that the first input is not
  -- delayed.
  run.prompt()
  return {version = ok and sys.version or nil, lua = _VERSION}
end

local LESSONS = {lesson = true, block = true, exercise = true}

-- ---- answers ----

local function answer(request)
  if type(request) ~= "table" then
    core.fail("bad-argument", "a request must be an object with a field `ask`")
  end
  local ask = asks[request.ask]
  if not ask and LESSONS[request.ask] then
    ask = require "cutelua.workshop.lessons"[request.ask]
  end
  if not ask then sign.unknown("ask", tostring(request.ask), asks) end
  return ask(request)
end

--- Answers a request. Errors are returned in the answer, not raised.
---@param request table
---@return table answer
function workshop.ask(request)
  local ok, found = xpcall(answer, errors.capture, request)
  if ok then return found end
  return {ok = false, error = errors.told(found)}
end

--- Answers a JSON request. Returns the answer as JSON.
---@param text string
---@return string
function workshop.answer(text)
  local request, message = json.decode(text)
  local found = message and {ok = false, error = {message = message,
    text = message}} or workshop.ask(request)
  return json.encode(found)
end

return workshop
-- SPDX-License-Identifier: MIT
