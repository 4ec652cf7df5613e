-- Tests the pages about other programs. Their code blocks must be parts of
-- files of examples/. Their commands must build and run these files without a
-- GPU.
local made = require "spec.bundle.made"
local support = require "spec.support"
local core = require "cute.core"

local build = support.absolute(os.getenv "CUTE_BUILD" or "build")

-- Returns the blocks of a page: {language, text, from = file, run = folder}.
local function blocks(path)
  local list, block, mark = {}, nil, {}
  for line in io.lines(path) do
    if line:find "^```" then
      if block then
        block[2] = table.concat(block.lines, "\n")
        block, mark = nil, {}
      else
        block = {line:sub(4), lines = {}, from = mark.from, run = mark.run}
        list[#list + 1] = block
      end
    elseif block then
      table.insert(block.lines, line)
    elseif line:find "^<!%-%- " then
      mark.from = line:match "^<!%-%- from (%S+) %-%->$"
      mark.run = line:match "^<!%-%- run in (%S+) %-%->$"
    end
  end
  return list
end

-- Returns the text of an example. Removes comment marks before commands.
local function file(path)
  local text = assert(support.read(path), path)
  return "\n" .. text:gsub("\n[/#-]+    +", "\n")
end

local PAGES = {["docs/c.md"] = 5, ["docs/cpp.md"] = 5,
               ["docs/containers.md"] = 4}

for path, least in pairs(PAGES) do
  describe(path, function()
    it("shows parts of the examples", function()
      local n = 0
      for _, block in ipairs(blocks(path)) do
        assert.truthy(block.from or block.run, block[2])
        if block.from then
          local text, at = file(block.from), 1
          for part in (block[2] .. "\n...\n"):gmatch "(.-)\n%.%.%.\n" do
            local from, to = text:find("\n" .. part .. "\n", at, true)
            assert.truthy(from, block.from .. " lacks:\n" .. part)
            at, n = to, n + 1
          end
        end
      end
      assert.is_true(n >= least, n)
    end)
  end)
end

-- Runs the commands of the pages in a copy of the examples, with an installed
-- library.
describe("the commands of the pages #noasan", function()
  if not support.lua_headers then
    pending "needs the headers of Lua"
    return
  end
  local dir, driver, env
  setup(function()
    dir = support.folder()
    driver = made.driver()
    support.must {"sh", "-c", [[
      cp -r examples "$1" && mkdir "$1/bin" &&
      ln -s "$(realpath "$3")" "$1/bin/cutelua" &&
      make -s install-library BUILD="$2" PREFIX="$1/opt/cutelua"]],
      "sh", dir, build, support.program}
    env = {PATH = dir .. "/bin:" .. os.getenv "PATH", LIBRARY_PATH = driver,
           LD_LIBRARY_PATH = driver, CUTELUA_NO_CUDA = "0",
           CUTELUA_CACHE = "0"}
  end)
  teardown(function()
    support.remove(dir)
    support.remove(driver)
  end)

  -- Patterns of the output of each block's last command, by that command.
  local LAST = {["./main"] = "y%[999%] = 2998, by the code for sm_90a\n$",
    ["./scale scale.lua"] = "^[^\n]*\n?y%[%d+%] = %d+\n",
    ["out/threads scale.lua"] = "\n1\n2\n3\n4\n$"}
  for _, path in ipairs {"docs/c.md", "docs/cpp.md"} do
    for i, block in ipairs(blocks(path)) do
      if block.run then
        local long = path ~= "docs/c.md" and " #long" or ""
        it(("of %s, block %d%s"):format(path, i, long), function()
          local text = block[2]
          if text:find "cutelua bundle" and not core.nvrtc_version() then
            return pending "needs NVRTC"
          end
          for _, tool in ipairs {"cmake", "pkg-config"} do
            if text:find(tool, 1, true) and not made.has(tool) then
              return pending("needs " .. tool)
            end
          end
          local out, err, code = support.exec({"sh", "-e", "-c",
            (text:gsub("/opt/cutelua", dir .. "%0"))},
            {env = env, cwd = dir .. "/" .. block.run})
          assert.same({"", 0}, {err, code})
          assert.truthy(out:find(LAST[text:match "[^\n]*$"]), out)
        end)
      end
    end
  end
end)

-- Returns the text of each block of a page that is in one language.
local function of_language(path, language)
  local list = {}
  for _, block in ipairs(blocks(path)) do
    if block[1] == language then list[#list + 1] = block[2] end
  end
  return list
end

describe("docs/embedding.md #noasan", function()
  it("has a program that compiles and runs", function()
    local dir = support.folder()
    local list = of_language("docs/embedding.md", "c")
    assert.equal(1, #list)
    local source = support.write(dir .. "/program.c", [[
#include <stdio.h>
#include <cutelua.h>
int main(void) {
  float x[300], y[300];
  for (int i = 0; i < 300; i++) x[i] = (float)i;
]], list[1], '\n  printf("%g\\n", (double)y[299]);\n}\n')
    for _, words in ipairs {
        {"cc", "-std=c11", "-Wall", "-Werror", "-Icore/library", source, "-L"
          .. build, "-lcutelua", "-Wl,-rpath," .. build, "-o", dir .. "/run"},
        {"cp", "examples/library/scale.lua", dir}} do
      support.must(words)
    end
    assert.same({"897\n", "", 0}, {support.exec({dir .. "/run"},
      {cwd = dir, env = {CUTELUA_NO_CUDA = "1"}})})
    support.remove(dir)
  end)
end)

describe("docs/python.md #noasan", function()
  local dir
  setup(function()
    dir = support.folder()
    for _, text in ipairs(of_language("docs/python.md", "lua")) do
      support.write(dir .. "/" .. text:match "^%-%- (%w+%.lua)\n", text)
    end
  end)
  teardown(function() support.remove(dir) end)

  local function run(python, code)
    return support.must({python, "-c", code}, {cwd = dir, env = {
      PYTHONPATH = support.absolute "python", PYTHONDONTWRITEBYTECODE = "1",
      CUTELUA_LIBRARY = build .. "/libcutelua.so", CUTELUA_NO_CUDA = "1"}})
  end

  it("has scripts that run", function()
    assert.equal("[0.0, 6.0] [2.0, 2.0]\n", run("python3", [[
import array, cutelua
x = array.array("f", [0, 3])
gelu = cutelua.load("gelu.lua").gelu(x).tolist()
assert gelu[0] == 0 and abs(gelu[1] - 2.9959502) < 1e-5, gelu
scale = cutelua.load("scale.lua")
assert scale.schema == "(Tensor x, float a) -> Tensor"
print(scale.forward(x, 2.0).tolist(),
      scale.backward(array.array("f", [1, 1]), x, 2.0).tolist())]]))
  end)

  it("has blocks for PyTorch that run #long", function()
    local python = os.getenv "CUTELUA_PYTHON" or "python3"
    if select(3, support.exec {python, "-c", "import torch"}) ~= 0 then
      return pending "needs torch (CUTELUA_PYTHON names a Python that has it)"
    end
    local list = of_language("docs/python.md", "python")
    assert.equal(4, #list)
    local first, n = list[1]:gsub("[^\n]*%.cuda%(%)[^\n]*", "")
    assert.equal(1, n)
    assert.equal("2.0\n", run(python, first
      .. "\nx = torch.randn(8, 4, requires_grad=True)\n" .. list[2]
      .. "\nprint(x.grad.max().item())\nx = torch.randn(64, 32)\n" .. list[4]
      .. "\ntest_gelu()\n"))
  end)
end)
-- SPDX-License-Identifier: MIT
