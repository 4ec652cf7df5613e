--- `cutelua task new`: writes the files of a new task, to be edited.
local core = require "cute.core"
local output = require "cutelua.text.output"
local sys = require "cute.sys"

local template = {}

local FILES = {
  {"task.lua", [==[
-- A task for `cutelua task judge`: docs/tasks.md describes the fields.
return {
  name = "NAME",
  text = "Y[i] = ALPHA X[i] + Y0[i], where ALPHA = 2.",
  args = {
    {"X", "f32", {"N"}},
    {"Y0", "f32", {"N"}},
    {"Y", "f32", {"N"}, "out"},
  },
  sizes = {{N = 256}, {N = 1000}, {N = 33}},  -- public
  held = {N = {1, 2000}},                     -- drawn by the referee
  speed = {N = 1048576},
  target = 0.5,                               -- share of the limit
  reference = function(a)
    return {Y = function(i) return 2 * a.X(i) + a.Y0(i) end}
  end,
}
]==]},
  {"solution.lua", [==[
-- A candidate: a function of the task's arguments and sizes, which launches
-- kernels.
local cute = require "cute"
local arch = cute.arch

local axpy = cute.kernel("axpy", function(x, y0, y, n)
  local i = arch.block_idx() * 128 + arch.thread_idx()
  cute.when(i:lt(n), function() y[i] = 2 * x[i] + y0[i] end)
end)

return function(a)
  axpy(a.X, a.Y0, a.Y, a.N):launch {grid = (a.N + 127) // 128, block = 128}
end
]==]},
}

--- Writes a new task; returns the exit code. The folder must not exist yet.
---@param path string
---@return integer
function template.write(path)
  local name = path:match "([%w_-]+)/*$"
  if not name then
    core.fail("bad-argument", ("%s cannot name a new folder: letters, "
      .. "digits, _ and - are allowed"):format(core.show(path)))
  end
  if core.file_kind(path) then
    core.fail("io", ("%s exists already: name a new folder"):format(
      core.visible(path)))
  end
  local ok, why = sys.mkdirs(path)
  if not ok then
    core.fail("io", ("cannot make the folder %s: %s"):format(
      core.visible(path), why))
  end
  for _, row in ipairs(FILES) do
    local text = row[2]:gsub("NAME", name)
    ok, why = output.write_file(path .. "/" .. row[1], text)
    if not ok then core.fail("io", (why:gsub(" %[io%]$", ""))) end
  end
  return 0
end

return template
-- SPDX-License-Identifier: MIT
