package memory

import "fmt"

// overlay is a client's buffer shown in place of a file.
type overlay struct {
	client string
	shown  *node
	saved  *node // the file on disk, nil if there is none
}

// ShowBuffer puts a client's unsaved text in place of a file in the views that
// follow. It never reaches the disk or the history; it goes when the client saves
// the same text, calls [Store.DropBuffer], or the store is closed.
func (s *Store) ShowBuffer(client, path string, text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	p, err := s.cleanPath(path)
	if err != nil {
		return err
	}
	if int64(len(text)) > s.opt.MaxFile {
		return fmt.Errorf("%s: %w: %d bytes, limit %d", p, ErrTooLarge, len(text), s.opt.MaxFile)
	}
	old, covered := s.overlays[p]
	if covered && old.client != client {
		return fmt.Errorf("%s: %w: %s", p, ErrUnsaved, old.client)
	}
	saved := s.diskNode(p)
	n := s.node(p, s.parse(p, append([]byte(nil), text...)), fileStat{racy: true}, nil)
	if saved != nil && saved.sum == n.sum {
		s.dropLocked(p)
		return nil
	}
	n.unsaved = true
	if saved != nil {
		n.stat.mtime = saved.stat.mtime
	}
	s.overlays[p] = overlay{client, n, saved}
	s.view.Store(s.View().with([]replacement{{p, n}}))
	return nil
}

// DropBuffer takes a client's text away again; "" as path means all of the client's.
func (s *Store) DropBuffer(client, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, o := range s.overlays {
		if o.client == client && (path == "" || p == path) {
			s.dropLocked(p)
		}
	}
}

func (s *Store) dropLocked(p string) {
	o, ok := s.overlays[p]
	if !ok {
		return
	}
	delete(s.overlays, p)
	s.view.Store(s.View().with([]replacement{{p, o.saved}}))
}
