--- Checks of PTX and LAUNCH files in an editor: finds the LAUNCH file that
-- belongs to a PTX file, and makes the request of the worker that checks both.
--
-- The LAUNCH file of NAME.ptx is NAME.launch.json or NAME.json in the same
-- folder. For module.ptx it may also be LAUNCH.json, the name that
-- libcutecapture uses.
local calls = require "cutelua.mcp.calls"
local files = require "cute.lang.files"
local json = require "cutelua.text.json"
local uris = require "cutelua.text.uri"

local ptx = {}

-- Returns the text of a file, or the editor's text if the file is open there.
local function text_of(session, path, most)
  local doc = session.documents[uris.of_path(path)]
  return doc and doc.text or files.read(path, most, "plain")
end

-- Reports whether a text is a LAUNCH file, not other JSON such as Triton's
-- metadata.
local function is_launch(text)
  local t = text and json.decode(text)
  if type(t) ~= "table" then return false end
  return t.args ~= nil or t.launches ~= nil or t.memory ~= nil
end

-- If `path` is a PTX file or a LAUNCH file, returns the paths of the PTX file
-- and of its LAUNCH file. The second path is nil if there is no LAUNCH file.
-- Returns nil for other files.
local function pair(session, path, text, most)
  local base = path:match "^(.*)%.ptx$"
  if base then
    local folder = path:match "^.*/"
    for _, name in ipairs {base .. ".launch.json", base .. ".json",
        path:find "/module%.ptx$" and folder .. "LAUNCH.json" or nil} do
      if is_launch(text_of(session, name, most)) then return path, name end
    end
    return path
  end
  local name = path:match "^(.*)%.launch%.json$" or path:match "^(.*)%.json$"
  if not name then return nil end
  if path:find "/LAUNCH%.json$" then name = path:gsub("[^/]*$", "module") end
  -- These names mark a LAUNCH file even if a mistake makes its JSON invalid.
  local known = path:find "%.launch%.json$" or path:find "/LAUNCH%.json$"
  if not (known or is_launch(text)) then return nil end
  local of = name .. ".ptx"
  if text_of(session, of, most) then return of, path end
end

--- Reports whether a path may name a PTX file or a LAUNCH file.
---@param path string
---@return boolean
function ptx.takes(path)
  return path:find "%.ptx$" ~= nil or path:find "%.json$" ~= nil
end

--- Returns how a document is checked: {words = the command-line words for its
-- file and LAUNCH file, files = texts by path for a worker's request, folder =
-- the folder of these files, uris = URIs by path, launches = true if there is a
-- LAUNCH file}. Returns nil unless the document is PTX, or a LAUNCH file with
-- PTX beside it.
---@param session table
---@param path string
---@param text string
---@param most integer the longest text that is read
---@return table?
function ptx.job(session, path, text, most)
  local code, launch = pair(session, path, text, most)
  if not code then return nil end
  local job = {folder = "/tmp/cutelua-" .. calls.nonce(), words = {},
               files = json.object {}, uris = {}, launches = launch ~= nil}
  for i, one in ipairs {code, launch} do
    local own = ("%s/%s"):format(job.folder, one:match "[^/]*$")
    job.files[own] = one == path and text or text_of(session, one, most)
    job.uris[own] = uris.of_path(one)
    if i == 2 then job.words[2] = "--launch" end
    job.words[#job.words + 1] = own
  end
  return job
end

return ptx
-- SPDX-License-Identifier: MIT
