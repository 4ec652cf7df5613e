-- Tests scripts/train.lua. Its gradients must equal difference quotients of the
-- loss, the loss must fall, and the plot must have a point for each step.
local chart = require "cutelua.bench.chart"
local support = require "spec.support"

local STEPS = 10

-- Runs the script. Returns the relative errors of the gradients, and the
-- losses.
local function train(words)
  local list = {"scripts/train.lua"}
  for word in words:gmatch "%S+" do list[#list + 1] = word end
  local out, err, code = support.run(list)
  assert.equal(0, code, out .. err)
  local errors, losses = {}, {}
  for e in out:gmatch "error (%S+)" do errors[#errors + 1] = tonumber(e) end
  for l in out:gmatch "loss (%S+)" do losses[#losses + 1] = tonumber(l) end
  return errors, losses
end

describe("training a transformer", function()
  for device, words in pairs {["sim #long"] = "--batch 4 --rate 0.01",
      ["sim in batches of 16 #long"] = "", ["gpu #gpu"] = ""} do
    it("follows its gradients and lowers the loss on " .. device, function()
      local path <const> = support.folder() .. "/loss.svg"
      local errors, losses = train(("--steps %d --device %s --svg %s %s")
        :format(STEPS, device:match "^%S+", path, words))
      assert.equal(9, #errors)  -- one error for each weight
      for _, e in ipairs(errors) do assert.is_true(e < 0.02, tostring(e)) end
      assert.equal(STEPS, #losses)
      assert.is_true(losses[STEPS] < 0.85 * losses[1])
      local points = support.read(path):match 'polyline points="([^"]*)"'
      assert.equal(STEPS, select(2, points:gsub("%S+", "")))
    end)
  end

  it("fails if the plot cannot be written #long", function()
    local _, err, code = support.run {"scripts/train.lua", "--steps", "1",
      "--batch", "1", "--length", "4", "--device", "sim", "--svg", "/dev/full"}
    assert.equal("train: cannot write /dev/full: No space left on device "
      .. "[io]\n", err)
    assert.equal(1, code)
  end)

  it("works for other sizes of two layers #long", function()
    local errors = train("--steps 1 --device sim --layers 2 --batch 3 "
      .. "--length 7 --heads 1 --vocab 11 --seed 5")
    assert.equal(15, #errors)
    for _, e in ipairs(errors) do assert.is_true(e < 0.03, tostring(e)) end
  end)
end)

describe("chart.lines", function()
  it("puts values at their height, and leaves NaN out", function()
    local svg = chart.lines {title = "t < u", x = "x", y = "y",
                             values = {2, 1, 0 / 0, 0}}
    assert.is_truthy(svg:find("t &lt; u", 1, true))
    local y = {}
    for v in svg:match 'points="([^"]*)"':gmatch ",([%d.]+)" do
      y[#y + 1] = tonumber(v)
    end
    assert.equal(3, #y)
    assert.is_true(math.abs((y[3] - y[2]) - (y[2] - y[1])) < 0.2)
  end)
end)
-- SPDX-License-Identifier: MIT
