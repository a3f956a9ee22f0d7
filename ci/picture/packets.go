package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	scripts "github.com/kgate-dev/kgate/testdata/scripts"
	"github.com/kgate-dev/kgate/verify"
	"github.com/kgate-dev/kgate/verify/capture"
	"github.com/kgate-dev/kgate/verify/lab"
)

// shown is the scenario whose capture is on the page.
const shown = "other-host-refused"

// packets runs the scenario and lists the packets of the launch that is let
// through, and of the one that is refused, as they were seen on the box's own
// interface.
func packets(kgate, work string) (string, error) {
	dir := filepath.Join(work, "empty")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if err := os.Chdir(dir); err != nil { // doctor speaks of the directory it is in
		return "", err
	}
	defer os.Chdir(here)
	r, err := verify.Run(verify.Config{Scripts: scripts.Files, Kgate: kgate, Only: []string{shown}, Must: []string{"lab", "hostfilter"}, Trace: true})
	if err != nil {
		return "", err
	}
	if r.Verdict != verify.Proven {
		return "", fmt.Errorf("%s: %s: %s", shown, r.Verdict, r.Scenarios[0].Reason)
	}
	t := r.Scenarios[0].Trace
	var b strings.Builder
	launches := 0
	for i, s := range t.Steps {
		if s.Kind != verify.StepRun || s.Words[0] != "kgate" {
			continue
		}
		end := s.To
		if i+1 < len(t.Steps) {
			end = t.Steps[i+1].From
		}
		fmt.Fprintf(&b, "```text\n$ %s\n", strings.Join(s.Words, " "))
		began, n := time.Time{}, 0
		for j := range t.Packets {
			p := &t.Packets[j]
			if p.Link != "box" || p.Time.Before(s.From) || p.Time.After(end) || p.Is("arp") || p.Is("ip6") {
				continue
			}
			if began.IsZero() {
				began = p.Time
			}
			fmt.Fprintf(&b, "%5d ms  %s\n", p.Time.Sub(began).Milliseconds(), about(p))
			n++
		}
		if n == 0 {
			return "", errors.New("a launch with a host list and no packet: the capture cannot be right")
		}
		fmt.Fprintf(&b, "exit status %d\n```\n\n", s.Status)
		if launches++; launches == 2 {
			return b.String(), nil
		}
	}
	return "", fmt.Errorf("%s has %d launches, not two", shown, launches)
}

// about is one packet on one line.
func about(p *capture.Packet) string {
	end := func(port uint16, dst bool) string {
		a := p.Src
		if dst {
			a = p.Dst
		}
		s := a.String()
		if port != 0 {
			s = fmt.Sprintf("%s:%d", a, port)
		}
		if who := lab.Who(a); strings.HasSuffix(who, ".test") {
			s += " (" + who + ")"
		}
		return s
	}
	proto := "TCP"
	if p.Is("udp") {
		proto = "UDP"
	} else if !p.Is("tcp") {
		proto = strings.ToUpper(p.Protos[len(p.Protos)-1])
	}
	s := fmt.Sprintf("%s %s > %s", proto, end(p.SrcPort, false), end(p.DstPort, true))
	if p.Is("tcp") {
		s += " " + flags(p.Flags)
	}
	if len(p.Names) > 0 {
		kind := "asks for"
		if p.Response {
			kind = "answers about"
		}
		s += " " + kind + " " + strings.Join(p.Names, ", ")
	}
	return s
}

// flags are TCP's by their names (RFC 9293, 3.1).
func flags(f uint8) string {
	var out []string
	for i, name := range []string{"FIN", "SYN", "RST", "PSH", "ACK"} {
		if f&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return strings.Join(out, "+")
}
