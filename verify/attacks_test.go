package verify

import (
	"strings"
	"testing"
)

// TestTally shows that an attack without a control fails a script, and what else does.
func TestTally(t *testing.T) {
	for _, tc := range []struct{ name, script, want string }{
		{"all is well", "exec echo 'through a'\ncontrol\nexec echo 'held a: no'\nheld\ncontrol b\nheld b\nlimit c\ntally", ""},
		{"excused", "exec echo 'held a: no'\nheld\nnocontrol 'not everywhere' a\ntally", ""},
		{"excused, and works", "exec echo 'through a'\ncontrol\nheld a\nnocontrol 'not everywhere' a\ntally", ""},
		{"got through", "exec echo 'through a'\nheld", "got through: a"},
		{"no control", "exec echo 'held a: no such device'\ncontrol\nheld a\ntally", "a: not shown to work without the box: no such device"},
		{"not tried", "control a\ntally", "a: works without the box, and was not tried on it"},
		{"by nobody", "control a by chance", "usage: control NAME"},
		{"by a witness that is not there", "control a by packets box dst=10.0.2.2", "there is no lab"},
		{"nothing said", "exec echo hello\nheld", "no line says"},
		{"nothing made", "tally", "no attack was made"},
		{"a limit that holds", "exec echo 'held a: closed now'\nlimit", "held, although"},
		{"both", "held a\nlimit a\ntally", "both held and a limit"},
		{"an excuse for nothing", "control a\nheld a\nnocontrol 'why' b\ntally", "b: excused from a control, and was not tried"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			result, log := outcome(t, tc.script, Options{})
			if tc.want == "" && result != "pass" || tc.want != "" && (result != "fail" || !strings.Contains(log, tc.want)) {
				t.Errorf("%s:\n%s\nwant %q", result, log, tc.want)
			}
		})
	}
}

// TestAttacksAddUp shows what a report says of all attacks together: those of
// scenarios that failed are not among them.
func TestAttacksAddUp(t *testing.T) {
	r, err := Run(Config{Escape: true, Kgate: fakeKgate(t, `{"rows":[]}`), Scripts: files(
		"escape-a", "control a b\nheld a b\ntally\n", "escape-b", "held c\nlimit d\nnocontrol why c\ntally\n",
		"escape-c", "control e\nheld e\ntally\nstatus 1 true\n", "d", passes)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Attacks == nil || *r.Attacks != (Attacks{Tried: 4, Held: 3, Controls: 3, Limits: 1}) {
		t.Errorf("got %+v", r.Attacks)
	}
	if got := r.Attacks.String(); got != "4 attacks: 3 held, 3 of 4 shown to work without the box, 1 known limits" {
		t.Errorf("got %q", got)
	}
	for _, o := range r.Scenarios {
		if (o.Attacks != nil) != strings.HasPrefix(o.Name, "escape-") {
			t.Errorf("%s: %+v", o.Name, o.Attacks)
		}
	}
}
