package lab

import (
	"time"

	"github.com/kgate-dev/kgate/verify/capture"
)

// patience is how long a witness waits for what is expected to arrive.
const patience = time.Second

func (m *machine) sinks(r request) (reply, error) {
	return m.witness(r.Want, func() (Answer, error) { return m.servers.records.find(r.Words) })
}

func (m *machine) packets(r request) (reply, error) {
	match, err := capture.ParseMatch(r.Link, r.Words)
	if err != nil {
		return reply{}, err
	}
	return m.witness(r.Want, func() (Answer, error) { return m.watch.find(match, !r.Want) })
}

// witness asks until something is there, or, when nothing should be, once all
// that was sent has surely arrived.
func (m *machine) witness(want bool, ask func() (Answer, error)) (reply, error) {
	if !want {
		if err := m.watch.sync(); err != nil {
			return reply{}, err
		}
	}
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		a, err := ask()
		if err != nil || !want || a.Count > 0 || time.Now().After(end) {
			return reply{Count: a.Count, Total: a.Total, Lines: a.Lines}, err
		}
	}
}
