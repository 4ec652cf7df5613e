--- Bytes as hexadecimal digits, which the referee and its workers exchange in
-- JSON.
local hex = {}

--- Returns two digits for each byte.
---@param bytes string
---@return string
function hex.encode(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

--- Returns the bytes that hexadecimal digits stand for.
---@param text string
---@return string
function hex.decode(text)
  return (text:gsub("%x%x", function(h)
    return string.char(tonumber(h, 16))
  end))
end

return hex
-- SPDX-License-Identifier: MIT
