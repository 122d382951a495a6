package memory

type watcher struct{}

func (w *watcher) stop() {}
