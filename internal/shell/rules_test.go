package shell_test

import (
	"testing"

	"passepartout/internal/host"
	"passepartout/internal/shell"
)

// rule is a decision about a family of commands, with examples on both sides of the line it draws.
type rule struct {
	name     string
	code     string
	asked    []string
	harmless []string
}

var rules = []rule{
	{
		name: "a client of a cluster or a cloud works only over the network",
		code: "shell.needs-service",
		asked: []string{
			"kubectl get nodes", "kubectl -n web logs deploy/api", "kubectl explain service", "aws s3 ls s3://backups", "aws iam list-users", "gcloud compute instances list",
			"az vm list -o table", "helm status web", "terraform plan", "terraform state list", "doctl droplet list", "gh pr list", "glab mr list", "svn update", "skopeo inspect docker://app",
		},
		harmless: []string{
			"kubectl --help", "kubectl get --help", "kubectl version --client", "aws --version", "gcloud version", "az version", "helm version", "helm lint chart", "terraform fmt", "terraform validate", "gh help", "gh --version",
		},
	},
	{
		name:     "a container client works only through the socket of its daemon",
		code:     "shell.needs-socket",
		asked:    []string{"docker ps -a", "docker images", "docker logs web", "docker inspect web", "docker image history app", "docker ps --local", "docker build -t app .", "podman ps", "docker compose ps", "docker-compose logs", "crictl images"},
		harmless: []string{"docker --version", "docker ps --help", "docker compose config", "docker context ls"},
	},
	{
		name: "a package that nobody pinned comes over the network",
		code: "shell.needs-network",
		asked: []string{
			"pip install attrs", "pip3 download attrs", "npm install left-pad", "npm update", "yarn add left-pad", "pnpm add left-pad", "bun add left-pad", "cargo add anyhow", "cargo update", "go get example.org/x@latest", "go mod tidy",
			"gem install rake", "bundle update", "composer require a/b", "poetry add attrs", "uv add attrs", "uv lock", "conda install numpy", "dotnet restore", "dotnet add package A", "dotnet add app.csproj package A", "dart pub get", "mix deps.get", "go mod download example.org/x@latest",
		},
		harmless: []string{
			"npm ci", "poetry install --only main", "uv sync --only-group dev", "bundle install -j 4", "composer install", "cargo fetch", "go mod download", "go mod verify", "cargo build", "npm test", "npm run lint", "make", "dotnet build", "dotnet add app.csproj reference lib.csproj",
			"cargo update --offline", "pip install --no-index --find-links=wheels attrs", "npm view left-pad", "cargo search anyhow", "pip list", "uv venv", "poetry new app", "pip install --help",
		},
	},
	{
		name: "what runs for every file that a search finds needs a look unless it only tells about files",
		code: "shell.exec",
		asked: []string{
			`find . -type f -exec cat {} +`, `find . -name notes -exec head -3 {} \;`, `find . -name '*.go' -exec gofmt -w {} +`, `find . -name '*.md' -exec sh -c 'wc -l "{}"' \;`, `find docs -exec gzip {} \;`, `fd -e md -x pandoc -o out.html`, `fd . -X cat`,
			`find . -name '*.zip' -exec unzip {} \;`, `find . -type f -ok ./check {} \;`,
			`find . -exec cat {} + -name '*.md'`, `find . -name '*.md' -o -type f -exec cat {} +`, `find . ! -name '*.md' -exec cat {} +`,
		},
		harmless: []string{
			`find . -type f -exec ls -l {} +`, `find src -exec stat {} \;`, `find . -type f -exec file {} +`, `find . -name '*.c' -exec wc -l {} +`, `find . -exec echo {} \;`, `find . -name '*.json' -exec jq .name {} \;`, `find . -name '*.go' -exec grep -l panic {} +`,
			`find . -name '*.zip' -exec unzip -n {} \;`, `fd -e go -x wc -l`,
		},
	},
	{
		name:     "a search whose command has no end is not understood",
		code:     "shell.unfinished",
		asked:    []string{`find . -exec ls`, `find . -exec echo x + -print`},
		harmless: []string{`find . -exec ls {} + -print`},
	},
	{
		name:     "the terminal itself is past what records the output",
		code:     "shell.terminal",
		asked:    []string{"echo hi > /dev/tty", "ls | tee /dev/tty | wc -l", "printf x >> /dev/tty"},
		harmless: []string{"read -r x < /dev/tty", "echo hi > /dev/null", "echo hi > /dev/stderr"},
	},
	{
		name:  "a device that never ends needs something that stops",
		code:  "shell.endless",
		asked: []string{"cat /dev/urandom", "cat /dev/zero | tr '\\0' a", "base64 < /dev/urandom", "tr -dc a-z < /dev/urandom | fold -w 9", "od -x /dev/random", "cat /dev/zero > big", "echo $(cat /dev/urandom)", "ls && cat /dev/zero", "nice cat /dev/zero", "head -1 a; cat /dev/zero", "cat /dev/zero | xargs echo", "cat $(head -1 list) /dev/zero", "bash -c cat < /dev/urandom", "while read -r l; do cat; done < /dev/zero"},
		harmless: []string{
			"head -c 16 /dev/urandom", "head -c 16 /dev/urandom | base64", "tr -dc a-z < /dev/urandom | head -c 12", "cat /dev/urandom | tr -dc 0-9 | fold -w 6 | head -n 1", "od -An -N4 -tu4 /dev/urandom", "dd if=/dev/zero bs=1k count=3 | md5sum",
			"ls -l /dev/urandom", "shuf --random-source=/dev/urandom list.txt", "timeout 1 cat /dev/zero", "cat /dev/null", "nice head -c 5 /dev/urandom", "cat /dev/zero | nice head -c 5",
		},
	},
	{
		name:     "git's manual opens in a viewer that settings name",
		code:     "shell.interactive",
		asked:    []string{"git gc --help", "git help commit", "git --help log", "git log --oneline --help"},
		harmless: []string{"git --help", "git log -h", "git --version"},
	},
	{
		name:     "arguments nobody gave may be options",
		code:     "shell.dynamic",
		asked:    []string{"find . $*", "ls $@", "grep -r x $*"},
		harmless: []string{`ls "$@"`, "set -- a b; ls $*", `bash -c 'ls $*' x a b`, `f() { ls $*; }; f a`},
	},
	{
		name:     "a hidden file of the project is obeyed by tools",
		code:     "shell.hidden",
		asked:    []string{"echo x > .clang-format", "cat a >> .eslintrc.json", "printf 'a=b' > sub/.pylintrc"},
		harmless: []string{"echo out/ >> .gitignore", "touch .gitkeep", "echo x > notes.txt", "echo x > ..notes/a", "cat .clang-format"},
	},
	{
		name:     "a linked program is one that nobody has judged",
		code:     "shell.executable",
		asked:    []string{"gcc -Wall a.c -o a", "clang++ a.cc b.cc", "g++ -O2 a.cc --output build/a", "cc a.c", "rustc main.rs", "gcc-13 a.c", "ghc Main.hs", "gcc -Wno-cast-align a.c"},
		harmless: []string{"gcc -c a.c -o a.o", "clang -fsyntax-only a.c", "gcc -E a.c", "gcc --version", "clang -S a.c", "make a", "go build ./...", "cargo build"},
	},
	{
		name:     "another user's home is not the person's work",
		code:     "shell.read-system",
		asked:    []string{"cat /home/bob/notes.txt", "find /home -name x", "ls /home/bob"},
		harmless: []string{"ls /home/ann", "cat /home/ann/notes.txt", "find ~ -name x"},
	},
	{
		name:     "blame shows a file's content as cat does",
		code:     "shell.read-settings",
		asked:    []string{"git blame settings.py", "git annotate -L 1,5 conf/settings.yaml", "git show HEAD~2:app/config.json", "git diff settings.ini", "git diff HEAD -- config.toml"},
		harmless: []string{"git blame main.go", "git blame HEAD~3 main.go", "git show HEAD:main.go", "git diff main HEAD"},
	},
}

func TestRulesDrawTheirLineInTheSamePlaceForEveryExample(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, cmd := range r.asked {
				if rep := shell.Analyze(cmd, ann()); rep.Level != shell.Question || !hasCode(rep, r.code) {
					t.Errorf("%q is %v %v, want question %s", cmd, rep.Level, rep.Codes(), r.code)
				}
			}
			for _, cmd := range r.harmless {
				if rep := shell.Analyze(cmd, ann()); rep.Level != shell.Harmless {
					t.Errorf("%q is %v, want harmless: %+v", cmd, rep.Level, rep.Findings)
				}
			}
		})
	}
}

func TestAServiceWhoseHostsAreAllAllowedIsNoQuestion(t *testing.T) {
	env := ann()
	env.Hosts = host.List{"api.github.com", "packages.example"}
	env.Services = map[string][]string{
		"registry:python": {"packages.example"},
		"registry:ruby":   {"packages.example", "mirror.example"},
	}
	for cmd, want := range map[string]shell.Level{
		"gh pr list":          shell.Harmless,
		"pip install attrs":   shell.Harmless,
		"gem install rake":    shell.Question, // only one of its hosts is allowed
		"npm install a":       shell.Question, // nobody said where this registry is
		"glab mr list":        shell.Question,
		"docker ps":           shell.Question,
		"kubectl get nodes":   shell.Question,
		"gh pr merge 3":       shell.Question, // changes something there
		"pip install ../evil": shell.Question,
	} {
		if r := shell.Analyze(cmd, env); r.Level != want {
			t.Errorf("%q is %v %v, want %v", cmd, r.Level, r.Codes(), want)
		}
	}
	if r := shell.Analyze("pip install attrs", env); len(r.Hosts) != 1 || r.Hosts[0] != "packages.example" {
		t.Errorf("hosts of pip install = %v, want the registry's", r.Hosts)
	}
}

func TestAProgramWithoutAShellIsHeldToTheSameRules(t *testing.T) {
	for _, argv := range [][]string{{"cat", "/dev/zero"}, {"docker", "ps"}, {"git", "help", "log"}, {"gcc", "a.c"}, {"find", ".", "-exec", "cat", "{}", "+"}} {
		if r := shell.AnalyzeArgv(argv, ann()); r.Level != shell.Question {
			t.Errorf("%q is %v %v, want question", argv, r.Level, r.Codes())
		}
	}
	if r := shell.AnalyzeArgv([]string{"head", "-c", "9", "/dev/urandom"}, ann()); r.Level != shell.Harmless {
		t.Errorf("a bounded read of a random device is %v %v, want harmless", r.Level, r.Codes())
	}
}
