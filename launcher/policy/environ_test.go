package policy

import (
	"reflect"
	"strings"
	"testing"
)

func TestEnvironmentDefaults(t *testing.T) {
	p := newWorld(t).load()
	drop := strings.Fields(`GITHUB_TOKEN GH_TOKEN NPM_TOKEN npm_config__authToken HF_TOKEN GITHUB_TOKEN_2
		ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY STRIPE_SECRET_KEY CLIENT_SECRET DB_PASSWORD PGPASSWORD MYSQL_PWD
		AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_PROFILE AZURE_CLIENT_ID GOOGLE_APPLICATION_CREDENTIALS
		SENTRY_DSN DATABASE_URL NPM_CONFIG__AUTH GH_PAT my_api_key
		SSH_AUTH_SOCK SSH_AGENT_PID DBUS_SESSION_BUS_ADDRESS DOCKER_HOST DISPLAY WAYLAND_DISPLAY XAUTHORITY GPG_AGENT_INFO
		XDG_RUNTIME_DIR TMUX NOTIFY_SOCKET GIT_ASKPASS KUBECONFIG VAULT_ADDR`)
	keep := strings.Fields(`PATH HOME USER LOGNAME SHELL TERM COLORTERM LANG LC_ALL TZ PWD OLDPWD TMPDIR EDITOR PAGER
		GOPATH GOCACHE GOFLAGS CGO_ENABLED JAVA_HOME NODE_ENV NODE_OPTIONS PYTHONPATH VIRTUAL_ENV CARGO_HOME MAKEFLAGS CC CFLAGS
		TOKENIZERS_PARALLELISM MAX_OUTPUT_TOKENS KEYBOARD MONKEY SSH_CONNECTION XDG_CONFIG_HOME XDG_SESSION_TYPE
		GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL HTTP_PROXY no_proxy CI AUTHOR COMPASS PASSAGE CLAUDE_CODE_TMPDIR`)
	var env []string
	for _, n := range append(append([]string{}, drop...), keep...) {
		env = append(env, n+"=value of "+n)
	}
	kept, dropped := p.Environment(env)
	var names []string
	for _, d := range dropped {
		names = append(names, d.Name)
		if d.From.Kind != FromDefault || d.Pattern == "" || strings.Contains(d.Name+d.Pattern, "value") {
			t.Errorf("%+v", d)
		}
	}
	if !reflect.DeepEqual(names, drop) {
		t.Errorf("dropped\n%q, want\n%q", names, drop)
	}
	names = nil
	for _, e := range kept {
		n, v, _ := strings.Cut(e, "=")
		if v != "value of "+n {
			t.Errorf("%q changed", e)
		}
		names = append(names, n)
	}
	if !reflect.DeepEqual(names, keep) {
		t.Errorf("kept\n%q, want\n%q", names, keep)
	}
}

func TestEnvironmentOrder(t *testing.T) {
	w := newWorld(t)
	w.user("env:\n  pass: [A_TOKEN, B_*, P_TOKEN]\n  drop: [U_*, P_*]\n")
	w.proj("env:\n  drop: [b_secret, C, P_TOKEN]\n")
	o := w.options()
	o.EnvPass = []string{"U_1", "C", "D_KEY"}
	p, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"A_TOKEN=1",     // passed by the person
		"a_token=1",     // pass does not ignore case: still dropped by default
		"B_TOKEN=1",     // passed by a pattern
		"B_SECRET=1",    // passed, but dropped by the project, whose case is ignored
		"U_1=1", "U_2=", // dropped by the person; one passed by a flag
		"C=1",       // the project's drop beats the flag
		"D_KEY=x=y", // a default drop, passed by a flag
		"P_TOKEN=1", // passed, dropped by the person and by the project
		"P_X=1",     // dropped by the person
		"odd", "=C:=x", "A_TOKEN=2",
	}
	kept, dropped := p.Environment(env)
	wantKept := []string{"A_TOKEN=1", "B_TOKEN=1", "U_1=1", "D_KEY=x=y", "odd", "=C:=x", "A_TOKEN=2"}
	if !reflect.DeepEqual(kept, wantKept) {
		t.Errorf("kept %q, want %q", kept, wantKept)
	}
	wantDropped := map[string]Kind{"a_token": FromDefault, "B_SECRET": FromProject, "U_2": FromUser, "C": FromProject, "P_TOKEN": FromProject, "P_X": FromUser}
	if len(dropped) != len(wantDropped) {
		t.Errorf("dropped %+v", dropped)
	}
	for _, d := range dropped {
		if kind, ok := wantDropped[d.Name]; !ok || d.From.Kind != kind {
			t.Errorf("dropped %+v, want kind %v", d, kind)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"a", "a", true}, {"a", "ab", false}, {"a", "", false},
		{"a*", "a", true}, {"a*", "ba", false}, {"*a", "bca", true}, {"*a", "ab", false}, {"*a*", "bab", true}, {"*a*", "bb", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"?", "", false}, {"a*b*c", "aXbXbXc", true}, {"a*b*c", "aXcXb", false},
		{"[a]", "a", false}, {"[a]", "[a]", true}, {"**a", "a", true}, {"*ab", "aab", true}, {"*aab", "aaab", true},
		{strings.Repeat("*a", 50) + "b", strings.Repeat("a", 2000), false},
	} {
		if got := glob(tt.pattern, tt.s); got != tt.want {
			t.Errorf("glob(%q, %q) = %v", tt.pattern, tt.s, got)
		}
	}
}
