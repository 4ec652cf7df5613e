-- Answers the requests of standard input, a JSON list, as the workshop does,
-- each in a line "answer JSON" behind what it printed.
local json = require "cutelua.text.json"
local workshop = require "cutelua.workshop"

for _, request in ipairs(assert(json.decode(io.read "a"))) do
  io.write("\nanswer ", workshop.answer(json.encode(request)), "\n")
end
