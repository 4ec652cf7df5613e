--- `cutelua cache`: shows, verifies and clears the caches of compiled kernels.
local core = require "cute.core"
local literal = require "cutelua.text.literal"
local report = require "cute.lang.report"

local main = {}

local HELP = [==[
usage: cutelua cache list|verify|clear|path [options]
  list             lists the compiled kernels, the most recently used first
  verify           reads all entries and reports those that are damaged or that
                   other users could have written; cutelua never uses these
  clear [--mb N]   removes all entries; with --mb, the least recently used ones
                   until N MB are left
  path             prints the folder

The cache is $XDG_CACHE_HOME/cutelua, or ~/.cache/cutelua. It holds at most
CUTELUA_CACHE_MB (default 256); the least recently used entries are removed
first. `list`, `verify` and `path` also show CUTELUA_CACHE_IMAGE, the read-only
cache of a container image, which `cutelua compile --into` fills.

Exit code: 0 success, 1 an error or a damaged entry, 2 a wrong command line.
]==]

local function size(bytes)
  return bytes < 1e6 and ("%.1f KB"):format(bytes / 1e3)
    or ("%.1f MB"):format(bytes / 1e6)
end

-- Returns the open caches: the user's cache, and the image's cache if there is
-- one. Prints the reason if a cache cannot be used. verify: see
-- core.cache_list.
local function caches(verify)
  local list = {}
  for _, image in ipairs {false, true} do
    local c = core.cache_list(image, verify)
    c.what = image and "the image's cache" or "the cache"
    if c.note then
      report.tell("cutelua: cache: " .. core.visible(c.note))
    end
    if c.warning then
      report.tell("cutelua: cache: " .. core.visible(c.warning))
    end
    if c.on or c.note then list[#list + 1] = c end
  end
  if #list == 0 then
    report.tell "cutelua: cache: the cache is disabled"
  end
  return list
end

--- Parses the key text of a cache entry. Returns the target, the options and
-- the name of the kernel.
---@param key string
---@return string arch
---@return string options
---@return string name
function main.describe(key)
  local head, source = key:match "^(.-\n)\n(.*)$"
  local arch, rest = (head or ""):match "^[^\n]*\n[^\n]*\n([^\n]*)\n(.*)$"
  local options = (rest or ""):gsub("name [^\n]*\n$", ""):gsub("\n", " ")
  local name = (source or ""):match "__global__[^;{]-([%a_][%w_]*)%s*%("
  -- The source may have launch bounds between the type and the name.
  if name and name:find "^__launch_bounds__" then
    name = source:match "__launch_bounds__%s*%b()%s*([%a_][%w_]*)%s*%("
  end
  return arch or "?", (options:gsub("%s+$", "")), name or "?"
end

local STATES = {broken = "damaged", old = "of another version of cutelua",
  foreign = "others could have written it"}

local function list()
  local code = 0
  for _, c in ipairs(caches(false)) do
    if c.note then code = 1 end
    for i = #c, 1, -1 do
      local e = c[i]
      if e.state == "good" then
        local arch, options, name = main.describe(e.key)
        print(core.visible(("%s  %-9s NVRTC %-5s %9s  %s%s"):format(
          os.date("%Y-%m-%d %H:%M", e.used), arch, e.nvrtc, size(e.bytes),
          name, options ~= "" and "  " .. options or "")))
      elseif e.state ~= "gone" then
        print(("%s  %-9s %-11s %9s  %s: %s"):format(
          os.date("%Y-%m-%d %H:%M", e.used), "?", "", size(e.bytes),
          core.visible(e.name), STATES[e.state]))
      end
    end
    if c.on then
      print(("%s in %s: %s%s"):format(report.plural(#c, "entry", "entries"),
        core.visible(c.dir), size(c.bytes), c.what == "the cache"
        and (" of at most %.0f MB"):format(c.max / (1 << 20)) or ""))
    end
  end
  return code
end

local function verify()
  local code = 0
  for _, c in ipairs(caches(true)) do
    local bad, good, old = 0, 0, 0
    for _, e in ipairs(c) do
      if e.state == "good" then
        good = good + 1
      elseif e.state == "old" then
        old = old + 1
      elseif e.state ~= "gone" then
        bad = bad + 1
        print(("%s/%s: %s"):format(core.visible(c.dir), core.visible(e.name),
          STATES[e.state]))
      end
    end
    if c.on then
      print(("%s: %s good, %d not%s"):format(core.visible(c.dir),
        report.plural(good, "entry", "entries"), bad,
        old > 0 and (", %d %s"):format(old, STATES.old) or ""))
    end
    if c.note or c.warning or bad > 0 then code = 1 end
  end
  return code
end

local function clear(keep)
  local n, bytes, warning = core.cache_clear(keep << 20)
  if not n then
    report.tell("cutelua: cache: " .. bytes)
    return 1
  end
  if warning ~= "" then
    report.tell("cutelua: cache: " .. core.visible(warning))
  end
  print(("removed %s, %s"):format(report.plural(n, "entry", "entries"),
    size(bytes)))
  return 0
end

local function path()
  local code = 1
  for _, c in ipairs(caches()) do
    if c.on then
      print(c.dir)
      code = 0
    end
  end
  return code
end

local function refuse(text)
  report.tell("cutelua: cache" .. text)
  return 2
end

--- Runs the command; returns its exit code.
---@param words string[]
---@return integer
function main.main(words)
  local verb = words[1]
  for _, word in ipairs(words) do
    if word == "--help" or word == "-h" then
      io.write(HELP)
      return 0
    end
  end
  local keep = 0
  if verb == "clear" and words[2] then
    local text = words[2]:match "^%-%-mb=(.*)$" or words[2] == "--mb"
      and words[3]
    keep = literal.whole(text)
    if not text or words[words[2] == "--mb" and 4 or 3] then
      return refuse(" clear: the only option is --mb N")
    elseif not keep or keep < 0 or keep > 1 << 30 then
      return refuse((" clear: --mb: a whole number of MB is needed, got '%s'")
        :format(core.visible(text)))
    end
  elseif words[2] then
    return refuse((": unexpected argument '%s'"):format(
      core.visible(words[2])))
  end
  if verb == "list" then return list()
  elseif verb == "verify" then return verify()
  elseif verb == "path" then return path()
  elseif verb == "clear" then return clear(keep) end
  return refuse(verb and (": list, verify, clear or path is needed, got '%s'")
    :format(core.visible(verb)) or ": list, verify, clear or path?")
end

return main
-- SPDX-License-Identifier: MIT
