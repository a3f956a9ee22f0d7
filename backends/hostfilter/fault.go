package hostfilter

import (
	"errors"
	"fmt"
	"strings"
)

// The rows of doctor that this package fills.
const (
	RowSlirp    = "slirp4netns"
	RowTun      = "/dev/net/tun"
	RowEnter    = "nsenter"
	RowFilter   = "iptables"
	RowFilter6  = "ip6tables"
	RowResolver = "resolver"
	RowHosts    = "hosts"
	RowAttach   = "host filter" // the parts together, in a throwaway namespace
)

// Fault is why a filter cannot be made. Row is the row of doctor that says the
// same.
type Fault struct {
	Row  string
	Err  error
	Mend string
}

func (f *Fault) Error() string {
	s := fmt.Sprintf("%s: %v", f.Row, f.Err)
	if f.Mend != "" {
		s += " (" + f.Mend + ")"
	}
	return s
}

func (f *Fault) Unwrap() error { return f.Err }

func fault(row, mend, format string, args ...any) error {
	return &Fault{row, fmt.Errorf(format, args...), mend}
}

// asFault is err as a Fault; one of no other row is of the whole.
func asFault(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return &Fault{Row: RowAttach, Err: err}
}

// The mends that more than one place gives.
const (
	mendResolver = "put a name server with an IPv4 address first in /etc/resolv.conf; 127.0.0.1 will do"
	mendFilter   = "install iptables and load its kernel modules: nf_tables and nft_compat, or for iptables-legacy ip_tables, and xt_conntrack, xt_mark, ipt_REJECT, xt_REDIRECT"
	mendFilter6  = "install ip6tables, or set ipv6: false"
	mendHosts    = "take it off the host list, or mend its name"
	mendTun      = "load the module tun and let users open the device: sudo modprobe tun && sudo chmod 666 /dev/net/tun"
)

func missing(program, pkg string) error {
	return fault(program, "install the package "+pkg, "not installed")
}

// words are the lines a tool printed, on one line and bounded, its progress
// left out.
func words(s string) string {
	var keep []string
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		switch {
		case line == "", strings.HasPrefix(line, "sent tapfd="), strings.HasPrefix(line, "received tapfd="),
			strings.HasPrefix(line, "Try `"), strings.HasPrefix(line, "Error occurred at line:"):
		default:
			keep = append(keep, line)
		}
	}
	s = strings.Join(keep, "; ")
	if len(s) > 400 {
		s = s[:400] + "…"
	}
	return s
}
