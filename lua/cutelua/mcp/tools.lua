--- The tools of `cutelua mcp`. Each tool is a command of the program. A call's
-- arguments are converted to command-line words, with which a worker runs the
-- command.
local calls = require "cutelua.mcp.calls"
local core = require "cute.core"
local json = require "cutelua.text.json"
local kinds = require "cutelua.ptx.kinds"
local rpc = require "cutelua.mcp.rpc"

local tools = {}

---------------------------------------------------------------------------
-- Schemas
---------------------------------------------------------------------------

local function text(about) return {type = "string", description = about} end
local function flag(about) return {type = "boolean", description = about} end
local function number(about) return {type = "number", description = about} end
local function words(about)
  return {type = "array", items = {type = "string"}, description = about}
end

local LIMITS = {
  seconds = number "time limit of this call in seconds",
}

-- Properties that describe a script or a kernel, for tools that take one.
local SCRIPT = {
  script = text("text of a Lua script that launches kernels, or of PTX or "
    .. "CUDA C; either this or path is needed"),
  path = text("path of a script, of PTX, CUDA C, or of a folder with a "
    .. "recorded launch, within the server's root folder"),
  name = text("name of the script in findings (script.lua; kernel.ptx and "
    .. "kernel.cu are PTX and CUDA C)"),
  arguments = words "arguments of the script, as on the command line",
  launch = {type = "object", description = "for PTX and CUDA C: the LAUNCH "
    .. "file as an object: entry, grid, block, args, memory, expect "
    .. "(resource cutelua://docs/ptx.md)"},
  kernel = text "this kernel only",
}

local RECORD = {type = "object",
  required = {"form", "kind", "command", "verdict", "exit_code", "findings",
              "checked", "not_checked"},
  properties = {
    form = {const = 1}, kind = {const = "findings"},
    command = {type = "string"},
    verdict = {enum = {"ok", "bug", "incomplete", "error"}},
    exit_code = {type = "integer"},
    findings = {type = "array", items = {type = "object",
      required = {"code", "kind", "severity", "message", "places"}}},
    checked = {type = "array", items = {type = "object"}},
    not_checked = {type = "array", items = {type = "object"}}}}

---------------------------------------------------------------------------
-- Arguments
---------------------------------------------------------------------------

-- Raises an error that the client gets as the call's result.
local wrong = rpc.wrong

-- Returns a path that the client sent. Raises an error if it is not within the
-- root folder.
local function within(path, root)
  if path:find "^/" or path:find "%f[^/\0]%.%.%f[/\0]" or path:find "%z" then
    wrong("path '%s' must lie within the server's root folder: write it "
      .. "without a leading / and without ..", core.visible(path))
  end
  if path == "" or path:find "^%-" then
    wrong("path '%s' names no script", core.visible(path))
  end
  local full = root == "." and path or root .. "/" .. path
  local real, top = core.real_path(full), core.real_path(root)
  if real and top and (real .. "/"):sub(1, #top + 1) ~= top .. "/"
    and top ~= "/" then
    wrong("path '%s' leads through a symbolic link out of the server's root "
      .. "folder: write a path whose file is inside", core.visible(path))
  end
  return full
end

-- Returns the name of a new temporary folder, which nobody can guess.
local function folder_of()
  return "/tmp/cutelua-" .. calls.nonce()
end

-- Adds the script of a call to a worker's request: its name, and the text of a
-- Lua script, or else files with PTX and its LAUNCH file.
local function add_script(r, args, root, field, default)
  local given, path = args[field or "script"], args[field and field .. "_path"
    or "path"]
  if (given == nil) == (path == nil) then
    wrong("either %s or %s is needed", field or "script",
          field and field .. "_path" or "path")
  end
  local name = path and within(path, root) or args.name or default
  if given and not name:find "^[%w_.-]+$" or name:find "^%-" then
    wrong("name '%s': letters, digits, _, . and - are allowed",
          core.visible(name))
  end
  local kind = given and kinds.of(name)
  if kind then
    if kind ~= "ptx" and kind ~= "cuda" then
      wrong("name '%s': the text of a script ends in .lua, .ptx or .cu", name)
    end
    r.folder = r.folder or folder_of()
    name = r.folder .. "/" .. name
    r.files[name] = given
  elseif given then
    r.texts[name] = given
  end
  r.words[#r.words + 1] = name
  if args.launch then
    r.folder = r.folder or folder_of()
    local file = r.folder .. "/LAUNCH.json"
    r.files[file] = json.encode(args.launch)
    table.insert(r.words, "--launch")
    table.insert(r.words, file)
  end
end

local function add_arguments(r, args)
  local list = args.arguments or {}
  table.move(list, 1, #list, #r.words + 1, r.words)
end

-- Returns a function that sets the command-line arguments for commands that run
-- a script. These are --format json, the options of the call, the script, and
-- its arguments.
local function script_words(options)
  return function(r, args, server)
    r.words = {"--format", "json"}
    for _, row in ipairs(options) do
      local value = args[row[1]]
      if value == true then
        table.insert(r.words, row[2])
      elseif value then
        table.insert(r.words, row[2])
        table.insert(r.words, tostring(value))
      end
    end
    if r.command == "check" then
      table.insert(r.words, "--seconds")
      table.insert(r.words, ("%.17g"):format(r.seconds))
      table.insert(r.words, "--no-gpu")
    end
    add_script(r, args, server.root, nil, "script.lua")
    add_arguments(r, args)
  end
end

---------------------------------------------------------------------------
-- The tools
---------------------------------------------------------------------------

local function with(...)
  local all = {}
  for _, t in ipairs {...} do
    for k, v in pairs(t) do all[k] = v end
  end
  return all
end

-- Rows: name, description, properties of the arguments, required arguments, and
-- a function that sets the command's arguments. `record` is true if the result
-- is a record of findings.
local ROWS = {
  {"check", "Runs a script on the simulator and checks every schedule of each "
    .. "launch: races, deadlocks, missing waits and fences, out-of-bounds and "
    .. "uninitialised accesses. Returns findings with stable codes, lines, a "
    .. "counter-example, and edits that repair a bug. No GPU is needed.",
    with(SCRIPT, LIMITS, {
      orders = {type = "integer", minimum = 1,
                description = "the most runs of one launch (2000)"},
      surgeon = flag "also says which barriers and fences are needed",
      strict = flag "reports reliance on behaviour that PTX does not guarantee",
      sizes = flag "lessons: also checks other sizes"}), nil,
    script_words {{"orders", "--orders"}, {"surgeon", "--surgeon"},
      {"strict", "--strict"}, {"sizes", "--sizes"}, {"kernel", "--kernel"}},
    record = true},
  {"run", "Runs a script, or launches PTX or CUDA C, on the simulator: one "
    .. "schedule. Returns its output and what the simulator found.",
    with(SCRIPT, LIMITS), nil, script_words {}, record = true},
  {"explain", "Runs a script and returns, for each kernel, CUDA C beside the "
    .. "lines of the script, with the cost of each line.", with(SCRIPT, LIMITS),
    nil, script_words {{"kernel", "--kernel"}}, record = true},
  {"profile", "Runs a script and returns the memory traffic of each line and "
    .. "the bank conflicts of shared memory, with layouts that avoid them.",
    with(SCRIPT, LIMITS), nil, script_words {{"kernel", "--kernel"}},
    record = true},
  {"estimate", "Estimates the time of each launch on a GPU that need not be "
    .. "present, and what limits it.", with(SCRIPT, LIMITS, {
      card = {enum = {"h200", "h100", "a100", "l40s", "b200", "b300",
                      "rtx5090"}, type = "string", description = "the GPU (the "
                        .. "Blackwell card of the launch, else h200)"},
      cold = flag "L2 is empty at the start",
      registers = {type = "integer", minimum = 1, maximum = 255,
                   description = "registers of a thread"}}), nil,
    script_words {{"kernel", "--kernel"}, {"card", "--card"},
      {"cold", "--cold"}, {"registers", "--registers"}}, record = true},
  {"diff", "Runs two versions of a script and compares their kernels: CUDA C, "
    .. "counters, shared memory.", with(LIMITS, {
      before = text "text of the first version; either this or before_path",
      before_path = text "path of the first version",
      after = text "text of the second version; either this or after_path",
      after_path = text "path of the second version",
      arguments = SCRIPT.arguments}), nil,
    function(r, args, server)
      r.words = {"--format", "json"}
      add_script(r, args, server.root, "before", "before.lua")
      add_script(r, args, server.root, "after", "after.lua")
      add_arguments(r, args)
    end, record = true},
  {"doc", "Returns the reference of a public name (make_layout, arch.popc, "
    .. "tensor:fill), or searches names, errors and documents for words.",
    {names = words "names or words to look up"}, {"names"},
    function(r, args)
      r.words = {}
      for _, word in ipairs(args.names) do
        if word:find "^%-" then wrong("names: '%s' is not a name", word) end
        table.insert(r.words, word)
      end
    end},
  {"draw", "Draws a layout, a swizzle or an atom as text, or as a file's text "
    .. "in SVG, HTML or TeX.", {
      layout = text "CuTe notation, (8,4):(4,1), or the name of an atom",
      by = {type = "string", description = "what the colours show",
            enum = {"offset", "thread", "value", "bank", "none"}},
      tile = {type = "string", pattern = "^[0-9]+,[0-9]+$",
              description = "M,N: draws a thread-value layout on this tile"},
      dtype = text "element type, for banks"}, {"layout"},
    function(r, args)
      r.words = {}
      for _, name in ipairs {"by", "tile", "dtype"} do
        if args[name] then
          table.insert(r.words, "--" .. name)
          table.insert(r.words, args[name])
        end
      end
      table.insert(r.words, "--")
      table.insert(r.words, args.layout)
    end},
  {"learn", "The tutorial: lists the lessons, prints one, or checks an answer "
    .. "to an exercise.", {
      lesson = text "number or name of a lesson; without it, lists them",
      exercise = text "an exercise of the lesson (the first)",
      answer = text "Lua that answers the exercise"}, nil,
    function(r, args)
      r.words = {}
      if args.answer then
        r.folder = folder_of()
        local file = r.folder .. "/answer.lua"
        r.files[file] = args.answer
        r.words = {"--check", file}
        if args.exercise then
          table.insert(r.words, "--exercise")
          table.insert(r.words, args.exercise)
        end
      elseif args.lesson then
        r.words = {"--print"}
      end
      if args.lesson then
        table.insert(r.words, "--")
        table.insert(r.words, args.lesson)
      end
    end},
  {"tune", "Measures the kernels for a product or for attention on this "
    .. "machine's GPU and writes a table of the best. Needs a GPU and the "
    .. "option --allow io of the server.", with(LIMITS, {
      subject = {type = "string", enum = {"gemm", "attention"},
                 description = "what to tune"},
      arguments = words("further words of `cutelua tune`, such as --shapes "
        .. "4096,4096,4096")}), {"subject"},
    function(r, args, server)
      if not server.io then
        wrong("tune writes files: start the server with --allow io")
      end
      r.words = {args.subject}
      add_arguments(r, args)
    end},
}

local by_name = {}
for _, row in ipairs(ROWS) do by_name[row[1]] = row end

--- Returns the list of tools, in the form of tools/list.
---@return table[]
function tools.list()
  local list = {}
  for i, row in ipairs(ROWS) do
    list[i] = {name = row[1], title = "cutelua " .. row[1],
      description = row[2], inputSchema = {type = "object",
        properties = row[3], required = row[4], additionalProperties = false},
      outputSchema = row.record and RECORD,
      annotations = {readOnlyHint = row[1] ~= "tune", openWorldHint = false,
                     destructiveHint = false}}
  end
  return list
end

-- For each type of JSON Schema, a function that reports whether a value that
-- json.marked returned has this type.
local IS = {
  string = function(v) return type(v) == "string" end,
  boolean = function(v) return type(v) == "boolean" end,
  number = function(v) return type(v) == "number" end,
  integer = function(v) return math.type(v) == "integer" end,
  object = json.is_object,
  array = function(v)
    return type(v) == "table" and v ~= json.null and not json.is_object(v)
  end,
}

-- Raises an error if a value does not fit the schema of an argument.
local function check_value(name, v, schema)
  if not IS[schema.type](v) then
    wrong("%s: a value of type %s is needed", name, schema.type)
  end
  for i, x in ipairs(schema.items and v or {}) do
    check_value(("%s[%d]"):format(name, i), x, schema.items)
  end
  local known = not schema.enum
  for _, x in ipairs(schema.enum or {}) do known = known or x == v end
  if not known then
    wrong("%s: one of %s is needed", name, table.concat(schema.enum, ", "))
  end
  if schema.minimum and v < schema.minimum
    or schema.maximum and v > schema.maximum then
    wrong("%s = %s is out of range", name, v)
  end
  if type(v) == "string" and name ~= "script" and v:find "%z" then
    wrong("%s contains a zero byte", name)
  end
end

local function check_arguments(row, args)
  for name, v in pairs(args) do
    local schema = row[3][name]
    if not schema then
      local names = {}
      for k in pairs(row[3]) do names[#names + 1] = k end
      table.sort(names)
      wrong("%s has no argument '%s'; it has %s", row[1], core.visible(name),
            table.concat(names, ", "))
    end
    check_value(name, v, schema)
  end
  for _, name in ipairs(row[4] or {}) do
    if args[name] == nil then wrong("%s needs the argument '%s'", row[1], name)
    end
  end
end

--- Returns the request for the worker of a call; or nil and a sentence about
-- wrong arguments; or only nil if there is no such tool.
---@param name string
---@param args table of json.marked
---@param server table {root =, io =, seconds =, memory =}
---@return table? request
---@return string? message
function tools.request(name, args, server)
  local row = by_name[name]
  if not row then return nil end
  local r = {command = name, files = json.object {}, texts = json.object {},
             memory = server.memory, allow_io = server.io,
             seconds = server.seconds, grace = name == "check" and 1 or 0}
  local _, why = rpc.try(function()
    check_arguments(row, args)
    if args.seconds then
      if args.seconds <= 0 then wrong "seconds: more than 0 is needed" end
      r.seconds = math.min(args.seconds, server.seconds)
    end
    row[5](r, args, server)
  end)
  if why then return nil, why end
  return r
end

return tools
-- SPDX-License-Identifier: MIT
