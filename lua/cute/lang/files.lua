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
