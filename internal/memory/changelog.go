package memory

import "time"

// changeLog is how often and when objects were changed, as far as history tells.
// It is a persistent list of maps, newest first; a map is merged into its elder
// once it has grown to half its size, so a lookup passes few of them.
type changeLog struct {
	older *changeLog
	m     map[ID]lastChange
}

type lastChange struct {
	version int
	at      time.Time
}

// firstSeen is the version of an object no change is recorded of.
const firstSeen = 1

func (c *changeLog) find(id ID) (lastChange, bool) {
	for ; c != nil; c = c.older {
		if l, ok := c.m[id]; ok {
			return l, true
		}
	}
	return lastChange{}, false
}

func (c *changeLog) last(id ID, n *node) (int, time.Time) {
	if l, ok := c.find(id); ok {
		return l.version, l.at
	}
	return firstSeen, n.modified()
}

// with adds changes made at one time.
func (c *changeLog) with(ids []ID, at time.Time) *changeLog {
	m := make(map[ID]lastChange, len(ids))
	for _, id := range ids {
		l, ok := c.find(id)
		if !ok {
			l.version = firstSeen
		}
		m[id] = lastChange{l.version + 1, at}
	}
	next := &changeLog{older: c, m: m}
	for next.older != nil && len(next.older.m) <= 2*len(next.m) {
		for id, l := range next.older.m {
			if _, ok := next.m[id]; !ok {
				next.m[id] = l
			}
		}
		next.older = next.older.older
	}
	return next
}
