package hostfilter

import (
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What nft adds is, by iptables' own reading, what iptables-restore would have
// added, and it goes away again.
func TestNFTMakesTheRulesOfIptables(t *testing.T) {
	needLab(t)
	addr := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	families := map[int]struct {
		tool string
		keys []key
	}{
		4: {"iptables-nft", []key{{addr: addr("203.0.113.10")}, {addr("203.0.113.20"), 443, "tcp"}, {addr("203.0.113.20"), 443, "udp"}, {addr("203.0.113.30"), 65535, "tcp"}}},
		6: {"ip6tables-nft", []key{{addr: addr("2001:db8::10")}, {addr("2001:db8::20"), 443, "tcp"}, {addr("2001:db8::20"), 1, "udp"}}},
	}
	for f, tt := range families {
		inNetwork(t, func() {
			run := func(stdin, tool string, args ...string) string {
				cmd := exec.Command(OnPath(tool), args...)
				cmd.Stdin = strings.NewReader(stdin)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v: %s", tool, err, out)
				}
				return string(out)
			}
			rules := func() []string {
				var lines []string
				for l := range strings.Lines(run("", tt.tool+"-save", "-t", "filter")) {
					if strings.HasPrefix(l, "-A KGATE") {
						lines = append(lines, strings.TrimSpace(l))
					}
				}
				slices.Sort(lines)
				return lines
			}
			base, _ := restoreText(Rules(Config{IPv6: true}), f)
			if _, err := newNFT(f); err == nil {
				t.Error("chains are found where there are none")
			}
			run(base, tt.tool+"-restore")
			run(changeText("-A", tt.keys), tt.tool+"-restore", "--noflush")
			want := rules()
			run(base, tt.tool+"-restore")
			n, err := newNFT(f)
			if err != nil {
				t.Error(err)
				return
			}
			if err := n.open(tt.keys); err != nil {
				t.Error(err)
			}
			if got := rules(); !slices.Equal(got, want) || len(got) != len(tt.keys) {
				t.Errorf("got %q, want %q", got, want)
			}
			if err := n.close(tt.keys[:1]); err != nil {
				t.Error(err)
			}
			if got := rules(); len(got) != len(want)-1 {
				t.Errorf("after one is closed: %q", got)
			}
			var many []key
			for i := range 1000 {
				a := [16]byte{0x20, 1, 13: 1, 14: byte(i >> 8), 15: byte(i)}
				many = append(many, key{addr: netip.AddrFrom16(a)})
				if f == 4 {
					many[i].addr = netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)})
				}
			}
			began := time.Now()
			if err := n.open(many); err != nil {
				t.Error(err)
			}
			took := time.Since(began)
			if got := rules(); len(got) != len(want)-1+len(many) {
				t.Errorf("%d rules after a thousand", len(got))
			}
			t.Logf("%s: 1000 rules in %v", fmt.Sprint("IPv", f), took)
			if err := n.close(many); err != nil {
				t.Error(err)
			}
			if got := rules(); len(got) != len(want)-1 {
				t.Errorf("%d rules after a thousand are closed", len(got))
			}
			if err := n.close(many[:1]); err == nil {
				t.Error("a rule that is not there was closed")
			}
			unix.Close(n.fd)
		})
	}
}
