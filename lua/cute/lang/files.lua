--- The bytes of files, read with a bound: what a user names can be a device
-- that has no end.
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

return files
