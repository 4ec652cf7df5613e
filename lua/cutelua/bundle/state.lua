--- The state that cute.bundle and `cutelua bundle` share.
local state = {}

--- The session that records functions, or false.
state.session = false

--- The metatable of numbers that become parameters: {name =, value =}.
state.Number = {__closed = true, __host = "number of a bundle"}

return state
-- SPDX-License-Identifier: MIT
