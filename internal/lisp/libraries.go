package lisp

import "strings"

// libraries are packages that programs for other Lisps name, each with its
// nicknames. Nothing of them is here. A file that mentions them can be read all
// the same, because most of it may be of use: calling what is not here is an
// error of the run, like calling any other undefined function.
var libraries = []string{
	"BORDEAUX-THREADS BT BT2", "DEXADOR DEX", "DRAKMA", "CL-JSON JSON", "JONATHAN JOJO", "YASON", "JZON", "SHASHT", "UUID",
	"ASDF", "QUICKLISP QL", "SB-EXT", "SB-POSIX", "SB-THREAD", "SB-SYS", "SB-IMPL", "SB-INT", "SB-KERNEL", "SB-DEBUG", "SB-MOP", "SB-PCL",
	"SB-ALIEN", "SB-BSD-SOCKETS", "SB-INTROSPECT", "SB-GRAY", "CLOSER-MOP C2MOP", "ALEXANDRIA", "SERAPEUM", "STR", "LOCAL-TIME",
	"IRONCLAD CRYPTO", "USOCKET", "HUNCHENTOOT", "CL-DOTENV DOTENV", "BABEL", "FLEXI-STREAMS FLEX", "CL-BASE64", "SWANK", "SLYNK", "CFFI",
	"CROATOAN", "TRIVIAL-GARBAGE", "TRIVIAL-GRAY-STREAMS", "LPARALLEL", "CHANL", "CL-FAD FAD", "OSICAT", "CL-STRINGS", "SPLIT-SEQUENCE", "CLACK", "NINGLE",
	"CL+SSL", "QURI", "PURI", "PLUMP", "LQUERY", "TRIVIA", "ITERATE ITER", "METABANG-BIND", "NAMED-READTABLES", "LOG4CL", "VOM", "CLINGON",
}

// addLibraries makes the packages of libraries, and lets any name of those two
// that are here in part be read.
func (r *registry) addLibraries() struct{} {
	for _, l := range libraries {
		names := strings.Fields(l)
		p := r.addPackage(names[0], names[1:]...)
		t := r.tables[p.name]
		t.locked, t.library = false, true
	}
	for _, n := range []string{"UIOP", "CL-PPCRE"} {
		r.tables[n].library = true
	}
	return struct{}{}
}

// readLibrary interns a name of a library that is not here.
func (th *Thread) readLibrary(name string, p *Package) *Symbol {
	s := th.newSymbol(name, p)
	th.ownPackage(p).add(s)
	return s
}

// absent says, for the name of a library's function, why it is undefined.
func (th *Thread) absent(name Value) string {
	if s, ok := name.(*Symbol); ok && s.pkg != nil && th.pkgTable(s.pkg).library {
		return "The function " + th.show(name) + " is undefined: that library is not in the jail."
	}
	return "The function " + th.show(name) + " is undefined."
}

// vacant reports whether the function exists only to refuse.
func (f *Function) vacant() bool { return f.prim != nil && f.prim.vacant }
