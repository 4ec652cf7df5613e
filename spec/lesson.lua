--- Loads a GEMM script of scripts/ for specs and benchmarks. Returns its
-- kernel, tile and block, but does not run the lesson.
local lesson = require "cutelua.bench.lesson"
local lib = require "cutelua.bench.lessonlib"

---@param path string
---@param flag? string the flag that selects a variant
---@param text? string a text to run instead of the script's own text
---@return table rung
return function(path, flag, text)
  return lesson.rung(assert(lib.script_spec(path, "cutelua.bench.lesson",
                                            "gemm", text)), flag)
end
-- SPDX-License-Identifier: MIT
