// Light, dark, or as the system has it; kept in the browser. Runs before the page is drawn.
const KEY = "readbench-theme";
const NEXT = { "": "light", light: "dark", dark: "" };

function apply(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  window.dispatchEvent(new Event("theme"));
}

apply(localStorage.getItem(KEY) ?? "");
document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const show = () => { button.textContent = { "": "System", light: "Light", dark: "Dark" }[localStorage.getItem(KEY) ?? ""]; };
  show();
  button.addEventListener("click", () => {
    localStorage.setItem(KEY, NEXT[localStorage.getItem(KEY) ?? ""]);
    apply(localStorage.getItem(KEY));
    show();
  });
});
