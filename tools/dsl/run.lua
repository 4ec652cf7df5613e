-- Runs a kernel of the CuTe DSL with several seeds: cutelua run.lua CASE. CASE
-- is a JSON file that compare.py writes: the IR, arguments, tensors by name as
-- .npy files, the number of seeds, and files for the outputs. Prints the number
-- of runs with a report, and the text of the first report.
local cute = require "cute"
local json = require "cutelua.text.json"
local npy = cute.npy

local f <close> = assert(io.open((assert(arg[1], "CASE is missing"))))
local case = assert(json.decode(f:read "a"))

local tensors, buffers, arrays = {}, {}, {}
for name, path in pairs(case.tensors) do
  arrays[name] = assert(npy.read(path))
  tensors[name], buffers[name] = npy.tensor(arrays[name])
end

local args = {}
for i, a in ipairs(case.args) do args[i] = tensors[a] or a end

local k = cute.dsl(case.ir)
local reported, first = 0, nil
for seed = 1, case.seeds do
  local ok, why = k(table.unpack(args)):launch {seed = seed, faults = "return",
                                                device = "sim:sm_90a"}
  if not ok then
    reported = reported + 1
    first = first or why
  end
end
for name, path in pairs(case.outputs) do
  assert(npy.write(path, npy.of_buffer(buffers[name], arrays[name].shape)))
end
print(reported)
if first then print(first) end
