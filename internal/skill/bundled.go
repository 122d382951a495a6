package skill

import (
	"embed"
	"io/fs"
)

//go:embed bundled/*.org
var bundled embed.FS

// Bundled are the skills that come with the program.
func Bundled() fs.FS {
	sub, err := fs.Sub(bundled, "bundled")
	if err != nil {
		panic(err) // the directory is compiled in
	}
	return sub
}
