package org

// Reparsed is the part of the file the last Apply read again.
func (f *File) Reparsed() Span { return f.reparsed }
