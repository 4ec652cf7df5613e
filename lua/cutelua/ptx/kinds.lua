--- Finds the kind of a file or folder that `cutelua run` launches or `cutelua
-- ptx` lists.
local core = require "cute.core"

local kinds = {}

-- Kinds by the ending of a file's name. Machine code is passed to the reader of
-- PTX, which rejects it with an explanation.
local BY_ENDING = {ptx = "ptx", cubin = "ptx", fatbin = "ptx", cu = "cuda",
                   json = "triton", mlir = "dsl"}

--- Returns the kind of a file or folder. "ptx" is PTX. "cuda" is CUDA C.
-- "triton" is metadata of Triton. "dsl" is IR of the CuTe DSL, or a folder with
-- such IR. "capture" is a folder with a recorded launch, or with several.
-- Returns nil for anything else, such as a script.
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
  -- An incomplete capture has at least one of these files. Reading it reports
  -- the missing files.
  local recorded = named or has_ptx or core.file_kind(path .. "/LAUNCH.json")
    or core.file_kind(path .. "/1/LAUNCH.json")
  return recorded and "capture" or nil
end

return kinds
-- SPDX-License-Identifier: MIT
