--- What a GEMM script gives to cute.lesson, without running the lesson:
-- kernel, tile, block. For specs and benches.
local real = require "cute.lesson"

---@param path string
---@param ... string words of its command line that change the kernel
---@return {kernel: table, tile: integer[], block: integer}
return function(path, ...)
  local spec
  local stub = {gemm = function(_, s) spec = s end}
  local words = arg
  rawset(_G, "arg", {[0] = path, ...})
  package.loaded["cute.lesson"] = setmetatable(stub, {__index = real})
  local ok, message = pcall(dofile, path)
  package.loaded["cute.lesson"] = real
  rawset(_G, "arg", words)
  assert(ok, message)
  return spec
end
