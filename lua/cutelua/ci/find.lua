--- Finds what `cutelua ci` checks: scripts that use cute, and folders of
-- captured launches.
local core = require "cute.core"
local files = require "cute.lang.files"
local names = require "cutelua.lsp.names"

local find = {}

-- MOST: the largest number of files and folders that are visited. LARGEST: the
-- largest size of a script in bytes.
local MOST, LARGEST = 100000, 1 << 20

-- Adds an item for the Lua file at `path` if the file uses cute or cannot be
-- read.
local function add_file(self, path)
  if not path:find "%.lua$" then return end
  local text, why = files.read(path, LARGEST, "plain")
  if not text or names.is_script(text) then
    table.insert(self.items, {path = path, unreadable = why})
  end
end

local visit

-- Adds the contents of a folder. As in git, links to folders are not followed:
-- links may form a cycle, and their targets are found under their own names.
local function add_folder(self, path)
  if core.file_kind(path .. "/LAUNCH.json") then
    table.insert(self.items, {path = path})
    return
  end
  local list, why = core.folder_names(path)
  if not list then
    table.insert(self.items, {path = path, unreadable = why})
    return
  end
  table.sort(list)
  for _, name in ipairs(list) do
    if name:sub(1, 1) ~= "." then
      visit(self, path == "." and name or path:gsub("/$", "") .. "/" .. name)
    end
  end
end

function visit(self, path)
  self.count = self.count + 1
  if self.count > MOST then
    self.why = ("there are more than %d files"):format(MOST)
    return
  end
  local kind = core.file_kind(path)
  if kind == "file" then
    add_file(self, path)
  elseif kind == "folder" and not core.is_link(path) then
    add_folder(self, path)
  end
end

-- Adds a path of the command line. A file given there counts as a script of
-- cute, whatever it contains.
local function start(self, path)
  path = path:gsub("^%./+(.)", "%1")
  local kind, why = core.file_kind(path)
  if kind == "folder" then
    add_folder(self, path)
  elseif kind == "file" then
    table.insert(self.items, {path = path})
  else
    self.why = ("cannot open %s: %s [io]"):format(core.visible(path), why
      or ("it is a %s, not a file or folder"):format(kind))
  end
end

--- Returns the scripts and captured launches below the paths, in order: {path
-- =, unreadable = reason?}; or nil and a message.
---@param paths string[]
---@return table[]? items
---@return string? message
function find.items(paths)
  local self = {items = {}, count = 0}
  for _, path in ipairs(paths) do start(self, path) end
  if self.why then return nil, self.why end
  local list, known = {}, {}
  for _, item in ipairs(self.items) do
    if not known[item.path] then list[#list + 1] = item end
    known[item.path] = true
  end
  return list
end

return find
-- SPDX-License-Identifier: MIT
