package policy

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestXDGMovesTheDefaults(t *testing.T) {
	for name, tt := range map[string]struct {
		env             []string
		shown, denied   string // below home
		notShown        string
		sameAsWithoutIt bool
	}{
		"config":          {env: []string{"XDG_CONFIG_HOME=HOME/cfg"}, shown: "cfg/git/config", denied: "cfg/gh"},
		"data":            {env: []string{"XDG_DATA_HOME=HOME/d/"}, denied: "d/keyrings"},
		"kgate's own":     {env: []string{"XDG_CONFIG_HOME=HOME/.kgate"}, denied: ".kgate/gh", notShown: ".kgate/git/config"},
		"outside home":    {env: []string{"XDG_CONFIG_HOME=HOME/../cfg"}, denied: "../cfg/gh", notShown: "../cfg/git/config"},
		"the usual place": {env: []string{"XDG_CONFIG_HOME=HOME/.config"}, sameAsWithoutIt: true},
		"relative":        {env: []string{"XDG_CONFIG_HOME=cfg"}, sameAsWithoutIt: true},
		"empty":           {env: []string{"XDG_CONFIG_HOME="}, sameAsWithoutIt: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			bare := w.load()
			o := w.options()
			for _, e := range tt.env {
				o.Env = append(o.Env, strings.Replace(e, "=HOME/", "="+w.home+"/", 1))
			}
			p, err := Load(o)
			if err != nil {
				t.Fatal(err)
			}
			at := func(below string) string { return filepath.Join(w.home, below) }
			if tt.shown != "" && !hasPath(p.Paths, at(tt.shown)) {
				t.Errorf("%s is not shown: %v", tt.shown, p.Paths)
			}
			if tt.notShown != "" && hasPath(p.Paths, at(tt.notShown)) {
				t.Errorf("%s is shown", tt.notShown)
			}
			if tt.denied != "" && !hasPath(p.DenyRead, at(tt.denied)) {
				t.Errorf("%s may be read", tt.denied)
			}
			if tt.sameAsWithoutIt && (len(p.Paths) != len(bare.Paths) || len(p.DenyRead) != len(bare.DenyRead)) {
				t.Errorf("%d paths and %d denials, want %d and %d", len(p.Paths), len(p.DenyRead), len(bare.Paths), len(bare.DenyRead))
			}
			for _, d := range bare.DenyRead {
				if !hasPath(p.DenyRead, d.Name) {
					t.Errorf("%s is not denied any more", d.Name)
				}
			}
		})
	}
}
