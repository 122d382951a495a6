package skill

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed bundled/*.org
var bundled embed.FS

//go:embed examples/*.org
var examples embed.FS

// Example is the text of a skill to learn from. Examples are not in force until
// somebody installs them.
func Example(name string) ([]byte, bool) {
	raw, err := examples.ReadFile("examples/" + name + ".org")
	return raw, err == nil
}

// Examples are their names.
func Examples() []string {
	es, err := examples.ReadDir("examples")
	if err != nil {
		panic(err) // the directory is compiled in
	}
	var out []string
	for _, e := range es {
		out = append(out, strings.TrimSuffix(e.Name(), ".org"))
	}
	return out
}

// Bundled are the skills that come with the program.
func Bundled() fs.FS {
	sub, err := fs.Sub(bundled, "bundled")
	if err != nil {
		panic(err) // the directory is compiled in
	}
	return sub
}
