package channel

// A Service is a kind of channel as the program knows it before it is linked.
// All that is particular to one stands here: commands, settings and the daemon
// go by this table alone.
type Service struct {
	Name    string // in origins, policies and commands: "telegram"
	Title   string // as people call it
	MaxText int    // the longest message it takes, in UTF-16 units
	Local   bool   // it is reached on this machine, so that trying it bothers nobody
	Keys    []Key  // what linking asks for; without the first it is not linked
	Hint    string // what to do when it cannot be reached
	// Open makes the channel. Get gives the value of a setting, "" for none.
	Open func(get func(key string) string) (Channel, error)
	// Beside is a program that is to run while it is linked, with its arguments;
	// nil, or one that returns none: nothing is.
	Beside func(get func(key string) string) ([]string, error)
	// Check says what is wrong with the settings, linked or not; nil: nothing can be.
	Check func(get func(key string) string) error
}

// A Key is a setting that linking asks for. It has its row in the table of
// settings.
type Key struct {
	Name   string
	Asks   string // what it is, for whom it is asked
	Secret bool   // it is typed unseen and kept in the vault; else it is an argument
}

// Linked reports whether the settings link the service.
func (s Service) Linked(get func(key string) string) bool {
	return len(s.Keys) > 0 && get(s.Keys[0].Name) != ""
}

// Services are all there are. A new one is a file beside this and a row here.
func Services() []Service {
	return []Service{telegramService(), signalService()}
}
