// A word from the browser when a long turn has ended while the page is out of sight. It is off until it is asked for.

import { iconButton } from "./dom.js";
import { icon } from "./icons.js";

const WANTED = "koboshi.notify";
const LONG_MS = 15000;

const isAble = () => "Notification" in window;
const isWanted = () => isAble() && localStorage.getItem(WANTED) === "yes" && Notification.permission === "granted";

export function notifyButton() {
  if (!isAble()) return null;
  const words = () => (isWanted() ? "Notifications are on" : "Notify me when a long turn ends");
  const turn = async () => {
    if (isWanted()) localStorage.removeItem(WANTED);
    else if (await Notification.requestPermission() === "granted") localStorage.setItem(WANTED, "yes");
    made.setAttribute("aria-pressed", String(isWanted()));
    made.title = words();
  };
  const made = iconButton(icon("bell"), "Notify me when a long turn ends", turn, { "aria-pressed": String(isWanted()), title: words() });
  return made;
}

export function turnEnded({ title, words, lasted }) {
  if (!isWanted() || !document.hidden || lasted < LONG_MS) return;
  const told = new Notification(title, { body: words.slice(0, 200), tag: "koboshi" });
  told.onclick = () => { window.focus(); told.close(); };
}
