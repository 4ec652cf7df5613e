--- The bytes of files. A file is read with a bound, because what a user names
-- can be a device that has no end, and written whole or not at all.
local core = require "cute.core"

local files = {}

local MIB = 1 << 20

--- Bytes that a script, a list or a report has at most.
files.MOST = 64 * MIB

--- What is left of a file that is open; nil and a reason. It is not closed.
---@param f userdata
---@param most? integer bytes; files.MOST when absent
---@return string? text
---@return string? why
function files.rest(f, most)
  most = most or files.MOST
  local pieces, size = {}, 0
  repeat
    local piece, why = f:read(1 << 16)
    if why then return nil, why end
    pieces[#pieces + 1] = piece
    size = size + #(piece or "")
    if size > most then
      return nil, ("it has over %d MiB"):format(most // MIB)
    end
  until not piece
  return table.concat(pieces)
end

--- A file's bytes; nil and a reason.
---@param path string
---@param most? integer bytes; files.MOST when absent
---@param how? string "plain": nothing but a plain file is opened, so that no
-- pipe is waited for; "own": such a file of a folder, which no link is;
-- "private": this user's
---@return string? text
---@return string? why
function files.read(path, most, how)
  local f <close>, why = core.open_input(path, how)
  if not f then return nil, why end
  return files.rest(f, most)
end

---------------------------------------------------------------------------
-- Writing
---------------------------------------------------------------------------

local function refuse(path, why)
  return nil, ("cannot write %s: %s [io]"):format(core.visible(path),
    (why:gsub("^.*: ", "")))
end

-- What is written to as it is: devices, pipes, and what /dev and /proc show
-- of this process (/dev/stdout may be a plain file).
local function is_stream(path)
  local kind = core.file_kind(path)
  return kind == "pipe" or kind == "device" or path:find "^/dev/"
    or path:find "^/proc/"
end

local function write_straight(path, ...)
  local f, why = io.open(path, "wb")
  local ok = f
  if f then ok, why = f:write(...) end
  if f and ok then ok, why = f:close() end
  if ok then return true end
  return refuse(path, why)
end

-- Writes what open_aside gave and puts it in place; nil, reason. Whatever
-- happens, nothing of it is left: without a close, an error is too.
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

--- The text of a plain file, which a device or a pipe is not: they need not
-- end.
---@param path string
---@param most integer bytes that it may have
---@return string? text, string? message
function files.read_plain(path, most)
  local function no(what, why)
    return nil, ("cannot %s %s: %s [io]"):format(what, core.visible(path), why)
  end
  local kind, why = core.file_kind(path)
  if not kind then return no("open", why) end
  if kind ~= "file" then
    return no("read", ("it is a %s, not a plain file"):format(kind))
  end
  local text, wrong = files.read(path, most, "plain")
  if not text then return no("read", wrong) end
  return text
end

--- Could a file of that name be written? To be asked before long work.
---@param path string
---@return boolean? ok, string? message
function files.writable(path)
  if core.file_kind(path) == "pipe" then return true end  -- would wait
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

--- Writes a whole file: aside first, then renamed, so that an existing file
-- stays as it was if anything fails, and keeps its mode. A symbolic link of
-- this user's stays, and what it leads to is replaced. Pipes and devices are
-- written to.
---@param path string
---@param ... string the bytes, in pieces
---@return boolean? ok, string? message
function files.write_file(path, ...)
  if is_stream(path) then return write_straight(path, ...) end
  return write_aside(path, false, ...)
end

--- Writes a plain file that only this user may read, as write_file does; pipes
-- and devices are refused.
---@param path string
---@param ... string
---@return boolean? ok, string? message
function files.write_private(path, ...)
  if is_stream(path) then return refuse(path, "it is no plain file") end
  return write_aside(path, true, ...)
end

--- Writes to a file, or to standard output where path is nil or "-".
---@param path string?
---@param ... string
---@return boolean? ok, string? message
function files.output(path, ...)
  if path and path ~= "-" then return files.write_file(path, ...) end
  local ok, why = io.stdout:write(...)
  if ok then ok, why = io.stdout:flush() end
  if not ok then
    return nil, ("cannot write standard output: %s [io]"):format(why)
  end
  return true
end

return files
