package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// browser is one headless Chromium with one page, driven over a pair of pipes
// (--remote-debugging-pipe): messages of the Chrome DevTools Protocol, each ended
// by a zero byte. https://chromedevtools.github.io/devtools-protocol/ has them.
type browser struct {
	cmd     *exec.Cmd
	in      *os.File
	out     *bufio.Reader
	session string
	last    int
	said    strings.Builder // what it says on its standard error
	events  []event
}

type event struct {
	Method string
	Params json.RawMessage
}

// browsers are the names that Chromium goes by.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// open starts the browser with a profile of its own in dir.
func open(dir string) (*browser, error) {
	var program string
	for _, name := range browsers {
		if file, err := exec.LookPath(name); err == nil {
			program = file
			break
		}
	}
	if program == "" {
		return nil, fmt.Errorf("no Chromium: none of %q is on PATH", browsers)
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	args := []string{"--headless", "--disable-gpu", "--remote-debugging-pipe", "--user-data-dir=" + filepath.Join(dir, "profile"), "about:blank"}
	if os.Geteuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...) // it has none for root
	}
	b := &browser{cmd: exec.Command(program, args...), in: in, out: bufio.NewReader(out)}
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4
	b.cmd.Stderr = &b.said
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	theirIn.Close()
	theirOut.Close()
	// Whatever it hangs on, this ends: the next read then finds the end of the pipe.
	time.AfterFunc(2*time.Minute, b.close)
	var target struct{ TargetID string }
	if err := b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var attached struct{ SessionID string }
	if err := b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Network", "Log", "Runtime", "Accessibility"} {
		if err := b.call(domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *browser) close() {
	syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	b.cmd.Wait()
}

type message struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

func (b *browser) read() (message, error) {
	var m message
	text, err := b.out.ReadBytes(0)
	if err != nil {
		b.cmd.Wait() // its last words are there then
		return m, fmt.Errorf("the browser is gone: %w; it said: %s", err, strings.TrimSpace(b.said.String()))
	}
	return m, json.Unmarshal(text[:len(text)-1], &m)
}

// call sends a command and waits for its answer; events that come meanwhile are
// kept.
func (b *browser) call(method string, params, result any) error {
	b.last++
	if params == nil {
		params = map[string]any{}
	}
	send := map[string]any{"id": b.last, "method": method, "params": params}
	if b.session != "" {
		send["sessionId"] = b.session
	}
	text, err := json.Marshal(send)
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		return err
	}
	for {
		m, err := b.read()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", method, err)
		case m.Method != "":
			b.events = append(b.events, event{m.Method, m.Params})
		case m.ID == b.last && m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case m.ID == b.last && result != nil:
			return json.Unmarshal(m.Result, result)
		case m.ID == b.last:
			return nil
		}
	}
}

// visit loads a page and waits until it is there. Events of earlier pages are
// forgotten.
func (b *browser) visit(url string) error {
	b.events = nil
	if err := b.call("Page.navigate", map[string]any{"url": url}, nil); err != nil {
		return err
	}
	for {
		for _, e := range b.events {
			if e.Method == "Page.loadEventFired" {
				return nil
			}
		}
		m, err := b.read()
		if err != nil {
			return err
		}
		b.events = append(b.events, event{m.Method, m.Params})
	}
}

// eval evaluates JavaScript on the page, waits for a promise, and puts the value
// into result.
func (b *browser) eval(js string, result any) error {
	var said struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
			Text      string
		}
	}
	if err := b.call("Runtime.evaluate", map[string]any{"expression": js, "returnByValue": true, "awaitPromise": true}, &said); err != nil {
		return err
	}
	if said.ExceptionDetails != nil {
		return fmt.Errorf("%s: %s %s", js, said.ExceptionDetails.Text, said.ExceptionDetails.Exception.Description)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(said.Result.Value, result)
}

// click presses the mouse in the middle of an element, as a person would.
func (b *browser) click(selector string) error {
	var at struct{ X, Y float64 }
	quoted, _ := json.Marshal(selector)
	if err := b.eval(`(() => { const e = document.querySelector(`+string(quoted)+`); e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(); return {x: r.x + r.width / 2, y: r.y + Math.min(r.height / 2, 12)}; })()`, &at); err != nil {
		return err
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		if err := b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil); err != nil {
			return err
		}
	}
	return nil
}

// key presses and releases a key that is no character, but for Enter.
func (b *browser) key(name string, code int) error {
	text := ""
	if name == "Enter" {
		text = "\r"
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code}
		if kind == "keyDown" && text != "" {
			params["text"] = text
		}
		if err := b.call("Input.dispatchKeyEvent", params, nil); err != nil {
			return err
		}
	}
	return nil
}

// write types characters into what has the focus.
func (b *browser) write(text string) error {
	return b.call("Input.insertText", map[string]any{"text": text}, nil)
}

// screen sets the size of the window in CSS pixels, and whether it is a
// telephone's.
func (b *browser) screen(width, height int, mobile bool) error {
	return b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}, nil)
}

// media sets the medium ("", "print") and the colour scheme.
func (b *browser) media(medium, scheme string) error {
	return b.call("Emulation.setEmulatedMedia", map[string]any{"media": medium,
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// shot writes a picture of the window, or of the whole page.
func (b *browser) shot(file string, whole bool) error {
	var picture struct{ Data []byte }
	if err := b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole}, &picture); err != nil {
		return err
	}
	return os.WriteFile(file, picture.Data, 0o644)
}
