// A formula within a line that is wider than the screen scrolls in a box of its own; see site.css.
addEventListener("load", () => {
  const mark = () => {
    for (const formula of document.querySelectorAll("article span.math")) {
      formula.classList.remove("wide");
      const end = formula.getBoundingClientRect().right;
      formula.classList.toggle("wide", end > document.documentElement.clientWidth);
    }
  };
  window.MathJax?.startup?.promise.then(mark);
  addEventListener("resize", mark);
});
