package org

import (
	"bytes"
	"errors"
	"iter"
	"sort"
	"sync"
	"unicode/utf8"
)

// Span is a half-open range of byte offsets into a file's source.
type Span struct{ Start, End int }

// Len is the number of bytes the span covers.
func (s Span) Len() int { return s.End - s.Start }

// Empty reports whether the span covers nothing.
func (s Span) Empty() bool { return s.End <= s.Start }

// Options are what parsing needs from outside the source.
type Options struct {
	// Setup returns the text of the file a #+SETUPFILE line names, as written
	// there, and whether it may be read. Nil reads none.
	Setup func(name string) ([]byte, bool)
}

// File is one parsed Org file. It is immutable and safe for concurrent use;
// the caller must not write to the slice it was parsed from.
type File struct {
	src     []byte
	opt     Options
	crlf    bool // every line end is CR LF
	firstLF int  // offset of the first bare LF, -1 if there is none
	bom     int  // length of the byte order mark
	heads   []head
	set     *settings
	drawer  Span // file-level property drawer, with its first and last line

	// Found out when first asked for.
	radioOnce, encodingOnce sync.Once
	radioText               []string
	encodingErr             error

	reparsed Span // what the last Apply read again
}

// maxSource keeps every headline's relative offsets inside 32 bits.
const maxSource = 1<<32 - 1

const byteOrderMark = "\xef\xbb\xbf"

// markLen is the length of the byte order mark a text starts with.
func markLen(src []byte) int {
	if bytes.HasPrefix(src, []byte(byteOrderMark)) {
		return len(byteOrderMark)
	}
	return 0
}

// Reasons for which a file can be read but must not be edited.
var (
	// ErrEncoding means the bytes are not the UTF-8 text Emacs would read, so
	// an edit could not be written back faithfully; index the file, do not edit it.
	ErrEncoding = errors.New("not plain UTF-8 text")
	// ErrTooLarge means the file exceeds 4 GiB and was not outlined.
	ErrTooLarge = errors.New("larger than 4 GiB")
)

// Parse reads src under default options. It never fails: any bytes are an Org file.
func Parse(src []byte) *File { return ParseWith(src, Options{}) }

// ParseWith reads src.
func ParseWith(src []byte, opt Options) *File {
	f := &File{src: src, opt: opt, bom: markLen(src)}
	f.crlf, f.firstLF = lineEnds(src)
	if len(src) <= maxSource {
		f.heads = findHeads(f, make([]head, 0, len(src)/400+1), f.bom, len(src))
		link(f.heads)
	}
	f.set = readSettings(f)
	for i := range f.heads {
		parseHead(f, &f.heads[i])
	}
	f.drawer = f.fileDrawer()
	f.reparsed = Span{0, len(src)}
	return f
}

// Bytes is the file as it was parsed: printing is returning the same bytes.
func (f *File) Bytes() []byte { return f.src }

// Text is the source the span covers.
func (f *File) Text(s Span) string { return string(f.src[s.Start:s.End]) }

// EOL is the line end to use in inserted text.
func (f *File) EOL() string {
	if f.crlf {
		return "\r\n"
	}
	return "\n"
}

// Editable returns nil, or why edits are refused ([ErrEncoding], [ErrTooLarge]).
func (f *File) Editable() error {
	f.encodingOnce.Do(func() { f.encodingErr = f.checkEncoding() })
	return f.encodingErr
}

func (f *File) checkEncoding() error {
	if len(f.src) > maxSource {
		return ErrTooLarge
	}
	if !plainText(f.src) || enriched(f.src[f.bom:]) || f.oldMac() {
		return ErrEncoding
	}
	return nil
}

func plainText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// oldMac reports lines that end in a CR alone, which Emacs takes for line ends.
func (f *File) oldMac() bool { return !f.crlf && f.firstLF < 0 && bytes.IndexByte(f.src, '\r') >= 0 }

// enriched reports text that Emacs decodes into something else before Org sees it.
func enriched(b []byte) bool { return bytes.HasPrefix(b, []byte("Content-Type: text/enriched")) }

// Len is the number of headlines.
func (f *File) Len() int { return len(f.heads) }

// Headline returns the i-th headline in document order, 0 ≤ i < Len.
func (f *File) Headline(i int) Headline {
	_ = f.heads[i]
	return Headline{f, i}
}

// Headlines yields all headlines in document order.
func (f *File) Headlines() iter.Seq[Headline] {
	return func(yield func(Headline) bool) {
		for i := range f.heads {
			if !yield(Headline{f, i}) {
				return
			}
		}
	}
}

// Top yields the headlines that have no parent.
func (f *File) Top() iter.Seq[Headline] { return f.siblings(0, len(f.heads)) }

func (f *File) siblings(i, end int) iter.Seq[Headline] {
	return func(yield func(Headline) bool) {
		for ; i < end; i = int(f.heads[i].after) {
			if !yield(Headline{f, i}) {
				return
			}
		}
	}
}

// At returns the headline whose own section (headline line up to the next
// headline of any level) holds the byte offset; false inside the preamble.
func (f *File) At(pos int) (Headline, bool) {
	i := f.headAfter(pos) - 1
	return Headline{f, i}, i >= 0
}

// headAfter is the index of the first headline that starts after pos.
func (f *File) headAfter(pos int) int {
	return sort.Search(len(f.heads), func(i int) bool { return f.heads[i].beg > pos })
}

// Find returns the first headline whose ID property is id.
func (f *File) Find(id string) (Headline, bool) {
	for h := range f.Headlines() {
		if got := h.ID(); got != "" && got == id {
			return h, true
		}
	}
	return Headline{}, false
}

// Preamble is what comes before the first headline.
func (f *File) Preamble() Span { return Span{f.bom, f.headStart(0)} }

// headStart is where headline i begins, or the end of the file past the last.
func (f *File) headStart(i int) int {
	if i < len(f.heads) {
		return f.heads[i].beg
	}
	return len(f.src)
}

// Properties are the pairs of the file-level property drawer, as written.
func (f *File) Properties() []Property { return f.drawerProps(f.drawer) }

// ID is the file-level ID property, or "".
func (f *File) ID() string { return firstID(f.Properties()) }

// Title is the file's #+TITLE, its lines joined by spaces, or "".
func (f *File) Title() string { return f.set.title }

// FileTags are the tags every headline inherits from #+FILETAGS.
func (f *File) FileTags() []string { return append([]string(nil), f.set.fileTags...) }

// TodoKeywords are all keywords of the file, done ones included, in order.
func (f *File) TodoKeywords() []string { return append([]string(nil), f.set.todo...) }

// DoneKeywords are the keywords that mean done.
func (f *File) DoneKeywords() []string { return append([]string(nil), f.set.done...) }

// Keywords are the file's in-buffer settings (#+TITLE, #+PROPERTY, …) in order.
func (f *File) Keywords() []Keyword { return append([]Keyword(nil), f.set.keywords...) }

// Lines numbers the lines of a file.
type Lines struct{ starts []int }

// Lines indexes the line starts; keep it while asking for many positions.
func (f *File) Lines() Lines {
	starts := make([]int, 1, len(f.src)/32+1)
	for i := 0; ; {
		j := bytes.IndexByte(f.src[i:], '\n')
		if j < 0 {
			return Lines{starts}
		}
		i += j + 1
		starts = append(starts, i)
	}
}

// At is the 1-based number of the line that holds the byte offset.
func (l Lines) At(pos int) int {
	return sort.Search(len(l.starts), func(i int) bool { return l.starts[i] > pos })
}

// Start is the byte offset at which the 1-based line begins; -1 if there is none.
func (l Lines) Start(line int) int {
	if line < 1 || line > len(l.starts) {
		return -1
	}
	return l.starts[line-1]
}

// eol returns the end of the content of the line at pos and the next line's start.
func (f *File) eol(pos int) (end, next int) {
	i := bytes.IndexByte(f.src[pos:], '\n')
	if i < 0 {
		return len(f.src), len(f.src)
	}
	end, next = pos+i, pos+i+1
	if f.crlf && end > pos && f.src[end-1] == '\r' {
		end--
	}
	return end, next
}

// lineEnds reports whether CR LF ends every line, and where the first bare LF is.
// As in Emacs, one bare LF makes every CR of the file ordinary text.
func lineEnds(b []byte) (crlf bool, firstLF int) {
	for i := 0; ; i++ {
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			return crlf, -1
		}
		i += j
		if i == 0 || b[i-1] != '\r' {
			return false, i
		}
		crlf = true
	}
}
