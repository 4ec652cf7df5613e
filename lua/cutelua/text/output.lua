--- Writes files. A write replaces the whole file or leaves it unchanged.
local core = require "cute.core"
local files = require "cute.lang.files"

local output = {}

--- The maximum number of seconds that a write waits for the reader of a named
-- pipe.
output.PATIENCE = 30

local function refuse(path, why)
  return nil, ("cannot write %s: %s [io]"):format(core.visible(path),
    (why:gsub("^.*: ", "")))
end

-- Reports whether a path is written directly, without a temporary file. This
-- holds for devices, pipes and all paths in /dev and /proc. A descriptor such
-- as /dev/stdout is written directly even if it is a regular file.
local function is_stream(path)
  local kind = core.file_kind(path)
  return kind == "pipe" or kind == "device" or path:find "^/dev/"
    or path:find "^/proc/"
end

local function write_straight(path, ...)
  if core.file_kind(path) == "pipe" then
    local ok, why = core.write_pipe(path, output.PATIENCE, ...)
    if ok then return true end
    return refuse(path, why)
  end
  local f, why = io.open(path, "wb")
  local ok = f
  if f then ok, why = f:write(...) end
  if f and ok then ok, why = f:close() end
  if ok then return true end
  return refuse(path, why)
end

-- Writes to the temporary file that open_aside opened, and renames the file to
-- its target. Returns nil and a reason on failure. The to-be-closed variable
-- removes the temporary file on every exit, including errors.
local function fill(f, aside, target, ...)
  local _ <close> = setmetatable({}, {__close = function()
    if io.type(f) == "file" then f:close() end
    if aside then os.remove(aside) end
  end})
  local ok, why = f:write(...)
  if ok then ok, why = core.put_in_place(f, aside, target) end
  return ok, why
end

local function open_aside(path, private)
  if core.file_kind(path) == "folder" then return nil, "Is a directory" end
  return core.open_aside(path, private)
end

--- Returns the contents of a regular file. Rejects devices and pipes, because
-- they may be endless.
---@param path string
---@param most integer limit in bytes
---@return string? text, string? message
function output.read_plain(path, most)
  local function no(what, why)
    return nil, ("cannot %s %s: %s [io]"):format(what, core.visible(path), why)
  end
  local kind, why = core.file_kind(path)
  if not kind then return no("open", why) end
  if kind ~= "file" then
    return no("read", ("it is a %s, not a regular file"):format(kind))
  end
  local text, wrong = files.read(path, most, "plain")
  if not text then return no("read", wrong) end
  return text
end

--- Reports whether a file can be written. Programs call this function before
-- long work.
---@param path string
---@return boolean? ok, string? message
function output.writable(path)
  -- A pipe is assumed to be writable. A test would have to open the pipe, and
  -- would block until it has a reader.
  if core.file_kind(path) == "pipe" then return true end
  if is_stream(path) then
    local f <close>, why = io.open(path, "ab")
    if not f then return refuse(path, why) end
    return true
  end
  local f, aside = open_aside(path)
  if not f then return refuse(path, aside) end
  f:close()
  if aside then os.remove(aside) end
  return true
end

local function write_aside(path, private, ...)
  local f, aside, target = open_aside(path, private)
  if not f then return refuse(path, aside) end
  local ok, why = fill(f, aside, target, ...)
  if not ok then return refuse(path, why) end
  return true
end

--- Writes a whole file. Writes a temporary file first and then renames it, so
-- that a failure leaves the existing file unchanged. The file's mode is kept.
-- If the path is a symbolic link of the current user, the link's target is
-- replaced. Pipes and devices are written directly.
---@param path string
---@param ... string the contents, in pieces
---@return boolean? ok, string? message
function output.write_file(path, ...)
  if is_stream(path) then return write_straight(path, ...) end
  return write_aside(path, false, ...)
end

--- Writes a regular file that only the current user may read. Writes like
-- write_file, but rejects pipes and devices.
---@param path string
---@param ... string
---@return boolean? ok, string? message
function output.write_private(path, ...)
  if is_stream(path) then return refuse(path, "it is not a regular file") end
  return write_aside(path, true, ...)
end

--- Writes to a file. Writes to standard output if path is nil or "-".
---@param path string?
---@param ... string
---@return boolean? ok, string? message
function output.output(path, ...)
  if path and path ~= "-" then return output.write_file(path, ...) end
  local ok, why = io.stdout:write(...)
  if ok then ok, why = io.stdout:flush() end
  if not ok then
    return nil, ("cannot write standard output: %s [io]"):format(why)
  end
  return true
end

return output
-- SPDX-License-Identifier: MIT
