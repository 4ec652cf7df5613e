--- Escapes and unescapes URIs, and converts between URIs and file paths.
local uri = {}

--- Percent-encodes all bytes of a path except unreserved characters and
-- slashes.
---@param path string
---@return string
function uri.escape(path)
  return (path:gsub("[^%w/._~-]", function(c)
    return ("%%%02X"):format(c:byte())
  end))
end

--- Decodes the percent escapes of a text. A percent sign that is not part of an
-- escape is kept.
---@param text string
---@return string
function uri.unescape(text)
  return (text:gsub("%%(%x%x)", function(x)
    return string.char(tonumber(x, 16))
  end))
end

--- Returns the file URI of an absolute path.
---@param path string
---@return string
function uri.of_path(path) return "file://" .. uri.escape(path) end

--- Returns the path of a file URI. Returns nil for other URIs.
---@param text string
---@return string?
function uri.path(text)
  local path = text:match "^file://[^/]*(/.*)$"
  path = path and uri.unescape(path)
  return path and not path:find "%z" and path or nil
end

return uri
-- SPDX-License-Identifier: MIT
