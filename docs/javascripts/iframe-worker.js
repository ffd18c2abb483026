// Search runs in a worker, and browsers start no worker from the file system. There, a frame on the same page does its work.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const home = new URL(url, document.baseURI), frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.inner = frame.contentWindow;
      const load = (source) => new Promise((resolve) => {
        const script = this.inner.document.createElement("script");
        script.src = new URL(source, home);
        script.onload = resolve;
        this.inner.document.body.append(script);
      });
      this.inner.importScripts = (...sources) => sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(home);
    }

    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inner.frameElement.remove();
    }
  };
}
