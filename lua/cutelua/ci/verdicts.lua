--- Keeps verdicts of checks in a folder. A verdict is used again only if
-- everything that its check read has the same contents.
--
-- The key of an entry is made of the script's path and the options of the
-- check. The entry contains the hashes of the program and of all inputs
-- (cutelua.mcp.reads), and the record. An entry is valid while all hashes are
-- unchanged. The folder is a cache of core/gpu/cache.h, which rejects damaged
-- entries and files that other users could have written.
local core = require "cute.core"
local json = require "cutelua.text.json"
local reads = require "cutelua.mcp.reads"
local sys = require "cute.sys"

local verdicts = {}

-- Verdicts worth keeping: checking the same program again with the same inputs
-- would reach the same verdict.
local LASTING = {ok = true, bug = true, idle = true}

local Verdicts = {}
Verdicts.__index = Verdicts

--- Opens the folder of kept verdicts.
---@param dir string?
---@param options string all options of the checks, as a text
---@return table
function verdicts.open(dir, options)
  return setmetatable({dir = dir, options = options,
    program = dir and reads.value("file", sys.program()), values = {}},
    Verdicts)
end

local function key(self, path)
  return ("cutelua verdict\n%s\n%s"):format(self.options, path)
end

-- Returns reads.value(what, name), the value of an input. Each value is
-- computed only once, because several scripts read the same modules.
local function value(self, what, name)
  local id = what .. name
  self.values[id] = self.values[id] or reads.value(what, name)
  return self.values[id]
end

-- Stores the reason why the folder of verdicts cannot be used, unless a reason
-- is stored already. One note reports the stored reason.
local function refuse(self, why)
  if why ~= "" then self.why = self.why or why:gsub("^kernels [^:]*: ", "") end
end

-- Reports whether a kept entry is valid: it was made by this version of the
-- program, no input of its check has changed since, and its verdict is one of
-- LASTING.
local function is_current(self, kept)
  if kept.program ~= self.program then return false end
  for _, read in ipairs(kept.reads) do
    local now = value(self, read.what, read.name)
    if not now or now ~= read.value then return false end
  end
  return LASTING[kept.status] and #kept.record.findings >= 0
end

--- Returns the status and the record that were kept for a script; nil if there
-- are none, or if an input has changed.
---@param path string
---@return string? status
---@return table? record
function Verdicts:get(path)
  if not self.dir then return nil end
  local text, why = core.cache_load(self.dir, key(self, path))
  if not text then return refuse(self, why) end
  local kept = json.decode(text)
  local ok, current = pcall(is_current, self, kept)
  if ok and current then return kept.status, kept.record end
end

--- Keeps the verdict of a check, if a repeated check would reach the same
-- verdict.
---@param path string
---@param status string
---@param record table
---@param seen table? {list =, opaque =} of cutelua.mcp.reads
function Verdicts:put(path, status, record, seen)
  if not (self.dir and LASTING[status] and seen) or seen.opaque then return end
  for _, read in ipairs(seen.list) do
    -- The value is computed again, because the one in `values` may be older
    -- than the check.
    read.value = reads.value(read.what, read.name)
    if read.stamp ~= (read.what == "file" and sys.stamp(read.name) or nil) then
      return
    end
    read.stamp = nil
  end
  local ok, why = core.cache_store(self.dir, key(self, path), json.encode {
    program = self.program, reads = seen.list, status = status,
    record = record})
  if not ok then refuse(self, why) end
end

return verdicts
-- SPDX-License-Identifier: MIT
