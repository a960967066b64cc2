"use strict";
(() => {
  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (name, { text, ...attributes } = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    element.append(...children);
    return element;
  };

  // Claims: filter by words and verdicts, sort by column
  const rows = all("#claim-list > tbody > tr");
  const words = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const choices = { published: find("#claim-published"), ours: find("#claim-ours") };
  const search = find("#claim-search");
  const filter = () => {
    const asked = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const judged = Object.entries(choices).every(([key, { value }]) => !value || row.dataset[key] === value);
      row.hidden = !(judged && asked.every((word) => words.get(row).includes(word)));
    }
    find("#claim-count").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} claims`;
  };
  search.form.addEventListener("input", filter);
  search.form.addEventListener("submit", (event) => event.preventDefault());
  search.form.addEventListener("reset", () => setTimeout(filter));
  for (const link of all("[data-verdict]"))
    link.addEventListener("click", () => {
      search.form.reset();
      choices[link.dataset.source].value = link.dataset.verdict;
      setTimeout(filter);
    });

  const ORDER = ["holds", "fails", "equivalent", "inconclusive", "not measured", "not judged"];
  const keys = {
    claim: (row) => Number(row.dataset.place),
    published: (row) => ORDER.indexOf(row.dataset.published),
    ours: (row) => ORDER.indexOf(row.dataset.ours),
    n: (row) => Number.parseInt(find(".n", row).textContent, 10) || 0,
  };
  for (const button of all("[data-sort]"))
    button.addEventListener("click", () => {
      const heading = button.parentElement;
      const sign = heading.ariaSort === "ascending" ? -1 : 1;
      for (const each of all("[aria-sort]", heading.parentElement)) each.ariaSort = "none";
      heading.ariaSort = sign > 0 ? "ascending" : "descending";
      const key = keys[button.dataset.sort];
      rows.sort((a, b) => sign * (key(a) - key(b)) || a.dataset.place - b.dataset.place);
      find("#claim-list > tbody").append(...rows);
    });

  // Figures, enlarged
  const large = find("#large");
  for (const button of all(".zoom"))
    button.addEventListener("click", () => {
      const { src, alt } = find("img", button);
      Object.assign(find("img", large), { src, alt });
      large.showModal();
    });
  large.addEventListener("click", (event) => event.target === large && large.close());

  // Completions of a run
  const drawn = find("#drawn");
  if (drawn) {
    const runs = JSON.parse(drawn.textContent);
    const [run, step, place, unfold] = ["run", "step", "groups", "unfold"].map((id) => document.getElementById(id));
    const number = (value, digits) =>
      value === null || value === undefined ? "none" : value.toLocaleString("en", { maximumFractionDigits: digits }).replace("-", "−");
    const signed = (value) => (value > 0 ? "+" : "") + number(value, 3);
    const marks = ({ kept, pivot, flipped }) => [
      ...(pivot ? [make("span", { class: "mark pivot", text: "pivot" })] : []),
      ...(flipped ? [make("span", { class: "mark flipped", text: "flipped" })] : []),
      ...(kept || pivot ? [] : [make("span", { class: "mark", text: "left out" })]),
    ];
    const rollout = (row) =>
      make(
        "tr",
        row.kept ? {} : { class: "out" },
        make("th", { scope: "row", text: row.sample }),
        make("td", { class: "words" }, make("p", { class: "text-block", text: row.completion })),
        make("td", { "data-label": "tokens", text: number(row.length, 0) }),
        make("td", { "data-label": "reward", text: number(row.reward, 3) }),
        make("td", { "data-label": "advantage", class: row.advantage > 0 ? "above" : row.advantage < 0 ? "below" : "", text: signed(row.advantage) }),
        make("td", {}, ...marks(row)),
      );
    const HEADINGS = ["Sample", "Completion", "Tokens", "Reward", "Advantage", "Marks"];
    const group = ({ step, prompt, oracle, rollouts }, open) => {
      const head = make("tr", {}, ...HEADINGS.map((text, i) => make("th", { scope: "col", text, class: i === 1 ? "words" : "" })));
      const table = make("table", { class: "drawn-table" }, make("thead", {}, head), make("tbody", {}, ...rollouts.map(rollout)));
      const kept = rollouts.filter((row) => row.kept).length;
      const flipped = rollouts.filter((row) => row.flipped).length;
      const flips = oracle === null ? "no oracle" : `${flipped} flipped (oracle ${number(oracle, 2)})`;
      const rewards = rollouts.map((row) => number(row.reward, 2)).join(" ");
      const told = `rewards ${rewards} · ${rollouts.length} drawn, ${kept} trained on, ${flips}`;
      return make(
        "details",
        { class: "group", ...(open ? { open: "" } : {}) },
        make(
          "summary",
          {},
          make("span", { class: "step", text: `Step ${step}` }),
          make("span", { class: "ask", text: prompt.split("\n").findLast((line) => line.trim().split(/\s+/).length > 3) ?? prompt }),
          make("span", { class: "told", text: told }),
        ),
        make(
          "div",
          { class: "inside" },
          make("p", { class: "text-block prompt", text: prompt }),
          make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Completions" }, table),
        ),
      );
    };
    const show = () => {
      const groups = runs[run.value].groups.filter((each) => !step.value || String(each.step) === step.value);
      place.replaceChildren(...groups.map((each, i) => group(each, i === 0)));
      if (!groups.length) place.append(make("p", { class: "warning", text: "Nothing was recorded of this run." }));
      unfold.textContent = "Open all";
    };
    const choose = () => {
      const steps = [...new Set(runs[run.value].groups.map((each) => each.step))];
      step.replaceChildren(make("option", { value: "", text: "all shown" }), ...steps.map((text) => make("option", { value: text, text })));
      show();
    };
    run.addEventListener("change", choose);
    step.addEventListener("change", show);
    unfold.addEventListener("click", () => {
      const groups = all("details", place);
      const open = groups.some((each) => !each.open);
      for (const each of groups) each.open = open;
      unfold.textContent = open ? "Close all" : "Open all";
    });
    choose();
  }

  // The section being read
  const links = new Map(all("nav a").map((link) => [document.getElementById(link.hash.slice(1)), link]));
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) {
          for (const link of links.values()) link.removeAttribute("aria-current");
          links.get(target).setAttribute("aria-current", "true");
        }
      }
    },
    { rootMargin: "-15% 0px -80% 0px" },
  );
  for (const section of links.keys()) seen.observe(section);
})();
