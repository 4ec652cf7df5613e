// Functions that all scripts of the page use to find and make elements.
"use strict";

function el(id) { return document.getElementById(id); }

// Makes an element with a class and a text, if any.
function make(tag, name, text) {
  const e = document.createElement(tag);
  if (name) e.className = name;
  if (text !== undefined) e.textContent = text;
  return e;
}
// SPDX-License-Identifier: MIT
