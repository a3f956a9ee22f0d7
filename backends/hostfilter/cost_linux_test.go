package hostfilter

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Measured with HOSTFILTER_COST=N launches of each kind, alternating.
func TestCost(t *testing.T) {
	needLab(t)
	n, _ := strconv.Atoi(os.Getenv("HOSTFILTER_COST"))
	if n == 0 {
		t.Skip("HOSTFILTER_COST is not set")
	}
	var records []string
	for i := range 1000 {
		records = append(records, fmt.Sprintf("h%d.test. 60 A 198.51.%d.%d", i, i/250, i%250))
	}
	find := zone(append(records, "allowed.test. 60 A "+webAddr)...)
	byName := map[string][]string{}
	for _, r := range records {
		byName[strings.Fields(r)[0]] = []string{r}
	}
	wait := time.Duration(0)
	answers(t, func(q dns.Question, tcp bool) ([]string, int, time.Duration) {
		if r := byName[q.Name]; r != nil && q.Qtype == dns.TypeA {
			return r, 0, wait
		}
		r, code, _ := find(q, tcp)
		return r, code, wait
	})
	many := func(n int) []string {
		var s []string
		for i := range n {
			s = append(s, fmt.Sprintf("h%d.test", i))
		}
		return s
	}
	kinds := []struct {
		name  string
		hosts []string
		bare  bool
		wait  time.Duration
	}{
		{"bare", nil, true, 0},
		{"one", []string{"allowed.test"}, false, 0},
		{"address", []string{"203.0.113.10"}, false, 0},
		{"one, 20 ms", []string{"allowed.test"}, false, 20 * time.Millisecond},
		{"100, 20 ms", many(100), false, 20 * time.Millisecond},
		{"1000, 20 ms", many(1000), false, 20 * time.Millisecond},
	}
	took := make([][]time.Duration, len(kinds))
	cpu := make([][]time.Duration, len(kinds))
	last := make([]string, len(kinds))
	for range n {
		for i, k := range kinds {
			wait = k.wait
			arg, _ := json.Marshal(launchOrders{Config: Config{Hosts: hosts(t, k.hosts...)}, Argv: []string{"/bin/true"}, Times: true, Bare: k.bare})
			cmd := exec.Command(self(t), "launch", string(arg))
			asUser(cmd)
			began := time.Now()
			out, err := cmd.CombinedOutput()
			took[i] = append(took[i], time.Since(began))
			cpu[i] = append(cpu[i], cmd.ProcessState.SystemTime()+cmd.ProcessState.UserTime())
			last[i] = string(out)
			if err != nil {
				t.Fatalf("%s: %v: %s", k.name, err, out)
			}
		}
	}
	for i, k := range kinds {
		slices.Sort(took[i])
		slices.Sort(cpu[i])
		t.Logf("%-12s median %v, least %v, processor %v; last: %s", k.name, took[i][n/2].Round(10*time.Microsecond), took[i][0].Round(10*time.Microsecond), cpu[i][n/2].Round(10*time.Microsecond), strings.TrimSpace(last[i]))
	}
}

// A download of 256 MiB through the filter and without one, in turn.
func TestThroughput(t *testing.T) {
	needLab(t)
	n, _ := strconv.Atoi(os.Getenv("HOSTFILTER_COST"))
	if n == 0 {
		t.Skip("HOSTFILTER_COST is not set")
	}
	answers(t, zone(abZone...))
	var best [2]float64
	for range n {
		for i, bare := range []bool{false, true} {
			cmd := launchCommand(t, false, launchOrders{Config: Config{Hosts: hosts(t, "allowed.test")}, Bare: bare,
				Argv: []string{self(t), "client", "flood " + webAddr + ":80"}})
			out, _ := cmd.Output()
			var mib, ms float64
			if _, err := fmt.Sscanf(string(out), "flood "+webAddr+":80 => %g MiB in %g ms", &mib, &ms); err != nil || mib != 256 {
				t.Fatalf("bare %v: %q: %v", bare, out, err)
			}
			best[i] = max(best[i], mib/ms*1000)
			t.Logf("bare %v: %.0f MiB/s", bare, mib/ms*1000)
		}
	}
	if ratio := best[0] / best[1]; ratio < 0.9 {
		t.Errorf("through the filter at %.2f of the speed without", ratio)
	}
}

// Many launches at once are all right and leave nothing.
func TestManyAtOnce(t *testing.T) {
	needLab(t)
	answers(t, zone(abZone...))
	const many = 20
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			r := launch(t, false, launchOrders{Config: Config{Hosts: hosts(t, "allowed.test")}},
				"udp "+webAddr+":9000 hi", "lookup allowed.test", "lookup other.test")
			want := "udp " + webAddr + ":9000 hi => hi\nlookup allowed.test => " + webAddr + "\nlookup other.test => error: no such host\n"
			if r.code != 0 || r.out != want {
				t.Errorf("status %d:\n%s%s", r.code, r.out, r.errs)
			}
		})
	}
	wg.Wait()
	nothingLeft(t)
}
