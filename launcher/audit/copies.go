package audit

import (
	"errors"
	"fmt"
	"log/syslog"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
)

// Sink is a collector that gets a copy of each line.
type Sink interface {
	// Name is the collector's, for warnings.
	Name() string
	// Send hands over one line, without its line end. It may take for ever:
	// nobody waits for it longer than Options.CopyWait.
	Send(e Entry, line []byte) error
}

// copy gives the line to all collectors at once and waits a little, so that the
// copies of a kgate that ends at once (a refusal) are not lost.
func (l *Log) copy(e Entry, line []byte) {
	if len(l.opts.Copies) == 0 {
		return
	}
	warn := l.opts.Warn
	if warn == nil {
		warn = func(error) {}
	}
	type result struct {
		sink int
		err  error
	}
	done := make(chan result, len(l.opts.Copies))
	for i, s := range l.opts.Copies {
		go func() { done <- result{i, s.Send(e, line)} }()
	}
	waiting := make([]bool, len(l.opts.Copies))
	timer := time.NewTimer(l.opts.CopyWait)
	defer timer.Stop()
	for range l.opts.Copies {
		select {
		case r := <-done:
			waiting[r.sink] = true
			if r.err != nil {
				warn(fmt.Errorf("copy line %d of the audit log to %s: %w (the line itself is in %q)", e.Seq, l.opts.Copies[r.sink].Name(), r.err, l.file))
			}
		case <-timer.C:
			for i, s := range l.opts.Copies {
				if !waiting[i] {
					warn(fmt.Errorf("copy line %d of the audit log to %s: not taken within %v (the line itself is in %q)", e.Seq, s.Name(), l.opts.CopyWait, l.file))
				}
			}
			return
		}
	}
}

// Journald returns a collector that is the local systemd journal. The message
// is the line; KGATE_SEQ, KGATE_HASH, KGATE_KIND and KGATE_ID are fields to
// search by. No socket is made before the first line.
func Journald() Sink { return journald{} }

type journald struct{}

func (journald) Name() string { return "journald" }

func (journald) Send(e Entry, line []byte) error {
	priority := journal.PriInfo
	if e.Kind == Block {
		priority = journal.PriWarning
	}
	return journal.Send(string(line), priority, map[string]string{
		"SYSLOG_IDENTIFIER": "kgate",
		"KGATE_SEQ":         strconv.FormatUint(e.Seq, 10),
		"KGATE_HASH":        e.Hash,
		"KGATE_KIND":        e.Kind,
		"KGATE_ID":          e.ID,
	})
}

// Syslog returns a collector that speaks the syslog protocol: the local daemon
// when both are empty, else one at an address of package net ("udp",
// "logs.example:514"). The message is the line, or, when that is longer than
// collectors are known to take, a short line with "cut":true, without arguments
// and reason, by whose seq and hash the whole one is found in the log.
func Syslog(network, address string) Sink { return syslogd{network, address} }

type syslogd struct{ network, address string }

func (s syslogd) Name() string {
	if s.address == "" {
		return "syslog"
	}
	return "syslog at " + s.network + "://" + s.address
}

// syslogMax is the default maximum message of rsyslog and of syslog-ng, 8 KiB,
// less room for the header.
const syslogMax = 8<<10 - 256

func (s syslogd) Send(e Entry, line []byte) (err error) {
	w, err := syslog.Dial(s.network, s.address, syslog.LOG_AUTHPRIV|syslog.LOG_INFO, "kgate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if len(line) > syslogMax {
		line = short(e)
	}
	if e.Kind == Block {
		return w.Warning(string(line))
	}
	return w.Info(string(line))
}

func short(e Entry) []byte {
	b := strconv.AppendUint([]byte(`{"cut":true,"seq":`), e.Seq, 10)
	b = append(b, `,"time":"`...)
	b = e.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	b = appendField(b, "kind", e.Kind)
	b = appendField(b, "id", e.ID)
	b = appendField(b, "hash", e.Hash)
	return append(b, '}')
}
