--- The tutorial in the workshop. It answers the page's requests about lessons:
--
--   lesson: {name = the lesson's name or number} -> {name =, number =,
--     title =, blocks = {{kind =, text =, html = the text as HTML, name =,
--     hints = list of HTML, solution = of an exercise}, ...}}. The blocks are
--     those of cutelua.learn.
--   block: {lesson =, index =, text =, before = {{index =, text =}, ...}} ->
--     as for run, and shown = {{line =, text =}, ...}. Runs a block of Lua
--     or a picture with the learner's text. `before` has the learner's texts
--     of earlier blocks that differ from the lesson. shown has the values of
--     the lines with `-->`.
--   exercise: {lesson =, name =, text =} -> as for run, and right =,
--     message = the error, line = the error's line if known. Checks the
--     learner's attempt.
--
-- A block starts with the globals of the blocks before it. An exercise starts
-- with the globals of the lesson's original blocks. The prompt starts with the
-- globals of the last block.
local core = require "cute.core"
local cute = require "cute"
local learn = require "cutelua.learn"
local markdown = require "cutelua.text.markdown"
local run = require "cutelua.workshop.run"

local lessons = {}

-- The globals after the block that ran last: {lesson =, all =, env =}. `all`
-- contains the texts of all blocks that produced them.
local last = {}

local function find(request, field)
  local lesson, why = learn.lesson(request[field])
  if not lesson then core.fail("unknown-name", why) end
  return lesson, learn.blocks(lesson)
end

local function text_of(request)
  if type(request.text) ~= "string" then
    core.fail("bad-argument", ("%s: the field `text` must be a "
      .. "string"):format(request.ask))
  end
  return request.text
end

-- ---- a lesson's content ----

local function told(lesson, block)
  local out = {kind = block.kind, text = block.text}
  if block.kind == "text" then
    out.html = markdown.html(block.text)
  elseif block.kind == "exercise" then
    local e = lesson.exercises[block.name]
    out.name, out.solution, out.hints = block.name, e.solution, {}
    for i, hint in ipairs(e.hints) do out.hints[i] = markdown.html(hint) end
  end
  return out
end

function lessons.lesson(request)
  local lesson, blocks = find(request, "name")
  for i, block in ipairs(blocks) do blocks[i] = told(lesson, block) end
  return {name = lesson.name, number = lesson.number, title = lesson.title,
          blocks = blocks}
end

-- ---- the learner's code ----

-- Returns the learner's texts of the Lua blocks before block request.index, by
-- block number. Also returns these texts as one string, which identifies the
-- globals that they produce.
local function texts_before(request, blocks)
  local texts, all = {}, {}
  for _, one in ipairs(request.before or {}) do
    texts[one.index] = type(one.text) == "string" and one.text or nil
  end
  for i = 1, request.index - 1 do
    if blocks[i].kind == "lua" then
      all[#all + 1] = ("%d %s"):format(i, texts[i] or blocks[i].text)
    end
  end
  return texts, table.concat(all, "\0")
end

-- Returns the globals with which a block starts. They are those in `last` if
-- these match; otherwise the earlier blocks run again.
local function globals_at(lesson, index, texts, all)
  if last.lesson == lesson.name and last.all == all then return last.env end
  local ok, env = pcall(learn.before, lesson, index, texts)
  return ok and env or learn.before(lesson, index)
end

local function shown_of(got)
  local list = {}
  for line, text in pairs(got) do
    list[#list + 1] = {line = line, text = text}
  end
  table.sort(list, function(a, b) return a.line < b.line end)
  return list
end

function lessons.block(request)
  local lesson, blocks = find(request, "lesson")
  local index, text = request.index, text_of(request)
  local block = blocks[index]
  if not block or block.kind ~= "lua" and block.kind ~= "draw" then
    core.fail("bad-argument", ("block: there is nothing to run in block %s of "
      .. "lesson %s"):format(core.show(index), lesson.name))
  end
  local texts, all = texts_before(request, blocks)
  local env, shown = globals_at(lesson, index, texts, all), nil
  last = {}
  local answer = run.call(function()
    local own = {text = text, chunk = block.chunk}
    if block.kind == "lua" then
      shown = shown_of(learn.values(own, env))
      all = table.concat({all, all ~= "" and "\0" or "", index, " ", text})
    else
      cute.draw(learn.value(own, env))
      shown = {}
    end
  end)
  if shown then
    last = {lesson = lesson.name, env = env, all = all}
    run.behind(env)
  end
  answer.shown = shown
  return answer
end

function lessons.exercise(request)
  local lesson, blocks = find(request, "lesson")
  local text, at = text_of(request), nil
  for i, block in ipairs(blocks) do
    if block.kind == "exercise" and block.name == request.name then at = i end
  end
  if not at then
    core.fail("unknown-name", ("no exercise %s in lesson %s"):format(
      core.show(request.name), lesson.name))
  end
  local env = learn.before(lesson, at)
  local right, message
  local answer = run.call(function()
    right, message = learn.check(lesson, request.name, text, env)
  end)
  answer.right = right or false
  answer.message = message or answer.error and answer.error.message
  local said = not right and answer.message or ""
  answer.line = math.tointeger(tonumber(said:match(request.name
    .. "%.lua:(%d+)") or said:match "%f[%a]line (%d+)"))
  return answer
end

return lessons
-- SPDX-License-Identifier: MIT
