package hostfilter

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// A name server that loses datagrams, as one does whose queue overflows, costs a
// launch with many names time and not its start.
func TestLossyResolver(t *testing.T) {
	const lost = 3 // of the datagrams of each name
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{} // used by the one goroutine that reads
	s := &dns.Server{PacketConn: pc, MsgAcceptFunc: accept, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(q)
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(203, 0, 113, 7)}}
		w.WriteMsg(m)
	}), DecorateReader: func(r dns.Reader) dns.Reader { return &lossy{r, seen, lost} }}
	go s.ActivateAndServe()
	defer s.Shutdown()

	var qs []*question
	for i := range 100 {
		qs = append(qs, &question{name: fmt.Sprintf("h%d.lossy.test.", i), qtype: dns.TypeA})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	(&upstream{server: pc.LocalAddr().String()}).askAll(ctx, qs)
	for _, q := range qs {
		if q.err != nil || len(q.addrs) != 1 {
			t.Fatalf("%s: %v, %v", q.name, q.addrs, q.err)
		}
	}
}

// lossy is a reader that loses the first datagrams of each name.
type lossy struct {
	dns.Reader
	seen map[string]int
	lost int
}

func (l *lossy) ReadUDP(conn *net.UDPConn, timeout time.Duration) ([]byte, *dns.SessionUDP, error) {
	for {
		m, session, err := l.Reader.ReadUDP(conn, timeout)
		q := new(dns.Msg)
		if err != nil || q.Unpack(m) != nil || len(q.Question) != 1 {
			return m, session, err
		}
		if l.seen[q.Question[0].Name]++; l.seen[q.Question[0].Name] > l.lost {
			return m, session, err
		}
	}
}
