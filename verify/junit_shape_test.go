package verify

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shape is what the usual schemas of JUnit reports (junit-10.xsd of Jenkins'
// xUnit plugin, and the stricter one of Apache Ant's reports) have in common: for
// each element its attributes, those it must have, and its children in order.
type shape struct {
	must, may []string
	children  []string // in this order; any number of each
	text      bool
}

var junitShape = map[string]shape{
	"testsuite": {
		must:     []string{"name", "tests", "failures", "errors", "time", "timestamp", "hostname"},
		may:      []string{"skipped", "id", "package", "disabled"},
		children: []string{"properties", "testcase", "system-out", "system-err"},
	},
	"properties": {children: []string{"property"}},
	"property":   {must: []string{"name", "value"}},
	"testcase": {
		must: []string{"name", "classname", "time"}, may: []string{"status", "assertions"},
		children: []string{"failure", "error", "skipped", "system-out", "system-err"},
	},
	"failure":    {must: []string{"type"}, may: []string{"message"}, text: true},
	"error":      {must: []string{"type"}, may: []string{"message"}, text: true},
	"skipped":    {may: []string{"message"}, text: true},
	"system-out": {text: true},
	"system-err": {text: true},
}

var junitTypes = map[string]*regexp.Regexp{
	"tests":     regexp.MustCompile(`^[0-9]+$`),
	"failures":  regexp.MustCompile(`^[0-9]+$`),
	"errors":    regexp.MustCompile(`^[0-9]+$`),
	"skipped":   regexp.MustCompile(`^[0-9]+$`),
	"time":      regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`), // xs:decimal: no exponent
	"timestamp": regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$`),
	"name":      regexp.MustCompile(`.`),
	"hostname":  regexp.MustCompile(`.`),
}

// misshapen returns what in a report the schemas would refuse.
func misshapen(text string) (bad []string) {
	d := xml.NewDecoder(strings.NewReader(text))
	type open struct {
		name string
		at   int // of the last child's place in the order
	}
	var path []open
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return bad
		}
		if err != nil {
			return append(bad, err.Error())
		}
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			s, ok := junitShape[name]
			if !ok {
				bad = append(bad, "element "+name)
			}
			if len(path) == 0 {
				if name != "testsuite" {
					bad = append(bad, "root "+name)
				}
			} else {
				parent := &path[len(path)-1]
				at := slices.Index(junitShape[parent.name].children, name)
				if at < parent.at {
					bad = append(bad, name+" in "+parent.name+" out of order")
				}
				parent.at = at
			}
			var have []string
			for _, a := range token.Attr {
				have = append(have, a.Name.Local)
				if !slices.Contains(s.must, a.Name.Local) && !slices.Contains(s.may, a.Name.Local) {
					bad = append(bad, name+" has an attribute "+a.Name.Local)
				}
				if re := junitTypes[a.Name.Local]; re != nil && !re.MatchString(a.Value) {
					bad = append(bad, name+": "+a.Name.Local+"="+a.Value)
				}
			}
			for _, must := range s.must {
				if !slices.Contains(have, must) {
					bad = append(bad, name+" lacks "+must)
				}
			}
			path = append(path, open{name: name})
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			if len(path) > 0 && !junitShape[path[len(path)-1].name].text && strings.TrimSpace(string(token)) != "" {
				bad = append(bad, "text in "+path[len(path)-1].name)
			}
		}
	}
}

func TestJUnitShape(t *testing.T) {
	hostile := "a\x00b\x1b[31m<&>\"]]>\xff\n\tz\u2028"
	for name, r := range map[string]*Report{
		"nothing": {Verdict: Unproven, Scenarios: []Outcome{}, Rows: []Row{}},
		"each kind": {Verdict: Failed, Seconds: 123456.7, Scenarios: []Outcome{
			{Name: "a", Result: Pass, Evidence: []string{"3 of 9", hostile}, Seconds: 1e-9},
			{Name: "b", Result: Fail, Reason: hostile, Log: hostile, Evidence: []string{"seen before it failed"}, Seconds: 61},
			{Name: "c", Result: Skip, Reason: hostile},
		}},
		"a row that is not proven": {Verdict: Unproven, Scenarios: []Outcome{{Name: "a", Result: Pass}}, Rows: []Row{{Row: "network", Status: "READY", Reason: hostile}}},
	} {
		var b strings.Builder
		if err := WriteJUnit(&b, r); err != nil {
			t.Fatal(err)
		}
		for _, bad := range misshapen(b.String()) {
			t.Errorf("%s: %s in\n%s", name, bad, b.String())
		}
		counted := strings.Count(b.String(), "<testcase ")
		if !strings.Contains(b.String(), fmt.Sprintf("tests=\"%d\"", counted)) {
			t.Errorf("%s: %d cases in\n%s", name, counted, b.String())
		}
	}
}

// The check itself can fail.
func TestJUnitShapeSees(t *testing.T) {
	good := `<testsuite name="n" tests="1" failures="0" errors="0" time="1.0" timestamp="2026-12-01T09:30:00" hostname="h"><testcase name="a" classname="c" time="0"/></testsuite>`
	if bad := misshapen(good); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
	for _, change := range [][2]string{
		{` hostname="h"`, ``}, {`time="1.0"`, `time="1e3"`}, {`09:30:00"`, `09:30:00Z"`}, {`tests="1"`, `tests="-1"`}, {`classname="c" `, ``}, {`"c" `, `"c" row="1" `},
		{`time="0"/>`, `time="0">text</testcase>`}, {`time="0"/>`, `time="0"><failure message="x"/></testcase>`}, {`time="0"/>`, `time="0"><system-out/><skipped/></testcase>`},
		{`</testsuite>`, `<properties/></testsuite>`}, {`</testsuite>`, `<evidence/></testsuite>`}, {`</testsuite>`, ``},
	} {
		if bad := misshapen(strings.Replace(good, change[0], change[1], 1)); len(bad) == 0 {
			t.Errorf("%q for %q goes unseen", change[1], change[0])
		}
	}
}
