// Requests to the gateway. The browser sends the cookie; the proof that belongs to it is ours to send.

const PROOF = "koboshi.proof";

export class Refused extends Error {
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

export class Unreachable extends Error {}

export const isLocked = () => localStorage.getItem(PROOF) === null;

export function headers(more = {}) {
  return { "X-Koboshi-Proof": localStorage.getItem(PROOF) ?? "", ...more };
}

export async function get(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(given).toString();
  return request("GET", search ? `${path}?${search}` : path);
}

export const post = (path, body = null, more = {}) => request("POST", path, body, more);

export async function enter(code) {
  const { proof } = await request("POST", "login", { code });
  localStorage.setItem(PROOF, proof);
}

export async function leave() {
  await post("logout");
  lock();
}

export function lock() {
  localStorage.removeItem(PROOF);
  window.dispatchEvent(new Event("koboshi-locked"));
}

export const address = (path) => `/api/v1/${path}`;

async function request(method, path, body = null, more = {}) {
  let answer;
  try {
    answer = await fetch(address(path), {
      method,
      headers: headers(body === null ? more : { "Content-Type": "application/json", ...more }),
      body: body === null ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(15000),
    });
    if (answer.ok) return await answer.json();
  } catch (error) {
    throw new Unreachable(String(error));
  }
  const failure = await answer.json().catch(() => null);
  const { type = "http", message = answer.statusText } = failure?.error ?? {};
  if (answer.status === 401 && path !== "login") lock();
  throw new Refused(answer.status, type, message);
}
