// Asks for what changes on a page, and puts it in the place of what stood there.
"use strict";

const live = document.getElementById("live");
const pause = document.getElementById("pause");
const age = document.getElementById("age");
const every = live ? Number(live.dataset.every) : 0;
let paused = false;

// Somebody who reads a table with the keyboard, or has marked something, is not disturbed.
const isUsed = () => {
  const marked = document.getSelection();
  return live.contains(document.activeElement) ||
    (marked && !marked.isCollapsed && live.contains(marked.anchorNode));
};

const renew = async () => {
  const place = new URL(location.href);
  place.searchParams.set("live", "1");
  const answer = await fetch(place, { credentials: "same-origin", redirect: "error" });
  if (answer.status === 401) {
    location.assign("/login");
    return;
  }
  if (!answer.ok) throw new Error(String(answer.status));
  const text = await answer.text();
  if (paused || isUsed()) return;
  const left = [...live.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
  const next = new DOMParser().parseFromString(text, "text/html");
  live.replaceChildren(...next.body.childNodes);
  live.querySelectorAll(".scroll").forEach((one, at) => { one.scrollLeft = left[at] || 0; });
};

// However long an answer takes, the proxy has most of its time for others.
const turn = async () => {
  const asked = performance.now();
  if (!paused && !document.hidden && !isUsed()) {
    try {
      await renew();
      age.textContent = "";
    } catch {
      age.textContent = "The proxy does not answer; this is what it said last.";
    }
  }
  setTimeout(turn, Math.max(every, 4 * (performance.now() - asked)));
};

if (every > 0) {
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
  });
  setTimeout(turn, every);
}

for (const button of document.querySelectorAll("button[data-copies]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copies);
    text.select();
    await navigator.clipboard.writeText(text.value);
    button.textContent = "Copied";
  });
}
