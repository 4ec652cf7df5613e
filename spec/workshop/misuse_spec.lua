-- Tests that each mistake of a workshop's user gets a message of one sentence,
-- at the line of the mistake.
local misuse = require "spec.workshop.misuse"
local workshop = require "spec.workshop.asked"

describe("the workshop reports", function()
  local requests, answers = {}, nil
  for i, row in ipairs(misuse.list) do requests[i] = misuse.request(row) end

  for i, row in ipairs(misuse.list) do
    it(i .. ": " .. misuse.name(row), function()
      answers = answers or workshop.asked(requests)
      local out = answers[i].out
      -- A page decodes the output as UTF-8 and replaces invalid bytes.
      if not utf8.len(out) then out = out:gsub("[\x80-\xff]", "\u{fffd}") end
      misuse.check(row, answers[i].answer, out)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
