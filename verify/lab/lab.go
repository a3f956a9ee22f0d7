// Package lab makes a machine and an internet out of namespaces, as whoever
// runs it and without root: a witness that needs somebody else's servers cannot
// be trusted on a train. The machine has its own user, network, mount and
// process namespaces and sees the real file system, but for /proc and for a
// resolv.conf that names the lab's name server. The internet is a second network
// namespace at the other end of a veth pair.
//
// Who answers where (documentation addresses, RFC 5737 and RFC 3849):
//
//	203.0.113.1            the machine's way out
//	203.0.113.2            the machine itself, on its LAN
//	203.0.113.53           the name server that resolv.conf names
//	203.0.113.54           another resolver, which knows the same names
//	2001:db8:77::54        and a third
//	203.0.113.10, .11      allowed.test, and the addresses of rotate.test
//	203.0.113.20           other.test
//	203.0.113.30           one.shared.test and two.shared.test
//	203.0.113.40           every name below wild.test and many.test
//	2001:db8:77::2         the machine
//	2001:db8:77::10, ::20  allowed.test and other.test, which have AAAA too
//
// On each of the internet's addresses TCP answers on 22, 25, 443, 853 and 9999
// with a line "hello from ADDR:PORT", on 80 and 8080 as HTTP ("/bytes/N" is N
// zero bytes), and on 7 as an echo; UDP answers on 123, 443, 5000 and 9999 with
// "reply from ADDR:PORT: " and what it got. What reaches UDP port 5001 is answered
// by another address, 203.0.113.40 or 2001:db8:77::20. The machine offers "machine-service"
// on TCP and UDP port 8099, on 127.0.0.1 and on every address of its own. All
// of them record what reaches them.
package lab

import (
	"encoding/json"
	"os"
	"syscall"
)

// Options says how the lab differs from the usual one.
type Options struct {
	Upstream string // the address in resolv.conf; "" is 203.0.113.53
}

// Command is a command to run on the lab's machine, in a session of its own.
type Command struct {
	Argv  []string
	Dir   string
	Env   []string
	Files [3]*os.File
}

// Stages of the lab within kgate's own file, by their first argument.
const (
	StageMachine = "verify-machine" // process 1 of the machine
	StageBare    = "verify-bare"    // a box without a filter
	StageProbe   = "verify-probe"   // the client of package probe
)

// request is one message to the machine.
type request struct {
	ID    int
	Op    string
	Argv  []string       `json:",omitempty"`
	Dir   string         `json:",omitempty"`
	Env   []string       `json:",omitempty"`
	Job   int            `json:",omitempty"`
	Sig   syscall.Signal `json:",omitempty"`
	Group bool           `json:",omitempty"`
	Link  string         `json:",omitempty"`
	Words []string       `json:",omitempty"`
	Want  bool           `json:",omitempty"`
}

// reply is the machine's answer to the request with that ID.
type reply struct {
	ID     int
	Error  string   `json:",omitempty"`
	Job    int      `json:",omitempty"`
	Status int      `json:",omitempty"`
	Count  int      `json:",omitempty"`
	Total  int      `json:",omitempty"`
	Lines  []string `json:",omitempty"`
}

// Answer is what a witness says to a question.
type Answer struct {
	Count int      // what matched
	Total int      // what was looked at
	Lines []string // the first few that matched
}

// maxMessage bounds a message; a request that does not fit is an error.
const maxMessage = 192 << 10

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("lab: own message cannot be encoded: " + err.Error())
	}
	return text
}
