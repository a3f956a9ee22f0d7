package hostfilter

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// A launch asks for all names together. Each socket is one host socket of
// slirp4netns, and together they have so many questions under way that no queue on
// the way overflows: a resolver's socket holds some 270 of them where its host has
// Linux's own net.core.rmem_default, which counts 768 bytes for each. With 384
// under way one of three launches with 1,000 names lost some.
const (
	bulkSockets = 8
	bulkWindow  = 32
)

// question is one lookup of a launch, and what came of it.
type question struct {
	name  string
	qtype uint16
	answer
	err error
}

// askAll asks all questions at once, within the context's deadline.
func (u *upstream) askAll(ctx context.Context, qs []*question) {
	sockets := min(bulkSockets, (len(qs)+bulkWindow-1)/bulkWindow)
	var wg sync.WaitGroup
	for i := range sockets {
		var share []*question
		for j := i; j < len(qs); j += sockets {
			share = append(share, qs[j])
		}
		wg.Go(func() { u.bulk(ctx, share) })
	}
	wg.Wait()
}

// flight is a question that is under way.
type flight struct {
	q     *question
	msg   *dns.Msg
	wire  []byte
	first time.Time
	tries int
}

// bulk asks over one socket.
func (u *upstream) bulk(ctx context.Context, qs []*question) {
	conn, err := u.dial(ctx, "udp")
	if err != nil {
		for _, q := range qs {
			q.err = err
		}
		return
	}
	defer conn.Close()
	flights := map[uint16]*flight{}
	end, _ := ctx.Deadline()
	buf := make([]byte, 4096)
	var more sync.WaitGroup
	defer more.Wait()
	next := 0
	for next < len(qs) || len(flights) > 0 {
		for ; next < len(qs) && len(flights) < bulkWindow; next++ {
			send(conn, qs[next], flights)
		}
		if ctx.Err() != nil || !time.Now().Before(end) {
			break
		}
		conn.SetReadDeadline(again(conn, flights, end))
		n, err := conn.Read(buf)
		switch {
		case refused(err):
			time.Sleep(5 * time.Millisecond)
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil:
			for _, f := range flights {
				f.q.err = err
			}
			flights = map[uint16]*flight{}
		default:
			u.land(ctx, buf[:n], flights, &more)
		}
	}
	for _, f := range flights {
		f.q.err = errSilent
	}
	for _, q := range qs[next:] {
		q.err = errSilent
	}
}

// send sends one question for the first time.
func send(conn net.Conn, q *question, flights map[uint16]*flight) {
	m := query(q.name, q.qtype)
	for flights[m.Id] != nil {
		m.Id = dns.Id()
	}
	wire, err := m.Pack()
	if err != nil {
		q.err = err
		return
	}
	flights[m.Id] = &flight{q: q, msg: m, wire: wire, first: time.Now()}
	conn.Write(wire) // an error here shows as silence, and is asked again
}

// again asks once more what is due, and returns when something next will be.
func again(conn net.Conn, flights map[uint16]*flight, end time.Time) time.Time {
	soonest := end
	now := time.Now()
	for _, f := range flights {
		if f.tries == len(retries) {
			continue
		}
		due := f.first.Add(retries[f.tries])
		if !due.After(now) {
			conn.Write(f.wire)
			f.tries++
			if f.tries == len(retries) {
				continue
			}
			due = f.first.Add(retries[f.tries])
		}
		if due.Before(soonest) {
			soonest = due
		}
	}
	return soonest
}

// land takes one reply. One that needs more than a datagram is asked for again
// on its own.
func (u *upstream) land(ctx context.Context, wire []byte, flights map[uint16]*flight, more *sync.WaitGroup) {
	m := new(dns.Msg)
	if m.Unpack(wire) != nil {
		return
	}
	f := flights[m.Id]
	if f == nil || !matches(m, f.msg) {
		return
	}
	delete(flights, m.Id)
	f.q.answer = read(m, f.q.name, f.q.qtype)
	unfinished := len(f.q.addrs) == 0 && m.Rcode == dns.RcodeSuccess && f.q.last != plain(f.q.name)
	if m.Truncated || unfinished {
		more.Go(func() { f.q.answer, f.q.err = u.ask(ctx, f.q.name, f.q.qtype) })
	}
}
