--- What a GEMM script gives to cute.lesson, without running the lesson:
-- kernel, tile, block. For specs and benches.
local lib = require "cute.bench.lessonlib"

---@param path string
---@param ... string words of its command line that change the kernel
---@return {kernel: table, tile: integer[], block: integer}
return function(path, ...)
  return assert(lib.script_spec(path, {...}, "cute.bench.lesson", "gemm"))
end
