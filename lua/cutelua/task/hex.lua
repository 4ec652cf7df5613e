--- Converts bytes to hexadecimal digits and back. The referee and its workers
-- exchange bytes in this form in JSON.
local hex = {}

-- DIGITS maps one or two bytes to digits, and BYTES maps two or four digits to
-- bytes. An entry is computed when it is first read. Inputs have millions of
-- bytes, and a table lookup by gsub takes a fifth of the time of a call.
local DIGITS = setmetatable({}, {__index = function(t, bytes)
  local text = ("%02x"):rep(#bytes):format(bytes:byte(1, -1))
  t[bytes] = text
  return text
end})
local BYTES = setmetatable({}, {__index = function(t, digits)
  local bytes = digits:gsub("%x%x", function(h)
    return string.char(tonumber(h, 16))
  end)
  t[digits] = bytes
  return bytes
end})

--- Returns two digits for each byte.
---@param bytes string
---@return string
function hex.encode(bytes) return (bytes:gsub("..?", DIGITS)) end

--- Returns the bytes that are encoded by hexadecimal digits.
---@param text string
---@return string
function hex.decode(text) return (text:gsub("%x%x%x?%x?", BYTES)) end

return hex
-- SPDX-License-Identifier: MIT
