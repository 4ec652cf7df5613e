// What all scripts of the page find elements with, and make them.
"use strict";

function el(id) { return document.getElementById(id); }

// An element with a class and a text, if any.
function make(tag, name, text) {
  const e = document.createElement(tag);
  if (name) e.className = name;
  if (text !== undefined) e.textContent = text;
  return e;
}
