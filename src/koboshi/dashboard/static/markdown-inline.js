// Words within a line: code, emphasis, links, pictures of ours.

import { h } from "./dom.js";

const DEPTH_MAX = 8;
const SAFE_LINK = /^(?:https?:\/\/|mailto:)/i;
const OUR_FILE = /^\/api\/v1\/sessions\/[^/?#\s.]+\/(?:files|uploads)\/\w+(?:\?name=[^#\s]*)?$/;
const BARE_LINK = /https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?]/y;
const SPECIAL = /[\\`*_~[!<\n]|https?:\/\//g;
const MARKS = [["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];

export function inline(text, depth = 0) {
  const found = [];
  let plain = 0;
  let at = 0;
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const special = SPECIAL.exec(text);
    if (!special) break;
    at = special.index;
    const made = depth < DEPTH_MAX ? specialAt(text, at, depth) : null;
    if (!made) {
      at += special[0].length;
      continue;
    }
    if (at > plain) found.push(text.slice(plain, at));
    found.push(made.node);
    at = plain = made.end;
  }
  if (plain < text.length) found.push(text.slice(plain));
  return found;
}

function specialAt(text, at, depth) {
  switch (text[at]) {
    case "\\": return /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "") ? { node: text[at + 1], end: at + 2 } : null;
    case "`": return code(text, at);
    case "\n": return lineEnd(text, at);
    case "[": return link(text, at, depth);
    case "!": return text[at + 1] === "[" ? link(text, at + 1, depth, true) : null;
    case "<": return angled(text, at);
    case "h": return bare(text, at);
    default: return emphasis(text, at, depth);
  }
}

function code(text, at) {
  const mark = /^`+/.exec(text.slice(at, at + 40))[0];
  const end = text.indexOf(mark, at + mark.length);
  if (end < 0) return null;
  const inner = text.slice(at + mark.length, end).replace(/\n/g, " ");
  const trimmed = /^ .*[^ ].* $/.test(inner) ? inner.slice(1, -1) : inner;
  return { node: h("code", {}, trimmed), end: end + mark.length };
}

// Models end lines where they want them to end.
function lineEnd(text, at) {
  return { node: h("br"), end: at + 1 };
}

// Pictures of others are not loaded: their address would tell their server that this was read. Files of this gateway
// are shown, if their content is that of a picture: it serves nothing else to be shown.
function link(text, at, depth, isPicture = false) {
  const close = closing(text, at);
  if (close < 0 || text[close + 1] !== "(") return null;
  const end = text.indexOf(")", close + 2);
  if (end < 0) return null;
  const target = text.slice(close + 2, end).trim().split(/\s/)[0].replace(/^<|>$/g, "");
  if (isPicture && OUR_FILE.test(target)) return { node: picture(target, text.slice(at + 1, close)), end: end + 1 };
  if (!SAFE_LINK.test(target)) return null;
  const words = text.slice(at + 1, close) || target;
  return { node: anchor(target, inline(words, depth + 1)), end: end + 1 };
}

function picture(address, words) {
  const shown = h("img", { class: "picture", src: address, alt: words, loading: "lazy", onerror: () => shown.replaceWith(words) });
  return shown;
}

function closing(text, at) {
  let open = 0;
  for (let place = at; place < Math.min(text.length, at + 1000); place += 1) {
    if (text[place] === "\\") place += 1;
    else if (text[place] === "[") open += 1;
    else if (text[place] === "]" && --open === 0) return place;
  }
  return -1;
}

function angled(text, at) {
  const end = text.indexOf(">", at);
  const target = text.slice(at + 1, Math.max(end, at + 1));
  return SAFE_LINK.test(target) && !/\s/.test(target) ? { node: anchor(target, [target]), end: end + 1 } : null;
}

function bare(text, at) {
  BARE_LINK.lastIndex = at;
  const found = BARE_LINK.exec(text);
  return found ? { node: anchor(found[0], [found[0]]), end: at + found[0].length } : null;
}

function anchor(target, words) {
  return h("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, words);
}

function emphasis(text, at, depth) {
  const isWord = (letter) => /[\p{L}\p{N}]/u.test(letter ?? "");
  for (const [mark, tag] of MARKS) {
    if (!text.startsWith(mark, at) || /\s/.test(text[at + mark.length] ?? " ")) continue;
    if (mark[0] === "_" && isWord(text[at - 1])) continue;
    let end = text.indexOf(mark, at + mark.length + 1);
    if (mark.length === 1) while (end > 0 && text[end + 1] === mark) end = text.indexOf(mark, end + 2);
    if (end < 0 || /\s/.test(text[end - 1]) || (mark[0] === "_" && isWord(text[end + mark.length]))) continue;
    return { node: h(tag, {}, inline(text.slice(at + mark.length, end), depth + 1)), end: end + mark.length };
  }
  return null;
}
