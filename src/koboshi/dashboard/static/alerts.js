// What keeps messages from being answered now: one sentence each, the one button that helps, and a way to put it
// aside. It lies over the page, so that nothing moves when it comes or goes.

import { button, h, iconButton, replace } from "./dom.js";
import { icon } from "./icons.js";
import { get, isLocked, post } from "./session.js";
import { sentence, withCode } from "./why.js";

const LOOK_MS = 10000;
const DISMISSED = "koboshi.dismissed";

// What a button does about it, by the name that the gateway gives the trouble.
const HELP = {
  breaker: ["Resume now", resumeAll],
  held: ["Send now", () => post("outbox/release")],
};

async function resumeAll() {
  const { turns } = await get("turns", { open: 1, limit: 200 });
  const left = turns.filter((turn) => turn.stand === "held-back");
  await Promise.all(left.map((turn) => post(`turns/t${turn.turn_id}/resume`).catch(() => {})));
}

export class Alerts {
  constructor(element, onQuestions) {
    this.element = element;
    this.onQuestions = onQuestions;
    this.shown = "[]";
    setInterval(() => this.look(), LOOK_MS);
  }

  async look() {
    if (isLocked()) return;
    try {
      const told = await get("troubles");
      this.onQuestions(told.questions);
      this.show(told.troubles);
    } catch {
      return; // that the gateway does not answer is told elsewhere
    }
  }

  show(troubles) {
    const dismissed = new Set(JSON.parse(sessionStorage.getItem(DISMISSED) ?? "[]"));
    const left = troubles.filter((each) => !dismissed.has(each.words));
    const text = JSON.stringify(left);
    if (text === this.shown) return;
    this.shown = text;
    replace(this.element, left.map((each) => this.trouble(each, dismissed)));
  }

  trouble({ words, remedy, kind }, dismissed) {
    const [label, help] = HELP[kind] ?? [];
    const act = async (event) => {
      event.currentTarget.disabled = true;
      await help().catch(() => {});
      this.look();
    };
    const dismiss = () => {
      sessionStorage.setItem(DISMISSED, JSON.stringify([...dismissed, words]));
      this.look();
    };
    return h(
      "div", { class: "trouble" },
      h("p", {}, withCode(sentence(words)), help || !remedy ? null : [" ", withCode(sentence(remedy))]),
      help ? button(label, act) : null,
      iconButton(icon("close"), "Dismiss", dismiss),
    );
  }
}
