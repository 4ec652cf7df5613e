--- Records the inputs that a process reads, so that the verdict on a script can
-- be kept until an input changes. Inputs are files, including absent ones, the
-- names in folders, and environment variables.
--
-- A read is {what =, name =, value = see reads.value, stamp = the file's stamp
-- when it was first read}. Programs that a script starts, modules in C and the
-- compiler read files that cannot be recorded. If any of them runs,
-- `reads.opaque` is true.
local core = require "cute.core"
local files = require "cute.lang.files"
local sys = require "cute.sys"

local reads = {list = {}, opaque = false}

-- The original functions of Lua's libraries and of cute.core, which reads.start
-- replaces.
local file_kind, folder_names = core.file_kind, core.folder_names
local getenv, open_input, sha256 = os.getenv, core.open_input, core.sha256

-- Returns the bytes of a regular file; nil for anything else.
local function contents(path)
  if file_kind(path) ~= "file" then return nil end
  local f <close> = open_input(path, "plain")
  return f and files.rest(f, math.maxinteger)
end

local VALUES = {
  file = function(path)
    local text = contents(path)
    return text and sha256(text) or file_kind(path) or "absent"
  end,
  kind = function(path) return file_kind(path) or "absent" end,
  folder = function(path)
    local names = folder_names(path)
    if not names then return "absent" end
    table.sort(names)
    return sha256(table.concat(names, "\0"))
  end,
  variable = function(name)
    local text = getenv(name)
    return text and sha256(text) or "absent"
  end,
}

--- Returns a text that changes when the input `name` changes; nil for an
-- unknown kind of input. The text is a hash of a file, of a variable or of the
-- names in a folder; or the kind of a path; or "absent".
---@param what string
---@param name string
---@return string?
function reads.value(what, name)
  local value = VALUES[what]
  return value and value(name)
end

local known = {}

-- Records that the process read an input.
local function note(what, name)
  if type(name) ~= "string" or known[what .. name] then return end
  known[what .. name] = true
  table.insert(reads.list, {what = what, name = name,
    stamp = what == "file" and sys.stamp(name) or nil})
end

--- Returns the paths at which `require` searches for a module, in order.
---@param name string
---@param templates string such as package.path
---@return string[]
local function candidates(name, templates)
  local out = {}
  local file = name:gsub("%.", "/"):gsub("%%", "%%%%")
  for template in templates:gmatch "[^;]+" do
    out[#out + 1] = (template:gsub("%?", file))
  end
  return out
end

--- Makes `require` call tell(path) for each file that its searcher for Lua
-- files tries, in order. The last path is the module's file, if one was found.
---@param tell fun(path: string)
function reads.watch_modules(tell)
  local search = package.searchers[3]
  package.searchers[3] = function(name)
    local path = package.searchpath(name, package.path)
    for _, file in ipairs(candidates(name, package.path)) do
      tell(file)
      if file == path then break end
    end
    return search(name)
  end
end

-- Replaces t[name] by a function that calls before(...) and then the original.
local function precede(t, name, before)
  local f = t[name]
  rawset(t, name, function(...)
    before(...)
    return f(...)
  end)
end

--- Starts recording what this process reads.
function reads.start()
  local function file(path) note("file", path) end
  reads.watch_modules(file)
  -- Searchers 4 and 5 find modules in C.
  for _, at in ipairs {4, 5} do
    local search = package.searchers[at]
    package.searchers[at] = function(name)
      local found, path = search(name)
      reads.opaque = reads.opaque or type(found) == "function"
      return found, path
    end
  end
  precede(io, "open", function(path, mode)
    if not mode or tostring(mode):find "[r+a]" then file(path) end
  end)
  for _, row in ipairs {{io, "lines"}, {io, "input"}, {core, "open_input"},
      {_G, "dofile"}, {_G, "loadfile"}} do
    precede(row[1], row[2], file)
  end
  precede(core, "file_kind", function(path) note("kind", path) end)
  precede(core, "folder_names", function(path) note("folder", path) end)
  precede(os, "getenv", function(name) note("variable", name) end)
  for _, row in ipairs {{io, "popen"}, {os, "execute"},
      {package, "loadlib"}, {core, "jit_compile"}} do
    precede(row[1], row[2], function() reads.opaque = true end)
  end
end

return reads
-- SPDX-License-Identifier: MIT
