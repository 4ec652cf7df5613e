--- Stores source text by chunk name. The text of a file is read from the file.
-- Text that was typed at the prompt, passed with `-e` or embedded in the
-- program has no file and is stored here. The tracer and error reports read
-- lines of source from this module.
--
-- Chunk names follow `lua_Debug.source`: "@script.lua", "=(prompt):3",
-- "=(command line)", "=[cute.gemm]". A chunk of `load(text)` is named by its
-- own text.
local files = require "cute.lang.files"

local source = {}

local kept = {}
local lines_of = {}

--- The names that reports use for functions to which Lua gives no name, such as
-- kernels: `source.names[f] = "kernel gemm3stage"`.
source.names = setmetatable({}, {__mode = "k"})

--- Stores the text of a chunk that has no file.
---@param chunk string chunk name with its "=" or "@"
---@param text string
function source.add(chunk, text)
  kept[chunk] = text
  lines_of[chunk] = nil
end

-- Reads a file if it is a plain file. A pipe cannot be read again, because its
-- text was consumed when the script was loaded.
local function read_file(path)
  return (files.read(path, nil, "plain"))
end

--- Returns the text of a chunk. Returns nil if its file cannot be read, or if
-- no text is known under its name.
---@param chunk string
---@return string?
function source.text(chunk)
  if kept[chunk] then return kept[chunk] end
  local mark, name = chunk:sub(1, 1), chunk:sub(2)
  if mark == "@" then return read_file(name) end
  if mark ~= "=" then return chunk end
  local ok, sys = pcall(require, "cute.sys")
  return ok and sys.embedded(chunk) or nil
end

--- Returns a chunk's name, or a path, without the folder and without the first
-- character "@" or "=". A text of several lines that was loaded without a name
-- is named by its first line, as in Lua's messages: [string "local x = 1..."].
---@param chunk string
---@return string
function source.short(chunk)
  if chunk:find("\n", 1, true) and not chunk:find "^[@=]" then
    return ('[string "%s..."]'):format(chunk:match("^[^\n]*"):sub(1, 40))
  end
  return (chunk:gsub("^[@=]", ""):gsub("^.*/", ""))
end

--- Returns line n of a chunk's text; nil if the text is unknown or has no such
-- line.
---@param chunk string
---@param n integer
---@return string?
function source.line(chunk, n)
  local lines = lines_of[chunk]
  if not lines then
    local text = source.text(chunk)
    if not text then return nil end
    lines = {}
    for line in (text .. "\n"):gmatch "(.-)\r?\n" do
      lines[#lines + 1] = line
    end
    if chunk:sub(1, 1) == "=" then lines_of[chunk] = lines end
  end
  return lines[n]
end

--- Returns emitted CUDA C without the comments that occupy whole lines. These
-- comments name lines of the script. Without them, a kernel keeps its entry in
-- the cache of compiled kernels when its script is moved, or edited outside of
-- the kernel. Line numbers of the CUDA C do not change.
---@param text string
---@return string
function source.without_comments(text)
  return (text:gsub("\n *//[^\n]*", "\n"))
end

return source
-- SPDX-License-Identifier: MIT
