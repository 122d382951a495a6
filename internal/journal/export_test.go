package journal

// A File is what a journal writes to, for tests that make it fail.
type File = file

// WithFiles returns o with every segment file passed through wrap.
func WithFiles(o Options, wrap func(File) File) Options {
	o.wrap = wrap
	return o
}

// RoundTrip writes text with control pictures and back.
func RoundTrip(text string) (pictures, back string, err error) {
	p := appendPictures(nil, []byte(text))
	b, err := removePictures(p)
	return string(p), string(b), err
}
