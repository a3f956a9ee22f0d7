package launcher

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/backends"
)

func TestPlaced(t *testing.T) {
	const (
		host = "21 26 0:20 / /proc rw - proc proc rw\n26 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
		box  = "134 88 0:46 / / rw,nosuid - tmpfs tmpfs rw\n"
		own  = box + "135 134 0:50 / /run/kgate rw,nosuid - tmpfs tmpfs rw,mode=555\n"
		free = "Name:\tkgate\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n"
		held = "Name:\tkgate\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"
	)
	for _, tt := range []struct {
		name, mounts, status string
		container            bool
		env                  []string
		want                 string
	}{
		{"nowhere", host, free, false, nil, ""},
		{"kgate", own, free, false, nil, "another kgate"},
		{"kgate in a container", own, held, true, nil, "another kgate"},
		{"bubblewrap", box, free, false, nil, "bubblewrap"},
		{"Codex", host, held, false, []string{"CODEX_SANDBOX_NETWORK_DISABLED=1"}, "Codex"},
		{"Codex on macOS", host, free, false, []string{"CODEX_SANDBOX=seatbelt"}, "Codex"},
		{"docker", host, held, true, nil, "a container"},
		{"systemd-nspawn", host, free, false, []string{"container=systemd-nspawn"}, "systemd-nspawn"},
		{"a filter", host, held, false, nil, "filters system calls"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			saved := surroundings
			defer func() { surroundings = saved }()
			surroundings.mounts, surroundings.status = filepath.Join(dir, "mounts"), filepath.Join(dir, "status")
			surroundings.containers = []string{filepath.Join(dir, "container")}
			for name, text := range map[string]string{"mounts": tt.mounts, "status": tt.status} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tt.container {
				if err := os.WriteFile(filepath.Join(dir, "container"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cause := &backends.BlockedError{Findings: []backends.Finding{{Row: "namespaces", Status: backends.Blocked, Reason: "refused", Mend: "a mend"}}}
			got := placed(cause, tt.env)
			row := Placed(append([]backends.Finding{{Row: "markers", Status: backends.Blocked, Mend: "another"}}, cause.Findings...), tt.env)
			if row[0].Mend != "another" || (tt.want == "") != (row[1].Mend == "a mend") || !strings.Contains(row[1].Reason, tt.want) || !strings.Contains(row[1].Reason, "refused") {
				t.Errorf("doctor's rows become %v", row)
			}
			if tt.want == "" {
				if got != error(cause) {
					t.Fatalf("changed to %v", got)
				}
				return
			}
			var blocked *backends.BlockedError
			if !errors.As(got, &blocked) || !strings.Contains(got.Error(), tt.want) || !strings.Contains(got.Error(), "refused") {
				t.Errorf("says %v, want a word of %q", got, tt.want)
			}
		})
	}
}

// What has another cause is not blamed on the box around.
func TestPlacedOthers(t *testing.T) {
	saved := surroundings
	defer func() { surroundings = saved }()
	surroundings.containers = []string{os.DevNull}
	for _, err := range []error{
		errors.New("something else"),
		&backends.NotFoundError{Name: "x", Reason: "not found"},
		&backends.BlockedError{Findings: []backends.Finding{{Row: "words", Reason: "too many"}}},
	} {
		if got := placed(err, nil); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}
