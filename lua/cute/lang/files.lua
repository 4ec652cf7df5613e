--- Reads the bytes of files. The size of a read is limited, because a path from
-- the user may name a device that never ends.
local core = require "cute.core"

local files = {}

local MIB = 1 << 20

--- The largest size, in bytes, of a script, list or report that may be read.
files.MOST = 64 * MIB

--- Returns the bytes of an open file that have not been read yet, or nil and a
-- reason. It does not close the file.
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
      return nil, ("it is larger than %d MiB"):format(most // MIB)
    end
  until not piece
  return table.concat(pieces)
end

-- The largest size of a line of standard input, in bytes.
local LINE = 4 * MIB

--- Returns the next line of standard input without its end, or nil at the end
-- of input. Raises an error for a line that is too long: the input may be a
-- device that never ends a line. Reads single bytes, because a larger read
-- would block until input after the line arrives.
---@return string?
function files.line()
  local f, pieces, n, part = io.stdin, {}, 0, {}
  for i = 1, LINE do
    local c = f:read(1)
    if not c and i == 1 then return nil end
    if not c or c == "\n" then
      pieces[n + 1] = table.concat(part)
      return table.concat(pieces)
    end
    part[#part + 1] = c
    if #part == 4096 then
      n = n + 1
      pieces[n], part = table.concat(part), {}
    end
  end
  core.fail("io", ("a line of standard input is longer than %d MiB"):format(
    LINE // MIB))
end

--- Returns the bytes of a file, or nil and a reason.
---@param path string
---@param most? integer bytes; files.MOST when absent
---@param how? string "plain": opens only a regular file, so that the read never
-- waits for a pipe; "own": also rejects a symbolic link; "private": also
-- rejects a file that does not belong to this user
---@return string? text
---@return string? why
function files.read(path, most, how)
  local f <close>, why = core.open_input(path, how)
  if not f then return nil, why end
  return files.rest(f, most)
end

return files
-- SPDX-License-Identifier: MIT
