package shell

import (
	"strings"
)

var curlSpec = &spec{opts: map[string]byte{
	"-o": 'w', "--output": 'w', "--output-dir": 'd', "-D": 'w', "--dump-header": 'w', "-c": 'w', "--cookie-jar": 'w', "--trace": 'w', "--trace-ascii": 'w', "--stderr": 'w', "--libcurl": 'w', "--etag-save": 'w', "--hsts": 'w', "--alt-svc": 'w',
	"-K": '!', "--config": '!', "--engine": '!', "-b": 'v', "--cookie": 'v', "-H": 'v', "--header": 'v', "-A": 'v', "--user-agent": 'v', "-e": 'v', "--referer": 'v', "-m": 'v', "--max-time": 'v', "--connect-timeout": 'v', "--retry": 'v', "--retry-delay": 'v', "--retry-max-time": 'v',
	"-r": 'v', "--range": 'v', "-w": 'v', "--write-out": 'v', "-y": 'v', "-Y": 'v', "-z": 'v', "--time-cond": 'v', "--limit-rate": 'v', "--max-redirs": 'v', "--max-filesize": 'v', "--interface": 'v', "--resolve": '?', "--connect-to": '?', "--dns-servers": '?', "--ciphers": 'v', "--tls-max": 'v', "--proto": 'v',
	"-x": 'n', "--proxy": 'n', "--preproxy": 'n', "--socks5": 'n', "--socks5-hostname": 'n', "--socks4": 'n', "--doh-url": 'n', "-U": 'v', "--proxy-user": 'v', "-u": 'v', "--user": 'v', "--oauth2-bearer": 'v', "-E": 'r', "--cert": 'r', "--key": 'r', "--cacert": 'r', "--capath": 'r', "--netrc-file": 'r', "--unix-socket": '?', "--abstract-unix-socket": '?',
	"-d": 'v', "--data": 'v', "--data-ascii": 'v', "--data-binary": 'v', "--data-raw": 'v', "--data-urlencode": 'v', "--json": 'v', "-F": 'v', "--form": 'v', "--form-string": 'v', "-T": 'r', "--upload-file": 'r', "--url": 'v', "-X": 'v', "--request": 'v', "--request-target": 'v', "-Q": '?', "--quote": '?',
	"-I": '.', "--head": '.', "-f": '.', "-L": '.', "-k": '.', "--insecure": '.', "-n": '?', "--netrc": '?', "--netrc-optional": '?', "-P": 'v', "--ftp-port": 'v', "--mail-from": '?', "--mail-rcpt": '?', "--telnet-option": '?', "--proxy-header": 'v', "--url-query": 'v', "--variable": 'v', "-C": 'v', "--continue-at": 'v', "--create-dirs": '.', "--retry-all-errors": '.', "--noproxy": 'v', "--parallel-max": 'v', "--keepalive-time": 'v', "--expect100-timeout": 'v', "--delegation": 'v', "--pubkey": 'r', "--hostpubsha256": 'v',
}}

// curl judges fetching and sending over the network.
func (j *judge) curl(args []string) flow {
	if helpOnly(args) {
		return flow{}
	}
	j.effect(Network)
	p := j.options(curlSpec, args)
	urls := append(p.operands, p.each("--url")...)
	for _, u := range urls {
		if strings.HasPrefix(strings.ToLower(u), "file:") {
			j.readPath(strings.TrimPrefix(u[5:], "//"))
			continue
		}
		j.host(u)
	}
	sends := false
	for _, v := range p.each("-d", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "--json", "-F", "--form", "-T", "--upload-file", "--form-string") {
		sends = true
		j.sentFile(v)
	}
	for _, v := range p.each("-H", "--header", "-b", "--cookie", "--url-query", "--variable") {
		if strings.HasPrefix(v, "@") {
			j.sentFile(v)
			sends = true
		}
	}
	for _, v := range p.each("-b", "--cookie") {
		if v != "" && v[0] != '@' && !strings.Contains(v, "=") {
			j.readPath(v)
		}
	}
	method := strings.ToUpper(p.given["-X"] + p.given["--request"])
	switch {
	case method == "" && !sends || method == "GET" && !sends || method == "HEAD" || method == "OPTIONS":
	case sends && p.has("-G", "--get"):
		j.ask("shell.upload", "sends data to another machine")
	default:
		j.effect(Writes)
		j.ask("shell.upload", "sends data to another machine or changes something there")
	}
	out := flow{net: true}
	for _, w := range p.each("-o", "--output") {
		if w != "-" {
			j.wrote(w, flow{net: true})
		}
	}
	if p.has("-O", "--remote-name", "-J", "--remote-header-name") {
		for _, u := range urls {
			name := u[strings.LastIndexByte(u, '/')+1:]
			if name == "" || !known(name) {
				j.effect(Writes)
				continue
			}
			j.writePath(name)
			j.wrote(name, flow{net: true})
		}
	}
	return out
}

// sentFile judges a value of which @file means the content of that file.
func (j *judge) sentFile(v string) {
	if i := strings.IndexAny(v, "@<"); i >= 0 && i+1 < len(v) {
		if i == 0 || v[i-1] == '=' {
			f, _, _ := strings.Cut(v[i+1:], ";")
			j.readPath(f)
		}
	}
}

var wgetSpec = &spec{opts: map[string]byte{
	"-O": 'w', "--output-document": 'w', "-o": 'w', "--output-file": 'w', "-a": 'w', "--append-output": 'w', "-P": 'd', "--directory-prefix": 'd', "-i": 'r', "--input-file": 'r', "--save-cookies": 'w', "--load-cookies": 'r', "--warc-file": 'w', "--rejected-log": 'w', "--hsts-file": 'w',
	"--use-askpass": 'x', "-e": '!', "--execute": '!', "--config": '!', "--post-file": 'r', "--body-file": 'r', "--post-data": 'v', "--body-data": 'v', "--method": 'v', "-U": 'v', "--user-agent": 'v', "--header": 'v', "--referer": 'v', "-T": 'v', "--timeout": 'v', "-t": 'v', "--tries": 'v', "-w": 'v', "--wait": 'v',
	"-l": 'v', "--level": 'v', "-A": 'v', "--accept": 'v', "-R": 'v', "--reject": 'v', "-D": 'v', "--domains": 'v', "--exclude-domains": 'v', "-I": 'v', "-X": 'v', "--limit-rate": 'v', "-Q": 'v', "--quota": 'v', "--user": 'v', "--password": 'v', "--http-user": 'v', "--http-password": 'v', "--certificate": 'r', "--private-key": 'r', "--ca-certificate": 'r', "--start-pos": 'v', "-B": 'n', "--base": 'n', "--cut-dirs": 'v', "--default-page": 'v', "--bind-address": 'v', "--local-encoding": 'v', "--remote-encoding": 'v', "--accept-regex": 'v', "--reject-regex": 'v', "--delete-after": '.',
}}

// wget judges downloading.
func (j *judge) wget(args []string) flow {
	if helpOnly(args) {
		return flow{}
	}
	j.effect(Network)
	p := j.options(wgetSpec, args)
	for _, u := range p.operands {
		j.host(u)
	}
	if p.has("--post-file", "--post-data", "--body-file", "--body-data", "--method") {
		j.ask("shell.upload", "sends data to another machine")
	}
	out := p.given["-O"] + p.given["--output-document"]
	switch {
	case out == "-" || p.has("--spider"):
	case out != "":
		j.wrote(out, flow{net: true})
	default:
		dir := p.given["-P"] + p.given["--directory-prefix"]
		if dir == "" {
			dir = "."
		}
		for _, u := range p.operands {
			name := u[strings.LastIndexByte(u, '/')+1:]
			if known(name) && name != "" {
				j.writePath(strings.TrimSuffix(dir, "/") + "/" + name)
				j.wrote(strings.TrimSuffix(dir, "/")+"/"+name, flow{net: true})
			}
		}
	}
	return flow{net: true}
}

var sshSpec = &spec{first: true, opts: map[string]byte{
	"-o": 'v', "-F": 'r', "-i": 'r', "-I": 'x', "-E": 'w', "-S": 'v', "-l": 'v', "-p": 'v', "-b": 'v', "-B": 'v', "-c": 'v', "-D": '?', "-e": 'v', "-J": 'n', "-L": 'v', "-m": 'v', "-O": 'v', "-P": 'v', "-Q": 'v', "-R": 'v', "-w": 'v', "-W": 'v', "-M": '.',
}}

// sshOption judges -o key=value, which can name programs to run here.
func (j *judge) sshOption(v string) {
	key := strings.ToLower(strings.TrimSpace(cutAt(v, "= \t")))
	switch key {
	case "proxycommand", "localcommand", "knownhostscommand", "permitlocalcommand", "proxyusefdpass", "pkcs11provider", "securitykeyprovider", "xauthlocation", "match", "include":
		j.effect(Executes)
		j.deny("shell.exec-option", "the ssh option runs a program here: "+plain(v))
		if _, cmd, ok := strings.Cut(v, "="); ok {
			j.nested(cmd)
		}
	default:
		j.suspicious(v)
	}
}

// ssh judges a remote login: always a question, with the remote command looked at too.
func (j *judge) ssh(args []string) flow {
	j.effect(Network)
	for i, a := range args {
		if a == "-o" && i+1 < len(args) {
			j.sshOption(args[i+1])
		} else if strings.HasPrefix(a, "-o") && len(a) > 2 {
			j.sshOption(a[2:])
		} else if a != "" && a[0] != '-' && i > 0 && args[i-1] != "-o" && !takesValue(sshSpec.opts[args[i-1]]) {
			break
		}
	}
	p := j.options(sshSpec, args)
	j.ask("shell.remote-login", "logs in to another machine")
	if p.has("-R", "-L", "-D", "-w", "-W") {
		j.ask("shell.tunnel", "opens a tunnel")
	}
	if len(p.operands) > 0 {
		dest := p.operands[0]
		if strings.HasPrefix(dest, "-") {
			j.deny("shell.exec-option", "the host name would be read as an option")
		}
		j.host(dest)
	}
	if len(p.operands) > 1 {
		saved := j.remote
		j.remote = true
		j.nested(strings.Join(p.operands[1:], " "))
		j.remote = saved
	}
	return flow{net: true}
}

var copySpec = &spec{opts: map[string]byte{
	"-o": 'v', "-F": 'r', "-i": 'r', "-S": 'x', "-e": 'v', "--rsh": 'v', "--rsync-path": 'x', "-b": 'v', "-P": '.', "-J": 'n', "-l": '.', "-c": '.', "--exclude": 'v', "--include": 'v', "--exclude-from": 'r', "--include-from": 'r', "--files-from": 'r', "--password-file": 'r', "--log-file": 'w', "--partial-dir": 'v', "--backup-dir": 'v',
	"--temp-dir": 'v', "-T": 'v', "--compare-dest": 'v', "--copy-dest": 'v', "--link-dest": 'v', "--bwlimit": 'v', "--port": 'v', "--timeout": 'v', "--chmod": 'v', "--chown": 'v', "--delete": '?', "--delete-before": '?', "--delete-during": '?', "--delete-after": '?', "--delete-excluded": '?', "--del": '?', "--remove-source-files": '?', "--daemon": '!', "--config": '!', "-M": '?', "--remote-option": '?', "-f": 'v', "--filter": 'v', "--max-size": 'v', "--min-size": 'v', "--write-batch": 'w', "--read-batch": 'r', "--early-input": 'r', "--force": '?', "--inplace": '.',
}}

// copyRemote judges scp, sftp and rsync: local copies like cp, anything with a host as sending or fetching.
func (j *judge) copyRemote(base string, args []string) flow {
	if helpOnly(args) {
		return flow{}
	}
	p := j.options(copySpec, args)
	for i, a := range args {
		switch {
		case a == "-o" && base != "rsync" && i+1 < len(args):
			j.sshOption(args[i+1])
		case strings.HasPrefix(a, "-o") && base != "rsync" && len(a) > 2:
			j.sshOption(a[2:])
		}
	}
	for _, v := range p.each("-e", "--rsh") {
		if base == "rsync" && v != "ssh" {
			j.ask("shell.exec-option", "rsync would run another program as its transport: "+plain(v))
			j.nested(v)
			if !strings.HasPrefix(v, "ssh ") {
				j.deny("shell.exec-option", "rsync would run another program as its transport: "+plain(v))
			}
		}
	}
	remote := base == "sftp"
	for i, w := range p.operands {
		if isURL(w) || remoteSpec(w) {
			remote = true
			j.host(w)
			continue
		}
		if base == "sftp" {
			j.host(w)
			continue
		}
		if i == len(p.operands)-1 && i > 0 {
			j.writePath(w)
		} else {
			j.readPath(w)
			j.holdsSecrets(w)
		}
	}
	if remote {
		j.effect(Network)
		j.ask("shell.upload", "copies files to or from another machine")
		if base == "sftp" && j.stdin.known {
			j.suspicious(j.stdin.text)
		}
	}
	return flow{net: remote}
}

// remoteSpec recognises host:path, which is not a path of this machine.
func remoteSpec(w string) bool {
	i := strings.IndexByte(w, ':')
	return i > 0 && strings.IndexByte(w[:i], '/') < 0
}
