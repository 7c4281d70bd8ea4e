// Markdown as models write it, as elements. Whatever the words are, they end up as text nodes: there
// is no markup in them that could be let through, and no address but http, https and mailto.

import { h, replace } from "./dom.js";
import { icon } from "./icons.js";
import { inline } from "./markdown-inline.js";

const DEPTH_MAX = 8;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)/;
const TASK = /^\[([ xX])\] +/;
const TABLE_LINE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

// Headings go down step by step, whatever the words skip: those who listen to a page find their way by them.
let last = 1;

function headingLevel(level) {
  last = Math.min(6, Math.max(2, Math.min(level + 1, last + 1)));
  return last;
}

export function markdown(text) {
  last = 1;
  return h("div", { class: "words" }, blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0));
}

function blocks(lines, depth) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    const [element, next] = block(lines, at, depth);
    if (element) found.push(element);
    at = next;
  }
  return found;
}

function block(lines, at, depth) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  if (FENCE.test(line)) return fence(lines, at);
  const heading = HEADING.exec(line);
  if (heading) return [h(`h${headingLevel(heading[1].length)}`, {}, inline(heading[2])), at + 1];
  if (RULE.test(line)) return [h("hr"), at + 1];
  if (depth < DEPTH_MAX && QUOTE.test(line)) return quote(lines, at, depth);
  if (depth < DEPTH_MAX && ITEM.test(line)) return list(lines, at, depth);
  if (line.includes("|") && TABLE_LINE.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) return table(lines, at);
  return paragraph(lines, at);
}

function fence(lines, at) {
  const [, mark, language] = FENCE.exec(lines[at]);
  const isEnd = (line) => line.trim().startsWith(mark) && !line.trim().slice(mark.length).replaceAll(mark[0], "");
  let end = at + 1;
  while (end < lines.length && !isEnd(lines[end])) end += 1;
  return [codeBlock(lines.slice(at + 1, end).join("\n"), language), end + 1];
}

export function codeBlock(text, language = "") {
  const copy = h("button", { type: "button", class: "quiet copy", "aria-label": "Copy the code" }, icon("copy"), h("span", {}, "Copy"));
  const say = (words) => { copy.lastChild.textContent = words; };
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    say("Copied");
    setTimeout(() => say("Copy"), 1500);
  });
  const code = h("code", {}, text);
  if (language) colour(code, text, language);
  const bar = h("div", { class: "code-bar" }, h("span", {}, language || "text"), copy);
  return h("div", { class: "code" }, bar, h("pre", { tabindex: "0" }, code));
}

// The colours come when they are there; the words do not wait for them.
async function colour(code, text, language) {
  const { coloured } = await import("./highlight.js");
  const parts = coloured(text, language);
  if (parts) replace(code, parts);
}

function quote(lines, at, depth) {
  const inner = [];
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) inner.push(lines[end++].replace(QUOTE, ""));
  return [h("blockquote", {}, blocks(inner, depth + 1)), end];
}

function list(lines, at, depth) {
  const isNumbered = /\d/.test(ITEM.exec(lines[at])[2]);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const mark = ITEM.exec(lines[end]);
    if (!mark || /\d/.test(mark[2]) !== isNumbered || RULE.test(lines[end])) break;
    const [inner, next] = itemLines(lines, end, mark[0].length);
    items.push(listItem(inner, depth));
    end = next;
  }
  const start = isNumbered ? Number.parseInt(ITEM.exec(lines[at])[2], 10) : null;
  return [isNumbered ? h("ol", { start: start === 1 ? null : start }, items) : h("ul", {}, items), end];
}

// One that begins with a box is a task, done or not.
function listItem(lines, depth) {
  const task = TASK.exec(lines[0]);
  if (!task) return h("li", {}, tight(blocks(lines, depth + 1)));
  const isDone = task[1] !== " ";
  const box = h("input", { type: "checkbox", checked: isDone, disabled: true, "aria-label": isDone ? "done" : "not done" });
  return h("li", { class: "task" }, box, h("div", {}, tight(blocks([lines[0].slice(task[0].length), ...lines.slice(1)], depth + 1))));
}

// The lines of one item: what follows its mark, and whatever is indented below it.
function itemLines(lines, at, width) {
  const inner = [lines[at].slice(width)];
  let end = at + 1;
  for (; end < lines.length; end += 1) {
    const line = lines[end];
    const isBelow = line.startsWith("  ") || line.startsWith("\t");
    const goesOn = !line.trim() ? (lines[end + 1] ?? "").startsWith("  ") : isBelow;
    const isLazy = line.trim() && lines[end - 1].trim() && !startsBlock(line);
    if (!goesOn && !isLazy) break;
    inner.push(line.replace(new RegExp(`^(?: {1,${Math.max(width, 2)}}|\\t)`), ""));
  }
  while (end < lines.length && !lines[end].trim() && ITEM.test(lines[end + 1] ?? "")) end += 1;
  return [inner, end];
}

// A single paragraph of an item needs no space around it.
function tight(children) {
  const [first, ...rest] = children;
  return first?.tagName === "P" ? [[...first.childNodes], ...rest] : children;
}

function table(lines, at) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
  const sides = cells(lines[at + 1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "middle" : "right") : null));
  const head = h("tr", {}, cells(lines[at]).map((cell, place) => h("th", { scope: "col", class: sides[place] }, inline(cell))));
  const rows = [];
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) {
    rows.push(h("tr", {}, cells(lines[end++]).map((cell, place) => h("td", { class: sides[place] }, inline(cell)))));
  }
  const grid = h("table", {}, h("thead", {}, head), h("tbody", {}, rows));
  return [h("div", { class: "wide", tabindex: "0" }, grid), end];
}

function startsBlock(line) {
  return [FENCE, HEADING, RULE, QUOTE, ITEM].some((mark) => mark.test(line));
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !startsBlock(lines[end])) end += 1;
  return [h("p", {}, inline(lines.slice(at, end).join("\n"))), end];
}
