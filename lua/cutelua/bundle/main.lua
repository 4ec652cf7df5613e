--- The command `cutelua bundle`.
--
-- Each architecture is recorded by a separate process, because plans and
-- kernels that a script keeps depend on the architecture.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local literal = require "cutelua.text.literal"
local output = require "cutelua.text.output"
local range = require "cutelua.bundle.range"
local report = require "cute.lang.report"
local sys = require "cute.sys"

local main = {}

main.HELP = [==[
usage: cutelua bundle [options] script [arguments]
       cutelua bundle --verify [options] script [arguments]
Runs a script on the simulator and writes its kernels as C: NAME.h and NAME.c
with compiled code and launch functions, NAME.json with a certificate. The C
program needs neither Lua nor a compiler; libcuda is loaded at run time.
docs/bundle.md describes which launches become functions, and how to call them.

  -o DIR         the folder to write to (default .)
  --arch LIST    architectures, separated by commas (default sm_90a)
  --name NAME    name of the files, and prefix of the functions (default: the
                 script's name)
  --test         also writes NAME_test.c and NAME_test.bin: a program that
                 compares the results of a GPU with the simulator's
  --cubin        also writes each kernel's cubin
  --ptx          also writes each kernel's PTX
  --check S      checks all schedules of each launch for at most S seconds
                 (default 5; 0: does not check)
  --verify       writes nothing: compares the files in DIR with their
                 certificate, and the script's kernels with the recorded ones
  --help         prints this text and stops

Exit code: 0 success, 1 an error or a difference, 2 a wrong command line.
]==]

local VALUED = {["-o"] = "folder", ["--arch"] = "archs", ["--name"] = "name",
  ["--check"] = "seconds", ["--record"] = "record"}
local FLAGS = {["--test"] = "test", ["--verify"] = "verify",
  ["--cubin"] = "cubin", ["--ptx"] = "ptx", ["--help"] = "help",
  ["-h"] = "help"}

-- Returns the list of architectures, the newest first; specific ones such as
-- sm_90a precede general ones such as sm_90. A GPU uses the first architecture
-- in the list that it can run.
local function read_archs(text)
  local list, seen = {}, {}
  for a in text:gmatch "[^,]+" do
    if not pcall(devices.sm, a) or not a:find "^sm_%d+a?$" then
      return nil, ("--arch: no architecture '%s'; %s are possible"):format(a,
        table.concat(core.archs(), " "))
    end
    if not seen[a] then list[#list + 1], seen[a] = a, true end
  end
  if not list[1] then return nil, "--arch: the list is empty" end
  local function key(a)
    return tonumber(a:match "%d+") * 2 + (a:find "a$" and 1 or 0)
  end
  table.sort(list, function(a, b) return key(a) > key(b) end)
  return list
end

-- Returns the name of a script as a C identifier.
local function name_of(script)
  local name = script:match "([^/]*)$":gsub("%.%w+$", ""):gsub("[^%w]", "_")
  return name:find "^%a" and name or "bundle_" .. name
end

--- Parses the arguments after `bundle`. Returns nil and a message if one is
-- invalid.
function main.options(words)
  local opt, i = {folder = ".", archs = devices.ARCH, seconds = "5"}, 1
  while words[i] and words[i]:find "^%-." do
    local a, value = words[i]:match "^(%-%-%l+)=(.*)$"
    a = a or words[i]
    if FLAGS[a] then
      opt[FLAGS[a]] = true
    elseif VALUED[a] then
      if not value then i, value = i + 1, words[i + 1] end
      if not value or value == "" then
        return nil, ("bundle: '%s' needs an argument"):format(a)
      end
      opt[VALUED[a]] = value
    else
      return nil, ("bundle: unknown option '%s'; bundle --help lists them")
        :format(a)
    end
    i = i + 1
  end
  if opt.help then return opt end
  if not words[i] then return nil, "bundle: the script is missing" end
  local why
  opt.archs, why = read_archs(opt.archs)
  if not opt.archs then return nil, "bundle: " .. why end
  local seconds = literal.decimal(opt.seconds)
  if not seconds or seconds < 0 then
    return nil, ("bundle: --check: a number of at least 0 is needed, got '%s'")
      :format(opt.seconds)
  end
  opt.seconds = seconds > 0 and seconds or nil
  opt.name = opt.name or name_of(words[i])
  if not opt.name:find "^%a[%w_]*$" then
    return nil, ("bundle: --name: '%s' is not a C identifier"):format(opt.name)
  end
  opt.script = i
  return opt
end

---------------------------------------------------------------------------
-- Processes
---------------------------------------------------------------------------

-- The largest size of a child's result in bytes.
local LARGEST = 1 << 32

-- Appends value v to the list `out` as Lua text. v is a string, number or
-- boolean, or a table of such values.
local function plain(v, out)
  if type(v) ~= "table" then
    out[#out + 1] = type(v) == "string" and ("%q"):format(v)
      or math.type(v) == "float" and ("%a"):format(v)
      or v == math.mininteger and "math.mininteger" or tostring(v)
    return
  end
  out[#out + 1] = range.is_formula(v) and "F{" or "{"
  for k, x in pairs(v) do
    out[#out + 1] = math.type(k) and "[" .. k .. "]=" or ("[%q]="):format(k)
    plain(x, out)
    out[#out + 1] = ","
  end
  out[#out + 1] = "}"
end

-- Records one architecture; this function runs in a child process.
local function recorded(opt, words, run)
  local record = require "cutelua.bundle.record"
  local functions, code = record.run(opt.archs[1], {seconds = opt.seconds,
    tests = opt.test}, function()
    run(table.move(words, opt.script, #words, 1, {[0] = words[0]}))
    return 0
  end)
  if not functions then return code end
  local out = {"return "}
  plain(functions, out)
  local ok, why = output.write_private(opt.record, table.concat(out))
  if ok then return 0 end
  report.tell("cutelua: bundle: " .. why)
  return 1
end

-- Records one architecture in a child process, whose output goes to standard
-- error. Returns the functions, or nil and an exit code.
local function record_arch(opt, words, arch)
  local file = os.tmpname()
  local list = {sys.program(), "bundle", "--record", file, "--arch", arch,
                "--check", ("%g"):format(opt.seconds or 0)}
  if opt.test then list[#list + 1] = "--test" end
  table.move(words, opt.script, #words, #list + 1, list)
  local child, why = sys.spawn(list)
  if not child then
    core.fail("io", "bundle: cannot start a process: " .. why)
  end
  child:finish()  -- closes the script's standard input
  for text in child.receive, child do io.stderr:write(text) end
  local how, code = child:wait()
  child:close()
  local text = how == "exit" and code == 0
    and output.read_plain(file, LARGEST)
  os.remove(file)
  if not text then return nil, how == "exit" and code ~= 0 and code or 1 end
  return load(text, "=functions", "t", {math = math, F = range.restore})()
end

-- Merges functions recorded for one more architecture into a bundle. Functions
-- of the same name must have the same parameters.
local function merge(b, functions, arch)
  for _, f in ipairs(functions) do
    local known = b.by_name[f.name]
    if known and known.signature ~= f.signature then
      core.fail("bad-argument", ("bundle: the arguments of %s differ between "
        .. "architectures: (%s) and, for %s, (%s)"):format(f.name,
        known.signature, arch, f.signature))
    end
    if not known then
      known = {name = f.name, signature = f.signature, variants = {}}
      b.by_name[f.name] = known
      b.functions[#b.functions + 1] = known
    end
    for _, v in ipairs(f.variants) do
      v.arch = arch
      table.insert(known.variants, v)
    end
  end
end

-- Returns the bundle of a script, or nil and an exit code.
local function bundle_of(opt, words)
  local b = {name = opt.name, archs = opt.archs, functions = {}, by_name = {}}
  for _, arch in ipairs(opt.archs) do
    local functions, code = record_arch(opt, words, arch)
    if not functions then return nil, code end
    merge(b, functions, arch)
  end
  if not b.functions[1] then
    report.tell("cutelua: bundle: the script launched no kernel and added no "
      .. "function")
    return nil, 1
  end
  return b
end

---------------------------------------------------------------------------
-- The command
---------------------------------------------------------------------------

--- Writes a file, or raises an error.
function main.put(opt, name, ...)
  local ok, why = output.write_file(opt.folder .. "/" .. name, ...)
  if not ok then core.fail("io", "bundle: " .. why) end
end

--- Runs the command: returns its exit code. run(words) runs a script.
function main.main(words, run)
  local opt, message = main.options(words)
  if not opt then
    report.tell("cutelua: " .. message)
    return 2
  elseif opt.help then
    io.write(main.HELP)
    return 0
  elseif opt.record then
    return recorded(opt, words, run)
  end
  local b, code = bundle_of(opt, words)
  if not b then return code end
  local certificate = require "cutelua.bundle.certificate"
  if opt.verify then return certificate.verify(opt, b) end
  return certificate.write(opt, b)
end

return main
-- SPDX-License-Identifier: MIT
