--- Answers HTTP 1.1 requests, GET and HEAD, for the files of one folder. A
-- request can only name files of the folder itself; any other name is reported
-- as not found.
--
--     local head, body = http.answer(request, {["index.html"] = read})
--
-- A page of another site could make its own host name resolve to this server,
-- and then read the answers. Therefore only requests whose Host is a loopback
-- name are answered.
--
-- A page may use threads only if two headers isolate it from other pages
-- (cross-origin isolation). All answers have them.
local uris = require "cutelua.text.uri"

local http = {}

--- Largest number of bytes of a request's head.
http.MOST = 8192

local TYPES = {html = "text/html; charset=utf-8",
  css = "text/css; charset=utf-8", js = "text/javascript; charset=utf-8",
  txt = "text/plain; charset=utf-8", wasm = "application/wasm",
  json = "application/json", svg = "image/svg+xml", png = "image/png"}

local REASONS = {[200] = "OK", [400] = "Bad Request", [404] = "Not Found",
  [405] = "Method Not Allowed", [408] = "Request Timeout",
  [421] = "Misdirected Request",
  [431] = "Request Header Fields Too Large",
  [500] = "Internal Server Error", [505] = "HTTP Version Not Supported"}

local ALWAYS = table.concat({"Cross-Origin-Opener-Policy: same-origin",
  "Cross-Origin-Embedder-Policy: require-corp",
  "Cross-Origin-Resource-Policy: same-origin",
  "X-Content-Type-Options: nosniff", "Cache-Control: no-cache",
  "Connection: close"}, "\r\n")

local function head(code, kind, size, more)
  return ("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s%s"
    .. "\r\n\r\n"):format(code, REASONS[code], kind, size, more or "", ALWAYS)
end

--- Returns an answer with this status code and a sentence as its body.
---@param code integer HTTP status code
---@param sentence string
---@param more? string further header lines
---@return string head, string body
function http.refusal(code, sentence, more)
  local text = sentence .. "\n"
  return head(code, TYPES.txt, #text, more), text
end

-- Returns the name of the file that a request's target names; "/" names
-- index.html. Returns nil for an invalid target.
local function name_of(target)
  local path = target:match "^/([^?#]*)"
  if not path or path:find "%%%X" or path:find "%%%x%X" or path:find "%%%x?$"
  then
    return nil
  end
  path = uris.unescape(path)
  return path == "" and "index.html" or path
end

local OURS = {["127.0.0.1"] = true, ["localhost"] = true, ["[::1]"] = true}

-- Reports whether the field Host of a request is a loopback name; nil if there
-- is not exactly one such field.
local function is_ours(request)
  local found
  for name, value in request:gmatch "\n([%w-]+):[ \t]*([^\r\n]*)" do
    if name:lower() == "host" then
      if found then return nil end
      found = value:lower():gsub("[ \t]+$", ""):gsub(":%d+$", "")
    end
  end
  return found and (OURS[found] or false)
end

--- Returns the answer to a request. The head of the request ends in an empty
-- line. For HEAD, the body is "".
---@param request string
---@param files table<string, fun(name: string): string?> functions that read
-- the folder's files, by name; they return nil if the file cannot be read
---@return string head, string body
function http.answer(request, files)
  local method, target, version =
    request:match "^(%u+) ([!-~]+) HTTP/(%d%.%d)\r?\n"
  if not method then return http.refusal(400, "this is not an HTTP request") end
  if version:sub(1, 1) ~= "1" then
    return http.refusal(505, "HTTP/" .. version .. " is not supported")
  end
  local ours = is_ours(request:match "^.-\n\r?\n")
  if ours == nil then
    return http.refusal(400, "a request needs exactly one Host header")
  elseif not ours then
    return http.refusal(421, "this server does not have that host name")
  end
  if method ~= "GET" and method ~= "HEAD" then
    return http.refusal(405, "only GET and HEAD are supported",
      "Allow: GET, HEAD\r\n")
  end
  local code, kind, text
  local name = name_of(target)
  local read = name and files[name]
  if not name then
    code, text = 400, "this path names no file\n"
  elseif not read then
    code, text = 404, "there is no such file here\n"
  else
    text = read(name)
    code = text and 200 or 500
    kind = text and (TYPES[name:match "%.(%w+)$"] or "application/octet-stream")
    text = text or "the file cannot be read\n"
  end
  return head(code, kind or TYPES.txt, #text), method == "HEAD" and "" or text
end

return http
-- SPDX-License-Identifier: MIT
