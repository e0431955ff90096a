// Search as you type, zoom of pictures and their first view, the number of the time slider, and news when the store changes.
// All pages work without it.
"use strict";
(() => {
  const { base, mark } = document.body.dataset;
  const inPast = new URLSearchParams(location.search).get("at");
  const form = document.querySelector(".find"), box = document.querySelector("#suggested");
  const input = form.querySelector("input[type=search]");
  const hide = () => { box.hidden = true; box.replaceChildren(); };
  const htmlOf = async (place) => new DOMParser().parseFromString(await (await fetch(place)).text(), "text/html");
  let asked = 0, timer = 0;
  const suggest = async () => {
    const words = input.value.trim(), number = ++asked;
    if (!words) return hide();
    const query = new URLSearchParams({ text: words, ...(inPast && { at: inPast }) });
    try {
      const found = await htmlOf(`${base}/suggest?${query}`);
      if (number !== asked) return;
      box.replaceChildren(...found.body.childNodes);
      box.hidden = false;
    } catch { hide(); }
  };
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(suggest, 120); });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { hide(); input.focus(); }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const links = [...box.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    const next = event.key === "ArrowDown" ? at + 1 : at - 1;
    if (!links.length || next >= links.length) return;
    event.preventDefault();
    (next < 0 ? input : links[next]).focus();
  });
  form.addEventListener("focusout", (event) => { if (!form.contains(event.relatedTarget)) hide(); });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, select, textarea")) { event.preventDefault(); input.focus(); }
  });

  addEventListener("input", ({ target }) => {
    if (target.type === "range") target.parentElement.querySelector("output").value = target.value;
  });

  const prepare = () => {
    for (const picture of document.querySelectorAll(".picture svg")) {
      const [width, height] = [picture.width.baseVal.value, picture.height.baseVal.value];
      const bar = document.createElement("p");
      let scale = 1;
      for (const [name, factor] of [["Smaller", 1 / 1.25], ["Larger", 1.25], ["Fit", 0]]) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = name;
        button.addEventListener("click", () => {
          scale = factor ? scale * factor : Math.min(1, picture.parentElement.clientWidth / width);
          scale = Math.min(4, Math.max(0.1, scale));
          picture.setAttribute("width", width * scale);
          picture.setAttribute("height", height * scale);
        });
        bar.append(button, " ");
      }
      picture.parentElement.before(bar);
      const start = picture.querySelector(".start rect")?.getBoundingClientRect(), view = picture.parentElement.getBoundingClientRect();
      if (start) picture.parentElement.scrollBy(start.x + start.width / 2 - view.x - view.width / 2, start.y - view.y - view.height / 2);
    }
  };
  prepare();

  // A page of the present is read again when the branch has changed, unless its user is filling in a form.
  if (!mark) return;
  const news = document.querySelector("#news");
  let shown = mark;
  const say = (text) => { news.textContent = text; news.hidden = false; };
  const renew = async (now) => {
    const busy = document.activeElement?.closest("main form, .time");
    if (busy) return say("The branch has changed. Reload the page to see it as it is now.");
    const page = await htmlOf(location.href);
    if (!page.querySelector("main")) return;
    for (const part of [".state", "main"]) {
      const [old, made] = [document.querySelector(part), page.querySelector(part)];
      if (!old || !made) continue;
      const opened = made.querySelectorAll("details");
      old.querySelectorAll("details").forEach((one, at) => { if (opened[at]) opened[at].open ||= one.open; });
      old.replaceWith(document.adoptNode(made));
    }
    document.title = page.title;
    shown = now;
    prepare();
    say("The branch has changed: the page is up to date.");
  };
  const events = new EventSource(`${base}/events`);
  events.addEventListener("message", ({ data }) => { if (data !== shown) renew(data).catch(() => say("The page could not be renewed.")); });
  events.addEventListener("error", () => say("No news of the branch: the explorer has ended, or is busy."));
  events.addEventListener("open", () => { if (news.textContent.startsWith("No news")) news.hidden = true; });
  addEventListener("pagehide", () => events.close());
})();
