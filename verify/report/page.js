"use strict";
(() => {
  const all = [...document.querySelectorAll("details.scenario")];
  const buttons = [...document.querySelectorAll("button[data-show]")];
  const find = document.getElementById("find");
  const shown = document.getElementById("shown");
  let show = "all";
  const apply = () => {
    const words = find.value.trim().toLowerCase();
    let n = 0;
    for (const d of all) {
      d.hidden = (show !== "all" && d.dataset.result !== show) ||
        (words !== "" && !d.textContent.toLowerCase().includes(words));
      if (!d.hidden) n++;
    }
    shown.textContent = n + " of " + all.length + " scenarios shown";
  };
  for (const b of buttons) {
    b.addEventListener("click", () => {
      show = b.dataset.show;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === b));
      apply();
    });
  }
  find.addEventListener("input", apply);
  const open = (yes) => { for (const d of all) if (!d.hidden) d.open = yes; };
  document.getElementById("open").addEventListener("click", () => open(true));
  document.getElementById("close").addEventListener("click", () => open(false));
  const toTarget = () => {
    const d = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!d || !all.includes(d)) return;
    d.hidden = false;
    d.open = true;
    d.scrollIntoView();
    d.querySelector("summary").focus();
  };
  addEventListener("hashchange", toTarget);
  let were = [];
  addEventListener("beforeprint", () => {
    were = all.map((d) => d.open);
    for (const d of all) d.open = true;
  });
  addEventListener("afterprint", () => { were.forEach((o, i) => { all[i].open = o; }); });
  document.documentElement.classList.add("scripted");
  apply();
  toTarget();
})();
