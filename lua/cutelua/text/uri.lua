--- URIs: escapes, and paths of files.
local uri = {}

--- Returns a path with all bytes escaped that are neither unreserved characters
-- nor slashes.
---@param path string
---@return string
function uri.escape(path)
  return (path:gsub("[^%w/._~-]", function(c)
    return ("%%%02X"):format(c:byte())
  end))
end

--- Returns a text with the bytes that its escapes stand for. A percent sign
-- that begins no escape remains.
---@param text string
---@return string
function uri.unescape(text)
  return (text:gsub("%%(%x%x)", function(x)
    return string.char(tonumber(x, 16))
  end))
end

--- Returns the URI of an absolute path.
---@param path string
---@return string
function uri.of_path(path) return "file://" .. uri.escape(path) end

--- Returns the path of a file URI; nil for other URIs.
---@param text string
---@return string?
function uri.path(text)
  local path = text:match "^file://[^/]*(/.*)$"
  path = path and uri.unescape(path)
  return path and not path:find "%z" and path or nil
end

return uri
-- SPDX-License-Identifier: MIT
