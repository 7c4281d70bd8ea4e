// A page for operators: it loads what it shows, and loads it again when the journal has grown.

import { button, h, openAgain, openKeys, replace } from "./dom.js";
import { get, post } from "./session.js";
import { follow } from "./stream.js";
import { sentence, withCode } from "./why.js";

const QUIET_MS = 400;
const SAID_MS = 8000;

export class BoardPage {
  // `kind.load(context)` gives values, `kind.view(values, context)` the elements for them.
  constructor(kind, what, { page, query }, onState) {
    this.kind = kind;
    this.kept = new Map();
    this.title = what ? `${kind.title} ${what}` : kind.title;
    this.body = h("div", { class: "board-body" }, h("p", { class: "aside" }, "Loading…"));
    this.said = h("p", { class: "toast", role: "status" });
    this.context = {
      what, page, query,
      // An element that is made once and stays: what is typed in it outlives each drawing.
      once: (name, make) => {
        if (!this.kept.has(name)) this.kept.set(name, make());
        return this.kept.get(name);
      },
      act: (path, words) => this.act(path, words),
      again: () => { this.before = null; this.load(); },
      show: (changed) => {
        this.context.query = changed;
        this.before = null;
        this.load();
      },
    };
    this.element = h("section", { class: "board", tabindex: "0", "aria-label": this.title }, h("div", { class: "board-inner" }, kind.tools?.(this.context), this.said, this.body));
    this.before = null;
    this.isOver = false;
    this.timer = null;
    this.load();
    this.endFollowing = follow("journal/events", { onEvent: () => this.soon(), onState });
  }

  end() {
    this.isOver = true;
    clearTimeout(this.timer);
    clearTimeout(this.saidTimer);
    this.endFollowing();
  }

  soon() {
    this.timer ??= setTimeout(() => { this.timer = null; this.load(); }, QUIET_MS);
  }

  async load() {
    let values;
    try {
      values = await this.kind.load(this.context);
    } catch (error) {
      if (error.status && error.status !== 401) replace(this.body, h("p", { class: "bad", role: "alert" }, error.message));
      return;
    }
    const text = JSON.stringify(values);
    if (this.isOver || text === this.before) return;
    this.before = text;
    const open = openKeys(this.body);
    const focused = document.activeElement?.dataset?.focus;
    replace(this.body, this.kind.view(values, this.context));
    openAgain(this.body, open);
    if (focused) this.body.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }

  async act(path, words) {
    let isDone = true;
    try {
      const reply = await post(path);
      this.say(typeof words === "function" ? words(reply) : words);
    } catch (error) {
      isDone = false;
      this.say(sentence(error.message), true);
    }
    this.load();
    return isDone;
  }

  // In the corner: a person who has scrolled down sees what became of it.
  say(words, isBad = false) {
    clearTimeout(this.saidTimer);
    this.said.classList.toggle("bad", isBad);
    replace(this.said, withCode(words));
    this.saidTimer = setTimeout(() => replace(this.said), SAID_MS);
  }
}

// A list that is read page by page: each page begins before the last row of the one above it.
export async function listed(path, context, query = {}) {
  const all = { limit: 50, ...query, ...context.query };
  return get(path, all);
}

export function pager(values, context) {
  const older = values.next
    ? button("Older", () => context.show({ ...context.query, before: values.next }), { "data-focus": "older" })
    : null;
  const newest = context.query.before
    ? button("Newest", () => context.show({ ...context.query, before: null }), { "data-focus": "newest" })
    : null;
  return older || newest ? h("div", { class: "pager" }, newest, older) : null;
}
