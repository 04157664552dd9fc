/* Search without a web server. Browsers refuse workers on pages opened from a folder (file://). There, and only there, a
   Worker is a hidden frame of the same page: it has its own globals, the script runs in it, and messages go both ways. */
(() => {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "Search";
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      const script = inner.document.createElement("script");
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      script.src = new URL(url, document.baseURI).href;
      script.onload = () => {
        this.loaded = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      };
      script.onerror = () => this.dispatchEvent(new ErrorEvent("error", { message: `cannot load ${url}` }));
      inner.document.head.append(script);
    }

    postMessage(data) {
      const inner = this.frame.contentWindow;
      if (this.loaded) inner.dispatchEvent(new inner.MessageEvent("message", { data }));
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
