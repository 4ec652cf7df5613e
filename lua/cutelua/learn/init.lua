--- `cutelua learn`: the tutorial. A lesson is a page of text with Lua code that
-- runs, pictures, and exercises that are checked. Each lesson is a file in
-- lessons/. The terminal (main.lua), the documents (`make docs`) and the specs
-- read lessons through this module.
--
-- A lesson's text has three kinds of code blocks. ```lua is run; `EXPR -->
-- TEXT` shows the value of EXPR. ```draw is an expression whose value is drawn.
-- ```exercise NAME is the learner's initial text for an exercise.
--
-- `exercises[NAME]` has the fields `hints`, `solution`, `makes` and `check`.
-- `makes` is the global that an answer must define. `check(env)` takes the
-- learner's globals. If something is wrong, it raises an error, or returns nil
-- and a sentence.
local core = require "cute.core"
local cute = require "cute"
local errors = require "cutelua.text.errors"
local literal = require "cutelua.text.literal"
local script = require "cutelua.program.script"
local sign = require "cute.lang.signature"
local source = require "cute.lang.source"

local learn = {}

--- Names of the lessons, in order.
learn.names = {"layouts", "algebra", "tensors", "copies", "swizzles",
  "tensorcores", "pipelines", "hopper", "epilogues", "bugs"}

--- Returns a lesson by its name or number; nil and a message if there is none.
---@param name string|integer
---@return table? lesson, string? message
function learn.lesson(name)
  local number = literal.whole(tostring(name))
  local known = number and learn.names[number]
  for i, n in ipairs(learn.names) do
    if n == name then known, number = n, i end
  end
  if not known then
    local near = sign.nearest(tostring(name), learn.names)
    return nil, ("no lesson '%s'%s"):format(name, near
      and (" (did you mean %s?)"):format(near) or "; there are "
      .. table.concat(learn.names, ", "))
  end
  local lesson = require("cutelua.learn.lessons." .. known)
  lesson.name, lesson.number = known, number
  return lesson
end

--- Returns the blocks of a lesson: {kind = "text", "lua", "draw" or "exercise",
-- text =, name = the name of an exercise, chunk = the chunk name for load}.
---@param lesson table
---@return table[]
function learn.blocks(lesson)
  local list, lines, block = {}, {}, {kind = "text"}
  local function close()
    block.text = table.concat(lines, "\n"):gsub("^\n+", ""):gsub("\n+$", "")
    lines = {}
    if block.text == "" then return end
    list[#list + 1] = block
    block.chunk = ("=%s-%d.lua"):format(lesson.name, #list)
  end
  for line in lesson.text:gmatch "([^\n]*)\n" do
    local kind, name = line:match "^```(%a+) ?(%a*)$"
    if kind or line == "```" then
      close()
      block = {kind = kind or "text", name = kind and name}
    else
      lines[#lines + 1] = line
    end
  end
  close()
  return list
end

--- The table of Lua's globals that a learner's code can read.
learn.globals = _G

--- Returns new globals for a learner: `cute`, `_`, `X`, and Lua's globals.
---@return table
function learn.env()
  return setmetatable({cute = cute, _ = cute._, X = cute.X},
                      {__index = learn.globals})
end

-- Returns the expression of a line `EXPR --> TEXT`; nil for other lines.
local function shown_of(line)
  local code = line:match "^(.-)%s*%-%-> ?.*$"
  return code and load("return " .. code) and code:find "%S" and code
end

-- Replaces each line `EXPR --> TEXT` of a text by a call that records the value
-- of EXPR.
local function showing(text)
  local n = 0
  return (text .. "\n"):gsub("([^\n]*)\n", function(line)
    n = n + 1
    local code = shown_of(line)
    return (code and ("shown(%d, %s)"):format(n, code) or line) .. "\n"
  end)
end

local function load_in(text, chunk, env)
  source.add(chunk, text)
  local f, message = script.compile(text, chunk, env)
  if not f then error(message, 0) end
  return f
end

--- Runs a block of Lua. Returns the values of the lines with `-->`, by line
-- number.
---@param block table
---@param env table
---@return table<integer, string>
function learn.values(block, env)
  local got = {}
  env.shown = function(n, ...)
    local list = table.pack(...)
    for i = 1, list.n do list[i] = tostring(list[i]) end
    got[n] = table.concat(list, ", ")
  end
  load_in(showing(block.text), block.chunk, env)()
  return got
end

--- Runs a block of Lua. Returns the block's lines as text, in which the current
-- values follow each `-->`. A value of several lines is below its line.
---@param block table
---@param env table
---@return string
function learn.run(block, env)
  local got, out, n = learn.values(block, env), {}, 0
  for line in (block.text .. "\n"):gmatch "([^\n]*)\n" do
    n = n + 1
    local code = shown_of(line)
    if not code then
      if not line:find "^%-%->" then out[#out + 1] = line end
    elseif got[n]:find "\n" then
      out[#out + 1] = code .. "  -->"
      for l in got[n]:gmatch "[^\n]+" do out[#out + 1] = "--> " .. l end
    else
      out[#out + 1] = ("%-45s --> %s"):format(code, got[n])
    end
  end
  return table.concat(out, "\n")
end

--- Returns the object that a ```draw block draws.
---@param block table
---@param env table
---@return any
function learn.value(block, env)
  return load_in("return " .. block.text, block.chunk, env)()
end

--- Returns the picture of a ```draw block.
---@param block table
---@param env table
---@param as string output format, as in cute.draw
---@return string
function learn.draw(block, env, as)
  return cute.draw(learn.value(block, env), {as = as})
end

--- Runs the Lua blocks of a lesson that precede block number `index`. Returns
-- the learner's globals after these blocks.
---@param lesson table
---@param index integer index of the block, which is not run
---@param texts? table<integer, string> the learner's changed blocks, by their
-- index
---@return table
function learn.before(lesson, index, texts)
  local env = learn.env()
  for i, block in ipairs(learn.blocks(lesson)) do
    if i == index then break end
    if block.kind == "lua" then
      local text = texts and texts[i] or block.text
      learn.values({text = text, chunk = block.chunk}, env)
    end
  end
  return env
end

--- Returns a lesson as Markdown, with the values of its Lua lines, and with
-- pictures as text.
---@param lesson table
---@param picture? fun(block: table, env: table): string returns a picture in
-- another format
---@return string
function learn.markdown(lesson, picture)
  local env, out = learn.env(), {}
  local function put(...)
    table.move({...}, 1, select("#", ...), #out + 1, out)
  end
  put(("# %d. %s"):format(lesson.number, lesson.title), "")
  for _, block in ipairs(learn.blocks(lesson)) do
    if block.kind == "lua" then
      put("```lua", learn.run(block, env), "```", "")
    elseif block.kind == "exercise" then
      put("**Exercise " .. block.name .. "**", "", "```lua", block.text, "```",
        "")
    elseif block.kind == "draw" then
      if picture then put(picture(block, env), "")
      else put("```", (learn.draw(block, env, "text"):gsub("\n$", "")), "```",
        "") end
    else
      put(block.text, "")
    end
  end
  return table.concat(out, "\n")
end

--- Reports whether a learner's text solves an exercise; if not, returns nil and
-- a sentence.
---@param lesson table
---@param name string the exercise's name
---@param text string Lua
---@param env? table globals of the lesson's blocks
---@param chunk? string the text's chunk name, as load takes it: "@FILE"
---@return boolean? right, string? message
function learn.check(lesson, name, text, env, chunk)
  local e = lesson.exercises[name]
  local own = setmetatable({}, {__index = env or learn.env()})
  -- Without this replacement of os.exit, an answer that exits with code 0 would
  -- count as right.
  local exit = os.exit
  rawset(os, "exit", function()
    core.fail("bad-argument", "os.exit ends the program, but an answer must "
      .. "run to its end")
  end)
  local ok, right, message = xpcall(function()
    load_in(text, chunk or ("=%s.lua"):format(name), own)()
    if rawget(own, e.makes) == nil then
      return nil, ("%s makes no global %s, which is what is asked for")
        :format(chunk and chunk:match "^@(.*)" or "the answer", e.makes)
    end
    return e.check(own)
  end, errors.capture)
  rawset(os, "exit", exit)
  if not ok then return nil, errors.format(right, {}) end
  if not right then return nil, message end
  return true
end

return learn
-- SPDX-License-Identifier: MIT
