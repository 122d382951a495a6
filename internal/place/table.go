package place

// table lists the names that make a path special. A pattern is a run of path elements:
//
//   - a leading "/" anchors it at the root, otherwise it may begin at any depth;
//   - it must end at the path's last element, unless it ends in "/**", which takes the directory itself and everything below;
//   - "*" inside an element stands for any run of characters, {a,b} for each of its words.
//
// When several apply, the strictest kind wins. Names that only look alike are listed in exempt.
var table = []struct {
	kind     Kind
	patterns []string
}{
	{Own, []string{
		".config/passepartout/**", ".local/state/passepartout/**", "passepartout.sock",
		// The policy itself. What else lies in memex/system steers the agent and is
		// asked about, not forbidden.
		"memex/system/{permissions,rules,flight-plans}.org",
	}},
	{Secret, []string{
		// keys
		".ssh/**", "id_{rsa,dsa,ecdsa,ed25519,ecdsa_sk,ed25519_sk,xmss}", "id_{rsa,dsa,ecdsa,ed25519}{.,-,_}*", "*_{rsa,ed25519,ecdsa,dsa}",
		"ssh_host_*_key",
		".gnupg/**", "secring.*", "pubring.{kbx,gpg}", "private-keys-v1.d/**",
		"*.{pem,key,p12,pfx,p8,ppk,jks,keystore,keytab,kdbx,kdb,kwallet,jceks,bks,snk}",
		"*.{gpg,pgp,asc}", "*.{agekey,age-key}", "age/keys.txt", "*{private,priv}{-,_,}key*", "*.ovpn", "wireguard/*.conf", "wg[0-9].conf",
		"*.mobileprovision", "*.rdp",
		"letsencrypt/{live,archive,accounts}/**", "/etc/ssl/private/**", "/etc/pki/tls/private/**", "/etc/wireguard/**", "/etc/openvpn/**",
		"/etc/ipsec.secrets",
		// accounts of the machine
		"/etc/{shadow,gshadow,shadow-,gshadow-,shadow.*,opasswd,master.passwd,sudoers,krb5.keytab}",
		"/etc/{sudoers.d/**,security/opasswd,ppp/chap-secrets}",
		"/etc/NetworkManager/system-connections/**", "/var/lib/NetworkManager/**", "/etc/wpa_supplicant/**", "wpa_supplicant*.conf",
		"/etc/kubernetes/**", "/var/lib/{kubelet,etcd,rancher}/**",
		"/var/{db/shadow,db/dslocal,backups,lib/docker,lib/containerd,lib/sss,lib/samba}/**", "/var/lib/systemd/credential.secret/**",
		"/etc/mysql/debian.cnf", "/etc/{credstore,credstore.encrypted}/**",
		"/run/{secrets,credentials}/**", "/run/user/*/{keyring,gnupg}/**", "/proc/keys", "/proc/key-users", "/tmp/ssh-*/**", "/tmp/krb5cc*",
		"/var/mail/**", "/var/spool/mail/**",
		"/etc/{rancher,k3s}/**", "/boot/grub/user.cfg", "ntds.dit", "/var/log/{auth.log*,secure*,btmp*}",
		// environment files
		".env", ".env.*", "*.env", ".envrc", "env.local", ".flaskenv", ".env-*", ".env_*", "dev.vars", ".dev.vars*",
		// cloud, clusters, containers
		".aws/**", ".azure/**", ".config/gcloud/**", ".gcloud/**", ".boto", ".oci/**", ".aliyun/**", ".bluemix/**", ".ibmcloud/**",
		".config/{doctl,hcloud,scw,linode-cli,vultr-cli,flyctl,configstore,heroku,netlify,vercel,railway}/**",
		".config/{wrangler,.wrangler,stripe,ngrok,rclone,op,bw,Bitwarden*,sops,argocd,tea,glab-cli,hub,gh}/**",
		".config/{github-copilot,pulumi,doppler,infisical,fly,cloudflared}/**",
		".kube/**", "kubeconfig", "kubeconfig.*", "*.kubeconfig", "*{-,_,.}kubeconfig", ".docker/{config.json,contexts/**}", ".dockercfg",
		".dockerconfigjson", "containers/auth.json", ".config/containers/auth.json", ".helm/repository/**", ".config/helm/registry/**",
		".minikube/**",
		".terraform.d/**", ".terraformrc", "terraform.rc", "*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", "*.auto.tfvars",
		".vault-token", ".vault_pass*", "vault_pass*", ".vault-password*", "vault-password*", ".chef/**", ".consul-token", ".nomad-token",
		"vault-init*", ".pulumi/credentials.json", ".fly/**", ".vercel/**", ".netlify/**", ".cloudflared/**", ".wrangler/**", ".serverlessrc",
		".heroku/**", ".s3cfg", ".s3ql/**", ".passwd-s3fs", "rclone.conf", ".databrickscfg", ".snowflake/**", ".snowsql/**", ".kaggle/**",
		"kaggle.json", ".databricks/**", ".config/databricks/**",
		// package registries, code hosts, developer tools
		".npmrc", ".pypirc", ".gem/credentials", ".cargo/{credentials,credentials.toml}", ".m2/{settings.xml,settings-security.xml}",
		".gradle/gradle.properties", ".nuget/NuGet/NuGet.Config", "nuget.config", ".composer/auth.json", ".config/composer/auth.json",
		"auth.json", ".hex/**", ".pub-cache/credentials.json", ".config/pypoetry/auth.toml", ".cabal/config", ".sbt/.credentials",
		".ivy2/.credentials", ".bintray/.credentials", ".config/hatch/**",
		".git-credentials", ".gitcookies", ".config/git/credentials", ".netrc", "_netrc", ".authinfo", ".authinfo.*", "gh/hosts.yml",
		".config/hub", ".config/lab.toml", ".bundle/config", ".subversion/auth/**", ".svn/auth/**", ".travis/**", ".circleci/cli.yml",
		".config/{jira,.jira,slack,Slack,discord,Discord}/**", ".sentryclirc", ".clasprc.json", ".firebase/**", ".config/firebase/**",
		".appcenter/**", ".expo/**", ".huggingface/**", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".wandb/**",
		".config/wandb/**", ".openai/**", ".anthropic/**", ".replicate/**", ".config/{openai,anthropic,aichat,mods}/**", ".modal.toml",
		".ngrok2/**", "ngrok.yml",
		".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/{oauth_creds.json,google_accounts.json,.env}",
		".cursor/{auth.json,credentials*}", ".aider*", ".continue/config.{json,yaml}", ".copilot/**", ".local/share/opencode/auth.json",
		".qwen/oauth_creds.json",
		// databases and mail
		".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".mysql_history", ".psql_history", ".pg_service.conf", ".mongorc.js",
		".mongoshrc.js", ".dbshell", ".rediscli_history", ".sqlite_history", "wp-config.php", "LocalSettings.php", "database.yml",
		"configuration.php", "settings.local.php", "htpasswd", ".htpasswd", ".htdigest", "*.htpasswd", "tnsnames.ora", "sqlnet.ora",
		"ldap.secret",
		".msmtprc", ".fetchmailrc", ".mbsyncrc", ".offlineimaprc", ".muttrc", ".mutt/**", ".esmtprc", ".getmail/**",
		".config/{msmtp,mbsync,isync,aerc,neomutt,mutt,himalaya,offlineimap}/**", ".smbcredentials", ".smbcred*", "smbpasswd", ".cifs*",
		".davfs2/secrets", ".config/davfs2/secrets", ".irssi/**", ".weechat/**", ".config/weechat/**", ".config/hexchat/**", ".thunderbird/**",
		".config/evolution/**", ".local/share/evolution/**", "*.{pst,ost,mbox}", ".Maildir/**", "Maildir/**",
		// histories
		".{bash,zsh,sh,ash,ksh,fish,python,node_repl,irb,lua,ghci,julia,R,octave,scala,gdb,mysql,psql}_history",
		".{rush,ocaml,erl,lldb,pry,php,haxe,cling,mongo}_history",
		".{zhistory,history,histfile,sh_history,lesshst,viminfo,wget-hsts,Rhistory,irb-history,pry_history}",
		".{python-history,recently-used,bash_sessions/**,zsh_sessions/**,atuin/**}", "fish_history",
		".local/share/{fish,atuin,recently-used.xbel,nu}/**", "ConsoleHost_history.txt", ".xsession-errors", "recentf", ".emacs.d/recentf",
		".config/nushell/history.*", ".viminfo", ".ICEauthority", ".Xauthority", ".serverauth.*", ".dbus/**", ".pulse-cookie",
		".config/pulse/cookie", ".esd_auth",
		// browsers
		".mozilla/**", ".librewolf/**", ".waterfox/**", ".zen/**", ".tor-browser/**",
		".config/{google-chrome*,chromium*,BraveSoftware,microsoft-edge*,opera*,vivaldi*,Yandex*,epiphany}/**",
		".config/{qutebrowser,falkon}/**", ".local/share/{qutebrowser,epiphany,torbrowser,falkon,konqueror}/**",
		"snap/{firefox,chromium,brave,opera,vivaldi}/**",
		".var/app/*{irefox,hromium,hrome,rave,dge,ignal,elegram,iscord,lack,lement,hunderbird}/**",
		"Library/{Cookies,Safari,Keychains,Messages,Mail}/**",
		"Library/Application Support/{Google/Chrome,Chromium,Firefox,BraveSoftware,Microsoft Edge,Arc,Vivaldi}/**",
		"Library/Application Support/{com.apple.TCC,AddressBook,Signal,Slack,discord,Telegram Desktop,Bitcoin,Exodus}/**",
		"Library/Application Support/{Ledger Live,Electrum}/**",
		"Library/Group Containers/**", "{logins,key3,key4,signons,cert9,cookies,formhistory,places}.{json,db,sqlite,sqlite-wal}", "login data",
		"login data for account", "local state", "cookies.{sqlite,txt,db,binarycookies}", "web data", "{default,network}/cookies",
		"*-cookies.txt", "cookie-jar", "cookiejar", ".cookies",
		// messengers, password stores, wallets
		".config/{Signal*,Element*,Telegram*,TelegramDesktop,WhatsApp*,Wire*,Ferdi*,Mattermost*}/**",
		".config/{Microsoft/Microsoft Teams,teams*,zoom*,skypeforlinux,Keybase,keybase}/**",
		".local/share/{TelegramDesktop,signal-cli,keyrings,kwalletd,gopass,Bitwarden*,KeePassXC,nheko,fractal}/**", ".purple/**",
		".config/signal-cli/**", "signal-cli/data/**", ".telegram-cli/**", "msgstore*.db*", "chat.db", "*.{session,session-journal}",
		".password-store/**", ".gopass/**", ".config/{gopass,keepassxc,KeePassXC,1Password,1password,Enpass,lastpass-cli,lpass}/**", ".lpass/**",
		".local/share/lpass/**", ".op/**", ".keepass*", "*.1pif", "*.1pux", "*.agilekeychain/**", "*.opvault/**", "*.{keychain,keychain-db}",
		".enpassdb", "*.enpassdb", ".gnome2/keyrings/**", ".kde/share/apps/kwallet/**", ".pki/**", ".config/Authy*/**", ".2fa",
		".config/{totp,otp,authenticator}*/**", ".google_authenticator",
		"wallet.dat", "*.wallet", ".bitcoin/**", ".litecoin/**", ".dogecoin/**", ".dashcore/**", ".zcash/**", ".monero/**", ".bitmonero/**",
		"Monero/wallets/**", ".ethereum/**", ".ethereum/keystore/**", "keystore/utc--*", "utc--*", ".electrum/**", ".electrum-ltc/**",
		".config/{solana,Exodus,Ledger Live,atomic,sui,aptos}/**", ".solana/**", ".exodus/**", ".near-credentials/**", ".foundry/keystores/**",
		".brownie/accounts/**", ".atomic/**", ".coinbase/**", ".lnd/**", ".lightning/**", "seed{,-,_}phrase*", "mnemonic{,s}.{txt,json}",
		"recovery{-,_}{codes,key,phrase}*", "backup{-,_}codes*",
		// names that say so
		"{credential,credentials,creds,secrets,.credentials,.creds,.secret,.secrets,.token,.tokens,.password}",
		"{.passwords,.passwd,.api_key,.apikey,.api-key,.auth_token,.access_token,apikey,api_key}",
		"{client,google,oauth,app,service}{_,-}{secret,secrets,credentials,credential,creds}*.{json,yaml,yml}",
		"*{service-account,service_account,serviceaccount}*.json",

		"{secrets,credentials,.secrets,.credentials}/*.{json,yaml,yml,toml,env,txt,ini,key,enc}", "{secrets,credentials}.*.{json,yaml,yml}",
		"secret{_,-}{key,token,key_base}{,.txt}", "master.key", "encrypted_key*", ".jupyter/jupyter_{server,notebook}_config.{py,json}",
		".local/share/jupyter/runtime/**", "application-{prod,production}.{yml,yaml,properties}",
		"appsettings.{Production,Staging,Secrets}.json", "secrets.{py,rb,exs,php,js,ts}", "local_settings.py", ".streamlit/secrets.toml",
		".config/rclone/rclone.conf", "cloud-init/**", "user-data.txt", ".kaggle/kaggle.json", ".transifexrc", ".remarkable/**",
		".config/remmina/**", ".remmina/**", ".vnc/passwd", ".filezilla/**", ".config/filezilla/**", "sitemanager.xml", "recentservers.xml",
		".lftp/**", ".ncftp/**", "winscp.ini",
	}},
	{Device, []string{
		"/dev/**", "/proc/{kcore,kmem,sysrq-trigger,kpagecount,kpageflags}",
		"/run/{docker.sock,containerd/**,crio/**,podman/**,docker/**,dbus/system_bus_socket,systemd/private}",
		"/run/{lxd/**,libvirt/**,snapd.socket}", "/run/user/*/{podman/**,docker.sock,bus,systemd/**}", "docker.sock", "podman.sock",
		"containerd.sock", "/var/lib/{lxd,incus}/unix.socket", "/var/snap/lxd/common/lxd/unix.socket", "/sys/kernel/{debug,security,tracing}/**",
		"/sys/firmware/**", "/sys/block/**", "/tmp/tmux-*/**", "/run/screen/**",
	}},
	{Process, []string{
		"/proc/{self,[0-9]*}/{environ,mem,auxv,fd/**,fdinfo/**,map_files/**,pagemap,cwd/**,root/**,stack}",
		"/proc/{self,[0-9]*}/{syscall,personality,oom_score_adj,attr/**,ns/**,setgroups,uid_map,gid_map}",
		"/proc/{self,[0-9]*}/{clear_refs,coredump_filter,timens_offsets}", "/proc/{self,[0-9]*}/task/*/{environ,mem,auxv,fd/**}",
	}},
	{Startup, []string{
		// shells and sessions
		".{bashrc,bash_profile,bash_login,bash_logout,bash_aliases,bash_functions,profile,zshrc,zshenv}",
		".{zprofile,zlogin,zlogout,zsh_aliases,zpreztorc,kshrc,mkshrc,shrc,cshrc,tcshrc,login,logout,aliases}",
		".{exports,functions,inputrc,editrc,hushlogin,xinitrc,xsession,xsessionrc,xprofile,xserverrc}",
		".{xbindkeysrc,Xresources,Xdefaults,Xmodmap,dmrc,pam_environment,environment,rhosts,shosts,forward}",
		".{procmailrc,mailcap,plan,k5login}", ".config/{fish,nushell,elvish,xonsh,powershell,zsh,bash,autostart,autostart-scripts}/**",
		".config/{plasma-workspace,environment.d,systemd,upstart,i3,sway,hypr,awesome,bspwm,openbox,labwc}/**",
		".config/{river,niri,qtile,herbstluftwm,lxsession,xfce4,sxhkd,kanshi,waybar,polybar,dunst,kitty}/**",
		".config/{alacritty,wezterm,ghostty,foot,tmux,zellij,starship.toml,direnv,mise,rtx,user-dirs.dirs}/**",
		".config/{mimeapps.list,pip,git,npm,yarn,pnpm,uv,cargo,go,gdb,lldb,nvim,vim,helix,emacs,doom,mpv}/**",
		".config/{ranger,lf,yazi,nnn,mc,htop,less,bat,ripgrep,hg,jj,lazygit,matplotlib,ipython,R,starship}/**", ".config/starship.toml",
		".oh-my-zsh/**", ".oh-my-bash/**", ".zsh/**", ".zsh.d/**", ".bashrc.d/**", ".bash_completion", ".bash_completion.d/**", ".zprezto/**",
		".antigen/**", ".zinit/**", ".fzf.{bash,zsh}",
		".local/share/{bash-completion,applications,systemd,dbus-1,konsole,kservices5,plasma,nautilus}/**",
		".local/share/{gnome-shell,flatpak}/**", ".local/bin/**", ".i3/**", ".fluxbox/**", ".kde/{Autostart,env}/**", ".Xauthority", ".screenrc",
		".tmux.conf", ".tmux/**", ".kodi/**", ".lessfilter", ".lesskey", ".less", ".dircolors", ".terminfo/**", ".termux/**", ".fonts.conf",
		"WindowsPowerShell/**", "*profile.ps1", "Start Menu/Programs/Startup/**",
		// schedulers and services
		"/etc/{crontab,anacrontab,at.allow,at.deny,cron.allow,cron.deny,cron.d/**,cron.hourly/**}",
		"/etc/{cron.daily/**,cron.weekly/**,cron.monthly/**,cron.yearly/**,init.d/**,rc.local,rc.d/**}",
		"/etc/{rc0.d/**,rc1.d/**,rc2.d/**,rc3.d/**,rc4.d/**,rc5.d/**,rc6.d/**,rcS.d/**,init/**,inittab}",
		"/etc/{systemd/**,profile,profile.d/**,bash.bashrc,bashrc,bash_completion.d/**,zsh/**,zshenv,zshrc}",
		"/etc/{zprofile,csh.login,csh.cshrc,fish/**,environment,environment.d/**,inputrc,ld.so.preload}",
		"/etc/{ld.so.conf,ld.so.conf.d/**,ld.so.cache,pam.d/**,pam.conf,security/**,nsswitch.conf,hosts}",
		"/etc/{hosts.allow,hosts.equiv,resolv.conf,passwd,group,login.defs,doas.conf,polkit-1/**,udev/**}",
		"/etc/{modprobe.d/**,modules,modules-load.d/**,sysctl.conf,sysctl.d/**,binfmt.d/**,dbus-1/**,xdg/**}",
		"/etc/{X11/**,apt/**,yum.conf,yum.repos.d/**,dnf/**,pacman.conf,pacman.d/**,apk/**,gitconfig}",
		"/etc/{gitattributes,ssh/**,ssl/openssl.cnf,logrotate.conf,logrotate.d/**,update-motd.d/**}",
		"/etc/{NetworkManager/dispatcher.d/**,network/if-up.d/**,dhcp/**,ppp/ip-up.d/**,skel/**}",
		"/etc/{alternatives/**,mailcap,aliases,exports,fstab,shells,subuid,subgid,docker/**,containers/**}",
		"/etc/{npmrc,pip.conf,python*/sitecustomize.py,emacs/**,vim/**,wgetrc,gdb/**,tmux.conf,screenrc}",
		"/etc/{default/**,sysconfig/**,rsyslog.d/**,audit/**,selinux/**,apparmor/**,apparmor.d/**,grub.d/**}",
		"/etc/{initramfs-tools/**,kernel/**,dracut.conf.d/**}", "/var/spool/{cron,at,anacron,incron}/**", "/{usr/,usr/local/,}lib/systemd/**",
		"/run/systemd/{system,generator,transient}/**", "/usr/{,local/}share/{dbus-1,polkit-1,applications,bash-completion}/**",
		"/usr/local/{bin,sbin}/**", "systemd/{system,user}/**", "*.{service,timer,socket,path,automount}.d/**",
		"{Library,/Library,/System/Library}/Launch{Agents,Daemons}/**", "/Library/{StartupItems,ScriptingAdditions,Security}/**",
		"Library/{Preferences/com.apple.loginitems.plist,Services/**,LaunchAgents/**,Application Scripts/**}", "autostart/*.desktop", ".crontab",
		// version control
		".gitconfig", ".gitattributes", ".gitmodules", ".gitignore_global",
		".git/{config,config.worktree,hooks/**,info/attributes,modules/**,objects/info/alternates,worktrees/*/config*}", ".git",
		"*.git/{config,hooks/**}", ".githooks/**", ".husky/**", ".pre-commit-config.yaml", "lefthook.{yml,yaml}", ".lefthook/**",
		".overcommit.yml", ".hgrc", ".hg/hgrc", ".jj/repo/config.toml", ".arcconfig", ".bzr/branch/branch.conf", ".svn/wc.db",
		".github/{workflows,actions}/**", ".gitlab-ci.yml", ".circleci/**", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml",
		"Jenkinsfile", ".drone.yml", ".woodpecker.yml", ".woodpecker/**", ".buildkite/**", ".forgejo/workflows/**", ".gitea/workflows/**",
		"appveyor.yml", "cloudbuild.yaml", ".semaphore/**",
		// tools that obey a file in the directory they are started from
		"pip.conf", "pip.ini", ".pip/**", ".pydistutils.cfg", "{site,user}customize.py", "*.pth", ".pythonrc", ".pythonrc.py", ".pythonstartup",
		".pdbrc", ".ipython/**", ".jupyter/**", ".yarnrc", ".yarnrc.yml", ".condarc", ".yarn/{releases,plugins}/**", ".pnp.{c,}js",
		".pnpmfile.cjs", ".bunfig.toml", "bunfig.toml", ".noderc", ".babelrc.js", ".cargo/{config,config.toml,bin/**,env}", "rust-toolchain",
		".gemrc", ".irbrc", ".pryrc", ".rspec", ".bundle/**", ".perltidyrc", ".replyrc", ".Rprofile", ".Renviron", ".ghci", ".ocamlinit",
		".sbclrc", ".clisprc*", ".eclrc", ".guile", ".emacs", ".emacs.el", ".emacs.d/**", ".doom.d/**", ".spacemacs", ".spacemacs.d/**",
		".dir-locals.el", ".dir-locals-2.el", ".vimrc", ".gvimrc", ".vim/**", ".nvimrc", ".nvim.lua", ".exrc", ".nanorc", ".gdbinit",
		".gdbinit.d/**", ".gdbearlyinit", ".lldbinit", ".lldbinit-*", ".curlrc", "_curlrc", ".wgetrc", ".psqlrc", ".sqliterc", ".duckdbrc",
		".mongorc.js", ".ackrc", ".ripgreprc", ".digrc", ".bazelrc", ".buckconfig", ".bash_env", ".tool-versions", ".mise.toml", "mise.toml",
		".rtx.toml", ".devcontainer/**", ".devcontainer.json", ".gitpod.yml", ".replit", ".direnv/**", ".autoenv*", "Vagrantfile",
		".vagrant.d/**", ".ansible.cfg", "ansible.cfg", ".m2/extensions.xml", ".mvn/**", ".gradle/init.d/**", ".gradle/init.gradle*",
		"gradle/wrapper/**", ".sbtopts", ".sbt/**", ".jvmopts", ".jshellrc", ".lein/**", ".clojure/**", ".boot/**", ".npm/_npx/**",
		".config/npm/**", ".asdfrc", ".asdf/**", ".pyenv/**", ".rbenv/**", ".nvm/**", ".sdkman/**", ".deno/**", ".bun/bin/**", "go/bin/**",
		".local/lib/python*/**", ".local/pipx/**", ".config/containers/**", ".ssh/rc", ".ssh/authorized_keys", ".ssh/authorized_keys2",
		".ssh/environment", ".ssh/config", ".gnupg/gpg*.conf", ".latexmkrc", "latexmkrc", ".octaverc", ".sage/init.sage", ".maxima/**",
		".gnuplot", ".wine/**", ".mplayer/**", ".xscreensaver",
	}},
	{Agent, []string{
		".claude/**", "CLAUDE.md", "CLAUDE.local.md", ".claude.json", "claude_desktop_config.json", "managed-settings.json",
		"/etc/claude-code/**", ".codex/**", "AGENTS.md", "AGENTS.override.md", "AGENT.md", ".agents/**", ".agent/**", ".gemini/**", "GEMINI.md",
		".qwen/**", "QWEN.md", ".cursor/**", ".cursorrules", ".cursorignore", ".cursorindexingignore", ".windsurf/**", ".windsurfrules",
		".codeium/**", ".clinerules", ".clinerules/**", ".cline/**", ".roo/**", ".roorules*", ".roomodes", ".kilocode/**", ".kiro/**",
		".trae/**", ".augment/**", ".augment-guidelines", ".amp/**",
		".config/{amp,Claude,claude,codex,cursor,Cursor,gemini,goose,crush,opencode,zed,Code}/**",
		".config/{Code - Insiders,VSCodium,github-copilot,io.datasette.llm,mcp,passepartout-skills}/**", ".opencode/**", "opencode.json",
		"opencode.jsonc", ".crush/**", "crush.json", ".crush.json", "CRUSH.md", ".goose/**", ".goosehints", ".aider.conf.yml", ".aider.model*",
		".continue/**", ".continuerules", ".copilot/**",
		".github/{copilot-instructions.md,instructions/**,prompts/**,chatmodes/**,agents/**,copilot/**}", "copilot-instructions.md", ".mcp.json",
		"mcp.json", "mcp_config.json", "mcp_settings.json", "mcp-config.json", ".mcp/**", ".amazonq/**", ".aws/amazonq/**", ".junie/**",
		".zed/**", ".void/**", ".rules", ".openhands/**", ".devin/**", ".factory/**", ".tabnine/**", ".sourcegraph/**", ".cody/**", ".pearai/**",
		".llm/**", ".hermes/**", ".openclaw/**", ".moltbot/**", ".warp/**", "WARP.md", "SOUL.md", "llms-install.md",
		".vscode/**", ".vscode-server/**", ".vscode-insiders/**", ".vscode-oss/**", "*.code-workspace", ".idea/**", ".fleet/**",
		".sublime-project", "*.sublime-project", "*.sublime-build", ".atom/**", ".nova/**", ".theia/**", ".settings/**", ".vs/**",
		"Library/Application Support/{Code,Cursor,Claude,Windsurf,Zed}/User/**", "Library/Application Support/Claude/**", ".config/JetBrains/**",
		".eclipse/**", ".project",
	}},
	{System, []string{
		"/{etc,usr,bin,sbin,lib,lib32,lib64,libx32,boot,efi,var,run,sys,proc,opt,srv,nix,gnu,snap}/**",
		"/{lost+found,initrd,system,library,applications,cores,windows,program files,sbin.usr-is-merged}/**",
	}},
}

// A file is Secret as well when its name is one of secretStems, or ends in one of secretPlurals, and its extension is one under which
// people keep lists and settings rather than prose and code. An archive is one only under a plural: passwd.tar.gz holds a program's
// source, passwords.zip does not.
var (
	secretStems = wordSet(`credential credentials creds cred secret secrets token tokens password passwords passwd passphrase passwort apikey apikeys
		api_key api-key api_keys api-keys access_token access-token auth_token auth-token refresh_token oauth_token bearer_token keyring client_secret client-secret pass`)
	secretPlurals = wordSet("credentials creds secrets passwords apikeys")
	dataExts      = wordSet(`json yaml yml toml ini xml csv tsv txt env conf cfg properties db sqlite enc bin dat bak old plist list lst xlsx ods tfvars`)
	archiveExts   = wordSet("zip 7z tar tar.gz tgz tar.xz tar.zst")
)

// exempt lists what the table would catch by likeness only. A path whose last element matches is not Secret, unless a directory pattern took it.
var exempt = []string{
	"*.pub", "*.{example,sample,template,dist,tmpl,tpl,j2,erb,schema,md,org,rst,adoc,html,go}",
	"*{.,-,_}{example,sample,template,dummy,fake}.*", "{example,sample,template}{.,-,_}*", "*.{example,sample,template}.*",
	"*{cert,certs,chain,bundle,cacert,ca,certificate,certificates,root,crt,public,pub,pubkey}.pem",
	"{ca,cert,chain,fullchain,isrg,letsencrypt,server-cert,client-cert,public}{-,_}*.pem", "*{-,_,.}pub{.asc,.gpg,.pgp,lic.asc}",
	"*{public,pubkey}*", "*.{tar,gz,xz,bz2,zst,zip,tgz,iso,deb,rpm,jar,exe,dmg,img,sums,sum,txt,whl,pom,apk}.{asc,gpg,pgp}",
	"*sums.{asc,gpg}", "*{-,_}keyring.{gpg,asc}", "{release,inrelease}.{gpg,asc}", "release.key",
	"{.,}known_hosts", "known_hosts.old", "authorized_keys", "authorized_keys2",
}

// exemptTrees hold files that have a secret's name and are public by purpose.
var exemptTrees = []string{
	"/usr/share/**", "/usr/lib/**", "/usr/include/**", "/usr/local/share/**", "/usr/local/lib/**", "/usr/local/go/**", "/etc/ssl/certs/**",
	"/etc/pki/ca-trust/**", "/etc/ca-certificates/**", "/etc/apt/trusted.gpg.d/**", "/etc/apt/keyrings/**",
}

// sinks are the devices every program may use.
var sinks = []string{
	"/dev/{null,zero,full,random,urandom,stdin,stdout,stderr,tty,ptmx}", "/dev/fd/*",
}

// openTrees look like system or device directories and are not.
var openTrees = []string{
	"/dev/shm/*/**", "/var/tmp/*/**", "/run/user/*/*/**", "/run/media/*/*/**", "/dev/mqueue/*/**", "/var/www/*/**", "/srv/*/**",
	"/var/folders/*/**",
}
