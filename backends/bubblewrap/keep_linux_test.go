package bubblewrap

import "testing"

// A box that is ending has a part of its mounts for a moment, and then none. One that
// is uncovered has the others for good.
func TestEndingBoxIsNotUncovered(t *testing.T) {
	defer func() { mountsOf = readMounts }()
	part := []mountLine{{point: "/p"}}
	whole := []mountLine{{point: "/p"}, {point: "/p/.git/config"}}
	for _, tc := range []struct {
		name string
		told [][]mountLine
		want string
	}{
		{"whole", [][]mountLine{whole}, ""},
		{"ending", [][]mountLine{part, nil}, ""},
		{"told in pieces", [][]mountLine{part, whole}, ""},
		{"uncovered", [][]mountLine{part, part}, "/p/.git/config"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			told := tc.told
			mountsOf = func(string) ([]mountLine, error) {
				now := told[0]
				told = told[1:]
				return now, nil
			}
			if got, err := (&box{}).uncovered("", []string{"/p", "/p/.git/config"}); got != tc.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
