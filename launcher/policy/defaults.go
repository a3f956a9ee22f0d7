package policy

// The built-in lists. A person's file adds to them; its drop.read, drop.exec
// and drop.paths take entries off, and its env.pass takes names out of the
// drop patterns. They are in force without any file.

// defaultAllowPaths is what git reads to know who commits and what to ignore.
// Not the whole of ~/.config/git: a credential store may lie in it.
var defaultAllowPaths = []string{
	"~/.gitconfig",
	"~/.config/git/config",
	"~/.config/git/ignore",
	"~/.config/git/attributes",
}

// defaultDenyRead is where credentials and private mail of common tools lie.
// The home directory is hidden anyway; these stay hidden when a directory
// around them is allowed.
var defaultDenyRead = []string{
	"~/.ssh",
	"~/.gnupg",
	"~/.aws",
	"~/.azure",
	"~/.config/gcloud",
	"~/.config/gh",
	"~/.config/glab-cli",
	"~/.config/hub",
	"~/.config/op",
	"~/.config/rclone",
	"~/.config/containers/auth.json",
	"~/.config/git/credentials",
	"~/.config/sops",
	"~/.config/age",
	"~/.git-credentials",
	"~/.kube",
	"~/.docker",
	"~/.oci",
	"~/.netrc",
	"~/.authinfo",
	"~/.authinfo.gpg",
	"~/.npmrc",
	"~/.yarnrc.yml",
	"~/.pypirc",
	"~/.gem/credentials",
	"~/.cargo/credentials",
	"~/.cargo/credentials.toml",
	"~/.m2/settings.xml",
	"~/.m2/settings-security.xml",
	"~/.gradle/gradle.properties",
	"~/.terraform.d/credentials.tfrc.json",
	"~/.terraformrc",
	"~/.vault-token",
	"~/.password-store",
	"~/.local/share/keyrings",
	"~/.pgpass",
	"~/.my.cnf",
	"~/.mozilla",
	"~/.thunderbird",
	"~/.config/google-chrome",
	"~/.config/chromium",
	"~/.config/BraveSoftware",
	"~/.bash_history",
	"~/.zsh_history",
	"~/.python_history",
	"~/.node_repl_history",
	"~/.psql_history",
	"~/.mysql_history",
	"~/Library/Keychains",
	"~/Library/Cookies",
}

// defaultDenyExec is network clients and remote shells. Tools that also work
// on the local machine (git, rsync, package managers) are not in it: for them
// there is the network mode.
var defaultDenyExec = []string{
	"curl", "wget", "wget2", "aria2c", "axel", "http", "https", "xh", "xhs",
	"nc", "ncat", "netcat", "nc.openbsd", "nc.traditional", "socat", "websocat",
	"telnet", "ftp", "tftp", "lftp", "ncftp",
	"ssh", "scp", "sftp", "slogin", "autossh", "sshpass", "dbclient", "mosh", "mosh-client",
	"rsh", "rlogin", "rexec", "rcp", "rclone",
	"lynx", "links", "elinks", "w3m",
}

// defaultEnvDrop is credentials by the names they usually have, and addresses
// of sockets that the box hides, which a program would only fail on. Matching
// ignores case.
var defaultEnvDrop = []string{
	// credentials
	"*TOKEN", "*_TOKEN_*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*_PASS",
	"*CREDENTIAL*", "*_KEY", "*API_KEY*", "*APIKEY*", "*ACCESS_KEY*", "*PRIVATE_KEY*",
	"*_PAT", "*_AUTH", "*_DSN", "*DATABASE_URL", "*_CONNECTION_STRING", "*WEBHOOK_URL",
	"AWS_*", "AZURE_*", "VAULT_*", "OP_SESSION_*", "MYSQL_PWD", "KUBECONFIG", "KRB5CCNAME",
	// sockets and what speaks through them
	"*_SOCK", "*_SOCKET", "SSH_AGENT_PID", "SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS",
	"GPG_AGENT_INFO", "GNOME_KEYRING_*", "DBUS_*_BUS_ADDRESS", "SESSION_MANAGER",
	"DOCKER_HOST", "CONTAINER_HOST", "BUILDKIT_HOST",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "ICEAUTHORITY", "XDG_RUNTIME_DIR",
	"PULSE_SERVER", "PIPEWIRE_REMOTE", "PIPEWIRE_RUNTIME_DIR",
	"I3SOCK", "SWAYSOCK", "HYPRLAND_INSTANCE_SIGNATURE",
	"TMUX", "TMUX_PANE", "STY", "NVIM", "NVIM_LISTEN_ADDRESS", "KITTY_LISTEN_ON",
	"VSCODE_IPC_HOOK*", "VSCODE_GIT_*",
	"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "JOURNAL_STREAM",
}

// The MTU of a restricted network's device, in bytes. The default is the largest
// that slirp4netns is commonly run with and the fastest (docs/performance.md); it
// takes no larger one than MaxMTU, and IPv6 no smaller one than MinMTU.
const (
	DefaultMTU = 65520
	MinMTU     = 1280
	MaxMTU     = 65521
)

// defaults is the policy before any file: network restricted with no hosts,
// which is off. Home must be absolute; Project and Dir are left to Load.
func defaults(home string) *Policy {
	origin := func(key string) Origin { return Origin{Kind: FromDefault, Key: key} }
	p := &Policy{
		Home:    home,
		Network: Mode{Restricted, origin("network")},
		IPv6:    Flag{false, origin("ipv6")},
		MTU:     Number{DefaultMTU, origin("mtu")},
		Nested:  Flag{false, origin("allow.nested")},
	}
	for _, s := range defaultAllowPaths {
		p.Paths = append(p.Paths, Path{Name: home + s[1:], From: origin("allow.paths")})
	}
	for _, s := range defaultDenyRead {
		p.DenyRead = append(p.DenyRead, Path{Name: home + s[1:], From: origin("deny.read")})
	}
	for _, s := range defaultDenyExec {
		p.DenyExec = append(p.DenyExec, Word{s, origin("deny.exec")})
	}
	for _, s := range defaultEnvDrop {
		p.EnvDrop = append(p.EnvDrop, Word{s, origin("env.drop")})
	}
	return p
}
