-- Tests the pages about other programs: their blocks are parts of the files of
-- examples/, and their commands build and run these files without a GPU.
local made = require "spec.bundle.made"
local support = require "spec.support"
local core = require "cute.core"

local build = os.getenv "CUTE_BUILD" or "build"
local here = support.exec {"pwd"}:gsub("%s+$", "")
if build:sub(1, 1) ~= "/" then build = here .. "/" .. build end

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

-- Returns the text of an example without the marks of comments before commands.
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

-- Commands of the pages, in a copy of the examples with an installed library.
describe("the commands of the pages #noasan", function()
  local dir, driver, env
  setup(function()
    dir = support.folder()
    driver = made.driver()
    local _, err, code = support.exec {"sh", "-c", [[
      cp -r examples "$1" && mkdir "$1/bin" &&
      ln -s "$(realpath "$3")" "$1/bin/cutelua" &&
      make -s install-library BUILD="$2" PREFIX="$1/opt/cutelua"]],
      "sh", dir, build, support.program}
    assert(code == 0, err)
    env = {PATH = dir .. "/bin:" .. os.getenv "PATH", LIBRARY_PATH = driver,
           LD_LIBRARY_PATH = driver, CUTELUA_NO_CUDA = "0",
           CUTELUA_CACHE = "0"}
  end)
  teardown(function()
    support.remove(dir)
    support.remove(driver)
  end)

  -- What the last command of each block prints.
  local LAST = {["./main"] = "y%[999%] = 2998, by the code for sm_90a\n$",
    ["./scale scale.lua"] = "^[^\n]*\n?y%[%d+%] = %d+\n",
    ["out/threads scale.lua"] = "\n1\n2\n3\n4\n$"}
  for _, path in ipairs {"docs/c.md", "docs/cpp.md"} do
    for i, block in ipairs(blocks(path)) do
      if block.run then
        it(("of %s, block %d"):format(path, i), function()
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
-- SPDX-License-Identifier: MIT
