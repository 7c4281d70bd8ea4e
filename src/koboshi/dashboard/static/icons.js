// Icons, drawn on a grid of 24 by 24 in lines. They say nothing by themselves: the words beside them do, or a label.

const PATHS = {
  chat: "M4 5h16v11H9l-5 4z",
  activity: "M3 12h4l3-8 4 16 3-8h4",
  question: "M9 9a3 3 0 1 1 4 2.8c-.7.3-1 .8-1 1.7M12 17.5v.01M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  clock: "M12 7v5l3 3M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  health: "M12 20s-8-4.6-8-10.4A4.6 4.6 0 0 1 12 7a4.6 4.6 0 0 1 8 2.6C20 15.4 12 20 12 20z",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
  plus: "M12 5v14M5 12h14",
  search: "M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM20 20l-4.6-4.6",
  more: "M6 12v.01M12 12v.01M18 12v.01",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  clip: "M8 12.5l6-6a3 3 0 0 1 4.3 4.3l-8 8a5 5 0 0 1-7-7l7.5-7.5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 12.5l4.5 4.5L19 7.5",
  retry: "M4 12a8 8 0 1 1 2.5 5.8M4 20v-4.5h4.5",
  why: "M12 8v.01M11 12h1v5M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  bell: "M6 16V11a6 6 0 1 1 12 0v5l2 2H4zM10 20.5h4",
  pin: "M9 4h6l-1 6 3 3v2H7v-2l3-3zM12 15v5",
  archive: "M4 5h16v4H4zM6 9v10h12V9M10 13h4",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  edit: "M5 19l1-4L16 5l3 3L9 18z",
  file: "M7 3h7l4 4v14H7zM14 3v4h4",
  down: "M12 5v13M6 12l6 6 6-6",
  out: "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9",
  flask: "M10 3h4M11 3v6l-5 9a2 2 0 0 0 2 3h8a2 2 0 0 0 2-3l-5-9V3M8 15h8",
};
const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("class", "icon");
  drawing.setAttribute("viewBox", "0 0 24 24");
  drawing.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  drawing.append(path);
  return drawing;
}
