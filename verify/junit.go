package verify

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The JUnit report's usual shape, as CI systems read it.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes a report as a JUnit XML file. A row of doctor that is READY
// and not proven is a failed case of its own.
func WriteJUnit(w io.Writer, r *Report) error {
	suite := junitSuite{Name: "kgate verify", Time: seconds(r.Seconds)}
	for _, o := range r.Scenarios {
		c := junitCase{Name: o.Name, Class: "kgate.verify", Time: seconds(o.Seconds), Out: strings.Join(o.Evidence, "\n")}
		switch o.Result {
		case Fail:
			c.Failure = &junitMessage{o.Reason, o.Log}
			suite.Failures++
		case Skip:
			c.Skipped = &junitMessage{"not proven: " + o.Reason, ""}
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	for _, row := range r.Rows {
		if row.Status != "READY" || row.Proven || r.Verdict != Unproven {
			continue
		}
		suite.Cases = append(suite.Cases, junitCase{Name: row.Row, Class: "kgate.doctor", Time: seconds(0),
			Failure: &junitMessage{"READY and not proven", row.Reason}})
		suite.Failures++
	}
	suite.Tests = len(suite.Cases)
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }
