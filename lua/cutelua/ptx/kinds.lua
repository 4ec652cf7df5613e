--- Kinds of files and folders that `cutelua run` launches and `cutelua ptx`
-- lists.
local core = require "cute.core"

local kinds = {}

-- Kinds by the ending of a file's name. The reader of PTX rejects machine code.
local BY_ENDING = {ptx = "ptx", cubin = "ptx", fatbin = "ptx", cu = "cuda",
                   json = "triton", mlir = "dsl"}

--- Returns the kind of a file or folder: "ptx", "cuda" (CUDA C), "triton" (its
-- metadata), "dsl" (IR of the CuTe DSL, or a folder with some) or "capture" (a
-- folder with recorded launches). Returns nil for others, such as a script.
---@param path string
---@return string?
function kinds.of(path)
  local named = BY_ENDING[path:match "%.(%a+)$"]
  if core.file_kind(path) ~= "folder" then return named end
  local has_ptx = false
  for _, name in ipairs(core.folder_names(path) or {}) do
    if name:find "%.mlir$" then return "dsl" end
    has_ptx = has_ptx or name:find "%.ptx$" ~= nil
  end
  -- Even an incomplete capture has one of these files. Reading it then reports
  -- the missing parts.
  local recorded = named or has_ptx or core.file_kind(path .. "/LAUNCH.json")
    or core.file_kind(path .. "/1/LAUNCH.json")
  return recorded and "capture" or nil
end

return kinds
-- SPDX-License-Identifier: MIT
