/* Before anything is drawn: the system's theme where the address names none, so that nothing flashes. */
if (!new URLSearchParams(location.search).has("theme") && matchMedia("(prefers-color-scheme: dark)").matches) {
  document.documentElement.dataset.theme = "dark";
}
