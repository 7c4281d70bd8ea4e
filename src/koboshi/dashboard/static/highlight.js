// Code in colours. It is cut into tokens by one expression for each family of languages; every token becomes a text
// node in an element of its own. It need not be right about everything: it only has to help the eye.

import { h } from "./dom.js";

const words = (text) => text.trim().split(/\s+/).join("|");
const KEYWORDS = {
  python: words("and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield None True False self"),
  script: words("abstract as async await break case catch class const continue debugger default delete do else enum export extends false finally for from function get if implements import in instanceof interface let new null of package private protected public readonly return set static super switch this throw true try type typeof undefined var void while with yield"),
  c: words("auto bool break case catch char class const constexpr continue default defer delete do double else enum explicit extern false final float fn for func go goto if impl import inline int interface let long loop map match mod module mut namespace new nil null nullptr package private protected pub public range return select self short signed sizeof static struct super switch template this throw trait true try type typedef union unsafe unsigned use using var virtual void volatile where while string byte error"),
  shell: words("if then else elif fi for in do done while until case esac function return exit export local readonly set unset source sudo cd echo"),
  sql: words("select from where insert into values update set delete create table index view drop alter add join left right inner outer on group by order having limit offset union all distinct as and or not null is in like between exists case when then else end primary key references default begin commit rollback with returning"),
};

const STRING = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/.source;
const NUMBER = /\b(?:0x[\da-f_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\b/.source;
const CALL = /\b[A-Za-z_]\w*(?=\s*\()/.source;

function grammar(keywords, comment, { string = STRING, flags = "g" } = {}) {
  return new RegExp(`(?<comment>${comment})|(?<string>${string})|(?<keyword>\\b(?:${keywords})\\b)|(?<number>${NUMBER})|(?<name>${CALL})`, flags);
}

const SLASHES = /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/.source;
const HASH = /(?<![\w$])#[^\n]*/.source;
const TRIPLE = /"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)/.source;

const GRAMMARS = {
  python: grammar(KEYWORDS.python, HASH, { string: `${TRIPLE}|${STRING}` }),
  script: grammar(KEYWORDS.script, SLASHES, { string: `${STRING}|${/`(?:\\[^]|[^`\\])*`/.source}` }),
  c: grammar(KEYWORDS.c, SLASHES),
  shell: grammar(KEYWORDS.shell, HASH),
  sql: grammar(KEYWORDS.sql, "--[^\\n]*", { flags: "gi" }),
  data: new RegExp(`(?<comment>${HASH})|(?<name>(?:"(?:\\\\.|[^"\\\\\\n])*"|[\\w.-]+)(?=\\s*[:=]))|(?<string>${STRING})|(?<keyword>\\b(?:true|false|null|yes|no)\\b)|(?<number>${NUMBER})`, "g"),
  markup: /(?<comment><!--[^]*?(?:-->|$))|(?<string>"[^"\n]*"|'[^'\n]*')|(?<keyword><\/?[\w:-]+|\/?>)|(?<name>\b[\w:-]+(?==))/g,
  diff: /(?<string>^\+[^\n]*)|(?<comment>^-[^\n]*)|(?<keyword>^@@[^\n]*)/gm,
};
const FAMILY = {
  py: "python", python: "python", python3: "python", js: "script", javascript: "script", mjs: "script", ts: "script", typescript: "script", jsx: "script", tsx: "script",
  c: "c", h: "c", cpp: "c", "c++": "c", cs: "c", "c#": "c", java: "c", kotlin: "c", swift: "c", go: "c", rust: "c", rs: "c", php: "c", css: "c", scss: "c",
  sh: "shell", bash: "shell", shell: "shell", zsh: "shell", console: "shell", dockerfile: "shell", make: "shell", makefile: "shell", sql: "sql",
  json: "data", toml: "data", yaml: "data", yml: "data", ini: "data", env: "data", html: "markup", xml: "markup", svg: "markup", diff: "diff", patch: "diff",
};
const CHARS_MAX = 100000;

// The parts of the code; null where the language is not known.
export function coloured(text, language) {
  const found = GRAMMARS[FAMILY[language.toLowerCase()]];
  if (!found || text.length > CHARS_MAX) return null;
  const parts = [];
  let end = 0;
  for (const token of text.matchAll(found)) {
    if (token.index > end) parts.push(text.slice(end, token.index));
    const [kind] = Object.entries(token.groups).find(([, value]) => value !== undefined);
    parts.push(h("span", { class: `t-${kind}` }, token[0]));
    end = token.index + token[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}
