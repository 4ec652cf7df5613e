-- Runs a kernel of Triton or of the CuTe DSL with several seeds: cutelua
-- seeds.lua CASE. CASE is a JSON file that seeds.py writes: the compiler and
-- its file, the grid for Triton, the device, arguments, tensors by name (`x`,
-- or `x:bf16` with a type that NumPy lacks) as .npy files, the number of seeds,
-- and files for the outputs. Prints the number of runs with a report, and the
-- text of the first report.
local cute = require "cute"
local json = require "cutelua.text.json"
local npy = cute.npy

local f <close> = assert(io.open((assert(arg[1], "CASE is missing"))))
local case = assert(json.decode(f:read "a"))

local tensors, buffers, arrays, args = {}, {}, {}, {}
local function fill()
  for name, path in pairs(case.tensors) do
    local dtype
    name, dtype = name:match "^(%w+):?(%w*)$"
    arrays[name] = assert(npy.read(path, {dtype = dtype ~= "" and dtype
      or nil}))
    tensors[name], buffers[name] = npy.tensor(arrays[name])
  end
  for i, a in ipairs(case.args) do
    if type(a) == "table" then
      args[i] = {map = tensors[a.map], padding = a.padding}
    else
      args[i] = tensors[a] or a
    end
  end
end

local k = cute[case.compiler](case.file)
local reported, first = 0, nil
for seed = 1, case.seeds do
  fill()
  local ok, why = k(table.unpack(args)):launch {grid = case.grid, seed = seed,
    faults = "return", device = case.device}
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
