package act

// What the package's own tests look at.
var (
	Original = original
	Prints   = prints
)
