-- Tests build/web/cutelua.js under node against the native program. `make
-- web-test` runs this spec; `make test`, which has no emscripten, skips it.
local support = require "spec.support"

local web = (os.getenv "CUTE_BUILD" or "build") .. "/web/cutelua"
local GEMM = {"scripts/gemm3stage.lua", "--device", "sim", "--m", "256",
              "--n", "256", "--k", "256"}
local FILES = "spec/web/told.lua scripts/gemm3stage.lua"

local function output(command)
  local p <close> = io.popen(command .. " 2>&1")
  local text = p:read "a"
  return text, (p:close())
end

-- With node's own fetch, cutelua.js would load the program as from a server.
local NODE = "node --no-experimental-fetch spec/web/run.js %s%s.js %s -- %s"

local function node(files, words, build)
  return output(NODE:format(web, build or "", files, words))
end

local function told(s) return assert(s:match "report%.ctas.*", s) end
local function verified(s) return s:match "verified[^\n]*" end

local function size(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:seek "end"
end

describe("the program as WebAssembly", function()
  it("gives the same C, report and counters", function()
    local dir = support.folder()
    finally(function() support.remove(dir) end)
    local words = "spec/web/told.lua " .. table.concat(GEMM, " ") .. " --out "
    local native, ok = output(("%s %s%s/c.npy")
      :format(support.program, words, dir))
    assert.is_true(ok, native)
    local text, fine = node(FILES .. " --out " .. dir, words .. "/out/web.npy")
    assert.is_true(fine, text)
    local seconds = text:match "simulated%s+([%d.]+) s"
    print(("        256^3 under node: %s s simulated"):format(seconds))
    assert.truthy(verified(native):find ": ok$")
    assert.equal(verified(native), verified(text))
    assert.truthy(told(native):find "report.lines.9.sectors = %d+\n")
    assert.equal(told(native), told(text))
    local c = assert(support.read(dir .. "/c.npy"))
    assert.is_true(#c > 2 * 256 * 256)
    assert.is_true(c == support.read(dir .. "/web.npy"), "C differs")
  end)

  it("gives the same with threads, which share work and output", function()
    local words = "spec/web/told.lua " .. table.concat(GEMM, " ")
    local native = output(support.program .. " " .. words)
    local text = node(FILES .. " --threads 3", words, "-threads")
    assert.truthy(verified(native):find ": ok$")
    assert.equal(verified(native), verified(text))
    assert.equal(told(native), told(text))
    local lines = {}
    for i = 0, 63 do lines[i + 1] = ("block %d\n"):format(i) end
    local printing = [[-e 'local cute = require "cute"
      cute.kernel("k", function()
        local bx = cute.arch.block_idx()
        cute.when(cute.arch.thread_idx():eq(0), function()
          cute.printf("block %d\n", bx)
        end)
      end)():launch {grid = {64}, block = {32}}']]
    text = node("--threads 3", printing, "-threads")
    assert.equal(table.concat(lines), text)
  end)

  it("explains in a sentence why there is no GPU", function()
    local text = node("", [[-e 'print(require("cute").device "gpu")']])
    assert.equal("nil\tthe NVIDIA driver is not available: WebAssembly runs on "
      .. "the CPU and cannot open the libraries of a GPU [no-gpu]\n", text)
  end)

  it("rejects what 32 bits cannot represent, and freed objects", function()
    local text, ok = node("", [[-e 'local cute = require "cute"
      local function said(...)
        print((select(2, pcall(cute.zeros, ...)):gsub("^.-: ", "", 1)))
      end
      said({65536, 65536}, cute.f32)
      said({65537, 65536}, cute.u8)
      said({1 << 33}, cute.u8)
      said({1 << 16, 1 << 12}, cute.f32)
      local kept = {}
      local ok, why = pcall(function()
        for i = 1, 100 do kept[i] = cute.zeros({1 << 12, 1 << 13}, cute.f32) end
      end)
      print(#kept < 16 and (why:gsub("^.-: ", "", 1)))
      kept = nil
      print(cute.size(cute.zeros({1 << 20}, cute.f32)))']])
    assert.is_true(ok, text)
    assert.equal([[
cute.zeros: 4294967296 elements are too many for a buffer [limit]
cute.zeros: 4295032832 elements are too many for a buffer [limit]
cute.zeros: 8589934592 elements are too many for a buffer [limit]
cute.zeros: 268435456 elements of f32 are too many for a buffer [limit]
out of memory (134217728 bytes requested) [out-of-memory]
1048576
]], text)
  end)

  it("reports bad scripts, with their exit code", function()
    local text, ok = node("", [[-e 'error "planted"']])
    assert.falsy(ok)
    assert.truthy(text:find("planted", 1, true), text)
  end)

  it("is at most 2.5 MB, packed", function()
    local bytes = 0
    for _, name in ipairs {".js", ".wasm"} do
      local packed = os.tmpname()
      finally(function() os.remove(packed) end)
      assert(os.execute(("gzip -9nc %s%s >%s"):format(web, name, packed)))
      bytes = bytes + size(packed)
      print(("        %s%s: %d bytes"):format("cutelua", name,
                                              size(web .. name)))
    end
    print(("        packed: %d bytes"):format(bytes))
    assert.is_true(bytes <= 2.5e6)
  end)
end)
-- SPDX-License-Identifier: MIT
