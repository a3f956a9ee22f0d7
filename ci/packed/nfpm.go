package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// renamed are keys that goreleaser and nfpm spell differently.
var renamed = map[string]string{"package_name": "name", "dependencies": "depends"}

// nfpmConfig makes nfpm's configuration of what .goreleaser.yaml says of
// packages, so that one package can be built without goreleaser, which takes
// minutes to build itself.
func nfpmConfig(text []byte, binary, version, date string) ([]byte, error) {
	// The only templates there are in that part of the file.
	text = bytes.ReplaceAll(text, []byte("{{ .CommitDate }}"), []byte(date))
	var release struct {
		NFPMs []map[string]any `yaml:"nfpms"`
	}
	if err := yaml.Unmarshal(text, &release); err != nil {
		return nil, err
	}
	if len(release.NFPMs) != 1 {
		return nil, fmt.Errorf(".goreleaser.yaml has %d kinds of packages, want 1", len(release.NFPMs))
	}
	p := release.NFPMs[0]
	bindir, _ := p["bindir"].(string)
	contents, _ := p["contents"].([]any)
	if bindir == "" || len(contents) == 0 {
		return nil, errors.New(".goreleaser.yaml: the packages have no bindir, or no contents")
	}
	for _, key := range []string{"bindir", "formats", "file_name_template"} {
		delete(p, key)
	}
	p["contents"] = append(contents, map[string]any{"src": binary, "dst": bindir + "/kgate", "file_info": map[string]any{"mode": 0o755}})
	p["version"], p["arch"], p["platform"] = version, "amd64", "linux"
	rename(p)
	if left, _ := yaml.Marshal(p); strings.Contains(string(left), "{{") {
		return nil, fmt.Errorf("a template is left:\n%s", left)
	}
	return yaml.Marshal(p)
}

func rename(m map[string]any) {
	for k, v := range m {
		if sub, ok := v.(map[string]any); ok {
			rename(sub)
		}
		if to := renamed[k]; to != "" {
			m[to] = v
			delete(m, k)
		}
	}
}
