--- The kinds of notes. A note reports behaviour that is probably not intended
-- in a run without faults. cute.lang.kinds has the kinds of faults and errors.
local kinds = require "cute.lang.kinds"

local notes = {}

local NEVER_READ = "shared memory is written and never read"
local LOST_SUM = "a part of a sum is lost or counted twice"
local UNLIKELY = "probably a mistake, although it is not a fault"
local INEXACT = "a result is not exact, because its type cannot hold it"
local PARTIAL = " cute.partial_ok says that this is intended"

--- The rows of the notes on runs without faults: {code, meaning of the code,
-- sentence}. {name} in a sentence is replaced by the field `name` of the table
-- that the note is about. cutelua.text.faults formats the notes whose row has
-- no sentence.
notes.ROWS = {
  script = {"note/script/unlikely",
    "the script or the kernel's text does something that is rarely intended"},
  relies = {"note/run/unguaranteed",
    "the run relies on behaviour that PTX does not guarantee"},
  empty = {"note/run/unlikely", UNLIKELY,
    "the grid has no blocks, so the launch runs nothing, although no tensor is "
      .. "empty; does the division round up, as in (n + block - 1) // block?"},
  outside = {"note/run/stored-outside", "a TMA store stores nothing",
    "all boxes of this TMA store lie outside tensor '{tensor}': nothing is "
      .. "stored"},
  unread = {"note/run/never-read", NEVER_READ,
    "shared tensor '{name}' is written here but never read"},
  unread_whole = {"note/run/never-read", NEVER_READ,
    "shared tensor '{name}' is written here, but no thread or MMA read it; is "
      .. "another tensor read in its place?" .. PARTIAL},
  unread_part = {"note/run/never-read", NEVER_READ,
    "{n} of {count} elements of shared tensor '{name}', {layout}, are written "
      .. "here but never read; the first is element {first}; do the loops that "
      .. "read it cover the whole tile?" .. PARTIAL},
  unread_copy = {"note/run/never-read", NEVER_READ,
    "nothing reads {n} of {count} elements of shared tensor '{name}' after the "
      .. "last copy to them; the first is element {first}; does the loop over "
      .. "the tiles end early, or does it copy a tile that it copied before?"
      .. PARTIAL},
  unread_fragment = {"note/run/unlikely", UNLIKELY,
    "{n} of {count} elements of fragment '{name}' are loaded here, but no MMA "
      .. "reads them; the first is element {first}; does the MMA take the "
      .. "fragment of each step?"},
  unread_sum = {"note/run/never-read", NEVER_READ,
    "nothing reads the sums that this MMA writes to {what}; does the epilogue "
      .. "store another fragment?" .. PARTIAL},
  late_sum = {"note/run/never-read", NEVER_READ,
    "nothing reads {what} after this MMA, although earlier sums in it are "
      .. "read; should the line that reads them come after the last product?"
      .. PARTIAL},
  unread_load = {"note/run/never-read", NEVER_READ,
    "this line loads elements of {what} that are overwritten before anything "
      .. "reads them; does a load for the next step come before this step's "
      .. "MMA, or does the MMA take the fragment of another step?" .. PARTIAL},
  unread_variable = {"note/run/never-read", NEVER_READ,
    "the loop computes '{name}' here, but nothing that the kernel stores "
      .. "depends on it; is it missing from the result?"},
  overlapping_step = {"note/run/lost-sum", LOST_SUM,
    "each iteration of the loop adds {n} elements of '{name}' here, {again} of "
      .. "which the iteration before added, too; is the loop's step, {step}, "
      .. "smaller than the tile, or than the number of threads?"},
  block_step = {"note/run/unlikely", UNLIKELY,
    "blocks repeat each other's iterations of this loop: each begins {first} "
      .. "after the block before it, and all continue in steps of {step}; "
      .. "multiply the step by the number of blocks, grid_dim. If this is "
      .. "intended, let the loop count from 0 and add the beginning to its "
      .. "index"},
  zero_start = {"note/run/unlikely", UNLIKELY,
    "this {what} starts at 0, so it is 0 if all elements are {sign} 0; start "
      .. "it at {start}, or at the first element. If 0 is intended, combine "
      .. "the result with 0 after the loop"},
  zero_mask = {"note/run/unlikely", UNLIKELY,
    "this {what} takes 0 in place of elements that a condition excludes, so "
      .. "it is 0 if all others are {sign} 0; use {start} in their place"},
  kept_start = {"note/run/unlikely", UNLIKELY,
    "this {what} includes '{name}', which keeps the infinity it was filled "
      .. "with; should the loop store the new {what} to it?"},
  zero_product = {"note/run/unlikely", UNLIKELY,
    "this product starts at 0, so it is always 0; start it at 1"},
  sum_start = {"note/run/unlikely", UNLIKELY,
    "this sum of elements starts at {start}; start it at 0. If {start} is a "
      .. "part of the result, add it after the sum"},
  unscaled_sum = {"note/run/unlikely", UNLIKELY,
    "this line adds exponentials of numbers minus a maximum that the loop "
      .. "raises, but the sum keeps the terms of the smaller maximum; multiply "
      .. "it by exp(old maximum - new maximum) in each iteration"},
  merged_sum = {"note/run/unlikely", UNLIKELY,
    "this line adds sums of exponentials of several lanes, but each lane "
      .. "subtracted a maximum of its own; multiply each lane's sum by "
      .. "exp(own maximum - common maximum) first"},
  growing_sum = {"note/run/unlikely", UNLIKELY,
    "this MMA adds to the sums of the iteration before, although each "
      .. "iteration computes exponentials of them; clear the accumulators at "
      .. "the start of each iteration"},
  partial_sum = {"note/run/lost-sum", LOST_SUM,
    "this {what} has only the elements of one {who}, and each {who} uses its "
      .. "own {what} for the elements that it stores; is a reduction missing, "
      .. "such as {cure}?"},
  partial_width = {"note/run/lost-sum", LOST_SUM,
    "this {what} has only the elements of {lanes} lanes, although further "
      .. "lanes of the warp hold elements of the same row; does the reduction "
      .. "cover too few lanes?"},
  reset_sum = {"note/run/lost-sum", LOST_SUM,
    "each iteration of the loop resets the sum, so the sums of all iterations "
      .. "but the last are lost; reset it before the loop"},
  overwritten_sum = {"note/run/lost-sum", LOST_SUM,
    "this MMA overwrites sums of an MMA that nothing has read, because "
      .. "ACCUMULATE is false; set ACCUMULATE to true after the first MMA of "
      .. "each sum"},
  lost_iteration = {"note/run/lost-sum", LOST_SUM,
    "each iteration of the loop overwrites what this line computed in the "
      .. "iteration before, and nothing has used it, so only the last "
      .. "iteration's loads count; should the line add to it?"},
  unused_loads = {"note/run/lost-sum", LOST_SUM,
    "this line loads {count} elements of '{name}', but nothing uses {n} of "
      .. "them; does each step of an unrolled loop overwrite the value of the "
      .. "step before?"},
  lost_lanes = {"note/run/lost-sum", LOST_SUM},
  lost_element = {"note/run/lost-sum", LOST_SUM,
    "this reduction in shared tensor '{name}' replaces the thread's own "
      .. "element; should it combine both, as in s[i] = s[i] + s[i + d]?"},
  omitted_element = {"note/run/lost-sum", LOST_SUM,
    "this scan omits element 0 of shared tensor '{name}' in thread i = d; "
      .. "should the condition be i:ge(d) instead of i:gt(d)?"},
  lost_tail = {"note/run/lost-sum", LOST_SUM,
    "this loop omits the last {rest} of {extent} elements of each row of "
      .. "'{name}', which another line reads; was its end rounded down?"},
  repeated_atomic = {"note/run/lost-sum", LOST_SUM,
    "{who} add the same value to the same element here, so the sum counts it "
      .. "more than once; should one thread add it, as in cute.when(tid:eq(0), "
      .. "...)?"},
  repeated_lanes = {"note/run/lost-sum", LOST_SUM,
    "this sum counts each value {n} times, because {n} lanes have the same "
      .. "value; does the reduction cover more lanes than have values of their "
      .. "own?"},
  repeated_elements = {"note/run/lost-sum", LOST_SUM,
    "this line adds elements of shared tensor '{name}' to which all threads "
      .. "store the same sum, so it counts that sum more than once; does each "
      .. "warp sum up elements of its own?"},
  repeated_blocks = {"note/run/lost-sum", LOST_SUM,
    "every block {verb} the same value here, because no element that it "
      .. "depends on is chosen by the block's index; is block_idx missing in "
      .. "the coordinate of a tile, or in the bounds of a loop?"},
  stored_apart = {"note/run/lost-sum", LOST_SUM,
    "all {who} store values of their own to the same element here, so only one "
      .. "remains; should each have an element of its own, or should an atomic "
      .. "or a reduction combine them?"},
  twin_blocks = {"note/run/lost-sum", LOST_SUM,
    "{both} load the same elements, and most blocks have such a twin, so equal "
      .. "sums are stored here to different elements; does each tile's "
      .. "coordinate use the right block index?"},
  wrong_scale = {"note/run/wrong-scale",
    "an MMA multiplies elements by the scale factor of others",
    "{wrong}{more}; does each tile take the factors of its own rows and part "
      .. "of K?"},
  wrong_sum = {"note/run/wrong-sum",
    "an output is not the sum or product that the shapes suggest",
    "{result}, but {right} is {want}; {advice} cute.partial_ok({out}) says "
      .. "that this is intended"},
  nonfinite = {"note/run/nonfinite",
    "a NaN or infinity was made from finite inputs",
    "the first NaN or infinity from finite inputs: {made}, {where}; if this is "
      .. "intended, call cute.nonfinite_ok(output)"},
  rounded_index = {"note/run/inexact", INEXACT,
    "{made}, {where}; is a tensor of indices meant to have an integer type, "
      .. "such as cute.i32?"},
  wrapped = {"note/run/inexact", INEXACT,
    "{made}, {where}; compute in a wider type, as by x:to(cute.i32)"},
  wrapped_sum = {"note/run/inexact", INEXACT,
    "{made}, {where}, although it becomes a float; compute in a wider type"},
  lost_fraction = {"note/run/inexact", INEXACT,
    "{made}, {where}: the quotient of integers has no fraction when it becomes "
      .. "a float; convert the sum first, as by sum:to(cute.f32) / n"},
  lost_scale = {"note/run/inexact", INEXACT,
    "{made}, {where}: with this scale, all elements are 0, although the "
      .. "largest is not; store it in a wider type, such as cute.f32"},
  stuck_sum = {"note/run/inexact", INEXACT,
    "{made}, {where}; the sum is too large for its type to add such numbers: "
      .. "keep it in f32, as by cute.var(0.0, cute.f32)"},
  left_out = {"note/run/left-out",
    "a part of a tensor was never read or stored"},
}

--- Returns the sentence of a note.
---@param what string a key of notes.ROWS
---@param about table the values for the sentence
---@return string
function notes.sentence(what, about)
  return kinds.fill({facts = about}, notes.ROWS[what][3])
end

return notes
-- SPDX-License-Identifier: MIT
