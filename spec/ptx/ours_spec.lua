-- Tests the planted faults of spec/faults/ through the PTX of their kernels.
-- The first report must have the same kind and script line as in a run without
-- PTX. Repaired kernels must have no report.
local check = require "cutelua.check"
local core = require "cute.core"
local faults = require "spec.faults"
local kernel = require "cute.lang.kernel"
local report = require "cute.lang.report"
local simreport = require "cute.lang.simreport"
local through = require "spec.ptx.through"

local BOUNDS = {gpu = false, orders = 300, seconds = 10}

-- Kinds whose scripts fail before a kernel runs.
local HOST = {}
for kind in ([[
  bad-argument bad-launch bad-notation bad-ptx closed compile-failed
  foreign-value in-flight in-graph inadmissible inside-kernel limit loop-exit
  loop-table-changed loop-type-changed lua needs-static not-tracing
  out-of-region overflow register-index runaway-trace shape-mismatch
  smem-budget traced-in-lua type-mismatch unknown-name
  unused-boolean
]]):gmatch "%S+" do
  HOST[kind] = true
end

-- Scripts that store 4-bit elements to shared memory. CUDA C makes such a store
-- an atomic operation on a word, which also reads the word's other elements
-- before anything has written them.
local NIBBLES = "^tensor%-memory/sf_"

--- Scripts of other kinds that fail before a kernel runs.
local TRACED = {["misaligned/example"] = true,
  ["misaligned/recast_pointer"] = true, ["tensor-memory/no_wait_load"] = true}

-- Scripts for which the direct run and the run through PTX find different
-- faults. The value is the fault that is found through PTX, and the reason for
-- the difference.
local OTHER = {
  ["misaligned/report"] = {"misaligned:21", "CUDA C has no assumption, whose "
    .. "violation the direct path finds first"},
  ["assertion/negative_thread"] = {"out-of-bounds:17", "CUDA C has no check of "
    .. "get_slice's thread index, only the address that follows"},
  ["race/box_no_sync_filled"] = {"uninitialised:52",
    "the copy's thread runs before the other warps write"},
}

-- Scripts whose fault does not exist in their PTX, with a proof for each. A
-- proof has some of these fields: `has`, a pattern that the PTX contains;
-- `lacks`, a pattern that it does not contain; `same`, true if it equals the
-- PTX of the repaired script.
local ABSENT = {
  -- Overflow of an i32 is undefined in C++, and a fault in cutelua. In PTX it
  -- wraps: the same instruction adds i32 and u32. A test below checks that both
  -- types give the same PTX.
  ["index-overflow/report"] = {has = "mad%.lo%.s32"},
  -- NVRTC assumes that n + 1 > n is true, and removes the comparison.
  ["signed-overflow/report"] = {lacks = "setp"},
  -- NVRTC replaces a sum with an undefined register by a constant NaN.
  ["uninitialised/report"] = {has = "mov%.u32 [^,]*, 2143289344;"},
  -- PTX has no shapes, and the addresses are inside of the tensor's memory.
  ["out-of-bounds/transposed"] = {has = "ld%.global"},
  ["out-of-bounds/exchanged_of_four"] = {has = "ld%.global"},
  -- PTX has only offsets, which are right here, and no layouts.
  ["wrong-layout/report"] = {same = true},
}

-- Returns the finding of a check as text: kind and line of a fault ("race:52");
-- "note:52" for a note on an order that PTX does not guarantee; the verdict; or
-- the text of an error.
local function finding(v)
  if type(v) == "string" then
    local line, kind = v:match "^[^\n]-:(%d+): [^\n]*%[(in%-flight)%]"
    return kind and kind .. ":" .. line or v
  end
  if v.fault then return ("%s:%s"):format(v.fault.kind, v.fault.line) end
  local noted = v.notes[1] and v.notes[1]:match "^[^\n]-:(%d+): "
  return noted and "note:" .. noted or v.verdict
end

-- Checks a launch through the PTX of its program.
local function checked(program, launch)
  local ok, v = pcall(function()
    local ptx = assert(through.ptx(program, program.arch))
    local p, own = through.launch(program, launch, ptx)
    return check.launch(p, own, BOUNDS)
  end)
  return ok and v or type(v) == "string" and v or report.outcome(v)
    or tostring(v)
end

-- Runs a script and checks each launch twice, directly and through PTX, until
-- one has a fault. Returns both findings of the last launch.
local function compare(path, text)
  local direct, other
  local before <const> = kernel.runner
  kernel.runner = {run = function(program, launch)
    direct = finding(check.launch(program, launch, BOUNDS))
    other = finding(checked(program, launch))
    if direct:find ":" or other ~= "ok" then error(faults.STOP, 0) end
    return simreport.attach(core.sim_run(program.fn, launch), program)
  end}
  faults.execute(path, text)
  kernel.runner = before
  return direct, other
end

-- Returns the bodies of the kernels in a script's PTX, without .loc lines.
local function bodies(path, text)
  local list, before <const> = {}, kernel.runner
  kernel.runner = {run = function(program)
    local ptx = assert(through.ptx(program, program.arch))
    list[#list + 1] = ptx:match("\n{\n(.*)\n}\n"):gsub("%s*%.loc[^\n]*", "")
    error(faults.STOP, 0)
  end}
  faults.execute(path, text)
  kernel.runner = before
  return table.concat(list, "\n")
end

-- Checks that the PTX of a script has no fault, and that the proof holds.
local function absent(f, proof)
  local direct, other = compare(f.path, f.text)
  assert.is_truthy(direct:find ":", direct)
  assert.are.equal("ok", other)
  local body = bodies(f.path, f.text)
  assert.is_true(#body > 100)
  if proof.has then assert.matches(proof.has, body) end
  if proof.lacks then assert.is_nil(body:find(proof.lacks)) end
  if proof.same then assert.are.equal(bodies(f.path, f.mended), body) end
end

describe("our planted faults through PTX", function()
  if not faults.NEEDS.NVRTC then return pending "needs NVRTC" end
  it("do not include overflow: signed and unsigned are the same text #long",
    function()
      local function text(type)
        local made = core.jit_compile(([[
          extern "C" __global__ void k(%s *x, %s n) {
            x[threadIdx.x + n * n] = n * 7 + 1;
          }]]):format(type, type), "compute_90a", {})
        return (made.ptx or made.cubin):match "{(.*)}"
      end
      assert.are.equal(text "int", text "unsigned")
    end)
  for i, f in ipairs(faults.list()) do
    local name = f.path:match "spec/faults/(.*)%.lua$"
    local known, proof = OTHER[name], ABSENT[name]
    local long = i % 8 == 0 and "" or " #long"
    -- This spec compares checks. Checks print no notes on likely mistakes, so
    -- scripts whose report is such a note are skipped.
    local host = HOST[name:match "^[^/]*"] or name:find(NIBBLES)
      or f.run == "notes"
    if proof then
      it(name .. " is not in PTX", function() absent(f, proof) end)
    elseif not host and not TRACED[name] then
      it(name .. " is found" .. long, function()
        local direct, other = compare(f.path, f.text)
        assert.is_truthy(direct:find ":", direct)
        if not known then
          assert.are.equal(direct, other)
        else
          assert.is_truthy(other:find(known[1], 1, true), other)
        end
      end)
    end
    if f.mended and not host then
      it(name .. " is silent once mended" .. long, function()
        local _, other = compare(f.path, f.mended)
        assert.are.equal("ok", other)
      end)
    end
  end
end)
-- SPDX-License-Identifier: MIT
