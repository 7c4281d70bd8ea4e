// The page: whether this browser is let in, which part of it is shown, and whether the gateway is there.

import { Alerts } from "./alerts.js";
import { h, replace } from "./dom.js";
import { openHelp } from "./help.js";
import { enter, get, isLocked } from "./session.js";
import { Shell } from "./shell.js";
import { knowRules } from "./why.js";

const LOST_AFTER_MS = 300;

// Addresses of earlier versions, and what is shown there now.
const MOVED = {
  turns: "activity?kind=turn", inbox: "activity?kind=message", outbox: "activity?kind=delivery", processes: "activity?kind=process",
  sessions: "activity?kind=turn", boots: "health", browsers: "settings", people: "settings",
};

const main = document.getElementById("main");
const shell = new Shell(document.getElementById("side"), document.getElementById("bar"), document.getElementById("veil"));
const alerts = new Alerts(document.getElementById("troubles"), (questions) => shell.count(questions));
let shown = null;
let page = null;
let lostTimer = null;
let round = 0;

function showState(state) {
  clearTimeout(lostTimer);
  if (state === "live") {
    say("live", "");
    alerts.look();
    shell.chats.refresh();
  }
  else if (state === "lost") lostTimer = setTimeout(() => say("lost", "Reconnecting…"), LOST_AFTER_MS);
  else say("", "");
}

function say(state, words) {
  document.body.dataset.link = state;
  shell.say(words);
}

async function show() {
  const mine = ++round;
  shown?.end();
  shown = null;
  shell.close();
  if (isLocked()) {
    showState("");
    shell.hide();
    alerts.show([]);
    replace(main, lockedPage(""));
    return;
  }
  page ??= await whatPageCanDo();
  if (page === null || mine !== round) return;
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  if (MOVED[name] && !rest.length) {
    location.replace(`#/${MOVED[name]}`);
    return;
  }
  shell.draw(page, name, rest);
  const made = await pageAt(name, rest, new URLSearchParams(query));
  if (mine !== round) {
    made.end();
    return;
  }
  shown = made;
  replace(main, shown.element);
  shell.head(shown);
  document.title = `${shown.title ?? "Koboshi"} · Koboshi`;
  shown.focus?.();
}

// Asked until there is an answer: the gateway may be on its way up.
async function whatPageCanDo() {
  for (;;) {
    try {
      const told = await get("page");
      knowRules(told.rules);
      return told;
    } catch (error) {
      if (isLocked()) return null;
      showState("lost");
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

// What operators look at is loaded when one does.
async function pageAt(name, rest, query) {
  if (!name || name === "chat") {
    const { ChatPage } = await import("./chat-page.js");
    const wanted = query.get("at") ? { id: query.get("at"), ms: Number(query.get("ms")) } : null;
    return new ChatPage(rest[0] || shell.chats.first(), page, shell, showState, wanted);
  }
  const [{ BOARD }, { BoardPage }] = await Promise.all([import("./board.js"), import("./board-page.js")]);
  const found = BOARD[rest.length ? `${name}/…` : name] ?? BOARD.missing;
  return new BoardPage(found, rest[0], { page, query: Object.fromEntries(query) }, showState);
}

function lockedPage(words) {
  const input = h("input", { type: "text", "aria-label": "Login link", placeholder: "http://127.0.0.1:8642/login#…", autocomplete: "off", spellcheck: "false" });
  const submit = async (event) => {
    event.preventDefault();
    await login(input.value.trim().split("#").at(-1));
  };
  return h(
    "section", { class: "locked" },
    h("img", { src: "/static/koboshi.svg", alt: "", width: "96", height: "96" }),
    h("h1", {}, "Koboshi"),
    words ? h("p", { class: "bad", role: "alert" }, words) : null,
    h("p", {}, "This browser is not logged in. Open the link that ", h("code", {}, "koboshi run"), " printed, or get a new one in a terminal:"),
    h("pre", {}, "koboshi open"),
    h("form", { onsubmit: submit }, input, h("button", { type: "submit", class: "primary" }, "Log in")),
  );
}

async function login(code) {
  try {
    await enter(code);
  } catch (error) {
    // The cookie of an earlier visit may still be good.
    if (isLocked()) {
      replace(main, lockedPage(error.message));
      return;
    }
  }
  history.replaceState(null, "", "/#/");
  show();
}

// A dialog that was just closed keeps the focus until the next frame is drawn.
const isTyping = (target) => Boolean(target.closest?.("input, textarea, select, dialog[open]"));

window.addEventListener("hashchange", show);
window.addEventListener("koboshi-locked", show);
window.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isLocked() || isTyping(event.target)) return;
  if (event.key === "?") openHelp();
  else if (event.key === "/") shown?.focusInput?.();
  else if (event.key === "n") shell.newChat();
  else if (event.key === "f") shell.chats.focusSearch();
  else return;
  event.preventDefault();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

if (location.pathname === "/login") {
  const code = location.hash.slice(1);
  // Out of the address at once: it is used up, and should not be seen.
  history.replaceState(null, "", "/login");
  login(code);
} else {
  show();
}
