package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"gopkg.in/yaml.v3"
)

const schemas = "../../docs/schema/"

// schemaFor compiles the schema of one kind of policy file.
func schemaFor(t *testing.T, kind Kind) *jsonschema.Schema {
	t.Helper()
	file := "config.schema.json"
	if kind == FromProject {
		file = "project.schema.json"
	}
	text, err := os.ReadFile(schemas + file)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(file, bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// editor says what an editor that knows the schema finds wrong with a file: what
// the reader of YAML says, then what the schema says.
func editor(s *jsonschema.Schema, text []byte) error {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return err // a key that is no text
	}
	var instance any
	if err := json.Unmarshal(plain, &instance); err != nil {
		return err
	}
	return s.Validate(instance)
}

// known reads the table of differences in the schemas' page: the files of the
// corpus that kgate refuses and the schema does not.
func known(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(schemas + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9-]+\\.yaml)` \\| (.+) \\|$").FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = m[2]
	}
	return out
}

// TestSchemaRefusesTheCorpus holds that an editor refuses what kgate refuses,
// but for the differences that are written down, and that those are real.
func TestSchemaRefusesTheCorpus(t *testing.T) {
	user, project := schemaFor(t, FromUser), schemaFor(t, FromProject)
	differs := known(t)
	refused := 0
	for name := range invalid(t) {
		text, err := os.ReadFile(filepath.Join("testdata/invalid", name))
		if err != nil {
			t.Fatal(err)
		}
		s := user
		if strings.HasPrefix(name, "project-") {
			s = project
		}
		err = editor(s, text)
		why, listed := differs[name]
		switch {
		case err == nil && !listed:
			t.Errorf("%s: kgate refuses it, the schema does not, and docs/schema/README.md does not say why:\n%s", name, excerpt(string(text)))
		case err != nil && listed:
			t.Errorf("%s: the page says that the schema takes it (%s), but: %v", name, why, err)
		case err != nil:
			refused++
		}
		delete(differs, name)
	}
	for name := range differs {
		t.Errorf("the page speaks of %s, which is not in the corpus", name)
	}
	if refused < 70 {
		t.Errorf("only %d of the corpus are refused", refused)
	}
}

// TestSchemaTakesWhatKgateTakes: the pages' examples and what init writes.
func TestSchemaTakesWhatKgateTakes(t *testing.T) {
	user, project := schemaFor(t, FromUser), schemaFor(t, FromProject)
	page, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1) {
		text := m[1]
		u, p := editor(user, text), editor(project, text)
		if u != nil && p != nil {
			t.Errorf("neither schema takes the page's\n%s\n%v\n%v", text, u, p)
		}
		n++
	}
	if n < 2 {
		t.Errorf("%d examples in the page", n)
	}
	home := t.TempDir()
	text := template([]Offer{{home + "/.nvm", "x"}}, home, true)
	for _, text := range []string{text, uncommented(text), "", "# nothing\n"} {
		if err := editor(user, []byte(text)); err != nil {
			t.Errorf("what init writes:\n%s\n%v", text, err)
		}
	}
}

// uncommented puts the examples of the template in force.
func uncommented(text string) string {
	return regexp.MustCompile(`(?m)^( *)# (- |nested:)`).ReplaceAllString(text, "$1$2")
}

// TestSchemaAgreesWithTheLoader changes one value of a full file at a time, and
// asks both.
func TestSchemaAgreesWithTheLoader(t *testing.T) {
	full := map[Kind]string{
		FromUser: `{"version":1,"network":"restricted","ipv6":false,
			"allow":{"hosts":["host.example:443"],"paths":["~/data",{"path":"/srv/x","write":true}],"nested":false},
			"deny":{"read":["~/private"],"exec":["npm"]},
			"drop":{"hosts":["a.example"],"paths":["~/.gitconfig"],"read":["~/.npmrc"],"exec":["ssh"]},
			"mask":{"prefixes":["corp_"],"env":["CODE"]},"env":{"pass":["CI_*"],"drop":["CORP_*"]},
			"log":{"journald":false,"syslog":"local"}}`,
		FromProject: `{"version":1,"network":"off","ipv6":false,"deny":{"read":[".env","secrets/"],"exec":["npm"]},
			"drop":{"hosts":["a.example"],"paths":["~/.gitconfig"]},"mask":{"prefixes":["team_"],"env":["CODE"]},"env":{"drop":["NODE_*"]}}`,
	}
	values := []string{`null`, `true`, `false`, `1`, `2`, `1.5`, `""`, `"x"`, `"off"`, `"Off"`, `"local"`, `"udp://a:1"`, `"udp://a"`, `"unix:///s"`, `"ftp://a:1"`,
		`[]`, `{}`, `[1]`, `[true]`, `[[]]`, `[null]`, `[{}]`, `[""]`, `["x"]`, `["abc"]`, `["a b"]`, `["/"]`, `["~"]`, `["~/.kgate"]`, `["~/.kgate/x"]`, `["~/.kgatex"]`, `["~you/x"]`,
		`["$HOME/x"]`, `["a$b"]`, `["a*"]`, `["*"]`, `["*.a.example"]`, `["a.*.example"]`, `["A.example."]`, `["a.example:0"]`, `["a.example:80"]`, `["a.example:99999"]`,
		`["127.1"]`, `["203.0.113.7"]`, `["203.0.113.7:80"]`, `["2001:db8::1"]`, `["[2001:db8::1]:443"]`, `["2001:db8::1:99999"]`, `["http://a.example"]`, `["a.example/x"]`, `["10.0.0.0/8"]`,
		`["-a.example"]`, `["a..example"]`, `["ä.example"]`, `["a_b.example"]`, `["."]`, `[".."]`, `["./x"]`, `["bin/"]`, `["bin/x y"]`, `["A=B"]`, `["A?"]`,
		`{"path":"x"}`, `[{"path":"/x"}]`, `[{"path":"/"}]`, `[{"path":"/x","write":1}]`, `[{"write":true}]`, `[{"path":"/x","wirte":true}]`, `{"read":["x"]}`, `{"hosts":["x.example"]}`}
	for kind, text := range full {
		s := schemaFor(t, kind)
		asked := 0
		ask := func(doc any, what string) {
			text, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			_, loader := parse(text, "t", kind, "/home/u", "/home/u/project")
			asked++
			if schema := editor(s, text); (schema == nil) != (loader == nil) {
				t.Errorf("%s: kgate says %v, the schema %v", what, loader, schema)
			}
		}
		var doc map[string]any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		ask(doc, "as it is")
		each(doc, "", func(set func(any), name string) {
			for _, v := range values {
				var value any
				if err := json.Unmarshal([]byte(v), &value); err != nil {
					t.Fatal(err)
				}
				set(value)
				ask(doc, fmt.Sprintf("%s = %s", name, v))
			}
		})
		if asked < 700 {
			t.Errorf("only %d changes were tried", asked)
		}
	}
}

// each calls visit for every value of a document but its root's, and for a key
// that is not known, with a function that puts another value in its place; the
// old one is put back afterwards.
func each(at map[string]any, prefix string, visit func(set func(any), name string)) {
	keys := []string{"unknown"}
	for k := range at {
		keys = append(keys, k)
	}
	for _, k := range keys {
		old, had := at[k]
		if sub, ok := old.(map[string]any); ok {
			each(sub, prefix+k+".", visit)
		}
		visit(func(v any) { at[k] = v }, prefix+k)
		if had {
			at[k] = old
		} else {
			delete(at, k)
		}
	}
}
