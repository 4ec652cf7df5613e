-- prose.lua: measures the English of documents, comments and messages.
--  prose.lua sentences [WORDS] [FILE...]  sentences of more than WORDS words
--  prose.lua openings [FILE...]           comments that open with a pronoun
--  prose.lua sample SEED                  a random sample for a reader to judge
--  prose.lua list FILE...                 all comments and messages
-- Without FILEs it reads every tracked file that it applies to. tools/check.lua
-- loads it as a module for the rules of `make rules`. If ENFORCED is set, these
-- rules fail for documents and comments beyond the limits WORDS and PERCENT.
local prose = {WORDS = 35, PERCENT = 3, ENFORCED = true}

local function read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

-- Returns the sorted paths of the files that match one of the patterns: those
-- that git tracks or, without a git repository, all of them.
local function tracked(patterns)
  local out = {}
  local p <close> = io.popen("git ls-files 2>/dev/null || "
    .. "find * -type f -not -path 'build*'")
  for path in p:lines() do
    for _, pattern in ipairs(patterns) do
      if path:find(pattern) and io.open(path, "rb") then
        out[#out + 1] = path
        break
      end
    end
  end
  table.sort(out)
  return out
end

function prose.documents()
  return tracked {"%.md$"}
end

function prose.sources()
  return tracked {"%.lua$", "%.c$", "%.h$"}
end

-- ---- Markdown ----

-- Splits a line of a table into its cells.
local function cells(line)
  local out = {}
  line = line:gsub("`[^`]*`", function(code) return (code:gsub("|", "¦")) end)
  for cell in line:gsub("\\|", "¦"):gmatch "[^|]+" do out[#out + 1] = cell end
  return out
end

-- Calls f(text, line) for each paragraph, list item, heading and table cell.
-- Skips code blocks, fenced or indented, and HTML comments.
function prose.paragraphs(text, f)
  local part, first, fenced, list, blank, html = {}, nil, false, false, true
  local function finish()
    if #part > 0 then f(table.concat(part, " "), first) end
    part, first = {}, nil
  end
  local n = 0
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do
    n = n + 1
    if line:find "^%s*```" then
      finish()
      fenced = not fenced
    elseif fenced or html then
      html = html and not line:find "%-%->"
    elseif line:find "^%s*<!%-%-" then
      finish()
      html = not line:find "%-%->"
    elseif line:find "^%s*$" then
      finish()
    elseif line:find "^    " and blank and not list then
      finish()
    elseif line:find "^%s*|" then
      finish()
      list = false
      for _, cell in ipairs(cells(line)) do f(cell, n) end
    else
      local item = line:match "^%s*[-*+]%s+(.*)$"
        or line:match "^%s*%d+[.)]%s+(.*)$"
      local heading = line:match "^#+%s+(.*)$"
      if item or heading then finish() end
      if item then list = true elseif line:find "^%S" and blank then
        list = false
      end
      first = first or n
      part[#part + 1] = item or heading or line:match "^%s*>?%s*(.*)$"
      if heading then finish() end
    end
    blank = line:find "^%s*$" and true or blank and line:find "^    " and true
  end
  finish()
end

-- Returns a paragraph as it is read aloud: a link becomes its text, and code
-- becomes one word.
local function plain(text)
  text = text:gsub("``.-``", "C0DE"):gsub("`[^`]*`", "C0DE")
  text = text:gsub("!?%[([^%]]*)%]%b()", "%1"):gsub("<[^<>]*>", "")
  return (text:gsub("%*%*", ""):gsub("%f[%w](%a)%.(%a)%.%s", "%1%2 "))
end

local function word_count(text)
  local n = 0
  for word in text:gmatch "%S+" do
    if word:find "[%w\x80-\xff]" then n = n + 1 end
  end
  return n
end

-- Returns the sentences of a paragraph. A sentence ends at `.`, `!` or `?` if a
-- blank follows, and then something that does not begin in lower case.
function prose.sentences(text)
  local out, from = {}, 1
  for stop, after in text:gmatch '[.!?]["%)%]%*]*()%s+()' do
    if not text:find("^%l", after) then
      out[#out + 1] = text:sub(from, stop - 1)
      from = after
    end
  end
  local rest = text:sub(from)
  if rest:find "%S" then out[#out + 1] = rest end
  return out
end

-- Calls f(sentence, words, line) for each sentence of more than `limit` words.
function prose.long(text, limit, f)
  prose.paragraphs(text, function(paragraph, line)
    for _, sentence in ipairs(prose.sentences(plain(paragraph))) do
      local n = word_count(sentence)
      if n > limit then f(sentence, n, line) end
    end
  end)
end

-- ---- Comments ----

-- Calls f(what, from, to, start) for each comment and string of C or Lua.
-- `from` and `to` are the limits of its text without its marks. `start` is the
-- position of its first mark.
local function lex_c(text, f)
  local at = 1
  while true do
    local i = text:find("[\"'/]", at)
    if not i then return end
    local two = text:sub(i, i + 1)
    if two == "//" then
      local stop = (text:find("\n", i, true) or #text + 1) - 1
      f("comment", i + 2, stop, i)
      at = stop + 1
    elseif two == "/*" then
      local _, stop = text:find("*/", i + 2, true)
      stop = stop or #text
      f("comment", i + 2, stop - 2, i)
      at = stop + 1
    elseif two:sub(1, 1) == "/" then
      at = i + 1
    else
      local quote, j = text:sub(i, i), i + 1
      while j <= #text and text:sub(j, j) ~= quote do
        j = j + (text:sub(j, j) == "\\" and 2 or 1)
      end
      f("string", i + 1, j - 1, i)
      at = j + 1
    end
  end
end

local function lex_lua(text, f)
  local at = 1
  while true do
    local i = text:find("[\"'%-%[]", at)
    if not i then return end
    local comment = text:sub(i, i + 1) == "--"
    local mark = comment and i + 2 or i
    local equals = text:match("^%[(=*)%[", mark)
    if equals then
      local from = mark + #equals + 2
      local to, stop = text:find("]" .. equals .. "]", from, true)
      f(comment and "comment" or "string", from, (to or #text + 1) - 1, i)
      at = (stop or #text) + 1
    elseif comment then
      local stop = (text:find("\n", i, true) or #text + 1) - 1
      f("comment", i + 2, stop, i)
      at = stop + 1
    elseif text:find("^[\"']", i) then
      local quote, j = text:sub(i, i), i + 1
      while j <= #text and text:sub(j, j) ~= quote do
        j = j + (text:sub(j, j) == "\\" and 2 or 1)
      end
      f("string", i + 1, j - 1, i)
      at = j + 1
    else
      at = i + 1
    end
  end
end

local function lex(path, text, f)
  return (path:find "%.lua$" and lex_lua or lex_c)(text, f)
end

-- Reports whether a line of a comment has no prose.
local function is_mark(line)
  return line == "" or line:find "^@" or line:find "^[-=*/ ]+$"
    or line:find "^%-%-%-%- " or line:find "^SPDX%-" or line:find "^luacheck"
    or line:find "^-%->"
end

-- Reports whether a line begins with the mark of a planted fault
-- (spec/faults.lua) or of a wrong solution (spec/task/examples_spec.lua). Such
-- a line is data.
local function is_fault_mark(line)
  for _, mark in ipairs {"expect", "mend", "run", "needs", "wrong"} do
    if line:find("^" .. mark .. ":") then return true end
  end
  return false
end

-- Calls f(text, line, before) for each comment. `before` is the code to the
-- left of a trailing comment, else "". Comments in the same column of
-- consecutive lines are one comment. An empty line, an annotation or an
-- indented example ends it. An annotation (---@param) includes the lines that
-- continue it. Labels of one or two words, and headings between two rules, do
-- not count as comments.
function prose.comments(path, text, f)
  local part, first, last, column, code_before = {}, nil, nil, nil, nil
  local annotated = false
  -- ruled: the previous line is a rule, such as a row of dashes. heading: the
  -- text in `part` began after a rule.
  local ruled, heading = false, false
  local function finish()
    local said = table.concat(part, " ")
    if word_count(said) > 2 then f(said, first, code_before) end
    part = {}
  end
  local line, counted = 1, 1
  lex(path, text, function(what, from, to, start)
    for _ in text:sub(counted, start - 1):gmatch "\n" do line = line + 1 end
    counted = start
    if what ~= "comment" then return end
    local head = text:sub(math.max(1, start - 200), start - 1):match "[^\n]*$"
    local n = line
    if head:find "%S" or last ~= n - 1 or column ~= #head then
      finish()
      annotated = false
    end
    column = #head
    for said in (text:sub(from, to) .. "\n"):gmatch "(.-)\n" do
      local code = said:find "^%-?     *%S"
      local rule = said:find "^[-=*/]+$" and #said > 20
      said = said:gsub("^[-/*!<]*%s*", ""):gsub("%s*%-%- wrong$", "")
        :gsub("%s+$", "")
      if rule and heading then part = {} end
      local mark = is_fault_mark(said)
      if code or mark or is_mark(said) then
        finish()
        annotated = mark or said:find "^@" ~= nil
      elseif not annotated then
        if #part == 0 then
          first, code_before, heading = n, head, ruled
        end
        part[#part + 1] = said
      end
      ruled = rule
      n = n + 1
    end
    last = n - 1
  end)
  finish()
end

local OPENINGS = {
  "^who%f[%W]", "^whom%f[%W]", "^whose%f[%W]", "^what%f[%W]",
  "^those%f[%W]", "^that which%f[%W]", "^of %l", "^there is what%f[%W]",
  "^to whom%f[%W]", "^to what%f[%W]", "^in what%f[%W]", "^from what%f[%W]",
}

-- Reports whether a text opens with a pronoun instead of its subject.
function prose.opens_badly(text)
  text = text:lower()
  for _, pattern in ipairs(OPENINGS) do
    if text:find(pattern) then return true end
  end
  return false
end

-- Returns the number of comments of the files, and a list of the comments that
-- open with a pronoun: {path, line, text}.
function prose.openings(files)
  local n, bad = 0, {}
  for _, path in ipairs(files) do
    prose.comments(path, read(path), function(text, line)
      n = n + 1
      if prose.opens_badly(text) then bad[#bad + 1] = {path, line, text} end
    end)
  end
  return n, bad
end

-- ---- Messages ----

local RAISES = {
  "ctx_fail", "face_error", "face_error_at", "face_argerror", "note_fail",
  "fail_at", "core%.fail", "fail", "raise", "error", "stop", "throw",
}

-- Appends `part`, a string of a call, to the message `said`. If there is code
-- between two strings, such as between two alternatives, they are separated by
-- " | ". A macro such as PRId64 between them becomes "d".
local function append(said, part, between)
  local rest = #said > 0 and between:match '^"%s*PRI%l%d+(.*)$'
  if rest then
    said[#said] = said[#said] .. "d"
    between = rest
  end
  if #said == 0 and part:find "^%l+[%l-]*$" then
    said[1] = "[" .. part .. "] "  -- the kind of the error
  elseif #said > 0 and between:find "[^%s.%(\"]" and not said[#said]:find "%] $"
  then
    said[#said + 1] = " | " .. part
  else
    said[#said + 1] = part
  end
end

-- Calls f(text, line) for each message, which consists of the strings of a call
-- that raises an error.
function prose.messages(path, text, f)
  for _, name in ipairs(RAISES) do
    for start, open in text:gmatch("%f[%w_.]()" .. name .. "()%s?%(") do
      local call, said, past = text:match("^%s?%b()", open) or "", {}, 1
      lex(path, call, function(what, from, to)
        if what == "string" and call:sub(from - 1, from - 1) ~= "'" then
          append(said, call:sub(from, to), call:sub(past, from - 1))
          past = to + 1
        end
      end)
      local message = table.concat(said)
      if message:find "%a+ %a+ %a+" then
        if name == "face_argerror" then
          message = ("bad argument (%s expected, got %%s)"):format(message)
        end
        f(message, select(2, text:sub(1, start):gsub("\n", "")) + 1)
      end
    end
  end
end

-- ---- The command ----

-- Returns the newest n subjects of commits.
local function subjects(n)
  local out = {}
  local p <close> = io.popen(("git log --no-merges --format=%%s -n %d "
    .. "2>/dev/null"):format(n))
  for line in p:lines() do out[#out + 1] = {line} end
  return out
end

-- Returns n different members of a list in random order.
local function draw(list, n)
  for i = 1, math.min(n, #list) do
    local j = math.random(i, #list)
    list[i], list[j] = list[j], list[i]
  end
  return table.move(list, 1, math.min(n, #list), 1, {})
end

-- Returns the line of code that the comment at `line` describes: the code to
-- the left of the comment, else the next line that is neither a comment nor
-- empty.
local function described(lines, line, before)
  if before:find "%S" then return before:match "^%s*(.-)%s*$" end
  for n = line + 1, math.min(line + 40, #lines) do
    local code = lines[n]:match "^%s*(.-)%s*$"
    if code ~= "" and not code:find "^%-%-" and not code:find "^//" then
      return code
    end
  end
  return ""
end

local function split_lines(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

-- Appends the comments of a file to `comments` and, for files of the product,
-- its messages to `messages`. Each entry is {text, path, line, code}.
local function gather(path, comments, messages)
  local text = read(path)
  local lines = split_lines(text)
  prose.comments(path, text, function(said, line, before)
    comments[#comments + 1] = {said, path, line,
                               described(lines, line, before)}
  end)
  if path:find "^core/" or path:find "^lua/" or path:find "^kernels/" then
    prose.messages(path, text, function(said, line)
      messages[#messages + 1] = {said, path, line}
    end)
  end
end

local function print_rows(title, rows)
  print(("== %d %s"):format(#rows, title))
  for i, row in ipairs(rows) do
    print(("%2d. %s%s"):format(i, row[1],
      row[2] and ("  [%s:%d]"):format(row[2], row[3]) or ""))
    if row[4] and row[4] ~= "" then print("      at: " .. row[4]) end
  end
end

-- lines of a file that are shown around a sampled comment
local BEFORE, AFTER = 4, 10

-- Replaces the code of each comment by the lines of the file around the
-- comment, as a reader of the file sees them.
local function show_places(comments)
  for _, row in ipairs(comments) do
    local lines, out = split_lines(read(row[2])), {}
    for n = math.max(1, row[3] - BEFORE), math.min(#lines, row[3] + AFTER) do
      out[#out + 1] = ("      | %s"):format(lines[n])
    end
    row[4] = "\n" .. table.concat(out, "\n")
  end
  return comments
end

-- Prints 60 comments with the lines around them, 30 messages, 30 sentences of
-- documents, and the 20 newest commit subjects. The same seed and files give
-- the same sample. The sample leaves out the notebook of docs/measured/, and
-- table cells that are not sentences.
local function sample(seed)
  math.randomseed(seed)
  local comments, messages, sentences = {}, {}, {}
  for _, path in ipairs(prose.sources()) do
    gather(path, comments, messages)
  end
  for _, path in ipairs(prose.documents()) do
    local text = path:find "^docs/measured/" and "" or read(path)
    prose.paragraphs(text, function(paragraph, line)
      for _, said in ipairs(prose.sentences(paragraph)) do
        if word_count(said) >= 5 and said:find "[.:!?]%s*$" then
          sentences[#sentences + 1] = {said:match "^%s*(.-)%s*$", path, line}
        end
      end
    end)
  end
  print_rows("comments", show_places(draw(comments, 60)))
  print_rows("messages", draw(messages, 30))
  print_rows("sentences of documents", draw(sentences, 30))
  print_rows("commit subjects", subjects(20))
end

local COMMANDS = {}

function COMMANDS.sentences(...)
  local list = {...}
  local limit = math.tointeger(tonumber(list[1]))
  if limit then table.remove(list, 1) end
  if #list == 0 then list = prose.documents() end
  local found = 0
  for _, path in ipairs(list) do
    prose.long(read(path), limit or prose.WORDS, function(said, n, line)
      found = found + 1
      print(("%s:%d: %d words: %s"):format(path, line, n, said))
    end)
  end
  print(("%d sentences above %d words"):format(found, limit or prose.WORDS))
end

function COMMANDS.openings(...)
  local list = {...}
  local n, bad = prose.openings(#list > 0 and list or prose.sources())
  for _, row in ipairs(bad) do
    print(("%s:%d: %s"):format(row[1], row[2], row[3]))
  end
  print(("%d of %d comments open with a pronoun: %.1f %%"):format(#bad, n,
    100 * #bad / math.max(n, 1)))
end

function COMMANDS.list(...)
  for _, path in ipairs {...} do
    local comments, messages = {}, {}
    gather(path, comments, messages)
    print_rows("comments of " .. path, comments)
    if #messages > 0 then print_rows("messages", messages) end
  end
end

function COMMANDS.sample(seed)
  sample(assert(math.tointeger(tonumber(seed)), "sample SEED"))
end

if arg and arg[0] and arg[0]:find "prose%.lua$" then
  local command = COMMANDS[arg[1]]
  if not command then
    io.stderr:write "usage: prose.lua sentences|openings|sample|list ...\n"
    os.exit(2)
  end
  command(table.unpack(arg, 2))
end

return prose
-- SPDX-License-Identifier: MIT
