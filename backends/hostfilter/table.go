package hostfilter

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// limit is how many addresses names may hold open at once.
const limit = 4096

// changer changes the packet filter of one family.
type changer interface {
	open([]key) error
	close([]key) error
}

// table is the addresses that names have opened. All changes to the filter go
// through its one goroutine, which does whatever has come together in one
// transaction.
type table struct {
	filters map[int]changer // by family
	now     func() time.Time
	fixed   map[key]bool      // listed as addresses: always open
	until   map[key]time.Time // opened by names
	ask     chan openRequest
	failed  func(error) // an address whose time is over could not be closed
}

type openRequest struct {
	keys []key
	ttl  time.Duration
	done chan error
}

func newTable(filters map[int]changer, fixed []key, failed func(error)) *table {
	t := &table{
		filters: filters, now: time.Now, failed: failed,
		fixed: map[key]bool{}, until: map[key]time.Time{}, ask: make(chan openRequest, 64),
	}
	for _, k := range fixed {
		t.fixed[k] = true
	}
	return t
}

// open lets packets to the addresses out, on each of the ports (0: any), for
// the TTL and a grace. It returns when the kernel has the rules.
func (t *table) open(addrs []netip.Addr, ports []uint16, ttl time.Duration) error {
	r := request(addrs, ports, ttl)
	t.ask <- r
	return <-r.done
}

func request(addrs []netip.Addr, ports []uint16, ttl time.Duration) openRequest {
	r := openRequest{ttl: ttl, done: make(chan error, 1)}
	for _, a := range addrs {
		for _, p := range ports {
			r.keys = append(r.keys, keys(a.Unmap(), p)...)
		}
	}
	return r
}

// openAll opens what many requests ask for, before run has begun.
func (t *table) openAll(requests []openRequest) error {
	if len(requests) == 0 {
		return nil
	}
	t.serve(requests)
	return <-requests[0].done
}

// run serves open and closes what is over, until stop is closed.
func (t *table) run(stop <-chan struct{}) {
	tick := time.NewTicker(filterTimes.Sweep)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			if err := t.sweep(); err != nil {
				t.failed(err)
			}
		case r := <-t.ask:
			t.serve(append([]openRequest{r}, t.waiting()...))
		}
	}
}

func (t *table) waiting() []openRequest {
	var more []openRequest
	for {
		select {
		case r := <-t.ask:
			more = append(more, r)
		default:
			return more
		}
	}
}

// serve opens what the requests ask for, and answers each.
func (t *table) serve(requests []openRequest) {
	now := t.now()
	var fresh []key
	seen := map[key]bool{}
	for _, r := range requests {
		for _, k := range r.keys {
			if _, ok := t.until[k]; !ok && !t.fixed[k] && !seen[k] {
				seen[k] = true
				fresh = append(fresh, k)
			}
		}
	}
	var err error
	if len(t.until)+len(fresh) > limit {
		err = fmt.Errorf("more than %d addresses are open at once", limit)
	} else {
		err = t.change(fresh, changer.open)
	}
	for _, r := range requests {
		if err == nil {
			for _, k := range r.keys {
				if end := now.Add(r.ttl + filterTimes.Grace); end.After(t.until[k]) && !t.fixed[k] {
					t.until[k] = end
				}
			}
		}
		r.done <- err
	}
}

// sweep closes the addresses whose time is over. Connections that are
// established live on.
func (t *table) sweep() error {
	now := t.now()
	var over []key
	for k, end := range t.until {
		if now.After(end) {
			over = append(over, k)
		}
	}
	if err := t.change(over, changer.close); err != nil {
		return err
	}
	for _, k := range over {
		delete(t.until, k)
	}
	return nil
}

func (t *table) change(ks []key, do func(changer, []key) error) error {
	for _, f := range []int{4, 6} {
		var mine []key
		for _, k := range ks {
			if k.family() == f {
				mine = append(mine, k)
			}
		}
		if len(mine) == 0 {
			continue
		}
		slices.SortFunc(mine, func(a, b key) int { return a.addr.Compare(b.addr) })
		if t.filters[f] == nil {
			return fmt.Errorf("no filter for IPv%d", f)
		}
		if err := do(t.filters[f], mine); err != nil {
			return err
		}
	}
	return nil
}
