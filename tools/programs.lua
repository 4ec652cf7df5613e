-- programs.lua PROGRAM: writes llms.txt, and the generated parts of
-- docs/programs.md. `make docs` calls it; spec/program/programs_spec.lua checks
-- that both are current.
local doc = require "cutelua.doc"
local comments = require "cutelua.doc.comments"
local json = require "cutelua.text.json"
local names = require "cutelua.doc.names"

local programs = {}

local function read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

--- Returns an upper estimate of the number of tokens of a text. Each word,
-- number or punctuation mark has at least one token. A token has about four
-- letters of a word.
---@param text string
---@return integer
function programs.tokens(text)
  local n = 0
  for word in text:gmatch "%w+" do n = n + (#word + 4) // 5 end
  for _ in text:gmatch "[^%w%s]" do n = n + 1 end
  return n
end

---------------------------------------------------------------------------
-- The API
---------------------------------------------------------------------------

-- Topics of the section about the API. For functions of the topics in WHOLE,
-- the page has the signature and the first sentence. For topics in SIGNED it
-- has only the signature, and for topics in NAMED only the name.
local WHOLE = {"Kernels", "Loops, branches, variables", "Shared memory",
  "Copies and products", "Tiled operations", "Atoms"}
local SIGNED = {"Tensors: making", "Tensors: parts and copies of memory",
  "Layouts: making", "Layouts: asking", "Layouts: algebra", "Layouts: tiles",
  "Layouts: swizzles and bases", "cute.arch: threads together",
  "cute.arch: who and where", "cute.arch: mbarriers"}
local NAMED = {"Mathematics", "cute.arch: memory", "cute.arch: clusters",
  "cute.arch: arithmetic", "cute.nvgpu.cpasync", "cute.nvgpu.warpgroup",
  "cute.pipeline", "cute.ops", "cute.testing"}

local KINDS = {["function"] = true, method = true}
-- Patterns of the names that the page leaves out: methods of PTX modules, of
-- kernels in CUDA C, and of bank conflicts.
local OTHER = {"^%l+ module:", "^raw ", "^prepared raw ", "^conflict:"}

local function is_other(name)
  for _, pattern in ipairs(OTHER) do
    if name:find(pattern) then return true end
  end
  return false
end

-- Returns the items of a topic that a program can call, without aliases.
local function items_of(topic)
  local list = {}
  for _, item in ipairs(names.all()) do
    if item.topic == topic and KINDS[item.kind] and not item.same
      and not is_other(item.name) then
      list[#list + 1] = item
    end
  end
  return list
end

local function short(name) return (name:gsub("^cute%.", "")) end

local function api()
  local out = {}
  local function topic(name, lines)
    out[#out + 1] = ("### API: %s\n\n```text\n%s\n```\n"):format(name,
      table.concat(lines, "\n"))
  end
  for _, name in ipairs(WHOLE) do
    local lines = {}
    for i, item in ipairs(items_of(name)) do
      local said = item.doc and comments.summary(item.doc) or ""
      lines[i] = short(doc.usage(item)) .. "  " .. said:gsub("\n", " ")
    end
    topic(name, lines)
  end
  for _, name in ipairs(SIGNED) do
    local lines = {}
    for i, item in ipairs(items_of(name)) do lines[i] = short(doc.usage(item))
    end
    topic(name, lines)
  end
  for _, name in ipairs(NAMED) do
    local lines, line = {}, ""
    for _, item in ipairs(items_of(name)) do
      if item.kind == "function" then
        local word = short(item.name)
        if #line + #word > 95 then lines[#lines + 1], line = line, "" end
        line = line == "" and word or line .. " " .. word
      end
    end
    lines[#lines + 1] = line
    topic(name, lines)
  end
  return table.concat(out, "\n")
end

---------------------------------------------------------------------------
-- Idioms
---------------------------------------------------------------------------

-- Rows: title of the idiom; page and section that contain it; index of its Lua
-- code block in that section.
local IDIOMS = {
  {"Trace time and run time", "kernels", "Trace time and run time", 1},
  {"Branches", "kernels", "Branches", 1},
  {"Branches as blocks, several cases", "kernels", "Branches", 2},
  {"Loops", "kernels", "Loops", 1},
  {"Loops that change objects", "kernels", "Loops", 2},
  {"While loops and early exit", "kernels", "While loops and early exit", 1},
  {"Types of numbers", "kernels", "Numbers and types", 1},
  {"Fused operations and rounding", "kernels", "Rounding", 1},
  {"Fragments and reductions", "kernels", "Vectors and fragments", 1},
  {"Tensors in shared memory", "kernels", "Tensors", 1},
  {"Tiles that hang over the edge", "kernels", "Tensors", 2},
  {"Copies and MMAs", "kernels", "Copies and matrix products", 1},
  {"Shuffles, votes and atomics", "kernels", "The cute.arch functions", 1},
  {"Weights of 4 bits", "kernels", "The cute.arch functions", 2},
  {"TMA stores", "kernels", "Epilogues by TMA", 1},
  {"Persistent kernels", "kernels", "Persistent and cooperative kernels", 1},
  {"Dynamic layouts", "kernels", "Static and dynamic layouts", 1},
  {"Reports", "kernels", "The simulator's report", 1},
  {"Layouts", "layouts", "Division and product", 1},
  {"Products", "ops", "gemm", 1},
}

-- Returns the n-th Lua code block in a section of a page. The section "" is the
-- text before the first heading.
local function block_of(page, section, n)
  local title, block, count = "", nil, 0
  for line in read("docs/" .. page .. ".md"):gmatch "([^\n]*)\n" do
    local head = not block and line:match "^##+ (.*)$"
    if head then title, count = head, 0 end
    if line:find "^```" and block then
      if title == section and block.lua then
        count = count + 1
        if count == n then return table.concat(block, "\n") end
      end
      block = nil
    elseif line:find "^```" then
      block = {lua = line == "```lua"}
    elseif block then
      block[#block + 1] = line
    end
  end
  error(("docs/%s.md has no block %d in '%s'"):format(page, n, section))
end

local function idioms()
  local out = {"```lua\n" .. block_of("kernels", "", 2)
    .. "\n```\n"}
  for i, row in ipairs(IDIOMS) do
    local title, page, section, n = table.unpack(row)
    out[#out + 1] = ("### %d. %s\n\nFrom [%s](%s.md).\n\n```lua\n%s\n```\n")
      :format(i, title, page, page, block_of(page, section, n))
  end
  return table.concat(out, "\n")
end

---------------------------------------------------------------------------
-- Mistakes
---------------------------------------------------------------------------

--- The scripts of the mistakes, in spec/faults/.
programs.MISTAKES = {"race/second_reduction", "race/proxy_fence_before_stores",
  "race/sum_two_warps_write", "warp-race/report",
  "async-in-flight/report", "async-in-flight/groups_no_sync",
  "async-in-flight/letters_no_expect", "async-in-flight/letters_parity",
  "deadlock/sync_in_loop_of_warp", "divergent/return_before_sync",
  "inactive-lane/report", "barrier-mismatch/named_count",
  "out-of-bounds/report", "unwritten/report", "uninitialised/report",
  "shape-mismatch/example", "needs-static/example", "traced-in-lua/example",
  "loop-type-changed/example", "unknown-name/example"}

--- Runs a script, and returns the record that the run prints as JSON.
---@param program string
---@param path string
---@return table
function programs.record(program, path)
  local p <close> = assert(io.popen(("CUDA_VISIBLE_DEVICES= %s run --format "
    .. "json %s 2>/dev/null"):format(program, path)))
  return assert(json.decode(p:read "a"))
end

-- Returns the first paragraph of the section of docs/errors.md about a kind.
local function meaning(kind)
  local pattern = "\n##+ " .. kind:gsub("%p", "%%%0") .. "\n\n(.-)\n\n"
  return assert(read "docs/errors.md":match(pattern), kind)
end

-- Returns the sentences in the comment at the top of a script. If the script is
-- the example of docs/errors.md, returns what its kind of fault means instead.
local function about(text, kind)
  local out = {}
  for line in text:gmatch "([^\n]*)\n" do
    local said = line:match "^%-%- (.*)$"
    if not said or said:find "^%l+: " then break end
    out[#out + 1] = said
  end
  local said = table.concat(out, "\n")
  return said:find "errors%.md" and meaning(kind) or said
end

-- Returns, in the form of a patch, the lines of a script that its repair
-- changes, with the lines around them.
local function patch(text)
  local lines, near = {}, {}
  for line in text:gmatch "([^\n]*)\n" do
    local n = #lines + 1
    local wrong, added = line:match "^(.-)  %-%- wrong$",
      line:match "^%s*%-%- mend: " and line:gsub("%-%- mend: ", "", 1)
    lines[n] = wrong and "-" .. wrong or added and "+" .. added or " " .. line
    if line:find "^%-%- " and not added then lines[n] = false end
    if wrong or added then
      for k = n - 2, n + 2 do near[k] = true end
    end
  end
  local out, last = {}, nil
  for n, line in ipairs(lines) do
    if near[n] and line then
      if last and last < n - 1 then out[#out + 1] = " ..." end
      out[#out + 1], last = line, n
    end
  end
  return table.concat(out, "\n")
end

local function mistakes(program)
  local out = {}
  for i, name in ipairs(programs.MISTAKES) do
    local path = ("spec/faults/%s.lua"):format(name)
    local text = read(path)
    local first = programs.record(program, path).findings[1]
    out[#out + 1] = ("### %d. `%s`\n\n%s\n\n```diff\n%s\n```\n"):format(i,
      first.code, about(text, first.kind), patch(text))
  end
  return table.concat(out, "\n")
end

---------------------------------------------------------------------------
-- The files
---------------------------------------------------------------------------

--- Returns docs/programs.md with its generated parts updated.
---@param program string
---@return string
function programs.page(program)
  local parts = {api = api, idioms = idioms, mistakes = mistakes}
  return (read "docs/programs.md":gsub("(<!%-%- part: (%l+) %-%->\n)(.-)"
    .. "(<!%-%- end %-%->)", function(head, name, _, tail)
      return head .. "\n" .. parts[name](program) .. "\n" .. tail
    end))
end

--- Returns llms.txt: the documents by task, as docs/README.md lists them.
---@return string
function programs.index()
  local out = {"# cutelua", "",
    "> GPU kernels with CuTe's layouts in Lua 5.4. Kernels run on a simulator "
    .. "that reports races, deadlocks and wrong accesses at the line, and on "
    .. "NVIDIA GPUs.", "",
    "Programs that write kernels start with docs/programs.md, and use the "
    .. "server that docs/mcp.md describes.", ""}
  local reader = ""
  for line in read "docs/README.md":gmatch "([^\n]*)\n" do
    local head = line:match "^## (.*)$"
    local left, right = line:match "^| (.-) | (.*) |$"
    if head then
      reader = head == "By reader" and "for readers who " or ""
      out[#out + 1] = "## " .. head
      out[#out + 1] = ""
    elseif right and right:find "%]%(" then
      for name, file in right:gmatch "%[([^%]]*)%]%(([^)]*)%)" do
        out[#out + 1] = ("- [%s](docs/%s): %s"):format(name, file,
          reader .. left:gsub("%[([^%]]*)%]%([^)]*%)", "%1"))
      end
    elseif line == "" and out[#out] ~= "" then
      out[#out + 1] = ""
    end
  end
  return (table.concat(out, "\n"):gsub("%s+$", "") .. "\n")
end

local function write(path, text)
  local f <close> = assert(io.open(path, "wb"))
  assert(f:write(text))
end

if arg and arg[0] and arg[0]:find "tools/programs%.lua$" then
  write("docs/programs.md", programs.page(arg[1]))
  write("llms.txt", programs.index())
end

return programs
-- SPDX-License-Identifier: MIT
