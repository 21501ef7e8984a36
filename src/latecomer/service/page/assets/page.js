"use strict";
// Loads the part of the page that has data, and again every second. The key stays in sessionStorage: it is sent as
// a header, never as a cookie, so no other site can make this browser use it.
const EVERY = 1000;
const KEY = "latecomer-key";
const find = (id) => document.getElementById(id);
const asked = new URLSearchParams(location.search);
const bandit = asked.get("bandit");
const decision = asked.get("decision");
let timer = 0;
let shown = "";

function chooseAddress() {
  if (bandit === null) return "/page/bandits";
  const base = `/page/bandits/${encodeURIComponent(bandit)}`;
  return decision === null ? base : `${base}/decision?${new URLSearchParams({ decision_id: decision })}`;
}

function say(text) {
  if (find("status").textContent !== text) find("status").textContent = text;
}

function isBusy(content) {
  const active = document.activeElement;
  if (!content.contains(active)) return !getSelection().isCollapsed && content.contains(getSelection().anchorNode);
  return !getSelection().isCollapsed || (active.tagName === "INPUT" && active.value !== "");
}

function show(html) {
  const content = find("content");
  if (html === shown || isBusy(content)) return; // nothing new, or someone copies a number or writes an id
  const first = shown === "";
  const open = [...content.querySelectorAll("details[open]")].map((part) => part.id);
  const scrolled = [...content.querySelectorAll(".wide")].map((part) => part.scrollLeft);
  const focused = content.contains(document.activeElement) ? document.activeElement.id : "";
  content.innerHTML = html;
  content.querySelectorAll(".address").forEach((part) => { part.textContent = location.origin; });
  shown = html;
  for (const id of open) if (find(id)) find(id).open = true;
  content.querySelectorAll(".wide").forEach((part, place) => { part.scrollLeft = scrolled[place] || 0; });
  if (focused && focused !== "content" && find(focused)) find(focused).focus({ preventScroll: true });
  if (first && location.hash && find(location.hash.slice(1))) find(location.hash.slice(1)).scrollIntoView();
}

function showProblem(text) {
  say(shown === "" ? "Not live" : text);
  if (shown !== "" || find("content").textContent.startsWith(text)) return; // said already: a focus stays where it is
  const note = document.createElement("p");
  note.className = "empty";
  note.textContent = text;
  const back = document.createElement("a");
  back.href = decision === null ? "/" : `/?${new URLSearchParams({ bandit })}`;
  back.textContent = decision === null ? "← all bandits" : `← ${bandit}`;
  find("content").replaceChildren(note, back);
}

function askForKey(wrong) {
  sessionStorage.removeItem(KEY);
  find("content").replaceChildren();
  shown = "";
  find("logout").hidden = true;
  const hidden = find("login").hidden;
  find("login").hidden = false;
  if (hidden) find("key").focus();
  say(wrong ? "This key is not valid." : "A key is needed.");
}

async function load() {
  clearTimeout(timer);
  const key = sessionStorage.getItem(KEY);
  try {
    const answer = await fetch(chooseAddress(), { headers: key ? { Authorization: `Bearer ${key}` } : {}, cache: "no-store" });
    const text = await answer.text();
    if (answer.status === 401) return askForKey(key !== null);
    find("login").hidden = true;
    find("logout").hidden = key === null;
    if (answer.ok) {
      show(text);
      say("Live");
    } else {
      showProblem(JSON.parse(text).error.message);
    }
  } catch {
    showProblem("The server does not answer; trying again.");
  }
  timer = setTimeout(load, EVERY);
}

find("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, find("key").value.trim());
  find("key").value = "";
  load();
});
find("content").addEventListener("submit", (event) => {
  event.preventDefault();
  location.search = new URLSearchParams({ bandit, decision: find("decision").value.trim() });
});
find("logout").addEventListener("click", () => {
  clearTimeout(timer);
  askForKey(false);
});
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (!document.hidden && find("login").hidden) load();
});
if (bandit !== null) document.title = `${bandit} – Latecomer`;
load();
