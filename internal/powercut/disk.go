package powercut

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A node is a file, a directory or a link, whatever its names.
type node struct {
	mode   fs.FileMode
	data   []byte           // of a file, at the start
	target string           // of a link
	names  map[string]*node // of a directory, as the running system sees it
	start  map[string]*node // and at the start
	said   string           // a name to show
}

// A kind is what an operation does.
type kind string

const (
	opName     kind = "name"     // dir/name is node from now on
	opUnname   kind = "unname"   // dir/name is no more
	opRename   kind = "rename"   // dir/name becomes dir2/name2
	opExchange kind = "exchange" // dir/name and dir2/name2 change places
	opWrite    kind = "write"
	opTruncate kind = "truncate"
	opSync     kind = "sync" // what happened to node before covers is durable
	opMark     kind = "mark"
)

// An op is one operation that was seen.
type op struct {
	kind       kind
	dir, dir2  *node
	name, new  string
	node, swap *node // swap: what had the other name
	off        int64
	data       []byte
	covers     int // of a sync: how many operations had happened when it began
	text       string
	said       string // for people: what it is about, by its name at the time
}

// on reports whether the operation is undone by not syncing n.
func (o *op) on(n *node) bool {
	if o.kind == opWrite || o.kind == opTruncate {
		return o.node == n
	}
	return o.naming() && (o.dir == n || o.dir2 == n)
}

func (o *op) naming() bool {
	return o.kind == opName || o.kind == opUnname || o.kind == opRename || o.kind == opExchange
}

func (o *op) String() string {
	switch o.kind {
	case opName:
		return fmt.Sprintf("make %s", o.said)
	case opUnname:
		return fmt.Sprintf("remove %s", filepath.Join(o.dir.said, o.name))
	case opRename:
		return fmt.Sprintf("rename %s to %s", filepath.Join(o.dir.said, o.name), filepath.Join(o.dir2.said, o.new))
	case opExchange:
		return fmt.Sprintf("exchange %s and %s", filepath.Join(o.dir.said, o.name), filepath.Join(o.dir2.said, o.new))
	case opWrite:
		return fmt.Sprintf("write %d bytes at %d of %s", len(o.data), o.off, o.said)
	case opTruncate:
		return fmt.Sprintf("truncate %s to %d", o.said, o.off)
	case opSync:
		if o.node == nil {
			return "sync everything"
		}
		return fmt.Sprintf("sync %s", cmp.Or(o.said, "."))
	case opMark:
		return fmt.Sprintf("promise %q", o.text)
	}
	return string(o.kind)
}

// A trace is what was seen, in order.
type trace struct {
	root *node
	ops  []*op
}

// A disk follows what the running system sees, and records it.
type disk struct {
	trace
	path   string // of root
	inodes map[inode]*node
}

type inode struct{ dev, ino uint64 }

func inodeOf(info fs.FileInfo) inode {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}
	}
	return inode{uint64(st.Dev), st.Ino} //nolint:unconvert // Dev is an int32 elsewhere
}

// newDisk takes what is below root as durable.
func newDisk(root string) (*disk, error) {
	d := &disk{path: root, inodes: map[inode]*node{}}
	var err error
	d.root, err = d.take(root, "")
	return d, err
}

// take makes the node of what is at a path of the real system.
func (d *disk) take(path, rel string) (*node, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	n := d.node(info, rel)
	switch {
	case info.IsDir():
		list, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			m, err := d.take(filepath.Join(path, e.Name()), filepath.Join(rel, e.Name()))
			if err != nil {
				return nil, err
			}
			n.names[e.Name()], n.start[e.Name()] = m, m
		}
	case info.Mode().IsRegular():
		n.data, err = os.ReadFile(path)
	case info.Mode()&fs.ModeSymlink != 0:
		n.target, err = os.Readlink(path)
	}
	return n, err
}

func (d *disk) node(info fs.FileInfo, rel string) *node {
	n := &node{mode: info.Mode(), said: rel}
	if info.IsDir() {
		n.names, n.start = map[string]*node{}, map[string]*node{}
	}
	d.inodes[inodeOf(info)] = n
	return n
}

// place finds the directory and last name of a path below root.
func (d *disk) place(path string) (dir *node, name string, ok bool) {
	rel, err := filepath.Rel(d.path, path)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return nil, "", false
	}
	parts := strings.Split(rel, string(filepath.Separator))
	dir = d.root
	for _, p := range parts[:len(parts)-1] {
		if dir = dir.names[p]; dir == nil || dir.names == nil {
			return nil, "", false
		}
	}
	return dir, parts[len(parts)-1], true
}

func (d *disk) add(o *op) {
	if o.node != nil {
		o.said = o.node.said
	}
	d.ops = append(d.ops, o)
}

// made records a name that was not there. It returns the node at the path.
func (d *disk) made(path string) (*node, error) {
	dir, name, ok := d.place(path)
	if !ok {
		return nil, nil
	}
	if n := dir.names[name]; n != nil {
		return n, nil
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	n := d.inodes[inodeOf(info)]
	if st, ok := info.Sys().(*syscall.Stat_t); n == nil || ok && st.Nlink == 1 || info.IsDir() {
		n = d.node(info, filepath.Join(dir.said, name)) // not a second name of a known file
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if n.target, err = os.Readlink(path); err != nil {
			return nil, err
		}
	}
	dir.names[name] = n
	d.add(&op{kind: opName, dir: dir, name: name, node: n})
	return n, nil
}

func (d *disk) removed(path string) {
	dir, name, ok := d.place(path)
	if !ok || dir.names[name] == nil {
		return
	}
	delete(dir.names, name)
	d.add(&op{kind: opUnname, dir: dir, name: name})
}

func (d *disk) renamed(from, to string, exchange bool) error {
	dir, name, ok := d.place(from)
	dir2, name2, ok2 := d.place(to)
	if ok != ok2 {
		return fmt.Errorf("%s and %s: a rename across the edge of what is watched", from, to)
	}
	if !ok {
		return nil
	}
	o := &op{kind: opRename, dir: dir, name: name, dir2: dir2, new: name2, node: dir.names[name]}
	if exchange {
		o.kind, o.swap = opExchange, dir2.names[name2]
		dir.names[name] = o.swap
	} else {
		delete(dir.names, name)
	}
	dir2.names[name2] = o.node
	o.node.said = filepath.Join(dir2.said, name2)
	d.add(o)
	return nil
}
