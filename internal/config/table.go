package config

import (
	"fmt"
	"slices"
	"strings"
)

// A Setting describes one setting.
type Setting struct {
	Key     string
	Kind    Kind
	Default string // a leading $NAME stands for another setting or an XDG directory; "" for none
	Example string // shown in the example file; the default if empty
	Doc     string // one or two sentences
	Group   string // heading it is listed under

	Choices  []string // for Choice and Choices
	Min, Max int      // for Number; for Duration in seconds

	Secret  bool // never shown
	EnvOnly bool // the settings file cannot hold it

	field func(*Config) any // pointer to where it goes
}

// A keySlot is where the key of a provider goes.
type keySlot struct {
	keys     map[string]Secret
	provider string
}

func key(provider string) func(*Config) any {
	return func(c *Config) any { return keySlot{c.Keys, provider} }
}

// A channelSlot is where a setting of a channel goes.
type channelSlot struct {
	values map[string]Secret
	key    string
}

func channel(key string) func(*Config) any {
	return func(c *Config) any { return channelSlot{c.channels, key} }
}

const (
	prefix = "PASSEPARTOUT_"

	groupPlaces   = "Places"
	groupNames    = "Names"
	groupDoor     = "Clients"
	groupModels   = "Models"
	groupChannels = "Channels"
	groupLoop     = "Behaviour"
	groupSafety   = "Safety"
	groupRecord   = "Records"

	day = 24 * 60 * 60 // seconds
)

// foreign are variables with our prefix that are no settings: the tests of
// this program find shared data through them.
var foreign = []string{"PASSEPARTOUT_SHARED"}

var providers = []string{"reflex", "ollama", "local", "openrouter", "openai", "anthropic", "groq", "gemini", "deepseek", "nvidia"}

// table holds every setting. A default may refer to a setting above it.
var table = []Setting{
	{
		Key: "MEMEX_DIR", Kind: Path, Default: "$HOME/memex", Example: "~/memex", Group: groupPlaces, field: func(c *Config) any { return &c.MemexDir },
		Doc: "The folder of Org files that is the agent's memory and yours.",
	},
	{
		Key: "PASSEPARTOUT_CONFIG_DIR", Kind: Path, Default: "$XDG_CONFIG_HOME/passepartout", EnvOnly: true, Group: groupPlaces, field: func(c *Config) any { return &c.ConfigDir },
		Doc: "Where this file is, under the name env. It can only be set in the process environment.",
	},
	{
		Key: "PASSEPARTOUT_STATE_DIR", Kind: Path, Default: "$XDG_STATE_HOME/passepartout", Group: groupPlaces, field: func(c *Config) any { return &c.StateDir },
		Doc: "Journal, history, undo and index.",
	},
	{
		Key: "PASSEPARTOUT_DATA_DIR", Kind: Path, Default: "$XDG_DATA_HOME/passepartout", Group: groupPlaces, field: func(c *Config) any { return &c.DataDir },
		Doc: "Installed skills.",
	},
	{
		Key: "PASSEPARTOUT_RUNTIME_DIR", Kind: Path, Default: "$XDG_RUNTIME_DIR", Group: groupPlaces, field: func(c *Config) any { return &c.RuntimeDir },
		Doc: "Where the daemon's socket is made. Without XDG_RUNTIME_DIR it is the folder run in the state directory.",
	},
	{
		Key: "MEMEX_USER", Kind: Text, Example: "Jean", Group: groupNames, field: func(c *Config) any { return &c.User },
		Doc: "How the agent addresses you.",
	},
	{
		Key: "MEMEX_ASSISTANT", Kind: Text, Default: "Passepartout", Group: groupNames, field: func(c *Config) any { return &c.Assistant },
		Doc: "What the agent calls itself.",
	},
	{
		Key: "PASSEPARTOUT_SOCKET", Kind: Path, Default: "$PASSEPARTOUT_RUNTIME_DIR/passepartout.sock", Group: groupDoor, field: func(c *Config) any { return &c.SocketPath },
		Doc: "The Unix socket clients connect to. Only your own processes are let in.",
	},
	{
		Key: "PASSEPARTOUT_TCP", Kind: Loopback, Example: "127.0.0.1:9105", Group: groupDoor, field: func(c *Config) any { return &c.TCPAddr },
		Doc: "A loopback address to listen on as well. Clients there prove that they know the token. Unset, there is no TCP.",
	},
	{
		Key: "PASSEPARTOUT_TOKEN_FILE", Kind: Path, Default: "$PASSEPARTOUT_STATE_DIR/token", Group: groupDoor, field: func(c *Config) any { return &c.TokenFile },
		Doc: "The file that holds the token for TCP clients. The daemon makes it when it is missing.",
	},
	{
		Key: "PASSEPARTOUT_MAX_CLIENTS", Kind: Number, Default: "1024", Min: 1, Max: 65536, Group: groupDoor, field: func(c *Config) any { return &c.MaxClients },
		Doc: "How many clients may be connected at a time.",
	},
	{
		Key: "PROVIDER_CASCADE", Kind: Choices, Default: "reflex", Example: "ollama,anthropic,reflex", Choices: providers, Group: groupModels,
		field: func(c *Config) any { return &c.Cascade },
		Doc:   "Providers in the order they are tried. reflex answers by rules, needs no model, key or network, and comes last. While this is unset, what answers on this machine is tried first, then every provider with a key.",
	},
	{
		Key: "OLLAMA_URL", Kind: URL, Default: "http://127.0.0.1:11434", Group: groupModels, field: func(c *Config) any { return &c.OllamaURL },
		Doc: "Where Ollama listens.",
	},
	{
		Key: "LOCAL_URL", Kind: URL, Default: "http://127.0.0.1:8080/v1", Group: groupModels, field: func(c *Config) any { return &c.LocalURL },
		Doc: "Where a server of your own listens that speaks OpenAI's chat completions, such as llama.cpp, LM Studio or vLLM.",
	},
	{Key: "LOCAL_API_KEY", Kind: Token, Secret: true, Group: groupModels, field: key("local"), Doc: "Key for that server, if it wants one."},
	{Key: "OPENROUTER_API_KEY", Kind: Token, Secret: true, Group: groupModels, field: key("openrouter"), Doc: "Key for OpenRouter."},
	{Key: "OPENAI_API_KEY", Kind: Token, Secret: true, Group: groupModels, field: key("openai"), Doc: "Key for OpenAI."},
	{Key: "ANTHROPIC_API_KEY", Kind: Token, Secret: true, Group: groupModels, field: key("anthropic"), Doc: "Key for Anthropic."},
	{Key: "GROQ_API_KEY", Kind: Token, Secret: true, Group: groupModels, field: key("groq"), Doc: "Key for Groq."},
	{Key: "GEMINI_API_KEY", Kind: Token, Secret: true, Group: groupModels, field: key("gemini"), Doc: "Key for Gemini."},
	{Key: "DEEPSEEK_API_KEY", Kind: Token, Secret: true, Group: groupModels, field: key("deepseek"), Doc: "Key for DeepSeek."},
	{Key: "NVIDIA_API_KEY", Kind: Token, Secret: true, Group: groupModels, field: key("nvidia"), Doc: "Key for NVIDIA."},
	{
		Key: "REQUEST_TIMEOUT", Kind: Duration, Default: "30s", Min: 1, Max: 3600, Group: groupModels, field: func(c *Config) any { return &c.RequestTimeout },
		Doc: "How long a provider may take to answer before the next one is tried.",
	},
	{
		Key: "CONTEXT_MAX_TOKENS", Kind: Number, Default: "16384", Min: 1024, Max: 10_000_000, Group: groupModels,
		field: func(c *Config) any { return &c.ContextTokens },
		Doc:   "How much of your notes and of the conversation a model is shown at most, in tokens.",
	},
	{
		Key: "PASSEPARTOUT_MODELS", Kind: Words, Example: "chat=ollama/llama3.2,reasoning/code=anthropic/claude-sonnet-4-5", Group: groupModels,
		field: func(c *Config) any { return &c.Routes },
		Doc:   "Which model does what: tier/slot=provider/model. Tiers are cognition and reasoning; slots are chat, code, plan and background; either may be left out, and any stands for all.",
	},
	{
		Key: "PASSEPARTOUT_PRICES", Kind: Words, Example: "groq/new-model=0.10:0.30,anthropic/claude-next=3:15:0.30:3.75", Group: groupModels,
		field: func(c *Config) any { return &c.Prices },
		Doc:   "What models cost, where the list that comes with the program is wrong or silent: provider/model=IN:OUT[:CACHED[:STORED]], in dollars for a million tokens.",
	},
	{
		Key: "PASSEPARTOUT_CONSENSUS", Kind: Number, Default: "0", Min: 0, Max: 5, Group: groupModels,
		field: func(c *Config) any { return &c.Consensus },
		Doc:   "How many further models are asked before something far-reaching is done. What the majority proposes goes to the gates.",
	},
	{Key: "TURN_BUDGET_USD", Kind: Text, Default: "0.50", Group: groupModels, field: func(c *Config) any { return &c.TurnBudget }, Doc: "What one answer may cost, in dollars. Write none for no cap."},
	{Key: "SESSION_BUDGET_USD", Kind: Text, Default: "5", Group: groupModels, field: func(c *Config) any { return &c.SessionBudget }, Doc: "What one conversation may cost in a month, in dollars, or none."},
	{Key: "JOB_BUDGET_USD", Kind: Text, Default: "0.25", Group: groupModels, field: func(c *Config) any { return &c.JobBudget }, Doc: "What one background job may cost, in dollars, or none."},
	{Key: "DAY_BUDGET_USD", Kind: Text, Default: "5", Group: groupModels, field: func(c *Config) any { return &c.DayBudget }, Doc: "What a day may cost, in dollars, or none."},
	{Key: "MONTH_BUDGET_USD", Kind: Text, Default: "50", Group: groupModels, field: func(c *Config) any { return &c.MonthBudget }, Doc: "What a month may cost, in dollars, or none."},
	{
		Key: "EMBEDDING_PROVIDER", Kind: Choice, Default: "embedded", Choices: []string{"embedded", "hashing", "local", "openai"}, Group: groupModels,
		field: func(c *Config) any { return &c.EmbeddingProvider },
		Doc:   "Who makes the vectors by which notes are found in other words than their own. embedded learns them from your notes; local asks Ollama, openai a server that speaks OpenAI's embeddings, both only as far as that finds more; hashing compares letters, as the ancestor did.",
	},
	{
		Key: "EMBEDDING_MODEL", Kind: Text, Example: "nomic-embed-text", Group: groupModels, field: func(c *Config) any { return &c.EmbeddingModel },
		Doc: "The model that makes them: nomic-embed-text of Ollama or text-embedding-3-small of OpenAI while this is unset. Another one takes over when it has done all notes.",
	},
	{
		Key: "EMBEDDING_URL", Kind: URL, Example: "http://127.0.0.1:11434", Group: groupModels, field: func(c *Config) any { return &c.EmbeddingURL },
		Doc: "Where it is, if not at OLLAMA_URL or at OpenAI's. Text with a privacy tag is only sent to this machine.",
	},
	{
		Key: "PASSEPARTOUT_RECORD", Kind: Path, Group: groupModels, field: func(c *Config) any { return &c.RecordFile },
		Doc: "A file to which everything said to and by providers is written, without credentials. Unset, nothing is.",
	},
	{
		Key: "TELEGRAM_BOT_TOKEN", Kind: Token, Secret: true, Group: groupChannels, field: channel("TELEGRAM_BOT_TOKEN"),
		Doc: "The token of your Telegram bot, as BotFather gave it. With it the agent listens there to people you have paired.",
	},
	{
		Key: "TELEGRAM_API_URL", Kind: URL, Default: "https://api.telegram.org", Group: groupChannels, field: channel("TELEGRAM_API_URL"),
		Doc: "Where Telegram's Bot API is, if you run a server of it yourself.",
	},
	{
		Key: "TELEGRAM_WEBHOOK_URL", Kind: URL, Example: "https://example.org/telegram", Group: groupChannels, field: channel("TELEGRAM_WEBHOOK_URL"),
		Doc: "The public address Telegram delivers to, which a proxy of yours passes on to TELEGRAM_WEBHOOK_LISTEN. Unset, the agent asks for messages itself and needs no address.",
	},
	{
		Key: "TELEGRAM_WEBHOOK_LISTEN", Kind: Loopback, Example: "127.0.0.1:9106", Group: groupChannels, field: channel("TELEGRAM_WEBHOOK_LISTEN"),
		Doc: "Where deliveries to the webhook arrive on this machine.",
	},
	{
		Key: "SIGNAL_ACCOUNT", Kind: Text, Example: "+15550001", Group: groupChannels, field: channel("SIGNAL_ACCOUNT"),
		Doc: "The telephone number of the agent's own Signal account, registered with signal-cli.",
	},
	{
		Key: "SIGNAL_CLI", Kind: Text, Example: "/run/signal-cli/socket", Default: "127.0.0.1:7583", Group: groupChannels, field: channel("SIGNAL_CLI"),
		Doc: "Where signal-cli listens: the path of its socket, or a loopback address and port. Run it as: signal-cli -a NUMBER daemon --tcp --receive-mode=manual.",
	},
	{
		Key: "SIGNAL_CLI_PROGRAM", Kind: Path, Example: "/usr/bin/signal-cli", Group: groupChannels, field: channel("SIGNAL_CLI_PROGRAM"),
		Doc: "The program signal-cli. Set, the daemon runs it while Signal is linked and starts it again when it ends. Unset, you run it yourself.",
	},
	{
		Key: "DEFAULT_ACTUATOR", Kind: Choice, Default: "cli", Choices: []string{"cli", "tui"}, Group: groupLoop,
		field: func(c *Config) any { return &c.DefaultActuator },
		Doc:   "Where an answer goes that names no destination and came from none.",
	},
	{
		Key: "PASSEPARTOUT_DIARY", Kind: Choice, Default: "none", Choices: []string{"none", "trace", "talk", "all"}, Group: groupLoop,
		field: func(c *Config) any { return &c.Diary },
		Doc:   "What the agent writes about its turns into daily/ of the memex: what was proposed, judged and done (trace), what was said (talk), or both (all).",
	},
	{
		Key: "PASSEPARTOUT_NOTICES", Kind: Choice, Default: "away", Choices: []string{"local", "away", "always"}, Group: groupChannels,
		field: func(c *Config) any { return &c.Notices },
		Doc:   "Where reminders, dates and what became of jobs are told: to the clients on this machine (local), on the owners' paired telephones too when no client listens (away), or always.",
	},
	{
		Key: "PRIVACY_FILTER_TAGS", Kind: Words, Default: "@personal", Example: "@personal,@health", Group: groupSafety,
		field: func(c *Config) any { return &c.PrivacyTags },
		Doc:   "Org tags whose text never leaves this machine. Write none to have no such tag.",
	},
	{
		Key: "PASSEPARTOUT_SANDBOX", Kind: Choice, Default: "auto", Choices: []string{"auto", "require"}, Group: groupSafety,
		field: func(c *Config) any { return &c.Sandbox },
		Doc:   "auto runs commands in the strongest sandbox there is and asks about every command when part of it is missing; require refuses to start then. Nothing ever runs outside of one.",
	},
	{
		Key: "PASSEPARTOUT_WRITE_ROOTS", Kind: Paths, Default: "$MEMEX_DIR", Group: groupSafety, field: func(c *Config) any { return &c.WriteRoots },
		Doc: "Folders below which commands may write inside the sandbox without a question, separated by colons.",
	},
	{
		Key: "PASSEPARTOUT_UNDO_MB", Kind: Number, Default: "1024", Min: 1, Max: 1 << 20, Group: groupSafety, field: func(c *Config) any { return &c.UndoMB },
		Doc: "How much of what files held before the agent changed them is kept for undo, in MiB. The oldest goes first.",
	},
	{
		Key: "PASSEPARTOUT_UNDO_FILE_MB", Kind: Number, Default: "64", Min: 1, Max: 1 << 20, Group: groupSafety, field: func(c *Config) any { return &c.UndoFileMB },
		Doc: "The largest file that is kept for undo, in MiB. A command that changes a larger one says so.",
	},
	{
		Key: "PASSEPARTOUT_TRY_SECONDS", Kind: Number, Default: "10", Min: 0, Max: 300, Group: groupSafety, field: func(c *Config) any { return &c.TrySeconds },
		Doc: "How long a command that needs approval may first be tried where nothing of it lasts, so that you see what it would change. 0 tries none.",
	},
	{
		Key: "PASSEPARTOUT_ALLOW_HOSTS", Kind: Hosts, Example: "example.org,api.example.net", Group: groupSafety,
		field: func(c *Config) any { return &c.AllowHosts },
		Doc:   "Hosts that commands may reach without a question.",
	},
	{
		Key: "PASSEPARTOUT_WEB_CREDENTIALS", Kind: Words, Example: "api.example.org=EXAMPLE_TOKEN,weather.example=X-Api-Key:WEATHER", Group: groupSafety,
		field: func(c *Config) any { return &c.WebCredentials },
		Doc:   "Which host is shown which entry of the vault when a page of it is fetched, over https only: HOST=NAME as a bearer's token, or HOST=HEADER:NAME. No action can ask for it.",
	},
	{
		Key: "PASSEPARTOUT_APPROVAL_EXPIRY", Kind: Duration, Default: "24h", Min: 60, Max: 30 * day, Group: groupSafety,
		field: func(c *Config) any { return &c.ApprovalExpiry },
		Doc:   "How long a question waits for your answer. After that the answer is no.",
	},
	{
		Key: "PASSEPARTOUT_APPROVERS", Kind: Words, Example: "cli,tui,telegram:4711", Group: groupSafety,
		field: func(c *Config) any { return &c.Approvers },
		Doc:   "Where your answers to questions are taken from: channels, or single senders of one. While this is unset, from every channel on which you are known.",
	},
	{
		Key: "PASSEPARTOUT_APPROVE_FROM", Kind: Choice, Default: "anywhere", Choices: []string{"anywhere", "elsewhere"}, Group: groupSafety,
		field: func(c *Config) any { return &c.ApproveFrom },
		Doc:   "With elsewhere, a question must be answered over another channel than the one it was asked on.",
	},
	{
		Key: "PASSEPARTOUT_VAULT_PASSPHRASE_FILE", Kind: Path, Group: groupSafety, field: func(c *Config) any { return &c.VaultPassFile },
		Doc: "A file with the vault's passphrase, for a daemon that starts with nobody there. Want it readable by you alone, and best on a disk of its own or from the service manager.",
	},
	{
		Key: "PASSEPARTOUT_LOG_LEVEL", Kind: Choice, Default: "info", Choices: []string{"debug", "info", "warn", "error"}, Group: groupRecord,
		field: func(c *Config) any { return &c.LogLevel },
		Doc:   "How much the daemon says on its standard error.",
	},
	{
		Key: "PASSEPARTOUT_JOURNAL_BYTES", Kind: Number, Default: "16777216", Min: 4096, Max: 1 << 30, Group: groupRecord,
		field: func(c *Config) any { return &c.JournalBytes },
		Doc:   "The size at which the journal begins a new segment.",
	},
}

// Settings returns the table.
func Settings() []Setting { return slices.Clone(table) }

func find(key string) (*Setting, bool) {
	for i := range table {
		if table[i].Key == key {
			return &table[i], true
		}
	}
	return nil, false
}

func keys() []string {
	out := make([]string, len(table))
	for i, s := range table {
		out[i] = s.Key
	}
	return out
}

// exampleHead begins the example file, fileHead one that was written for somebody.
const (
	exampleHead = "# Settings of Passepartout. Copy this to $XDG_CONFIG_HOME/passepartout/env\n" +
		"# (usually ~/.config/passepartout/env), take away the # before what you set, and\n" +
		"# keep the file to yourself: chmod 600. The process environment wins over it.\n" +
		"#\n" +
		"# This file is generated from the table in internal/config.\n"
	fileHead = "# Settings of Passepartout. Take away the # before what you set, or say\n" +
		"# passepartout config set KEY VALUE. The process environment wins over this file.\n" +
		"# Keys and passwords belong in the vault: passepartout vault set NAME.\n"
)

// Example returns a settings file in which everything is explained and nothing
// is set.
func Example() string {
	var b strings.Builder
	b.WriteString(exampleHead)
	group := ""
	for _, s := range table {
		if s.EnvOnly {
			continue
		}
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n# --- %s ---\n", group)
		}
		b.WriteString("\n")
		for _, line := range wrap(s.help(), 78) {
			b.WriteString("# " + line + "\n")
		}
		fmt.Fprintf(&b, "#%s=%s\n", s.Key, s.example())
	}
	return b.String()
}

func (s Setting) help() string {
	doc := s.Doc
	if len(s.Choices) > 0 {
		doc += " Choices: " + strings.Join(s.Choices, ", ") + "."
	}
	if s.Default != "" {
		doc += " Default: " + s.Default + "."
	}
	return doc
}

func (s Setting) example() string {
	switch {
	case s.Example != "":
		return s.Example
	case strings.HasPrefix(s.Default, "$"): // not expanded in a file
		return ""
	}
	return s.Default
}

func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
