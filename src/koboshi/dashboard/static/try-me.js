// Things to try, and what recovery made of them. Only beside the model that needs no key.

import { button, h, iconButton, replace } from "./dom.js";
import { moment, shorten } from "./format.js";
import { icon } from "./icons.js";
import { get, post } from "./session.js";
import { happened } from "./why.js";

const TICKS = 'for s in $(seq 4 4 60); do sleep 4; echo "$s of 60 seconds"; done';
const HINT = "Press it while something runs. A turn that dies three times without progress is given up, and you are told. After several kills in ten minutes, interrupted work is paused until you resume it.";

export class TryMe {
  constructor(page, say, close) {
    this.say = say;
    this.story = h("ol", { class: "timeline", "aria-label": "What recovery decided" });
    this.said = h("p", { class: "aside", role: "status" });
    this.element = h(
      "aside", { class: "try", "aria-label": "Try me" },
      h("header", {}, h("h2", {}, "Try me"), iconButton(icon("close"), "Close this panel", close)),
      h("div", { class: "tries" }, this.tries(page.can_kill)),
      this.said,
      h("h2", {}, "What recovery decided"),
      this.story,
    );
    this.refresh();
  }

  tries(canKill) {
    const tell = (words, text) => button(words, () => this.say(text));
    return [
      tell("Start a 60-second job", `in background ${TICKS}`),
      tell("Ask me a question", "ask me What shall we drink? tea, coffee or water"),
      tell("Tell me a long story", "tell me a story"),
      canKill
        ? [button("kill -9 the gateway now", () => this.kill(), { class: "danger" }), h("p", { class: "aside" }, HINT)]
        : h("p", { class: "aside" }, "To kill the gateway from here, start it with ", h("code", {}, "koboshi run --supervise"), "."),
    ];
  }

  async kill() {
    try {
      await post("try/kill");
      replace(this.said, "Killed. It starts again by itself.");
    } catch (error) {
      replace(this.said, `Not killed: ${error.message}`);
    }
  }

  async refresh() {
    try {
      const { lines } = await get("journal", { open: 1, limit: 40 });
      replace(this.story, lines.map(timelineItem).filter((each) => each !== null));
    } catch {
      return; // it is told when the gateway is back
    }
    if (this.said.textContent.startsWith("Killed")) replace(this.said, "It is back.");
  }
}

export function timelineItem(line) {
  if (!line.words) return null;
  const at = h("time", {}, moment(line.at_ms));
  if (line.subject === "worker") {
    return h("li", { class: `boot-line ${line.event}` }, at, h("a", { href: "#/health" }, `Boot ${line.number}`), line.event === "booted" ? ": " : " ", shorten(line.words, 300));
  }
  const turn = h("a", { href: `#/turns/t${line.turn_id}` }, `t${line.turn_id}`);
  return h("li", { class: "verdict-line" }, at, turn, " ", happened(line));
}
