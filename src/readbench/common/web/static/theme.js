/**
 * Light, dark, or as the system has it; kept in the browser. A plain script, so that it runs before the page is drawn;
 * `theme` is told to the window whenever the colours change.
 */
{
  const KEY = "readbench-theme";
  const NEXT = { auto: "light", light: "dark", dark: "auto" };
  const SHOWN = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" };

  const chosen = () => (localStorage.getItem(KEY) in NEXT ? localStorage.getItem(KEY) : "auto");

  const apply = () => {
    if (chosen() === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen();
  };

  const name = () => {
    const button = document.getElementById("theme");
    button.textContent = SHOWN[chosen()];
    button.setAttribute("aria-label", `Theme: ${chosen()}`);
  };

  const turn = () => {
    localStorage.setItem(KEY, NEXT[chosen()]);
    apply();
    name();
    window.dispatchEvent(new Event("theme"));
  };

  apply();
  document.addEventListener("DOMContentLoaded", () => {
    name();
    document.getElementById("theme").addEventListener("click", turn);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.dispatchEvent(new Event("theme")));
}
