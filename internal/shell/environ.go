package shell

import (
	"strings"
)

// varRule says what setting an environment variable can do to the programs started with it.
type varRule uint8

const (
	varNone    varRule = iota
	varCommand         // its value is run as a command
	varLoader          // its value decides which code is loaded
	varLibrary         // where an interpreter looks for modules
	varAddress         // where requests, and credentials with them, are sent
	varConfig          // where a program finds settings that can name commands
	varPath            // where programs are looked up
)

var varRules = map[string]varRule{
	"PAGER": varCommand, "MANPAGER": varCommand, "GIT_PAGER": varCommand, "GH_PAGER": varCommand, "BAT_PAGER": varCommand, "AWS_PAGER": varCommand, "SYSTEMD_PAGER": varCommand, "PSQL_PAGER": varCommand, "DELTA_PAGER": varCommand,
	"EDITOR": varCommand, "VISUAL": varCommand, "GIT_EDITOR": varCommand, "GIT_SEQUENCE_EDITOR": varCommand, "KUBE_EDITOR": varCommand, "FCEDIT": varCommand, "SUDO_EDITOR": varCommand, "SYSTEMD_EDITOR": varCommand,
	"BROWSER": varCommand, "GIT_SSH": varCommand, "GIT_SSH_COMMAND": varCommand, "GIT_PROXY_COMMAND": varCommand, "GIT_EXTERNAL_DIFF": varCommand, "GIT_ASKPASS": varCommand, "SSH_ASKPASS": varCommand, "SUDO_ASKPASS": varCommand,
	"LESSOPEN": varCommand, "LESSCLOSE": varCommand, "MANOPT": varCommand, "PROMPT_COMMAND": varCommand, "BASH_ENV": varCommand, "ENV": varCommand, "ZDOTDIR": varCommand, "PS0": varCommand, "PS1": varCommand, "PS4": varCommand,
	"SHELL": varCommand, "RSYNC_RSH": varCommand, "CVS_RSH": varCommand, "SVN_SSH": varCommand, "HGEDITOR": varCommand, "TAR_OPTIONS": varCommand, "RUSTC": varCommand, "RUSTC_WRAPPER": varCommand, "RUSTC_WORKSPACE_WRAPPER": varCommand, "RUSTDOC": varCommand,
	"MAKEFLAGS": varCommand, "GNUMAKEFLAGS": varCommand, "MAKEFILES": varCommand, "GOFLAGS": varCommand, "CC": varCommand, "CXX": varCommand, "AR": varCommand, "LD": varCommand, "CMAKE_C_COMPILER_LAUNCHER": varCommand, "AUTOM4TE": varCommand, "AUTOCONF": varCommand,
	"FZF_DEFAULT_COMMAND": varCommand, "FZF_DEFAULT_OPTS": varCommand, "LYNX_CFG": varCommand, "TERMINAL": varCommand, "XINITRC": varCommand, "ANT_OPTS": varCommand, "MAVEN_OPTS": varCommand, "GRADLE_OPTS": varCommand, "JAVA_OPTS": varCommand, "SBT_OPTS": varCommand,
	"LD_PRELOAD": varLoader, "LD_LIBRARY_PATH": varLoader, "LD_AUDIT": varLoader, "LD_CONFIG": varLoader, "DYLD_INSERT_LIBRARIES": varLoader, "DYLD_LIBRARY_PATH": varLoader, "DYLD_FRAMEWORK_PATH": varLoader, "GCONV_PATH": varLoader, "LOCPATH": varLoader,
	"OPENSSL_CONF": varLoader, "OPENSSL_MODULES": varLoader, "OPENSSL_ENGINES": varLoader, "PERL5OPT": varLoader, "PERL5DB": varLoader, "RUBYOPT": varLoader, "PYTHONSTARTUP": varLoader, "PYTHONHOME": varLoader, "PYTHONWARNINGS": varLoader,
	"PYTHONBREAKPOINT": varLoader, "PYTHONPYCACHEPREFIX": varLoader, "PYTHONUSERBASE": varLoader, "JAVA_TOOL_OPTIONS": varLoader, "_JAVA_OPTIONS": varLoader, "JDK_JAVA_OPTIONS": varLoader, "LUA_INIT": varLoader, "PHPRC": varLoader, "PHP_INI_SCAN_DIR": varLoader,
	"GIT_EXEC_PATH": varLoader, "GIT_TEMPLATE_DIR": varLoader, "GIT_CONFIG_PARAMETERS": varLoader, "GIT_CONFIG_COUNT": varLoader, "GIT_CONFIG": varLoader, "GIT_CONFIG_GLOBAL": varConfig, "GIT_CONFIG_SYSTEM": varConfig, "GLIBC_TUNABLES": varLoader, "BASHOPTS": varLoader, "SHELLOPTS": varLoader,
	"GIT_DIR": varConfig, "GIT_WORK_TREE": varConfig, "GIT_COMMON_DIR": varConfig, "GIT_OBJECT_DIRECTORY": varConfig, "GIT_INDEX_FILE": varConfig,
	"NODE_OPTIONS": varLibrary, "NODE_PATH": varLibrary, "PYTHONPATH": varLibrary, "PERL5LIB": varLibrary, "PERLLIB": varLibrary, "RUBYLIB": varLibrary, "GEM_PATH": varLibrary, "GEM_HOME": varLibrary, "CLASSPATH": varLibrary, "LUA_PATH": varLibrary, "LUA_CPATH": varLibrary,
	"TCLLIBPATH": varLibrary, "R_LIBS": varLibrary, "GUILE_LOAD_PATH": varLibrary, "EMACSLOADPATH": varLibrary, "MANPATH": varLibrary, "INFOPATH": varLibrary, "TEXINPUTS": varLibrary, "VIMINIT": varLoader, "EXINIT": varLoader, "MYVIMRC": varLoader, "INPUTRC": varConfig,
	"PIP_INDEX_URL": varAddress, "PIP_EXTRA_INDEX_URL": varAddress, "PIP_FIND_LINKS": varAddress, "PIP_CONFIG_FILE": varConfig, "UV_INDEX_URL": varAddress, "UV_EXTRA_INDEX_URL": varAddress, "UV_DEFAULT_INDEX": varAddress, "NPM_CONFIG_REGISTRY": varAddress, "npm_config_registry": varAddress,
	"npm_config_script_shell": varCommand, "NPM_CONFIG_USERCONFIG": varConfig, "npm_config_userconfig": varConfig, "YARN_REGISTRY": varAddress, "GOPROXY": varAddress, "GONOSUMDB": varAddress, "GOINSECURE": varAddress, "GOSUMDB": varAddress, "CARGO_HOME": varConfig,
	"HTTP_PROXY": varAddress, "HTTPS_PROXY": varAddress, "ALL_PROXY": varAddress, "http_proxy": varAddress, "https_proxy": varAddress, "all_proxy": varAddress, "ftp_proxy": varAddress, "DOCKER_HOST": varAddress, "CONTAINER_HOST": varAddress, "ANTHROPIC_BASE_URL": varAddress,
	"OPENAI_BASE_URL": varAddress, "OPENAI_API_BASE": varAddress, "AWS_ENDPOINT_URL": varAddress, "GITHUB_API_URL": varAddress, "GH_HOST": varAddress, "GITLAB_HOST": varAddress, "VAULT_ADDR": varAddress, "KUBERNETES_MASTER": varAddress,
	"KUBECONFIG": varConfig, "DOCKER_CONFIG": varConfig, "AWS_CONFIG_FILE": varConfig, "AWS_SHARED_CREDENTIALS_FILE": varConfig, "BOTO_CONFIG": varConfig, "CLOUDSDK_CONFIG": varConfig, "CURL_HOME": varConfig, "WGETRC": varConfig, "NETRC": varConfig, "GNUPGHOME": varConfig,
	"HOME": varConfig, "XDG_CONFIG_HOME": varConfig, "XDG_CONFIG_DIRS": varConfig, "XDG_DATA_DIRS": varConfig, "ANSIBLE_CONFIG": varConfig, "RIPGREP_CONFIG_PATH": varConfig, "ACKRC": varConfig, "SCREENRC": varConfig, "TMUX_TMPDIR": varConfig, "TERMINFO": varConfig, "HGRCPATH": varConfig,
	"JUPYTER_CONFIG_DIR": varConfig, "IPYTHONDIR": varConfig, "BUNDLE_GEMFILE": varConfig, "TF_CLI_CONFIG_FILE": varConfig, "HELM_PLUGINS": varLoader, "KREW_ROOT": varConfig, "FPATH": varLibrary, "CDPATH": varConfig,
	"PATH": varPath, "HISTFILE": varConfig, "HISTTIMEFORMAT": varConfig, "HISTCONTROL": varConfig, "HISTSIZE": varConfig, "HISTFILESIZE": varConfig, "HISTIGNORE": varConfig, "LESSHISTFILE": varConfig, "MYSQL_HISTFILE": varConfig,
}

// pagers are values of pager and editor variables that run nothing but themselves.
var pagers = map[string]bool{"": true, "cat": true, "less": true, "more": true, "true": true, ":": true, "less -R": true, "less -FRX": true, "less -RFX": true, "less -FR": true, "bat": true, "delta": true, "most": true, "gcc": true, "g++": true, "clang": true, "clang++": true, "cc": true, "c++": true, "ld": true, "ar": true, "/bin/bash": true, "/bin/sh": true, "/bin/zsh": true, "bash": true, "/bin/cat": true}

// envVar judges setting a variable. Whether it is exported does not matter: a name that is already in the environment stays there.
func (j *judge) envVar(name, value string) {
	if !known(name) {
		j.ask("shell.dynamic-assignment", "which variable would be set is not known")
		return
	}
	rule, ok := varRules[name]
	if !ok {
		rule = ruleBySuffix(name)
	}
	switch rule {
	case varNone:
		return
	case varCommand:
		j.commandVar(name, value)
	case varLoader:
		j.effect(Executes)
		j.deny("shell.env-loader", "the variable "+name+" makes programs load other code")
	case varLibrary:
		j.libraryVar(name, value)
	case varAddress:
		if isURL(value) {
			j.host(value)
		}
		if value != "" && value != "off" && value != "direct" {
			j.ask("shell.env-address", "the variable "+name+" sends requests to another place")
		}
	case varConfig:
		if value != "/dev/null" && !strings.HasPrefix(name, "HIST") {
			j.ask("shell.env-config", "the variable "+name+" makes programs use other settings, which can name commands to run")
		}
		if strings.HasPrefix(name, "HIST") && known(value) && (value == "" || value == "/dev/null" || value == "0" || strings.HasPrefix(value, "ignore")) {
			j.ask("shell.history-clear", "keeps commands out of the history")
		}
	case varPath:
		j.pathVar(value)
	}
}

// ruleBySuffix recognises families of variables by their names.
func ruleBySuffix(name string) varRule {
	switch {
	case strings.HasSuffix(name, "_ASKPASS"), strings.HasSuffix(name, "_PAGER"), strings.HasSuffix(name, "_WRAPPER"), strings.HasSuffix(name, "_PASSWORD_COMMAND"), strings.HasSuffix(name, "_SSH_COMMAND"), strings.HasSuffix(name, "_EDITOR"):
		return varCommand
	case strings.HasPrefix(name, "DYLD_"), strings.HasPrefix(name, "GIT_CONFIG_"), strings.HasPrefix(name, "BASH_FUNC_"), strings.HasPrefix(name, "LD_") && name != "LD_FLAGS":
		return varLoader
	case strings.HasPrefix(name, "CARGO_TARGET_") && (strings.HasSuffix(name, "_RUNNER") || strings.HasSuffix(name, "_LINKER")):
		return varCommand
	case strings.HasSuffix(name, "_BASE_URL"), strings.HasSuffix(name, "_INDEX_URL"), strings.HasSuffix(name, "_REGISTRY"):
		return varAddress
	}
	return varNone
}

// commandVar judges a variable whose value is run.
func (j *judge) commandVar(name, value string) {
	if pagers[value] {
		return
	}
	if strings.HasPrefix(name, "PS") && known(value) && !strings.ContainsAny(value, "$`") {
		return
	}
	switch name {
	case "GOFLAGS":
		if known(value) && !strings.Contains(value, "exec") && !strings.Contains(value, "ldflags") && !strings.Contains(value, "overlay") {
			return
		}
	case "MAKEFLAGS", "GNUMAKEFLAGS":
		if strings.HasPrefix(value, "-j") && isDigits(value[2:]) {
			return
		}
	case "JAVA_OPTS", "MAVEN_OPTS", "GRADLE_OPTS", "ANT_OPTS", "SBT_OPTS":
		if strings.HasPrefix(value, "-Xm") && !strings.Contains(value, " ") {
			return
		}
	case "SHELL", "CC", "CXX":
		j.ask("shell.env-command", "the variable "+name+" names a program that others run")
		return
	}
	j.effect(Executes)
	if !known(value) {
		j.ask("shell.env-command", "the variable "+name+" is run as a command, and its value is not known")
		return
	}
	j.deny("shell.env-command", "the variable "+name+" is run as a command by the programs that use it")
}

// libraryVar judges where an interpreter finds modules: the project's own folders are fine.
func (j *judge) libraryVar(name, value string) {
	if name == "NODE_OPTIONS" {
		if !strings.HasPrefix(value, "--max-old-space-size=") || strings.Contains(value, " ") {
			j.ask("shell.env-loader", "the variable NODE_OPTIONS can make node load other code")
		}
		return
	}
	if name == "PYTHONPATH" && known(value) {
		inside := true
		for _, p := range strings.Split(value, ":") {
			inside = inside && j.env.Places.Writable(j.resolve(p)) && !j.scratch(j.resolve(p))
		}
		if inside {
			return
		}
	}
	j.effect(Executes)
	j.ask("shell.env-library", "the variable "+name+" makes programs load modules from another place")
}

// pathVar judges a new search path: additions can replace every program by name.
func (j *judge) pathVar(value string) {
	for _, p := range strings.Split(value, ":") {
		switch {
		case binDirs[p]:
		case p == "" || p == "." || known(p) && !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "/tmp") || strings.HasPrefix(p, "/var/tmp") || strings.HasPrefix(p, "/dev/shm"):
			if p == "" && len(value) == 0 {
				continue
			}
			j.deny("shell.env-path", "programs would be looked up in a folder anyone can put them into")
		case p == anything:
		default:
			j.ask("shell.env-path", "programs would be looked up in another folder: "+plain(p))
		}
	}
}
