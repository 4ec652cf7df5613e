--- Command-line options of scripts: each is declared once, for parsing, --help
-- and error messages in plain words.
--
--     local opt = cli.parse(arg, {
--       name = "gemm3stage", about = "A 3-stage pipelined GEMM.",
--       options = {
--         {"--m", "int", min = 1, help = "rows of A and C"},
--         {"--plot", "flag", help = "draw it too"},
--       },
--       common = {"device", "arch", "seed"},  -- from cli.common; true: all
--     })
--     opt.m, opt.plot, opt.device
--
-- Types of options are int, number, string, file, choice and flag. `choices`
-- lists the words of a choice; an architecture may follow the word `target`, as
-- in sim:sm_100a. A value is the next word, or follows "=". Dashes in a name
-- become underscores in the result. Words that are not options are rejected,
-- unless `args = {name=, help=, many=}` accepts them; `opt.args` is then a list
-- of them.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local literal = require "cutelua.text.literal"
local output = require "cutelua.text.output"
local sign = require "cute.lang.signature"

local cli = {}

--- Returns the whole number that a word consists of, or nil: see literal.whole.
---@param text string?
---@return integer?
function cli.whole(text) return literal.whole(text) end

--- Options that all scripts of the repository can have, by name.
cli.common = {
  device = {"--device", "choice", choices = {"auto", "sim", "gpu"},
    target = "sim", default = "auto", help = "the device; auto: the GPU if "
      .. "there is one; sim:sm_100a: the simulator of that target"},
  arch = {"--arch", "string", pattern = "^sm_%d%d+[af]?$",
    want = "a name such as sm_80 or sm_90a", known = "arch",
    help = "target of the simulator and --emit, such as sm_90a"},
  emit = {"--emit", "choice", choices = {"ir", "cu", "ptx", "sass", "cubin"},
    help = "writes the generated text and runs nothing"},
  output = {"-o", "file", key = "output", needs = "--emit",
    help = "file that --emit writes (default standard output)"},
  seed = {"--seed", "int", min = 0, default = 0,
    help = "seed of the data and of the simulator's schedule"},
  a = {"--a", "file", help = "reads A from a NumPy .npy file"},
  b = {"--b", "file", help = "reads B from a NumPy .npy file"},
  out = {"--out", "file", help = "writes the result to a .npy file"},
  conflicts = {"--conflicts", "flag", help = "on the simulator: reports bank "
    .. "conflicts in shared memory, and a layout without them"},
}
local COMMON_ORDER = {"device", "arch", "emit", "output", "seed", "a", "b",
  "out", "conflicts"}

-- ---- values ----

local function number_in_range(o, x, text)
  if o.min and x < o.min or o.max and x > o.max then
    local range = o.min and o.max and ("from %s to %s"):format(o.min, o.max)
      or o.min and ("of at least %s"):format(o.min)
      or ("of at most %s"):format(o.max)
    return nil, ("%s %s"):format(o[2] == "int" and "a whole number"
      or "a number", range), text
  end
  return x
end

local readers = {}

function readers.int(o, text)
  if not text:find "^[+-]?%d+$" then return nil, "a whole number" end
  local x = cli.whole(text)
  if not x then return nil, "a whole number of at most 63 bits" end
  return number_in_range(o, x, text)
end

function readers.number(o, text)
  local x = literal.decimal(text)
  if not x then return nil, "a finite number" end
  return number_in_range(o, x, text)
end

function readers.string(o, text)
  if o.pattern and not text:find(o.pattern) then
    return nil, o.want or "a value like " .. o.pattern
  end
  if o.known == "arch" and not pcall(devices.sm, text) then
    return nil, "a supported architecture, such as sm_80 or sm_90a,"
  end
  return text
end

function readers.file(_, text)
  if text == "" then return nil, "a file name" end
  return text
end

function readers.choice(o, text)
  for _, c in ipairs(o.choices) do
    if c == text then return text end
  end
  local first, arch = text:match "^(%w+):(.*)$"
  if first and first == o.target and pcall(devices.sm, arch) then
    return text
  end
  return nil, "one of " .. table.concat(o.choices, ", ")
    .. (o.target and (", %s:sm_100a"):format(o.target) or "")
end

-- ---- parsing ----

local function key_of(o)
  return o.key or (o[1]:gsub("^%-+", ""):gsub("%-", "_"))
end

local function all_options(spec)
  local list = {}
  for _, o in ipairs(spec.options or {}) do list[#list + 1] = o end
  local names = spec.common == true and COMMON_ORDER or spec.common or {}
  for _, name in ipairs(names) do
    list[#list + 1] = assert(cli.common[name], "no common option " .. name)
  end
  list[#list + 1] = {"--help", "flag", help = "prints this text and stops"}
  return list
end

local function unknown(word, list)
  local names = {}
  for i, o in ipairs(list) do names[i] = o[1] end
  local near = sign.nearest(word, names)
  return ("unknown option '%s'%s; --help lists them all"):format(word,
    near and (" (did you mean %s?)"):format(near) or "")
end

local function read_value(o, text)
  local value, want = readers[o[2]](o, text)
  if value == nil then
    return nil, ("%s: %s expected, got '%s'"):format(o[1], want, text)
  end
  return value
end

local function set_defaults(spec, list, opt)
  for _, o in ipairs(list) do
    local key = key_of(o)
    if o.needs and opt[key] ~= nil
        and opt[o.needs:gsub("^%-+", "")] == nil then
      return nil, ("%s needs %s too"):format(o[1], o.needs)
    end
    if opt[key] == nil then
      if o.required then return nil, o[1] .. " is needed" end
      opt[key] = o.default
    end
  end
  if spec.args and spec.args.required and #opt.args == 0 then
    return nil, ("%s is needed"):format(spec.args.name)
  end
  return opt
end

-- Parses the option that words[i] names; returns the next index.
local function take_option(words, i, by_name, list, opt)
  local name, text = words[i]:match "^(%-%-[^=]+)=(.*)$"
  name = name or words[i]
  local o = by_name[name]
  if not o then return nil, unknown(name, list) end
  if o[2] == "flag" then
    if text then return nil, ("%s takes no value"):format(name) end
    opt[key_of(o)] = true
    return i + 1
  end
  if not text then
    i = i + 1
    text = words[i]
    if not text then return nil, ("%s needs a value"):format(name) end
  end
  local value, message = read_value(o, text)
  if value == nil then return nil, message end
  opt[key_of(o)] = value
  return i + 1
end

--- Parses words without printing or exiting. Returns the options, or nil and a
-- sentence.
---@param words string[] such as `arg`
---@param spec table see above
---@return table? options, string? message
function cli.try_parse(words, spec)
  local list, by_name = all_options(spec), {}
  for _, o in ipairs(list) do by_name[o[1]] = o end
  by_name["-h"] = by_name["--help"]
  local opt, i, plain = {args = {}}, 1, false
  while words[i] do
    local word = words[i]
    if plain or word == "-" or word:sub(1, 1) ~= "-" then
      if not spec.args or not spec.args.many and #opt.args == 1 then
        return nil, ("unexpected argument '%s'"):format(word)
      end
      opt.args[#opt.args + 1] = word
      i = i + 1
    elseif word == "--" then
      plain, i = true, i + 1
    else
      local next_i, message = take_option(words, i, by_name, list, opt)
      if not next_i then return nil, message end
      i = next_i
    end
  end
  if opt.help then return opt end
  return set_defaults(spec, list, opt)
end

-- ---- help ----

local PLACE = {int = "N", number = "X", string = "NAME", file = "FILE"}

local function help_left(o)
  if o[2] == "flag" then return o[1] end
  local place = o.place or o.choices and table.concat(o.choices, "|")
    or PLACE[o[2]]
  return o[1] .. " " .. place
end

local function help_right(o)
  local text = o.help or ""
  if o.default ~= nil then
    text = ("%s (default %s)"):format(text, o.default)
  end
  return text
end

-- Wraps text in lines of at most `width`.
local function wrap(text, width)
  local lines, line = {}, ""
  for word in text:gmatch "%S+" do
    if line ~= "" and #line + 1 + #word > width then
      lines[#lines + 1], line = line, ""
    end
    line = line == "" and word or line .. " " .. word
  end
  lines[#lines + 1] = line
  return lines
end

--- Returns the text of --help.
---@param spec table
---@return string
function cli.help(spec)
  local list, width = all_options(spec), 0
  local a = spec.args
  local usage = ("usage: cutelua %s [options]%s"):format(
    spec.script or "scripts/" .. spec.name .. ".lua",
    a and (a.many and " [%s...]" or " [%s]"):format(a.name) or "")
  local out = {usage}
  if spec.about then
    for _, line in ipairs(wrap(spec.about, 78)) do out[#out + 1] = line end
  end
  out[#out + 1] = ""
  for _, o in ipairs(list) do width = math.max(width, #help_left(o)) end
  width = math.min(width, 28)
  local function row(left, right)
    local lines = wrap(right, 74 - width)
    if #left > width then
      out[#out + 1] = "  " .. left
      left = ""
    end
    for i, line in ipairs(lines) do
      out[#out + 1] = ("  %-" .. width .. "s  %s"):format(
        i == 1 and left or "", line):gsub("%s+$", "")
    end
  end
  if a then row(a.name, a.help or "") end
  for _, o in ipairs(list) do row(help_left(o), help_right(o)) end
  return table.concat(out, "\n") .. "\n"
end

--- Parses the command-line arguments of a script. --help prints and exits with
-- code 0. An error prints one sentence on standard error and exits with code 2.
---@param words string[] such as `arg`
---@param spec table see above
---@return table options
function cli.parse(words, spec)
  local opt, message = cli.try_parse(words, spec)
  if not opt then
    io.stdout:flush()
    io.stderr:write(core.message(core.visible(spec.name .. ": " .. message)),
      "\n")
    os.exit(2, true)
  elseif opt.help then
    io.write(core.visible(cli.help(spec), true))
    os.exit(0, true)
  end
  return opt
end

-- ---- files ----

cli.read_plain, cli.writable = output.read_plain, output.writable
cli.write_file, cli.write_private = output.write_file, output.write_private
cli.output = output.output

--- Returns the name in a list that is most similar to `name`, or nil if none is
-- similar.
---@param name string
---@param list string[]
---@return string?
function cli.nearest(name, list) return sign.nearest(name, list) end

return sign.public("cli.", cli, [[
  whole(text?: string)
  nearest(name: string, list: table)
  try_parse(words: table, spec: table)
  parse(words: table, spec: table)
  help(spec: table)
  writable(path: string) read_plain(path: string, most: integer)
  write_file(path: string, pieces...: string|number)
  write_private(path: string, pieces...: string|number)
  output(path?: string, pieces...: string|number)
]])
-- SPDX-License-Identifier: MIT
