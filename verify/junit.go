package verify

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// The JUnit report's usual shape: one suite, as Maven Surefire writes it and
// Jenkins' schema (junit-10.xsd of its xUnit plugin) has it.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"` // none: what cannot be shown is skipped
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"` // seconds
		When     string      `xml:"timestamp,attr"`
		Host     string      `xml:"hostname,attr"`
		Notes    []junitNote `xml:"properties>property"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitNote struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
	}
)

// WriteJUnit writes a report as a JUnit XML file. A row of doctor that is READY
// and not proven is a failed case of its own.
func WriteJUnit(w io.Writer, r *Report) error {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost" // what the schema's authors ask for where it is not known
	}
	began := time.Now().Add(-time.Duration(r.Seconds * float64(time.Second)))
	suite := junitSuite{
		Name: "kgate verify", Time: seconds(r.Seconds), When: began.UTC().Format("2006-01-02T15:04:05"), Host: host,
		Notes: []junitNote{{"verdict", string(r.Verdict)}, {"system", runtime.GOOS + "/" + runtime.GOARCH}},
	}
	for _, o := range r.Scenarios {
		c := junitCase{Name: o.Name, Class: "kgate.verify", Time: seconds(o.Seconds), Out: strings.Join(o.Evidence, "\n")}
		switch o.Result {
		case Fail:
			c.Failure = &junitFailure{o.Reason, "scenario", o.Log}
			suite.Failures++
		case Skip:
			c.Skipped = &junitMessage{"not proven: " + o.Reason}
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	for _, row := range r.Rows {
		if row.Status != "READY" || row.Proven || r.Verdict != Unproven {
			continue
		}
		suite.Cases = append(suite.Cases, junitCase{Name: row.Row, Class: "kgate.doctor", Time: seconds(0),
			Failure: &junitFailure{"READY and not proven", "doctor", row.Reason}})
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
